"""CapTrack responses: every table format, repeats, models, and fields of the wrong type."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from forgetmap.errors import UsageError
from forgetmap.records.run import Run
from forgetmap.sources.harnesses.captrack import structured
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


def test_bug_22_numbers_and_truth_values_are_texts(tmp_path: Path) -> None:
    rows = [
        {"id": 1.0, "prompt": "How many?", "gold": 4, "outputs": 4},
        {"id": 2.0, "prompt": "How much?", "gold": 5.0, "outputs": 6.0},
    ]
    pl.DataFrame(rows, strict=False).write_parquet(tmp_path / "gsm8k_subset.parquet")
    run = opened(tmp_path / "gsm8k_subset.parquet")
    assert run.problem_count == 0
    assert scores(run) == {("1", 0): 1.0, ("2", 0): 0.0}
    assert run.texts is not None
    assert run.texts.collect()["response"].to_list() == ["4", "6"]


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        ('["a", "b"]', ["a", "b"]),
        ("['a', 'b']", ["a", "b"]),
        ("['a' 'b']", ["a", "b"]),
        ("['a'\n \"b's\"]", ["a", "b's"]),
        ("array(['a', 'b'], dtype=object)", "array(['a', 'b'], dtype=object)"),
        ("{'title': array(['a'], dtype=object), 'n': 1}", {"title": ["a"], "n": 1}),
        ("[{'a': 1} {'b': None}]", [{"a": 1}, {}]),
        ("[0, 1]", "[0, 1]"),
        ("[0, 1)", "[0, 1)"),
        ("{1, 2}", "{1, 2}"),
        ("[x^2", "[x^2"),
        ("plain", "plain"),
        ('{"a": null, "b": [null, 2.0]}', {"b": [None, 2]}),
        ("__import__('os')", "__import__('os')"),
        ("[__import__('os').getcwd()]", "[__import__('os').getcwd()]"),
    ],
)
def test_bug_21_cells_of_every_kind(cell: str, value: object) -> None:
    assert structured(cell) == value


def test_material_holds_what_scorers_need(tmp_path: Path) -> None:
    def material(task: str, **fields: Any) -> dict[str, Any]:
        path = write(tmp_path / f"{task}.jsonl", [row("a", "A", **fields)])
        texts = opened(path).texts
        assert texts is not None
        found = json.loads(texts.collect()["material"].to_list()[0])
        assert isinstance(found, dict)
        return found

    code = material("humaneval_full", ctx=["def check(f): ...", "f"], gold="")
    assert code == {"tests": "def check(f): ...", "entry_point": "f"}
    mbpp = material("mbpp_full", gold={"test": ["assert f()"], "entry_point": None})
    assert mbpp["tests"] == ["assert f()"]
    ids = material("ifeval_subset", gold=["a:b"], meta={"kwargs": [{"n": 1}]})
    assert (ids["instructions"], ids["kwargs"]) == (["a:b"], [{"n": 1}])
    talk = material("mtbench_turn2", prompt=["One?", "Two?"], turn1_response="1.")
    assert talk == {"turns": ["One?", "Two?"], "first_response": "1."}
    cited = material("qasper_citation", gold={"answer": "x", "context_titles": ["T"]}, ctx="text")
    assert (cited["titles"], cited["context"]) == (["T"], ["text"])


def test_bug_04_winogrande_counts_its_options_from_one(tmp_path: Path) -> None:
    rows = [row("a", "A", gold="1"), row("b", "B", gold=2), row("c", "B", gold="1")]
    run = opened(write(tmp_path / "winogrande_subset.jsonl", rows))
    assert scores(run) == {("a", 0): 1.0, ("b", 0): 1.0, ("c", 0): 0.0}
