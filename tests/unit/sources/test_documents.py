"""Lists of results inside JSON documents."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from forgetmap.errors import ColumnError, FieldError, UnknownFormatError
from forgetmap.records.validate import check_run
from forgetmap.sources.documents import as_rows, find_row_lists, row_lines
from forgetmap.sources.open import open_run
from forgetmap.sources.sniff import sniff

ROWS = [{"question_id": "a", "pass@1": 1}, {"question_id": "b", "pass@1": 0}]
OTHERS = [{"name": "m", "link": "x"}] * 5


def write(path: Path, value: Any, indent: int | None = None) -> Path:
    path.write_text(json.dumps(value, indent=indent), encoding="utf-8")
    return path


def results(source: object, **options: Any) -> list[tuple[str, float]]:
    run = open_run(source, **options)
    return sorted(run.scores.select("item", "score").collect().rows())


@pytest.mark.parametrize("indent", [None, 2])
def test_list_in_a_document_is_found_by_itself(indent: int | None, tmp_path: Path) -> None:
    document = {"models": OTHERS, "data": {"performances": ROWS}, "dates": [1, 2]}
    path = write(tmp_path / "d.json", document, indent)
    assert results(path) == [("a", 1.0), ("b", 0.0)]


@pytest.mark.parametrize(
    "value",
    [
        ROWS,
        {"a": {"pass@1": 1}, "b": {"pass@1": 0}},
        {"a": [{"pass@1": 1}], "b": [{"pass@1": 0}]},
        {"a": True, "b": False},
    ],
)
def test_rows_that_are_named(value: Any, tmp_path: Path) -> None:
    path = write(tmp_path / "d.json", {"about": {"x": 1}, "eval": value})
    found = results(path, column_map={"rows": "eval"})
    assert found == [("a", 1.0), ("b", 0.0)]


def test_averages_by_task_are_not_taken_for_items(tmp_path: Path) -> None:
    path = write(tmp_path / "d.json", {"arc": {"acc": 0.5}, "piqa": {"acc": 0.7}})
    with pytest.raises(UnknownFormatError, match="unknown format"):
        open_run(path)


def test_two_lists_that_look_alike_are_asked_about(tmp_path: Path) -> None:
    path = write(tmp_path / "d.json", {"base": ROWS, "tuned": ROWS[:1]})
    with pytest.raises(ColumnError, match="2 lists of results: base, tuned") as caught:
        open_run(path)
    assert f"{path}#base" in caught.value.hint
    assert results(f"{path}#tuned") == [("a", 1.0)]


def test_many_lists_are_named_by_their_items(tmp_path: Path) -> None:
    document = {"eval": {f"q{n}": [{"passed": n % 2 == 0, "uid": n}] for n in range(30)}}
    found = results(write(tmp_path / "d.json", document))
    assert len(found) == 30
    assert found[0] == ("q0", 1.0)


def test_list_that_is_not_there(tmp_path: Path) -> None:
    path = write(tmp_path / "d.json", {"eval": ROWS})
    with pytest.raises(
        ColumnError, match="no list of objects at 'x'; the lists are eval"
    ) as caught:
        open_run(path, column_map={"rows": "x"})
    assert "--columns rows=eval" in caught.value.hint
    assert results(path, column_map={"rows": "eval"}) == [("a", 1.0), ("b", 0.0)]


def test_fault_is_named_with_its_line(tmp_path: Path) -> None:
    path = write(tmp_path / "d.json", {"x": [1, 2], "eval": [*ROWS, {**ROWS[0], "pass@1": 7}]}, 1)
    with pytest.raises(FieldError) as caught:
        check_run(open_run(path))
    line = path.read_text().splitlines()[(caught.value.line or 0) - 1 :]
    assert '"pass@1": 7' in "".join(line[:3])


def test_lines_of_rows_and_of_lists_by_name(tmp_path: Path) -> None:
    text = '{"n": NaN, "eval": {"a": [\n{"s": 1},\n{"s": 2}],\n"b": [{"s": 3}]}}'
    (tmp_path / "d.json").write_text(text)
    assert list(row_lines(sniff(tmp_path / "d.json"), "eval")) == [2, 3, 4]


def test_most_rows_come_first_and_lists_before_names() -> None:
    document = {"a": {"x": {"s": 1}, "y": {"s": 1}}, "b": ROWS[:1], "c": ROWS}
    assert [one.path for one in find_row_lists(document)] == ["c", "b", "a"]
    assert as_rows([1, 2]) is None
    assert as_rows({}) is None


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("columns", [{}, {"item": "task_id", "score": "is_resolved"}])
def test_a_document_with_an_id_and_an_accuracy_is_no_result_itself(
    columns: dict[str, str], indent: int | None, tmp_path: Path
) -> None:
    """As agents' harnesses write it: trials of tasks, and what became of all of them."""
    trials = [
        {"task_id": task, "trial_name": f"{task}.{number}-of-2", "is_resolved": number == 1}
        for task in ("build", "sort")
        for number in (1, 2)
    ]
    document = {"id": "81c1b86e", "results": trials, "n_resolved": 2, "accuracy": 0.5}
    path = write(tmp_path / "results.json", document, indent)
    run = open_run(path, task="terminal", column_map=columns)
    rows = run.scores.select("item", "repeat", "score").collect().rows()
    assert sorted(rows) == [
        ("build", 0, 1.0), ("build", 1, 0.0), ("sort", 0, 1.0), ("sort", 1, 0.0)
    ]  # fmt: skip
