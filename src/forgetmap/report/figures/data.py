"""Numbers of a payload, prepared for figures."""

from __future__ import annotations

import math
from collections.abc import Sequence

from forgetmap.comparison import GroupResult
from forgetmap.report.figures.figure import Record, as_table
from forgetmap.report.payloads.schema import Direction, DriftRows, Level, Payload, Rows
from forgetmap.text import share

MAX_GROUPS = 40
"""Maximum number of lines in a figure; the groups with the largest losses are drawn."""


def rows_as_records(rows: Rows | DriftRows) -> list[Record]:
    """Return one dict per row for Vega; values that are not finite are null."""
    names = type(rows).model_fields
    columns = [getattr(rows, name) for name in names]
    return [dict(zip(names, map(_finite, row), strict=True)) for row in zip(*columns, strict=True)]


def _finite(value: object) -> object:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def clipped(record: Record) -> Record:
    """Clip an estimate to [0, 1] for drawing: bounds far outside would stretch axes."""
    ends = {
        name: min(max(record[name], 0.0), 1.0)
        for name in ("value", "low", "high")
        if record[name] is not None
    }
    return record | ends


def clipped_note(payload: Payload, *, limits: bool = False) -> str:
    """Return a sentence about clipping; empty if nothing that is drawn is clipped.

    Args:
        payload: the report.
        limits: whether intervals are drawn too.
    """
    rows = payload.rows
    columns = (rows.value, rows.low, rows.high) if limits else (rows.value,)
    numbers = (number for column in columns for number in column)
    beyond = any(number is not None and not 0 <= number <= 1 for number in numbers)
    return " Shares are drawn between 0% and 100%; the table has the full values." * beyond


def rows_at(payload: Payload, levels: Sequence[Level]) -> dict[str, list[object]]:
    """Return the rows of some levels as a table."""
    return as_table(
        [record for record in rows_as_records(payload.rows) if record["level"] in levels]
    )


def counted_share(group: GroupResult, direction: Direction = "forgetting") -> float | None:
    """Return the share of all items that was forgotten or gained, as counted."""
    estimate = group.forgetting if direction == "forgetting" else group.backward_transfer
    return estimate.value


def named_level(payload: Payload) -> Level:
    """Return categories if there are any, else tasks."""
    return "category" if "category" in payload.rows.level else "task"


def fine_level(payload: Payload) -> Level:
    """Return tasks, or categories if there is a single task."""
    return "task" if len(payload.comparisons[0].tasks) > 1 else named_level(payload)


def groups(payload: Payload, comparison: int, level: Level) -> list[GroupResult]:
    """Return the groups of one level: the largest proven losses first, then the most forgotten."""
    result = payload.comparisons[comparison]
    own = result.categories if level == "category" else result.tasks
    return sorted(
        own,
        key=lambda group: (
            -max(group.loss.low or 0.0, 0.0), -(counted_share(group) or 0.0), group.name,
        ),
    )  # fmt: skip


def drawn_groups(payload: Payload, comparison: int, level: Level) -> list[GroupResult]:
    """Return the groups that are drawn."""
    return groups(payload, comparison, level)[:MAX_GROUPS]


def left_out(payload: Payload, level: Level) -> str:
    """Return a sentence on the groups that are not drawn; empty if all are."""
    more = len(groups(payload, 0, level)) - MAX_GROUPS
    return f" The {MAX_GROUPS} with the largest losses are drawn, {more:,} more are not." * (
        more > 0
    )


def plural(level: Level) -> str:
    """Return the plural name of a level."""
    return "categories" if level == "category" else f"{level}s"


def names_after(payload: Payload) -> list[str]:
    """Return the name of each comparison: its model after, numbered if names repeat."""
    names = [comparison.after.name for comparison in payload.comparisons]
    compared = [names[index] for index in each_pair(payload)]
    return [
        f"{name} ({index + 1})" if compared.count(name) > 1 else name
        for index, name in enumerate(names)
    ]


def each_pair(payload: Payload) -> list[int]:
    """Return the comparisons to show side by side; the first of a chain repeats its last."""
    places = list(range(len(payload.comparisons)))
    return places[1:] if payload.kind == "chain" else places


def extremes(
    payload: Payload, level: Level, direction: Direction = "forgetting", comparison: int = 0
) -> str:
    """Describe the largest and the smallest share of a level, as counted."""
    known = [
        (value, group.name)
        for group in groups(payload, comparison, level)
        if (value := counted_share(group, direction)) is not None
    ]
    if not known:
        return "no data"
    (most, first), (least, last) = max(known), min(known)
    if first == last:
        return f"{share(most)} in {first}"
    return f"from {share(most)} in {first} down to {share(least)} in {last}"
