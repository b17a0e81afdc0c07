"""Details of every pair: counts, categories, and the values that papers print."""

from __future__ import annotations

from pathlib import Path

import pytest

from forgetmap.comparison import compare
from forgetmap.study import (
    TOTAL,
    StudyDetail,
    compare_study,
    examine_study,
    model_accuracies,
    parse_study,
    published_detail,
    read_study,
)
from forgetmap.study.detail import is_style_changed
from study_runs import write_told_study

GOLDEN = 5e-9


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("told")
    write_told_study(path, repeats=3)
    return path


@pytest.fixture(scope="module")
def detail(folder: Path) -> StudyDetail:
    return examine_study(read_study(folder / "study.toml"), folder=folder / "runs")


def test_printed_values_are_the_published_roll_up(folder: Path, detail: StudyDetail) -> None:
    for pair in [*detail.pairs, *detail.merges]:
        runs = (folder / "runs" / pair.before, folder / "runs" / pair.after)
        result = compare(*runs, rollup="post-forget").result
        assert result.rolled_up is not None
        groups = {group.name.replace("Total", TOTAL): group for group in result.rolled_up}
        assert len(pair.printed) == len(groups)
        for printed in pair.printed:
            golden = groups[printed.category]
            for name in ("forgetting", "backward_transfer"):
                for field in (name, f"{name}_max"):
                    assert getattr(printed, field) == pytest.approx(golden.mean[field], abs=GOLDEN)
                deviation = getattr(printed, f"{name}_sd")
                assert deviation == pytest.approx(golden.deviation[name], abs=GOLDEN)


def test_counts_add_up_and_values_are_those_of_compare(folder: Path, detail: StudyDetail) -> None:
    study = read_study(folder / "study.toml")
    result = compare_study(study, folder=folder / "runs")
    assert [pair.forgetting for pair in result.pairs] == [
        {one.category: one.forgetting for one in pair.categories} for pair in detail.pairs
    ]
    for pair in detail.pairs:
        for task in pair.tasks:
            assert task.answers == task.kept + task.forgotten + task.gained + task.never
            # Luck falls on both alike.
            net = task.backward_transfer - task.forgetting
            assert net == pytest.approx(task.acc_after - task.acc_before)
        maths = pair.category("maths")
        assert maths is not None
        members = [task for task in pair.tasks if task.category == "maths"]
        mean = sum(task.forgetting for task in members) / len(members)
        assert maths.forgetting.value == pytest.approx(mean)
        assert maths.forgotten == sum(task.forgotten for task in members)


def test_merges_are_compared_with_each_of_their_models(detail: StudyDetail) -> None:
    assert {(pair.before, pair.after) for pair in detail.merges} == {
        ("base", "mix"),
        ("tuned", "mix"),
    }
    assert [gap.model for gap in detail.result.gaps] == ["missing"]
    assert detail.categories[0] == TOTAL
    assert set(detail.categories) == {TOTAL, "maths", "texts"}
    assert detail.groups == ["tuning", "reasoning, low data", "reasoning, high data"]


def test_published_values_stand_as_they_were_printed() -> None:
    detail = published_detail()
    assert (len(detail.pairs), detail.answers) == (31, None)
    coder = next(pair for pair in detail.pairs if pair.after == "Qwen2.5-Coder-14B")
    total = coder.printed[[one.category for one in coder.printed].index(TOTAL)]
    assert (total.forgetting, total.forgetting_sd, total.forgetting_max) == (0.08, 0.001, 0.718)
    assert coder.total.forgetting.value == 0.08
    assert coder.total.category == TOTAL
    assert any(pair.before == "Qwen2.5-7B" for pair in detail.merges)


def test_a_merge_is_asked_as_its_later_model() -> None:
    text = """name = "x"
[[model]]
id = "a"
hub = "a"
style = "few-shot"
[[model]]
id = "b"
hub = "b"
parent = "a"
style = "chat"
[[merge]]
id = "m"
method = "linear"
models = ["a", "b"]
weight = 0.5
"""
    study = parse_study(text, "x")
    changed = {pair.before: is_style_changed(study, pair) for pair in study.merge_pairs}
    assert changed == {"a": True, "b": False}


def test_a_model_has_its_own_accuracy(detail: StudyDetail) -> None:
    assert detail.answers is not None
    rows = {row.category: row for row in model_accuracies(detail.answers, "base")}
    right = detail.answers.right["base"]
    law = [detail.answers.tasks[task] == "law" for task in detail.answers.task]
    assert rows["texts"].accuracy == pytest.approx(right[:, law].mean())
    assert rows[TOTAL].accuracy == pytest.approx(
        (rows["texts"].accuracy + rows["maths"].accuracy) / 2
    )
    assert (rows["maths"].tasks, rows["maths"].items) == (2, 40)
