"""Shares and accuracy along the path from base to tuned."""

from __future__ import annotations

import re
from typing import NamedTuple

from forgetmap.report.figures import look
from forgetmap.report.figures.figure import Figure, Record, Spec, as_table
from forgetmap.report.figures.sweep import axes
from forgetmap.results import Estimate
from forgetmap.sweep import ALL_ITEMS, PointResult, SweepResult, signed_percent
from forgetmap.text import percent

MAX_GROUPS = 24
CATEGORY_HEIGHT = 220
FORGOTTEN, GAINED = "forgotten", "gained"
KEPT, RECOVERED = "gains kept", "forgetting recovered"


class _Words(NamedTuple):
    name: str
    title: str
    caption: str
    axis: str
    height: int = axes.HEIGHT


def _curves(
    result: SweepResult, words: _Words, records: list[Record], colours: dict[str, str]
) -> Figure | None:
    """Draw shares along the path, with intervals as bands."""
    known = [record for record in records if record["value"] is not None]
    if not known:
        return None
    alt = f"{words.title}: {_ends(known)}"
    x: Spec = {
        "field": "weight", "type": "quantitative", "title": "share of the tuned model",
        "scale": {"domain": [0, 1]}, "axis": {"tickCount": 6, "labelFlush": False},
    }  # fmt: skip
    y: Spec = {"field": "value", "type": "quantitative", "title": words.axis, "axis": axes.SHARES}
    tips = [
        {"field": "what", "title": "what"},
        {"field": "method"},
        {"field": "weight"},
        *({"field": field, "format": ".1%"} for field in ("value", "low", "high")),
    ]
    detail = [{"field": "method"}, {"field": "what"}]
    return Figure(
        name=words.name,
        title=words.title,
        caption=words.caption,
        alt=alt,
        table=as_table(known),
        spec=axes.spec(alt)
        | {
            "data": {"values": known},
            "height": words.height,
            "transform": [axes.SELECTED_PAIR],
            "encoding": {
                "color": {
                    "field": "what",
                    "title": None,
                    "scale": {"domain": list(colours), "range": list(colours.values())},
                    "legend": {"orient": "top", "symbolOpacity": 1, "symbolType": "circle"},
                }
            },
            "layer": [
                {
                    "mark": {"type": "area", "opacity": 0.13},
                    "encoding": {"x": x, "y": y | {"field": "low"}, "y2": {"field": "high"},
                                 "detail": detail},
                },
                {
                    "mark": {"type": "line", "strokeWidth": 2},
                    "encoding": {"x": x, "y": y, "strokeDash": axes.method_dash(result),
                                 "detail": detail},
                },
                {
                    "mark": {"type": "point", "filled": True, "size": 45, "opacity": 1},
                    "encoding": {"x": x, "y": y, "detail": detail, "tooltip": tips},
                },
            ],
        },
    )  # fmt: skip


def _ends(records: list[Record]) -> str:
    """Describe the first and last point of each curve of the first pair."""
    sentences = []
    first = [record for record in records if record["comparison"] == 0]
    for what in dict.fromkeys(field["what"] for field in first):
        own = [field for field in first if field["what"] == what]
        most = max(own, key=lambda field: field["value"])
        sentences.append(f"{what} at most {percent(most['value'])}, at {most['weight']:g}")
    return "; ".join(sentences) + "."


def _curve_records(
    result: SweepResult, pick: dict[str, str], group: str | None = None
) -> list[Record]:
    """Return one record per point and measure."""
    records = []
    for index, pair in enumerate(result.pairs):
        for point in pair.points:
            source = point if group is None else _group_of(point, group)
            for what, name in pick.items():
                estimate: Estimate | None = None if source is None else getattr(source, name)
                if estimate is None:
                    continue
                records.append(
                    {
                        "comparison": index, "what": what, "method": point.method,
                        "weight": point.weight, "value": estimate.value, "low": estimate.low,
                        "high": estimate.high,
                    }
                )  # fmt: skip
    return records


def _group_of(point: PointResult, name: str) -> object | None:
    return next((group for group in point.groups if group.name == name), None)


_DIRECTIONS = {FORGOTTEN: "forgetting", GAINED: "backward_transfer"}
_COLOURS = {FORGOTTEN: look.FORGOTTEN, GAINED: look.GAINED}
BANDS = "Bands are separate 95% intervals of each point; luck is included."


def path(result: SweepResult) -> Figure | None:
    """Draw forgotten and gained items, relative to the base."""
    where = " Forgotten outside the target tasks, gained within them." if result.targets else ""
    words = _Words(
        "path",
        "Forgotten and gained along the path",
        f"Compared with base, as shares of all items.{where} {BANDS}",
        "share of all items",
    )
    return _curves(result, words, _curve_records(result, _DIRECTIONS), _COLOURS)


def trade(result: SweepResult) -> Figure | None:
    """Draw the gains kept and the losses recovered, relative to the tuned model."""
    pick = {KEPT: "retained", RECOVERED: "recovered"}
    words = _Words(
        "trade",
        "What a merge keeps of both parents",
        "Share of what the tuned model gained, and of what it forgot, that the merge answers "
        "right. If the two add up to more than 100%, the merge is better than mixing the "
        f"answers of its parents. {BANDS}",
        "share",
    )
    colours = {KEPT: look.GAINED, RECOVERED: look.KEPT}
    return _curves(result, words, _curve_records(result, pick), colours)


def categories(result: SweepResult) -> list[Figure | None]:
    """Draw one figure per category, which fits a phone; the largest losses first."""
    groups: dict[str, float] = {}
    for pair in result.pairs:
        for point in pair.points:
            for group in point.groups:
                loss = group.forgetting.value or 0.0
                groups[group.name] = max(groups.get(group.name, 0.0), loss)
    groups.pop(ALL_ITEMS, None)
    if len(groups) < 2:  # one category equals all items
        return []
    order = sorted(groups, key=lambda name: (-groups[name], name))[:MAX_GROUPS]
    return [
        _curves(
            result,
            _Words(
                f"path_{index:02d}_{re.sub(r'[^A-Za-z0-9]+', '_', name)}",
                look.label_of(name),
                f"Forgotten and gained compared with base, on {_items(result, name):,} items. "
                f"{BANDS}",
                "share of these items",
                CATEGORY_HEIGHT,
            ),
            _curve_records(result, _DIRECTIONS, name),
            _COLOURS,
        )
        for index, name in enumerate(order, start=1)
    ]


def _items(result: SweepResult, name: str) -> int:
    group = _group_of(result.pairs[0].points[0], name)
    return int(getattr(group, "n", 0))


def connectivity(result: SweepResult) -> Figure:
    """Draw accuracy along the path, and the line between its ends."""
    records = _line_records(result)
    heights = [barrier for barrier in result.pairs[0].barriers if barrier.group == ALL_ITEMS]
    alt = "Largest distance below the line: " + "; ".join(
        f"{height.method} {signed_percent(height.height.value)}"
        for height in heights
        if height.measure == "accuracy"
    )
    x: Spec = {
        "field": "weight", "type": "quantitative", "title": "share of the tuned model",
        "scale": {"domain": [0, 1]}, "axis": {"tickCount": 6, "labelFlush": False},
    }  # fmt: skip
    y: Spec = {
        "field": "accuracy", "type": "quantitative", "title": "accuracy, all items",
        "scale": {"zero": False}, "axis": axes.SHARES,
    }  # fmt: skip
    tips = [{"field": "method"}, {"field": "weight"}]
    tips += [{"field": field, "format": ".1%"} for field in ("accuracy", "line")]
    return Figure(
        name="connectivity",
        title="Is there a barrier between the models?",
        caption="Accuracy along the path, and the dashed straight line between its ends. A path "
        "that drops below the line crosses a barrier: the two models are not linearly "
        "connected. Bars are simultaneous 95% intervals of the distance from the line.",
        alt=f"{alt}.",
        table=as_table(records),
        spec=axes.spec(alt)
        | {
            "data": {"values": records},
            "height": axes.HEIGHT,
            "transform": [axes.SELECTED_PAIR],
            "encoding": {"color": axes.method_colour(result)},
            "layer": [
                {
                    "mark": {"type": "line", "strokeDash": [4, 4], "color": look.NEVER},
                    "encoding": {"x": x, "y": y | {"field": "line"},
                                 "color": {"value": look.NEVER}},
                },
                {
                    "transform": [{"filter": "isValid(datum.low)"}],
                    "mark": {"type": "rule", "opacity": 0.4},
                    "encoding": {"x": x, "y": y | {"field": "low"}, "y2": {"field": "high"}},
                },
                {"mark": {"type": "line", "strokeWidth": 2}, "encoding": {"x": x, "y": y}},
                {
                    "mark": {"type": "point", "filled": True, "size": 60, "opacity": 1},
                    "encoding": {"x": x, "y": y, "shape": axes.method_shape(result),
                                 "tooltip": tips},
                },
            ],
        },
    )  # fmt: skip


def _line_records(result: SweepResult) -> list[Record]:
    """Return accuracy and the line, with intervals of their distance."""
    records = []
    for index, pair in enumerate(result.pairs):
        ends = {point.reused: point.accuracy for point in pair.points if point.reused}
        for point in pair.points:
            line = (1 - point.weight) * ends["base"] + point.weight * ends["tuned"]
            below = point.below_line
            records.append(
                {
                    "comparison": index, "method": point.method, "weight": point.weight,
                    "accuracy": point.accuracy, "line": line,
                    "low": None if below.high is None or point.reused else line - below.high,
                    "high": None if below.low is None or point.reused else line - below.low,
                }
            )  # fmt: skip
    return records
