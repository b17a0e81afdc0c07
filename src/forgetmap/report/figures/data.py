"""Numbers of a payload, prepared for figures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from forgetmap.comparison import GroupResult
from forgetmap.report.figures.figure import Record, as_table
from forgetmap.report.payloads.schema import (
    HEADLINE,
    NOISE_FLOOR,
    Direction,
    DriftRows,
    Level,
    Payload,
    Rows,
)
from forgetmap.text import share

MAX_GROUPS = 40
"""Maximum number of lines in a figure; the groups with the largest losses are drawn."""


class Point(NamedTuple):
    """One estimate of one group; a range has ends but no value."""

    group: str
    value: float | None
    low: float | None
    high: float | None

    @property
    def middle(self) -> float | None:
        """Sort key."""
        if self.value is not None or self.low is None or self.high is None:
            return self.value
        return (self.low + self.high) / 2

    @property
    def words(self) -> str:
        """The estimate as text."""
        if self.value is None and self.low is not None:
            return f"{share(self.low)} to {share(self.high)}"
        return share(self.value) if self.value is not None else "no data"


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


def clipped_note(payload: Payload) -> str:
    """Return a sentence about clipping; empty if nothing is clipped."""
    rows = payload.rows
    numbers = (number for column in (rows.value, rows.low, rows.high) for number in column)
    beyond = any(number is not None and not 0 <= number <= 1 for number in numbers)
    return " Shares are drawn between 0% and 100%; the table has the full values." * beyond


def rows_at(payload: Payload, levels: Sequence[Level]) -> dict[str, list[object]]:
    """Return the rows of some levels as a table."""
    return as_table(
        [record for record in rows_as_records(payload.rows) if record["level"] in levels]
    )


def default_estimator(payload: Payload) -> str:
    """Return the first available estimator with values."""
    names = [name for name in dict.fromkeys(payload.rows.estimator) if name != NOISE_FLOOR]
    return next((name for name in names if _says(payload.rows, name)), HEADLINE)


def _says(rows: Rows, estimator: str) -> bool:
    return any(
        name == estimator and (value is not None or low is not None)
        for name, value, low in zip(rows.estimator, rows.value, rows.low, strict=True)
    )


def points(
    payload: Payload, level: Level, direction: Direction = "forgetting", comparison: int = 0
) -> list[Point]:
    """Return the estimates shown by default as shares of all items, the largest first."""
    chosen = (comparison, level, direction, "items", default_estimator(payload))
    rows = payload.rows
    keys = zip(rows.comparison, rows.level, rows.direction, rows.scale, rows.estimator, strict=True)
    estimates = [
        Point(rows.group[index], rows.value[index], rows.low[index], rows.high[index])
        for index, key in enumerate(keys)
        if key == chosen
    ]
    return sorted(
        estimates,
        key=lambda estimate: (estimate.middle is None, -(estimate.middle or 0), estimate.group),
    )


def named_level(payload: Payload) -> Level:
    """Return categories if there are any, else tasks."""
    return "category" if "category" in payload.rows.level else "task"


def fine_level(payload: Payload) -> Level:
    """Return tasks, or categories if there is a single task."""
    return "task" if len(payload.comparisons[0].tasks) > 1 else named_level(payload)


def groups(payload: Payload, comparison: int, level: Level) -> list[GroupResult]:
    """Return the counts of the groups of one level."""
    result = payload.comparisons[comparison]
    return result.categories if level == "category" else result.tasks


def drawn_groups(payload: Payload, comparison: int, level: Level) -> list[str]:
    """Return the names of the groups that are drawn."""
    estimates = points(payload, level, comparison=comparison)
    return [estimate.group for estimate in estimates[:MAX_GROUPS]]


def left_out(payload: Payload, level: Level) -> str:
    """Return a sentence on the groups that are not drawn; empty if all are."""
    more = len(points(payload, level)) - MAX_GROUPS
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


def extremes(estimates: Sequence[Point]) -> str:
    """Describe the largest and the smallest estimate."""
    known = [estimate for estimate in estimates if estimate.middle is not None]
    if not known:
        return "no data"
    first, last = known[0], known[-1]
    if first is last:
        return f"{first.words} in {first.group}"
    return f"from {first.words} in {first.group} down to {last.words} in {last.group}"
