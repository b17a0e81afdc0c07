"""Figure on merging with the start model when drift is small."""

from __future__ import annotations

from forgetmap.lab import MergeDriftResult
from forgetmap.report.figures import look
from forgetmap.report.figures.figure import Figure, Record, Spec, as_table
from forgetmap.report.figures.lab import axes
from forgetmap.report.figures.panels import panels
from forgetmap.results import Estimate
from forgetmap.text import counted, percent

HALVES = {"small": "smaller half of the drift", "large": "larger half"}
_COLOURS = [look.KEPT, look.FORGOTTEN]


def recovered_by_drift(result: MergeDriftResult) -> Figure:
    """Draw the share of the loss that the best merge undoes, against drift."""
    order = sorted({level.share for level in result.levels})
    small = set(order[: len(order) // 2])
    records = [
        {
            "share": level.share, "seed": level.seed, "distance": level.distance,
            "value": axes.cut(level.recovered), "weight": level.weight, "lost": level.lost,
            "half": HALVES["small" if level.share in small else "large"],
        }
        for level in result.levels
        if level.recovered is not None
    ]  # fmt: skip
    left_out = len(result.levels) - len(records)
    note = f" {counted(left_out, 'model')} without a loss to undo left out." if left_out else ""
    alt = (
        f"The best merge undoes {percent(result.small.value)} of the loss where drift is small, "
        f"{percent(result.large.value)} where it is large."
    )
    return Figure(
        name="merge_drift_recovered",
        title="Loss undone by merging, by drift",
        caption="Each point is a trained model: the distance of its weights from the start "
        "model, and the share of its loss that a merge with the start model undoes while "
        "keeping 95% of what was learned. Lines are the means of both halves with 95% "
        f"intervals over seeds.{note}",
        alt=alt,
        table=as_table(records),
        spec=look.base_spec(alt)
        | {
            "data": {"values": records},
            "height": axes.HEIGHT,
            "layer": _recovered_layers(_mean_records(result, records), _distance_ends(records)),
        },
    )


def _mean_records(result: MergeDriftResult, records: list[Record]) -> list[Record]:
    means: list[Record] = []
    estimates: dict[str, Estimate] = {"small": result.small, "large": result.large}
    for name, estimate in estimates.items():
        reach = [record["distance"] for record in records if record["half"] == HALVES[name]]
        if reach and estimate.value is not None:
            means.append(
                {"half": HALVES[name], "from": min(reach) / 1.04, "to": max(reach) * 1.04,
                 "words": f"{percent(estimate.value, 0)} undone"}
                | axes.shares(estimate)
            )  # fmt: skip
    return means


def _distance_ends(records: list[Record]) -> list[float]:
    """Return the ends of the axis, with room for text on the right; always positive for logs."""
    reach = [record["distance"] for record in records if record["distance"] > 0] or [0.01, 0.1]
    return [min(reach) / 1.25, max(reach) * 1.6]


def _recovered_layers(means: list[Record], ends: list[float]) -> list[Spec]:
    x: Spec = {
        "field": "distance", "type": "quantitative",
        "title": "relative weight change",
        "scale": {"type": "log", "domain": ends, "nice": False},
        "axis": {"format": look.SHARE, "grid": False, "tickCount": 6, "labelOverlap": True},
    }  # fmt: skip
    y = axes.share_axis("value", "share of the loss undone", [0, 1])
    colour: Spec = {
        "field": "half", "type": "nominal", "title": None,
        "scale": {"domain": list(HALVES.values()), "range": _COLOURS},
        "legend": {"orient": "top", "symbolType": "circle", "symbolOpacity": 1},
    }  # fmt: skip
    across: Spec = {"x": x | {"field": "from"}, "x2": {"field": "to"}, "color": colour}
    return [
        {
            "data": {"values": means},
            "transform": [{"filter": "isValid(datum.low)"}],
            "mark": {"type": "rect", "opacity": 0.13},
            "encoding": across | {"y": y | {"field": "low"}, "y2": {"field": "high"}},
        },
        {
            "data": {"values": means},
            "mark": {"type": "rule", "strokeWidth": 2.5},
            "encoding": across | {"y": y},
        },
        {
            "mark": {"type": "point", "filled": True, "size": 65, "opacity": 0.9},
            "encoding": {
                "x": x, "y": y, "color": colour,
                "tooltip": [
                    {"field": "share", "title": "of the new examples", "format": ".0%"},
                    {"field": "seed"}, {"field": "distance", "format": ".2%"},
                    {"field": "lost", "format": ".1%"},
                    {"field": "value", "title": "undone", "format": ".1%"}, {"field": "weight"},
                ],
            },
        },
        {
            "data": {"values": means},
            "mark": {"type": "text", "align": "left", "dx": 6, "fontWeight": 600},
            "encoding": {"x": x | {"field": "to"}, "y": y, "text": {"field": "words"}},
        },
    ]  # fmt: skip


PATH_CAPTION = (
    "Each panel is a share of the new examples used for training: from the start model (upper "
    "left: all kept, nothing learned) to the trained model, one point per merge weight. If a path "
    "stays high before it falls, merging costs little. The ring is the merge that undoes most "
    "while keeping 95% of what was learned."
)
"""Explanation of the paths of merges."""


def merge_paths(result: MergeDriftResult) -> Figure:
    """Draw one small chart per level: retention against the new task, along the merges."""
    places = {share: n for n, share in enumerate(sorted({le.share for le in result.levels}))}
    records: list[Record] = [
        {
            "panel": f"{percent(level.share, 0)} trained",
            "order": places[level.share], "seed": str(level.seed), "weight": point.weight,
            "score": axes.cut(point.score), "value": 1 - point.lost,
            "best": point.weight == level.weight, "end": point.weight in (0.0, 1.0),
        }
        for level in result.levels
        for point in level.points
    ]  # fmt: skip
    alt = f"{len(places)} levels of drift, {len(result.seeds)} seeds each."
    scores = [record["score"] for record in records]
    x = axes.share_axis(
        "score", "share of the new task known", axes.domain(scores, zero=True), ticks=3
    )
    y = axes.share_axis("value", "kept", axes.domain([r["value"] for r in records]), ticks=4)
    seed: Spec = {
        "field": "seed", "type": "nominal", "scale": {"range": look.MODELS},
        "title": "seed", "legend": {"orient": "top"},
    }  # fmt: skip
    return Figure(
        name="merge_drift_paths",
        title="Merge paths, by level",
        caption=PATH_CAPTION,
        alt=alt,
        table=as_table(records),
        spec=panels(
            alt,
            records,
            [
                {
                    "mark": {"type": "line", "strokeWidth": 1.5},
                    "encoding": {"x": x, "y": y, "color": seed, "order": {"field": "weight"}},
                },
                {
                    "mark": {"type": "point", "filled": True, "size": 16, "opacity": 1},
                    "encoding": {
                        "x": x, "y": y, "color": seed,
                        "tooltip": [
                            {"field": "seed"}, {"field": "weight"},
                            {"field": "score", "format": ".1%"},
                            {"field": "value", "title": "kept", "format": ".1%"},
                        ],
                    },
                },
                {
                    "transform": [{"filter": "datum.best"}],
                    "mark": {"type": "point", "size": 130, "strokeWidth": 1.8, "filled": False,
                             "opacity": 1},
                    "encoding": {"x": x, "y": y, "color": seed},
                },
            ],
            columns=3,
            height=130,
            names="panel",
        ),
    )  # fmt: skip
