"""Replay sets: similar to forgotten items, without evaluation items."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

import forgetmap as fm
from command_line import results, write
from disguises import disguised, innocent, measured_items
from forgetmap.comparison import Comparison
from forgetmap.errors import OutputError, UsageError
from forgetmap.export import RowFormat, write_replay

BIRDS: dict[str, Any] = {
    "question": "Which large bird cannot fly over the sea?",
    "options": ["tern", "penguin"],
    "gold": "penguin",
}


def compared(folder: Path, rows: list[dict[str, Any]], after: list[float]) -> Comparison:
    """All right before; after as given."""
    changed = [row | {"score": score} for row, score in zip(rows, after, strict=True)]
    base = write(folder / "base.jsonl", [row | {"score": 1.0} for row in rows])
    return fm.compare(base, write(folder / "tuned.jsonl", changed))


def birds(folder: Path) -> Comparison:
    other = {"question": "Who built the northern light house of Oslo?", "gold": "Nils"}
    rows = [{"task": "t", "item": "1"} | BIRDS, {"task": "t", "item": "2"} | other]
    return compared(folder, rows, [0.0, 1.0])


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_no_measured_item_is_in_a_replay_set(tmp_path: Path) -> None:
    """1,000 rows in disguise among 1,000 others; the limits let everything through."""
    items, dice = measured_items(7, 500), random.Random(7)
    rows: list[dict[str, Any]] = [
        {"task": i.task, "item": i.item, "question": i.question, "gold": i.gold}
        | {"options": list(i.options) or None}
        for i in items
    ]
    comparison = compared(tmp_path, rows, [float(n % 20 > 0) for n in range(len(rows))])
    hidden = [disguised(items[n % len(items)], dice) for n in range(1_000)]
    others = [innocent(dice) for _ in range(1_000)]
    pool = [{"prompt": p, "completion": c} for p, c in [*hidden, *others]]
    dice.shuffle(pool)
    summary = write_replay(
        comparison,
        tmp_path / "replay.jsonl",
        pool=[write(tmp_path / "pool.jsonl", pool)],
        row_format="prompt-completion",
        per_item=2_000,
        min_similarity=0.0,
    )
    written = {(row["prompt"], row["completion"]) for row in read(tmp_path / "replay.jsonl")}
    assert written.isdisjoint(hidden)
    assert len(written) == summary.rows
    assert sum(summary.excluded.values()) == len(hidden)
    assert len(written) + summary.repeated >= 0.97 * len(others)  # a few share no rare word


def test_the_nearest_rows_are_chosen_and_the_rest_is_counted(tmp_path: Path) -> None:
    pool = [
        {"prompt": "Name a bird that lives by the sea.", "completion": "The penguin."},
        {"prompt": "Quiz: " + BIRDS["question"], "completion": "penguin"},
        {"prompt": "Name a bird that lives by the sea!", "completion": "the PENGUIN"},
        {"prompt": "Multiply seven by eight.", "completion": "56"},
    ]
    out, excluded = tmp_path / "replay.jsonl", tmp_path / "excluded.jsonl"
    path = write(tmp_path / "pool.jsonl", pool)
    summary = write_replay(birds(tmp_path), out, pool=[path], excluded=excluded)
    messages = [
        {"role": "user", "content": pool[0]["prompt"]},
        {"role": "assistant", "content": pool[0]["completion"]},
    ]
    assert read(out) == [{"messages": messages}]
    assert read(excluded) == [
        {"file": str(path), "line": 2, "why": "contains", "task": "t", "item": "1"}
    ]
    assert (summary.rows, summary.measured, summary.pool) == (1, 0, 4)
    assert (summary.repeated, summary.forgotten, summary.reached) == (1, 1, 1)
    assert json.loads(summary.to_json())["excluded"]["contains"] == 1


def test_items_that_were_kept_are_as_protected_as_those_that_were_lost(tmp_path: Path) -> None:
    kept = {"prompt": "Who built the northern light house of Oslo?", "completion": "A bird."}
    near = {"prompt": "Which bird swims in the sea?", "completion": "The penguin."}
    path = write(tmp_path / "pool.jsonl", [kept, near])
    summary = write_replay(birds(tmp_path), tmp_path / "r.jsonl", pool=[path], min_similarity=0.0)
    assert (summary.excluded["same"], summary.rows) == (1, 1)


def test_measured_items_only_if_asked_for_and_then_with_a_warning(tmp_path: Path) -> None:
    out = tmp_path / "replay.jsonl"
    summary = write_replay(
        birds(tmp_path), out, include_measured=True, row_format="prompt-completion"
    )
    prompt = f"{BIRDS['question']}\nA. tern\nB. penguin"
    assert read(out) == [{"prompt": prompt, "completion": "B. penguin"}]
    assert summary.measured == 1
    assert "can no longer be evaluated" in summary.notices[0]


def test_the_best_of_every_item_come_first_where_there_is_a_limit(tmp_path: Path) -> None:
    rows = [
        {"task": "t", "item": f"{n}", "question": f"What colour has the {thing} of the king?"}
        for n, thing in enumerate(("crown", "horse", "sword"))
    ]
    comparison = compared(tmp_path, rows, [0.0, 0.0, 0.0])
    pool = [
        {"prompt": f"Tell of the {thing}, part {part}.", "completion": f"A {thing}."}
        for part in range(4)
        for thing in ("crown", "horse", "sword")
    ]
    path = write(tmp_path / "pool.jsonl", pool)
    summary = write_replay(comparison, tmp_path / "r.jsonl", pool=[path], limit=3)
    text = (tmp_path / "r.jsonl").read_text(encoding="utf-8")
    assert summary.rows == summary.reached == 3
    assert all(thing in text for thing in ("crown", "horse", "sword"))


def test_longer_chats_make_all_prompts_lists_of_messages(tmp_path: Path) -> None:
    chat = [
        {"role": "system", "content": "You know birds."},
        {"role": "user", "content": "Name a bird of the sea."},
        {"role": "assistant", "content": "A penguin."},
    ]
    path = write(tmp_path / "pool.jsonl", [{"messages": chat}, {"messages": chat[1:]}])
    comparison = birds(tmp_path)
    out = tmp_path / "r.jsonl"
    write_replay(comparison, out, pool=[path], row_format="prompt-completion")
    assert {"prompt": chat[:2], "completion": chat[2:]} in read(out)
    assert all(isinstance(row["prompt"], list) for row in read(out))


def test_rows_are_as_datasets_reads_them(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    path = write(tmp_path / "pool.jsonl", [{"prompt": "A bird of the sea?", "completion": "Tern."}])
    comparison = birds(tmp_path)
    forms: dict[RowFormat, list[str]] = {
        "chat": ["messages"],
        "prompt-completion": ["prompt", "completion"],
    }
    for form, columns in forms.items():
        out = tmp_path / f"{form}.jsonl"
        write_replay(comparison, out, pool=[path], row_format=form)
        table = datasets.Dataset.from_json(str(out), cache_dir=str(tmp_path / "cache"))
        assert table.column_names == columns


def test_what_cannot_be_left_out_is_not_chosen_from(tmp_path: Path) -> None:
    bare = (
        write(tmp_path / "a.jsonl", results([1, 1])),
        write(tmp_path / "b.jsonl", results([0, 1])),
    )
    path = write(tmp_path / "pool.jsonl", [{"prompt": "Why?", "completion": "So."}])
    with pytest.raises(UsageError, match="2 of 2 evaluation items have no recorded question"):
        write_replay(fm.compare(*bare), tmp_path / "r.jsonl", pool=[path])
    assert not (tmp_path / "r.jsonl").exists()


def test_a_question_on_one_side_is_enough(tmp_path: Path) -> None:
    base = write(tmp_path / "a.jsonl", [{"task": "t", "item": "1", "score": 1.0} | BIRDS])
    tuned = write(tmp_path / "b.jsonl", [{"task": "t", "item": "1", "score": 0.0}])
    near = {"prompt": "Which bird swims in the sea?", "completion": "The penguin."}
    path = write(tmp_path / "pool.jsonl", [near])
    summary = write_replay(fm.compare(base, tuned), tmp_path / "r.jsonl", pool=[path])
    assert (summary.rows, summary.guarded) == (1, 1)


def test_refusals_leave_nothing_behind(tmp_path: Path) -> None:
    comparison, out = birds(tmp_path), tmp_path / "r.jsonl"
    path = write(tmp_path / "pool.jsonl", [{"prompt": "Add 1 and 2.", "completion": "3"}])
    with pytest.raises(UsageError, match="--pool is missing"):
        write_replay(comparison, out)
    with pytest.raises(UsageError, match="none of 1 training example was chosen"):
        write_replay(comparison, out, pool=[path])
    assert not out.exists()
    out.write_text("mine", encoding="utf-8")
    with pytest.raises(OutputError, match="already exists"):
        write_replay(comparison, out, include_measured=True)
    assert out.read_text(encoding="utf-8") == "mine"
    write_replay(comparison, out, include_measured=True, overwrite=True)
    assert len(read(out)) == 1
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_nothing_forgotten_is_nothing_to_replay(tmp_path: Path) -> None:
    comparison = compared(tmp_path, [{"task": "t", "item": "1"} | BIRDS], [1.0])
    with pytest.raises(UsageError, match="forgot no item"):
        write_replay(comparison, tmp_path / "r.jsonl", include_measured=True)


def test_two_calls_write_the_same(tmp_path: Path) -> None:
    dice = random.Random(3)
    pool = [{"prompt": p, "completion": c} for p, c in (innocent(dice) for _ in range(300))]
    path = write(tmp_path / "pool.jsonl", pool)
    comparison = birds(tmp_path)
    for name in ("one", "two"):
        write_replay(comparison, tmp_path / name, pool=[path], min_similarity=0.0)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
