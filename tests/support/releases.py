"""Two runs of a release with known numbers of items kept, forgotten, gained and never right."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import pyarrow as pa


class Cells(NamedTuple):
    """Numbers of items of a task by transition."""

    kept: int = 0
    lost: int = 0
    gained: int = 0
    never: int = 0


GOOD = Cells(kept=1400, never=600)
BAD = Cells(kept=1200, lost=200, never=600)
CLOSE = Cells(kept=1364, lost=36, never=600)
"""A loss of 1.8 %, neither significantly below nor above 2 %."""


def release(tasks: Mapping[str, Cells], **columns: Any) -> tuple[pa.Table, pa.Table]:
    """Return both runs; `columns` holds columns for all rows of a task."""
    rows: tuple[list[dict[str, Any]], list[dict[str, Any]]] = ([], [])
    for task, cells in tasks.items():
        before = [1] * (cells.kept + cells.lost) + [0] * (cells.gained + cells.never)
        after = [1] * cells.kept + [0] * cells.lost + [1] * cells.gained + [0] * cells.never
        for side, scores in zip(rows, (before, after), strict=True):
            side += [
                {"task": task, "item": str(number), "score": float(score), **columns.get(task, {})}
                for number, score in enumerate(scores)
            ]
    return pa.Table.from_pylist(rows[0]), pa.Table.from_pylist(rows[1])


def one_task(cells: Cells) -> tuple[pa.Table, pa.Table]:
    """Return both runs of a release with one task."""
    return release({"facts": cells})
