"""Labels of groups of items: task, category and tags."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import narwhals as nw

from forgetmap.pairing import SIDES, Pairs, both_sides, side_value


class Label(NamedTuple):
    """Common properties of the items of a group: task, category and tags as recorded."""

    task: str
    category: str | None = None
    tags: str | None = None


def label_columns(pairs: Pairs) -> dict[str, nw.Expr]:
    """Return category and tags of a joined row, if they are recorded."""
    return {
        name: nw.when(both_sides()).then(side_value(name, pairs.columns))
        for name in ("category", "tags")
        if any(f"{name}_{side}" in pairs.columns for side in SIDES)
    }


def label_of(row: Mapping[str, Any]) -> Label:
    """Return the label of a counted row; pandas writes null as NaN."""
    return Label(
        row["task"],
        *(None if is_none(row.get(name)) else row[name] for name in ("category", "tags")),
    )


def split_tags(tags: str) -> list[str]:
    """Split a list of tags that is recorded as one text."""
    return sorted({tag.strip() for tag in tags.split(";")} - {""})


def is_none(value: object) -> bool:
    """Return whether a value is null, which pandas writes as NaN."""
    return value is None or value != value  # noqa: PLR0124
