"""Small runs with texts, and their reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import forgetmap as fm
from command_line import write
from forgetmap.report.payloads.comparison import make_payload
from forgetmap.report.payloads.schema import Payload, Rows

Row = dict[str, Any]

CELLS = {"n11": (1, 1), "n10": (1, 0), "n01": (0, 1), "n00": (0, 0)}


def two_runs(
    folder: Path, counts: Mapping[str, Mapping[str, int]], **columns: Any
) -> tuple[Path, Path]:
    """Write tables before and after, with numbers of items by task and cell; `columns` for all."""
    sides: tuple[list[Row], list[Row]] = ([], [])
    for task, cells in counts.items():
        scores = [CELLS[name] for name, n in cells.items() for _ in range(n)]
        for number, pair in enumerate(scores):
            for rows, score in zip(sides, pair, strict=True):
                rows.append({"task": task, "item": f"{number:04d}", "score": score} | columns)
    return write(folder / "base.jsonl", sides[0]), write(folder / "tuned.jsonl", sides[1])


def payload_of(folder: Path, counts: Mapping[str, Mapping[str, int]], **columns: Any) -> Payload:
    """Return the report on these tables."""
    return make_payload(fm.compare(*two_runs(folder, counts, **columns)))


def with_texts(folder: Path, **texts: str) -> tuple[Path, Path]:
    """Write runs with one forgotten item; `texts` replaces its texts."""
    said = {"question": "What?", "gold": "yes", "prompt": "Q", "response": "R", "answer": "A"}
    row = {"task": "t", "item": "i"} | said | texts
    return (
        write(folder / "base.jsonl", [row | {"score": 1}]),
        write(folder / "tuned.jsonl", [row | {"score": 0, "outcome": "refused"}]),
    )


def find(rows: Rows, **wanted: Any) -> list[tuple[float | None, float | None, float | None]]:
    """Return value, low and high of the matching rows."""
    return [
        (rows.value[place], rows.low[place], rows.high[place])
        for place in range(len(rows.value))
        if all(getattr(rows, name)[place] == value for name, value in wanted.items())
    ]


def column(payload: Payload, name: str, place: int = 0) -> Sequence[Any]:
    """Return one column of the items."""
    return payload.items[place].columns[name]
