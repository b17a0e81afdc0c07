"""Two trainings side by side: forgetting over steps, and by category."""

from __future__ import annotations

from collections.abc import Mapping

from forgetmap.comparison import ComparisonResult
from forgetmap.report.figures import look
from forgetmap.report.figures.figure import Figure, Record, Spec, as_table
from forgetmap.report.figures.watch import missing_steps, share_axis, step_axis
from forgetmap.text import percent, share
from forgetmap.train import WatchHistory

HEIGHT = 320
COLOURS = [look.FORGOTTEN, look.KEPT]
"""Colours of the plain and of the protected training."""


def both_curves(histories: Mapping[str, WatchHistory]) -> Figure:
    """Draw forgetting over steps, one line per training, with alarms."""
    records = [record for name, history in histories.items() for record in _curve(name, history)]
    alarms: list[Record] = [
        {"training": name, "step": alarm.step, "words": "alarm"}
        for name, history in histories.items()
        for alarm in history.alarms[:1]
    ]
    ends = _ends(records)
    most = max([record["value"] or 0.0 for record in records], default=0.0)
    alt = "; ".join(f"{end['training']} ends at {percent(end['value'])}" for end in ends)
    x = step_axis(*histories.values())
    y = share_axis("forgotten, share of all items", most)
    return Figure(
        name="both_trainings",
        title="Forgetting during training",
        caption="The same items, evaluated repeatedly in both training runs. A dashed vertical "
        "line is the alarm of the run of its colour: forgetting significantly exceeds the "
        "margin. A gap in a line is a missing look.",
        alt=f"{alt}.",
        table=as_table(records),
        spec=look.base_spec(alt)
        | {
            "data": {"values": records},
            "height": HEIGHT,
            "layer": _layers(x, y, list(histories), alarms, ends),
        },
    )


def _curve(name: str, history: WatchHistory) -> list[Record]:
    """Return looks in order; a missing look has no value, which breaks the line."""
    shares = {each.step: each.total.forgotten for each in history.curve}
    steps = sorted({*shares, *missing_steps(history)})
    return [{"training": name, "step": step, "value": shares.get(step)} for step in steps]


def _ends(records: list[Record]) -> list[Record]:
    """Return the last look of each training, with its share as text."""
    last = {record["training"]: record for record in records if record["value"] is not None}
    return [record | {"words": share(record["value"])} for record in last.values()]


def _layers(
    x: Spec, y: Spec, names: list[str], alarms: list[Record], ends: list[Record]
) -> list[Spec]:
    colour = _colour(names)
    return [
        {
            "data": {"values": alarms},
            "mark": {"type": "rule", "strokeDash": [5, 3], "strokeWidth": 1.5},
            "encoding": {"x": x, "color": colour},
        },
        {
            "data": {"values": alarms},
            "mark": {"type": "text", "align": "left", "dx": 4, "y": 9},
            "encoding": {"x": x, "text": {"field": "words"}},
        },
        {
            "mark": {"type": "line", "strokeWidth": 2.5},
            "encoding": {"x": x, "y": y, "color": colour},
        },
        {
            "transform": [{"filter": "isValid(datum.value)"}],
            "mark": {"type": "point", "filled": True, "size": 30, "opacity": 1},
            "encoding": {
                "x": x, "y": y, "color": colour,
                "tooltip": [{"field": "training"}, {"field": "step"},
                            {"field": "value", "title": "forgotten", "format": ".1%"}],
            },
        },
        {
            "data": {"values": ends},
            "mark": {"type": "text", "align": "right", "dy": -11, "fontWeight": 600},
            "encoding": {"x": x, "y": y, "text": {"field": "words"}},
        },
    ]  # fmt: skip


def _colour(names: list[str]) -> Spec:
    return {
        "field": "training", "type": "nominal", "title": None,
        "scale": {"domain": names, "range": COLOURS},
        "legend": {"orient": "top", "symbolType": "circle", "symbolOpacity": 1,
                   "symbolSize": 90},
    }  # fmt: skip


def both_categories(results: Mapping[str, ComparisonResult]) -> Figure | None:
    """Draw forgetting of both trainings by category."""
    records: list[Record] = [
        {
            "training": name, "category": look.label_of(group.name), "value": group.n10 / group.n,
            "forgotten": group.n10, "items": group.n,
        }
        for name, result in results.items()
        for group in result.categories
        if group.n
    ]  # fmt: skip
    categories = {record["category"] for record in records}
    if not categories:
        return None
    spans = [
        {"category": name, "low": min(own), "high": max(own), "most": max(own)}
        for name in categories
        if (own := [record["value"] for record in records if record["category"] == name])
    ]
    alt = f"Forgetting of both training runs in {len(categories)} categories."
    order: dict[str, float] = {str(span["category"]): float(span["most"]) for span in spans}
    records = [record | {"most": order[record["category"]]} for record in records]
    y: Spec = {
        "field": "category", "type": "nominal", "title": None, "axis": look.NAME_AXIS,
        "sort": {"field": "most", "op": "max", "order": "descending"},
    }  # fmt: skip
    x: Spec = {
        "field": "value", "type": "quantitative", "title": "forgotten, share of the items",
        "scale": {"domainMin": 0, "nice": True}, "axis": {"format": look.SHARE, "tickCount": 6},
    }  # fmt: skip
    return Figure(
        name="both_categories",
        title="Forgotten by both training runs, by category",
        caption="Right before and wrong after, as counted (luck included). The line between the "
        "points is the effect of protection.",
        alt=alt,
        table=as_table([{n: v for n, v in r.items() if n != "most"} for r in records]),
        spec=look.base_spec(alt)
        | {
            "data": {"values": records},
            "height": 30 * len(categories),
            "layer": [
                {
                    "data": {"values": spans},
                    "mark": {"type": "rule", "strokeWidth": 3, "color": look.by_theme(look.LINES)},
                    "encoding": {"y": y, "x": x | {"field": "low"}, "x2": {"field": "high"}},
                },
                {
                    "mark": {"type": "point", "filled": True, "size": 100, "opacity": 1},
                    "encoding": {
                        "y": y, "x": x, "color": _colour(list(results)),
                        "tooltip": [{"field": "training"}, {"field": "category"},
                                    {"field": "value", "format": ".1%"}, {"field": "forgotten"},
                                    {"field": "items"}],
                    },
                },
            ],
        },
    )  # fmt: skip
