"""Run folders for the explorer, written from plain rows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from forgetmap.comparison.comparison import Comparison
from forgetmap.records.folder import write_run
from forgetmap.records.manifest import RunInfo
from forgetmap.serve.store import PairTable, Store
from forgetmap.sources.open import open_run

Row = dict[str, Any]


def write_folder(
    folder: Path, rows: Sequence[Row], *, run_id: str | None = None, parent: str | None = None
) -> Path:
    """Write a run folder with these results."""
    table = folder.with_suffix(".jsonl")
    table.parent.mkdir(parents=True, exist_ok=True)
    table.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    info = RunInfo(run_id=run_id, parent=parent)
    write_run(replace(open_run(table), info=info), folder)
    table.unlink()
    return folder


def results(right: Sequence[int], **same: Any) -> list[Row]:
    """Return one item per digit; 1 is right."""
    return [
        {
            "task": f"t{place % 3}",
            "item": f"i{place:02d}",
            "score": float(score),
            "outcome": "correct" if score else ("no_answer" if place % 2 else "incorrect"),
            "category": ("x", "y", None)[place % 3],
            "question": f"What is {place}?",
            "answer": f"answer {place}" if score else "elsewhere",
            "response": f"I say {'Ja' * (place % 5)} to {place}, with <b>{score}</b>.",
            **same,
        }
        for place, score in enumerate(right)
    ]


BEFORE = [1, 1, 0, 0] * 6
AFTER = [1, 0, 1, 0] * 6


def add_pair(store: Store, comparison: Comparison) -> PairTable:
    """Add a comparison to the store, without its cache."""
    runs = (comparison.before, comparison.after)
    texts = [store.add_texts(run) for run in runs]
    return store.add(runs, texts, lambda: (comparison.pairs, b"kept"))
