"""Items to evaluate again, in the format of each harness, with the ids of its logs."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest

import forgetmap as fm
from command_line import results, write
from forgetmap.comparison import Comparison
from forgetmap.errors import FieldError, HarnessError, UsageError
from forgetmap.evaluation import load_suite
from forgetmap.export import write_rerun

LOGS = Path(__file__).parents[2] / "fixtures" / "logs"


def lm_eval_logs(folder: Path, score: Callable[[int], float]) -> Path:
    """A log of lm-eval whose answers are right as given by the id."""
    shutil.copytree(LOGS / "lm-eval" / "0.4.13" / "log", folder)
    for path in folder.rglob("samples_*.jsonl"):
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        write(path, [row | dict.fromkeys(row["metrics"], score(row["doc_id"])) for row in rows])
    return folder


def inspect_logs(folder: Path, right: set[str]) -> Path:
    """A log of Inspect with these samples right."""
    folder.mkdir()
    source = LOGS / "inspect" / "0.3.285-json-choices" / "log" / "json-choices.json"
    log = json.loads(source.read_text(encoding="utf-8"))
    for sample in log["samples"]:
        sample["scores"]["choice"]["value"] = "C" if sample["id"] in right else "I"
    (folder / "log.json").write_text(json.dumps(log), encoding="utf-8")
    return folder


def table(folder: Path, ids: list[str], after: list[float | None], **same: Any) -> Comparison:
    rows = [{"task": "t", "item": item, "score": 1.0} | same for item in ids]
    changed = [row | {"score": score} for row, score in zip(rows, after, strict=True)]
    return fm.compare(write(folder / "a.jsonl", rows), write(folder / "b.jsonl", changed))


def test_lm_eval_gets_positions_that_its_log_has_in_rising_order(tmp_path: Path) -> None:
    base = lm_eval_logs(tmp_path / "base", lambda _: 1.0)
    tuned = lm_eval_logs(tmp_path / "tuned", lambda doc: float(doc == 1))
    out = tmp_path / "samples.json"
    summary = write_rerun(fm.compare(base, tuned), out, harness="lm-eval")
    samples = json.loads(out.read_text(encoding="utf-8"))
    assert samples == {"tiny_choices": [0, 2, 3], "tiny_repeats": [0, 2], "tiny_sums": [0, 2]}
    for task, positions in samples.items():
        (log,) = tmp_path.glob(f"base/*/samples_{task}_*.jsonl")
        ids = {json.loads(line)["doc_id"] for line in log.read_text().splitlines()}
        assert ids.issuperset(positions)
    assert f"--tasks tiny_choices,tiny_repeats,tiny_sums --samples {out}" in summary.command
    assert summary.items == 7


def test_positions_rise_as_numbers_not_as_texts(tmp_path: Path) -> None:
    comparison = table(tmp_path, ["10", "9", "100", "2"], [0.0, 0.0, 0.0, 0.0])
    write_rerun(comparison, tmp_path / "s.json", harness="lm-eval")
    assert json.loads((tmp_path / "s.json").read_text()) == {"t": [2, 9, 10, 100]}


def test_lm_eval_knows_no_other_ids(tmp_path: Path) -> None:
    with pytest.raises(FieldError, match="not a position") as caught:
        write_rerun(table(tmp_path, ["q-1"], [0.0]), tmp_path / "s.json", harness="lm-eval")
    assert caught.value.field == "item"
    assert not (tmp_path / "s.json").exists()


def test_inspect_gets_the_ids_of_its_log(tmp_path: Path) -> None:
    base = inspect_logs(tmp_path / "base", {"circle", "even", "red"})
    tuned = inspect_logs(tmp_path / "tuned", {"even"})
    out = tmp_path / "ids.txt"
    summary = write_rerun(fm.compare(base, tuned), out, harness="inspect")
    assert out.read_text(encoding="utf-8") == "circle,red\n"
    assert summary.command == f'inspect eval shapes --sample-id "$(cat {out})" --model MODEL'


def test_inspect_takes_ids_for_patterns(tmp_path: Path) -> None:
    ids = ["a*", "b[1]", "c,d", " e", "t:7", "plain"]
    comparison = table(tmp_path, ids, [0.0] * 6)
    write_rerun(comparison, tmp_path / "ids.txt", harness="inspect")
    patterns = (tmp_path / "ids.txt").read_text(encoding="utf-8").strip("\n").split(",")
    assert len(patterns) == len(ids)
    for pattern in patterns:
        bare = pattern.removeprefix("t:") if pattern.startswith("t:t:") else pattern
        assert sum(fnmatch(item, bare) for item in ids) == 1
    clash = table(tmp_path, ["c,d", "c-d"], [0.0, 1.0])
    with pytest.raises(FieldError, match="other ids match"):
        write_rerun(clash, tmp_path / "clash.txt", harness="inspect")


def test_inspect_gets_the_task_before_the_id_where_there_are_several(tmp_path: Path) -> None:
    rows = [*results([1, 1], "one"), *results([1, 1], "two")]
    changed = [row | {"score": 0.0} for row in rows]
    pair = write(tmp_path / "a.jsonl", rows), write(tmp_path / "b.jsonl", changed)
    write_rerun(fm.compare(*pair), tmp_path / "ids.txt", harness="inspect")
    assert (tmp_path / "ids.txt").read_text() == "one:i0,one:i1,two:i0,two:i1\n"


def test_a_list_that_no_shell_takes_is_said_to_be_one(tmp_path: Path) -> None:
    ids = [f"{n:06d}-{'x' * 60}" for n in range(2_000)]
    comparison = table(tmp_path, ids, [0.0] * len(ids))
    summary = write_rerun(comparison, tmp_path / "ids.txt", harness="inspect")
    assert "too long for a command" in summary.notices[0]


def test_lighteval_cannot_and_what_can_is_said(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match="--max-samples") as caught:
        write_rerun(table(tmp_path, ["1"], [0.0]), tmp_path / "x.txt", harness="lighteval")
    assert "--harness forgetmap" in caught.value.hint


def test_ids_of_another_harness_are_refused(tmp_path: Path) -> None:
    base = inspect_logs(tmp_path / "base", {"circle"})
    tuned = inspect_logs(tmp_path / "tuned", set())
    with pytest.raises(UsageError, match="evaluated with inspect, whose ids are unknown") as caught:
        write_rerun(fm.compare(base, tuned), tmp_path / "s.json", harness="lm-eval")
    assert "--harness inspect" in caught.value.hint


def test_forgetmap_asks_the_items_as_they_were_recorded(tmp_path: Path) -> None:
    same = {"question": "Which is a metal?", "options": ["iron", "wood"], "gold": "iron"}
    comparison = table(tmp_path, ["x", "y"], [0.0, 1.0], category="c", **same)
    out = tmp_path / "items.jsonl"
    write_rerun(comparison, out, harness="forgetmap")
    (task,) = load_suite(out).tasks
    (item,) = task.load()
    assert (task.name, task.category, item.id) == ("t", "c", "x")
    assert (item.question, item.options, item.gold) == (
        "Which is a metal?", ("iron", "wood"), "iron",
    )  # fmt: skip


def test_forgetmap_asks_items_of_a_suite_as_there(tmp_path: Path) -> None:
    first = load_suite("basics").tasks[0]
    item = next(iter(first.load()))
    rows = [{"task": first.name, "item": item.id, "score": 1.0}]
    pair = (
        write(tmp_path / "a.jsonl", rows),
        write(tmp_path / "b.jsonl", [rows[0] | {"score": 0.0}]),
    )
    comparison, out = fm.compare(*pair), tmp_path / "items.jsonl"
    with pytest.raises(UsageError, match="does not record question"):
        write_rerun(comparison, out, harness="forgetmap")
    write_rerun(comparison, out, harness="forgetmap", suite="basics")
    (task,) = load_suite(out).tasks
    assert [one.id for one in task.load()] == [item.id]
    assert task.kind == first.kind


def test_gained_unpaired_and_undecided_items(tmp_path: Path) -> None:
    rows = results([1, 0, 1, 1, 1, 1, 1, 1, 1])
    changed = results([1, 1, None, 1, 1, 1, 1, 1, 1, 1])
    pair = write(tmp_path / "a.jsonl", rows), write(tmp_path / "b.jsonl", changed)
    comparison = fm.compare(*pair)

    def ids(show: Any) -> list[str]:
        out = tmp_path / f"{show}.txt"
        write_rerun(comparison, out, harness="inspect", show=show)
        return out.read_text().strip().split(",")

    assert ids("gained") == ["i1"]
    assert ids("unpaired") == ["i2", "i9"]
    assert comparison.result.tasks[0].verdict == "cannot_tell"
    assert len(ids("undecided")) == len(rows)
    with pytest.raises(UsageError, match="no item is forgotten"):
        ids("forgotten")
