"""The harnesses' own code selects exactly the items that `export rerun` lists."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import forgetmap as fm
from command_line import write
from forgetmap.export import write_rerun


def load(module: str) -> Any:
    """A module of a harness, whatever it warns of when it is loaded."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip(module)


def every_second_lost(folder: Path, ids: list[str]) -> tuple[fm.Comparison, dict[str, list[str]]]:
    """Two tasks with these ids; every second item is forgotten."""
    rows: list[dict[str, Any]] = [
        {"task": task, "item": item, "score": 1.0} for task in ("t", "u") for item in ids
    ]
    changed = [row | {"score": float(place % 2)} for place, row in enumerate(rows)]
    pair = write(folder / "a.jsonl", rows), write(folder / "b.jsonl", changed)
    lost: dict[str, list[str]] = {"t": [], "u": []}
    for row in changed[::2]:
        lost[row["task"]].append(row["item"])
    return fm.compare(*pair), lost


def test_inspect_selects_these_samples(tmp_path: Path) -> None:
    util, samples = load("inspect_ai._eval.task.util"), load("inspect_ai._util.samples")
    ids = ["a*", "b[1]", "c,d", " e", "t:7", "plain", "7", "007x", "1", "10", "*"]
    comparison, lost = every_second_lost(tmp_path, ids)
    write_rerun(comparison, tmp_path / "ids.txt", harness="inspect")
    shell = (tmp_path / "ids.txt").read_text(encoding="utf-8").rstrip("\n")
    for task, items in lost.items():
        asked = util.resolve_task_sample_ids(task, samples.parse_sample_id(shell), ["t", "u"])
        matches = util.sample_id_filter(asked).matches
        assert [item for item in ids if matches(int(item) if item.isdigit() else item)] == items


def test_lm_eval_asks_and_numbers_these_documents(tmp_path: Path) -> None:
    task = load("lm_eval.api.task").Task
    comparison, lost = every_second_lost(tmp_path, [str(n) for n in range(11)])
    write_rerun(comparison, tmp_path / "samples.json", harness="lm-eval")
    for name, positions in json.loads((tmp_path / "samples.json").read_text()).items():
        assert positions == [int(item) for item in lost[name]]
        stub = SimpleNamespace(eval_docs=range(11), config=SimpleNamespace(task=name))
        asked = task.doc_iterator(stub, samples=positions)
        # It calls the n-th document it asks by the n-th position of the list.
        assert all(positions[place] == doc for place, doc in asked)
