"""Lines and axes that the figures of a drift share."""

from __future__ import annotations

from typing import Literal

from forgetmap.report.figures import data, look
from forgetmap.report.figures.figure import Record, Spec
from forgetmap.report.payloads.schema import Capabilities, DriftLevel

MetricLevel = Literal["metric", "deep_dive"]
MapLevel = Literal["capability", MetricLevel]
LEVELS: dict[MapLevel, str] = {
    "capability": "(datum.level === 'group' || datum.level === 'capability')",
    "metric": "datum.level === 'metric'",
    "deep_dive": "datum.level === 'deep_dive'",
}
"""Filter of the rows of a figure; capabilities are listed below their groups."""
DEEP_DIVE = "Metrics that explain capabilities; they do not count in any average."
TITLES = {
    "effect": "effect",
    "points": "percentage points",
    "relative": "relative change in %",
    "published": "relative change in %, as published",
}
SCALE_TITLE = (
    " : ".join(f"scale === '{name}' ? '{title}'" for name, title in TITLES.items()) + " : ''"
)
CHANGE_AXIS: Spec = {
    "tickCount": 6,
    "labelFlush": False,
    "labelExpr": "replace(datum.label, '-', '\N{MINUS SIGN}')",
}
NAME_AXIS: Spec = look.NAME_AXIS | {"labelLimit": {"expr": "windowSize()[0] < 600 ? 120 : 250"}}
"""Names take less room on a phone."""
MODEL_LABELS: Spec = {"labelLimit": 0}
"""Names of models are never cut, so that they stay distinct."""
BOLD_GROUPS: Spec = {
    "condition": {"test": "test(/^[^ ]+: /, datum.label)", "value": "bold"},
    "value": "normal",
}
"""Emphasis of groups of capabilities."""
ZERO: Spec = {
    "mark": look.ZERO_MARK,
    "encoding": {"x": {"datum": 0}, "y": {"value": 0}, "y2": {"value": "height"}},
}
TOOLTIP: list[Spec] = [
    {"field": "after", "title": "model"},
    {"field": "name", "title": "what"},
    {"field": "shown", "title": "drift"},
    {"field": "low", "format": "+.2f"},
    {"field": "high", "format": "+.2f"},
    {"field": "n", "title": "items", "format": ","},
    {"field": "coverage", "title": "metrics"},
]


def rows_at(drift: Capabilities, *levels: DriftLevel) -> list[Record]:
    """Return the rows of some levels."""
    return [row for row in data.rows_as_records(drift.rows) if row["level"] in levels]
