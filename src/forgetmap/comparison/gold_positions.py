"""Where the right answers stand among the options: `matched` trusts that they stand anywhere.

Counted on the side before alone, without the join: the options were shown as recorded there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from string import ascii_uppercase
from typing import Any

import narwhals as nw

from forgetmap.comparison.cells import Cells, Label, is_none, label_of
from forgetmap.records import Frame


def with_gold_positions(cells: Mapping[Label, Cells], before: Frame) -> dict[Label, Cells]:
    """The counts with where right answers stood, as the side before recorded it.

    Args:
        cells: by task, category and tags.
        before: canonical columns of the results before.
    """
    names = before.collect_schema().names()
    position = _gold_position(names)
    if position is None or "k" not in names:
        return dict(cells)
    labels = [name for name in ("category", "tags") if name in names]
    rows = before.select("task", *labels, "k", position=position)
    counts = rows.group_by("task", *labels, "k", "position").agg(nw.len().alias("n")).collect()
    positions: dict[Label, dict[tuple[float, int], int]] = {}
    for row in counts.rows(named=True):
        if not is_none(row["position"]) and not is_none(row["k"]):
            k, index = float(row["k"]), _from_zero(row["position"])
            if index < k:
                positions.setdefault(label_of(row), {})[k, index] = int(row["n"])
    return {
        label: replace(group, positions=positions.get(label, {})) for label, group in cells.items()
    }


def _gold_position(names: list[str]) -> nw.Expr | None:
    """Place of the right answer, or its letter; null where neither is known."""
    if "gold_index" in names:
        return nw.col("gold_index")
    if "gold" in names:
        return nw.when(nw.col("gold").is_in([*ascii_uppercase])).then(nw.col("gold"))
    return None


def _from_zero(position: Any) -> int:
    return ascii_uppercase.index(position) if isinstance(position, str) else int(position)
