"""CapTrack responses: every table format, repeats, models, and fields of the wrong type."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from forgetmap.errors import UsageError
from forgetmap.records.run import Run
from forgetmap.sources.logs import recognise
from log_writers import opened


def row(name: str, output: object, **other: Any) -> dict[str, Any]:
    return {
        "id": name,
        "prompt": f"Which is {name}?",
        "choices": ["this", "that"],
        "gold": "A",
        "outputs": output,
        **other,
    }


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(map(json.dumps, rows)) + "\n")
    return path


def scores(run: Run) -> dict[tuple[str, int], float | None]:
    rows = run.scores.collect().select("item", "repeat", "score").iter_rows()
    return {(item, repeat): score for item, repeat, score in rows}


def test_the_formats_agree(tmp_path: Path) -> None:
    rows = [row("a", "A"), row("b", "B"), row("c", None)]
    lines = write(tmp_path / "winogrande_subset.jsonl", rows)
    array, table = tmp_path / "other.json", tmp_path / "x.parquet"
    array.write_text(json.dumps(rows))
    pl.DataFrame(rows).write_parquet(table)
    text = tmp_path / "x.csv"
    pl.DataFrame([dict(r, choices=json.dumps(r["choices"])) for r in rows]).write_csv(text)
    expected = {("a", 0): 1.0, ("b", 0): 0.0, ("c", 0): None}
    assert [scores(opened(path)) for path in (lines, array, table, text)] == [expected] * 4


def test_names_of_task_and_model(tmp_path: Path) -> None:
    write(tmp_path / "tiny" / "hotpotqa_citation.jsonl", [row("a", "A")])
    write(tmp_path / "tiny" / "mmlu_pro_table_schema.jsonl", [row("a", "A")])
    run = opened(tmp_path)
    assert run.info.model.name == "tiny"
    assert set(run.info.tasks) == {"hotpotqa.citation", "mmlu_pro.table_schema"}
    write(tmp_path / "other" / "hotpotqa_citation.jsonl", [row("a", "B")])
    with pytest.raises(UsageError, match="2 models: other, tiny"):
        opened(tmp_path)


def test_several_outputs_are_repeats(tmp_path: Path) -> None:
    run = opened(write(tmp_path / "x.jsonl", [row("a", ["A", "B", {"text": "A"}])]))
    assert scores(run) == {("a", 0): 1.0, ("a", 1): 0.0, ("a", 2): None}
    assert [(p.line, p.field) for p in run.problems] == [(1, "outputs")]


def test_row_without_id_is_known_by_its_prompt(tmp_path: Path) -> None:
    rows = [row("a", "A"), row("b", "B")]
    for each in rows:
        del each["id"]
    first = scores(opened(write(tmp_path / "x.jsonl", rows)))
    again = scores(opened(write(tmp_path / "y.jsonl", rows[::-1])))
    assert len(first) == 2
    assert first == again


@pytest.mark.parametrize(
    ("broken", "field", "score"),
    [
        ({"id": {}}, "id", 1.0),
        ({"choices": {"a": 1}}, "choices", None),
        ({"outputs": {"a": 1}}, "outputs", None),
        ({"gold": {"answer": ["A"]}}, None, None),
        ({"gold": "Z"}, None, None),
        ({"prompt": [{"user prompt": 1}, None]}, None, 1.0),
    ],
)
def test_wrong_types(
    tmp_path: Path, broken: dict[str, Any], field: str | None, score: float | None
) -> None:
    run = opened(write(tmp_path / "x.jsonl", [row("a", "B"), row("b", "A", **broken)]))
    found = scores(run)
    assert found.pop(("a", 0)) == 0.0
    assert list(found.values()) == [score]
    assert [(p.line, p.field) for p in run.problems] == ([(2, field)] if field else [])


def test_somebodys_own_table_is_left_alone(tmp_path: Path) -> None:
    assert recognise(write(tmp_path / "x.jsonl", [row("a", "A", score=1.0)])) == []
    assert recognise(write(tmp_path / "y.jsonl", [{"outputs": "A", "gold": "A"}])) == []
