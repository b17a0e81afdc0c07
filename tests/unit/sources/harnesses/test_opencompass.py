"""OpenCompass: numbered and listed details, replicas, predictions in parts, broken documents."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from forgetmap.errors import EmptyInputError
from forgetmap.records.run import Run
from forgetmap.sources.logs import recognise
from log_writers import opened

FIXTURES = Path(__file__).parents[3] / "fixtures" / "logs" / "opencompass"
OLD = "0.3/log/20240601_101500/results/acme-chat/tides.json"
NEW = "0.5/log/20260601_101500/results/acme-chat/tides.json"


def results(run: Run) -> dict[tuple[str, int], float | None]:
    rows = run.scores.collect().rows(named=True)
    return {(row["item"], row["repeat"]): row["score"] for row in rows}


def questions(run: Run) -> dict[str, str | None]:
    assert run.texts is not None
    return dict(run.texts.select("item", "question").collect().rows())


def content(name: str) -> Any:
    return json.loads((FIXTURES / name).read_text())


def put(path: Path, value: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))
    return path


def test_run_is_described() -> None:
    run = opened(FIXTURES / "0.5" / "log")
    assert run.info.model.name == "acme-chat"
    assert run.info.harness.name == "opencompass"
    assert run.info.tasks["tides"].main_metric == "accuracy"
    assert {log.stamp for log in recognise(FIXTURES / "0.5" / "log")} == {"20260601_101500"}


def test_numbered_replicas_follow_each_other(tmp_path: Path) -> None:
    flags = [True, False, True, True, True, False]
    details = {
        str(n): {"predictions": "x", "references": "y", "correct": f} for n, f in enumerate(flags)
    }
    path = put(tmp_path / "a.json", {"accuracy (2 runs average)": 66.7, "details": details})
    assert results(opened(path)) == {
        ("0", 0): 1.0,
        ("1", 0): 0.0,
        ("2", 0): 1.0,
        ("0", 1): 1.0,
        ("1", 1): 1.0,
        ("2", 1): 0.0,
    }


@pytest.mark.parametrize(
    ("accuracy", "differences"), [(0.5, 0), (0.005, 0), (1, 0), (0.8, 1), (2, 1)]
)
def test_up_to_1_may_be_percent_or_a_share(
    tmp_path: Path, accuracy: float, differences: int
) -> None:
    details = {
        str(n): {"predictions": "x", "references": "y", "correct": not n} for n in range(200)
    }
    path = put(tmp_path / "a.json", {"accuracy": accuracy, "details": details})
    assert len(opened(path).contradictions) == differences


def test_parts_of_a_data_set_are_told_apart(tmp_path: Path) -> None:
    details = [
        {"example_abbr": name, "correct": [flag]}
        for name, flag in (("easy_0", True), ("hard_0", False))
    ]
    path = put(tmp_path / "a.json", {"details": details})
    assert results(opened(path)) == {("easy_0", 0): 1.0, ("hard_0", 0): 0.0}


def test_predictions_of_another_range_are_not_taken(tmp_path: Path) -> None:
    """Examples 1 and 2 of a data set are predictions 0 and 1; nothing may be guessed."""
    details = [{"example_abbr": f"x_{n}", "correct": [True]} for n in (1, 2)]
    put(tmp_path / "results/m/x.json", {"details": details})
    asked = {str(n): {"origin_prompt": f"q{n}", "prediction": "p"} for n in (0, 1)}
    put(tmp_path / "predictions/m/x.json", asked)
    assert questions(opened(tmp_path)) == {"1": None, "2": None}


def test_whole_predictions_count_before_parts(tmp_path: Path) -> None:
    shutil.copytree(FIXTURES / "0.5" / "log", tmp_path / "log")
    folder = tmp_path / "log/20260601_101500/predictions/acme-chat"
    put(
        folder / "tides.json",
        {str(n): {"origin_prompt": f"q{n % 2}", "prediction": "p"} for n in range(4)},
    )
    run = opened(tmp_path / "log/20260601_101500")
    assert run.texts is not None
    found = run.texts.collect().rows(named=True)
    assert {row["question"] for row in found if row["task"] == "tides"} == {"q0", "q1"}


def test_results_alone_are_enough(tmp_path: Path) -> None:
    shutil.copy(FIXTURES / NEW, tmp_path / "anything")
    assert results(opened(tmp_path / "anything")) == {
        ("0", 0): 1.0,
        ("0", 1): 1.0,
        ("1", 0): 1.0,
        ("1", 1): 0.0,
    }


@pytest.mark.parametrize("flag", [None, [], {}, "perhaps"])
def test_flag_that_says_nothing_is_no_score(tmp_path: Path, flag: object) -> None:
    value = content(OLD)
    value["details"]["0"]["correct"] = flag
    found = results(opened(put(tmp_path / "a.json", value)))
    assert found["0", 0] is None
    assert found["1", 0] == 0.0


@pytest.mark.parametrize("example", [None, 3, [], "x"])
def test_wrong_example_is_a_problem(tmp_path: Path, example: object) -> None:
    old, new = content(OLD), content(NEW)
    old["details"]["1"] = example
    new["details"][1] = example
    numbered, listed = opened(put(tmp_path / "a.json", old)), opened(put(tmp_path / "b.json", new))
    assert results(numbered) == {("0", 0): 1.0, ("2", 0): None}
    assert [problem.field for problem in numbered.problems] == ["details"]
    assert results(listed) == {("1", 0): 1.0, ("1", 1): 0.0}
    assert [problem.field for problem in listed.problems] == ["details.1"]


@pytest.mark.parametrize("field", ["prompt", "references", "predictions", "origin_prediction"])
@pytest.mark.parametrize("value", [None, 7, {}, [{}], [[3]], [None]])
def test_wrong_types_change_no_score(tmp_path: Path, field: str, value: object) -> None:
    changed = content(OLD)
    changed["details"]["0"][field] = value
    before = results(opened(FIXTURES / OLD))
    assert results(opened(put(tmp_path / "a.json", changed))) == before


def test_broken_document_is_a_typed_error(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text((FIXTURES / OLD).read_text()[:-60])
    with pytest.raises(EmptyInputError, match="not valid JSON"):
        opened(path)


def test_broken_predictions_leave_the_scores(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(FIXTURES / "0.5" / "log", tmp_path / "log"))
    for part in (folder / "20260601_101500/predictions/acme-chat").iterdir():
        part.write_text(part.read_text()[:-20])
    run = opened(folder)
    assert run.problem_count == 2
    assert results(run)["0", 1] == 1.0


def test_other_documents_are_not_claimed(tmp_path: Path) -> None:
    put(tmp_path / "a.json", {"details": {"0": {"cost": 3}}, "accuracy": 1})
    put(tmp_path / "b.json", {"details": [1, 2]})
    assert not [log for log in recognise(tmp_path) if log.adapter == "opencompass"]


def test_predictions_of_another_run_are_not_taken(tmp_path: Path) -> None:
    for stamp in ("20260101_000000", "20260102_000000"):
        details = [{"example_abbr": f"x_{n}", "correct": [True]} for n in (0, 1)]
        put(tmp_path / stamp / "results/m/x.json", {"details": details})
        asked = {str(n): {"origin_prompt": f"{stamp} {n}", "prediction": "p"} for n in (0, 1)}
        put(tmp_path / stamp / "predictions/m/x.json", asked)
    run = opened(tmp_path)
    assert questions(run) == {"0": "20260102_000000 0", "1": "20260102_000000 1"}
    assert run.problem_count == 0
