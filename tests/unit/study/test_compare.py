"""All pairs of a study from runs on disk: values, gaps, each run read once."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from forgetmap.comparison import compare
from forgetmap.errors import DuplicateKeyError, EmptyInputError, FieldError, UsageError
from forgetmap.sources import open_run
from forgetmap.study import (
    answers,
    compare_study,
    parse_study,
    read_study,
    study_status,
    tell_study,
)
from forgetmap.study.result import StudyResult
from forgetmap.text import blocks_to_text
from run_folders import Row, results, run_of, write
from study_runs import write_study


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("study")
    write_study(path)
    return path


@pytest.fixture(scope="module")
def result(folder: Path) -> StudyResult:
    return compare_study(read_study(folder / "study.toml"), folder=folder / "runs")


def test_every_pair_has_its_values_and_findings(result: StudyResult) -> None:
    assert len(result.pairs) == 6
    assert not result.gaps
    size = next(one for one in result.findings.findings if one.id == "size")
    assert size.answer == "yes"
    assert "6 pairs of 2 series" in size.sentence
    groups = {(one.group, one.category) for one in result.findings.groups}
    assert groups == {("instruction tuning", name) for name in ("total", "maths", "texts")}
    text = blocks_to_text(tell_study(result), 120)
    assert "SUPPORTED  Larger models forget less." in text


def test_series_of_one_name_in_two_stages_are_told_apart() -> None:
    """One falls and one rises; neither is uneven, though both together would be."""
    parts = ['name = "two stages"']
    runs: dict[str, list[Any]] = {}
    for size in (1, 2, 4):
        for family in ("ant", "bee"):
            base = f"{family}-{size}"
            parts.append(f'[[model]]\nid = "{base}"\nlogs = ["x"]\nsize = "{size}B"')
            runs[base] = [run_of(results([1.0] * 40))]
            for stage, lost in (("one", 16 // size), ("two", 4 * size)):
                name = f"{base}-{stage}"
                parts.append(
                    f'[[model]]\nid = "{name}"\nlogs = ["x"]\nsize = "{size}B"\n'
                    f'series = "same"\nparent = "{base}"\nstage = "{stage}"'
                )
                runs[name] = [run_of(results([0.0] * lost + [1.0] * (40 - lost)))]
    result = compare_study(parse_study("\n".join(parts), "x"), runs)
    size_finding = next(one for one in result.findings.findings if one.id == "size")
    assert "Not monotone" not in size_finding.sentence


def test_values_are_those_of_a_comparison(folder: Path, result: StudyResult) -> None:
    pair = result.pairs[0]
    single = compare(folder / "runs" / pair.before, folder / "runs" / pair.after).result
    tasks = {task.name: task.forgetting.value for task in single.tasks}
    maths = (tasks["sums"] + tasks["proofs"]) / 2  # type: ignore[operator]
    found = pair.forgetting
    assert found["maths"].value == pytest.approx(maths)
    assert found["total"].value == pytest.approx((maths + tasks["law"]) / 2)  # type: ignore[operator]
    assert found["total"].low is not None
    assert found["total"].low < found["total"].value  # type: ignore[operator]


def test_each_run_is_read_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []

    def open_and_count(source: Any) -> Any:
        opened.append(Path(source).name)
        return open_run(source)

    monkeypatch.setattr(answers, "open_run", open_and_count)
    compare_study(read_study(folder / "study.toml"), folder=folder / "runs")
    assert len(opened) == 12
    assert len(set(opened)) == 12


def test_missing_models_leave_gaps(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder / "runs", tmp_path / "runs")
    shutil.rmtree(tmp_path / "runs" / "ant-1-it")
    study = read_study(folder / "study.toml")
    result = compare_study(study, folder=tmp_path / "runs")
    assert len(result.pairs) == 5
    assert [gap.model for gap in result.gaps] == ["ant-1-it"]
    assert "no run of ant-1-it" in blocks_to_text(tell_study(result), 120)
    status = study_status(study, tmp_path / "runs")
    assert (status.with_runs, status.models, status.ready, status.pairs) == (11, 12, 5, 6)
    with pytest.raises(UsageError, match="no pair of small"):
        compare_study(study, folder=tmp_path)


def test_logs_are_found_beside_the_file(tmp_path: Path) -> None:
    file = write_study(tmp_path, logs=True)
    assert study_status(read_study(file)).ready == 6


TWO = """name = "two"
[[model]]
id = "a"
logs = ["a"]
[[model]]
id = "b"
logs = ["b"]
parent = "a"
"""


def runs_of(**scores: list[Row]) -> dict[str, list[Any]]:
    return {name: [run_of(rows)] for name, rows in scores.items()}


def test_a_pair_without_common_items_is_an_error_with_its_line(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write(tmp_path / name, results([1.0, 0.0], task=name))
    (tmp_path / "study.toml").write_text(TWO)
    with pytest.raises(FieldError) as caught:
        compare_study(read_study(tmp_path / "study.toml"))
    assert (caught.value.line, "no item in common" in caught.value.message) == (8, True)


def test_few_common_items_are_said() -> None:
    study = parse_study(TWO, "x")
    runs = runs_of(a=results([1.0] * 4), b=results([1.0] * 10))
    result = compare_study(study, runs)
    assert result.pairs[0].items == 4
    assert "few_shared" in {notice.code for notice in result.findings.notices}


def test_items_are_the_same_by_content_where_it_is_known() -> None:
    def rows(order: list[int], scores: list[float]) -> list[Row]:
        return [
            {"task": "t", "item": f"i{n}", "question": f"q{at}", "gold": "g", "score": score}
            for n, (at, score) in enumerate(zip(order, scores, strict=True))
        ]

    runs = runs_of(a=rows([0, 1, 2], [1.0, 0.0, 1.0]), b=rows([2, 0, 1], [0.0, 1.0, 0.0]))
    found = answers.read_answers(runs)
    assert found.right["a"][0].tolist() == [1.0, 0.0, 1.0]
    assert found.right["b"][0].tolist() == [1.0, 0.0, 0.0]


def test_twins_repeats_options_and_missing_scores() -> None:
    same = {"task": "t", "question": "q", "gold": "g", "k": 4}
    one: list[Row] = [
        {**same, "item": item, "repeat": repeat, "score": score}
        for item, repeat, score in (("x", 0, 1.0), ("y", 0, 0.0), ("x", 1, None), ("y", 1, 1.0))
    ]
    found = answers.read_answers(runs_of(a=one))
    assert np.array_equal(found.right["a"], [[1.0, 0.0], [np.nan, 1.0]], equal_nan=True)
    assert found.luck.tolist() == pytest.approx([1 / 3, 1 / 3])


def test_a_task_table_fills_in_what_is_missing() -> None:
    rows = results([1.0], task="bbh:navigate")
    found = answers.read_answers(runs_of(a=rows), task_table="corrected")
    assert (found.categories, found.luck.tolist()) == (("Logic",), [1.0])


def test_merging_is_compared_with_the_later_model() -> None:
    merge = '[[merge]]\nid = "m"\nmethod = "linear"\nmodels = ["a", "b"]\nweight = 0.5\n'
    good, bad, half = [1.0] * 40, [0.0] * 20 + [1.0] * 20, [0.0] * 5 + [1.0] * 35
    runs = runs_of(a=results(good), b=results(bad), m=results(half))
    result = compare_study(parse_study(TWO + merge, "x"), runs)
    merging = result.findings.findings[-1]
    assert (merging.id, merging.answer) == ("merging", "yes")
    assert merging.evidence[0].estimate.value == pytest.approx(5 / 40 - 20 / 40)


def test_logs_that_overlap_are_refused() -> None:
    twice = [run_of(results([1.0, 0.0])), run_of(results([1.0]))]
    with pytest.raises(DuplicateKeyError, match="a has two results for item 'i0' of t"):
        answers.read_answers({"a": twice})
    apart = [run_of(results([1.0])), run_of(results([0.0], task="u"))]
    assert answers.read_answers({"a": apart}).right["a"].tolist() == [[1.0, 0.0]]


def test_a_study_of_ignored_tasks_alone_is_refused() -> None:
    rows = results([1.0], task="bbh:dyck_languages")
    study = parse_study(f'task_table = "as-run"\n{TWO}', "x")
    with pytest.raises(EmptyInputError, match="ignores"):
        compare_study(study, runs_of(a=rows, b=rows))
