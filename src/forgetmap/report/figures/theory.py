"""Figures of simulations and grids of the two-mode model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from forgetmap.report.figures import look
from forgetmap.report.figures.figure import Figure, Record, Spec, as_table
from forgetmap.theory import PHASE_PARAMETERS, Phase, TrainingRun

Floats = NDArray[np.float64]
OLD, NEW, TARGET = look.FORGOTTEN, look.GAINED, look.NEVER
HEIGHT = 280
PANEL_WIDTH, PANEL_HEIGHT = 260, 140
MOMENTS = 5
_SIZED = ("width", "autosize")
BEHAVIOUR: Spec = {
    "field": "x",
    "type": "quantitative",
    "title": "behaviour, in standard deviations",
    "scale": {"nice": False},
}
DENSITY: Spec = {"field": "density", "type": "quantitative", "title": "density"}


def run_figures(run: TrainingRun) -> list[Figure]:
    """Draw densities over time, old mass and drift of one run."""
    left = {"weight of the old component": run.weight, "mass near the old mode": run.mass}
    moved = {"drift of the old component": run.drift}
    return [
        _densities(run),
        _over_time(run, "old_mass", f"{run.method}: what is left of the old", left, "share"),
        _over_time(
            run, "drift", f"{run.method}: how far the old component has moved", moved,
            "standard deviations",
        ),
    ]  # fmt: skip


def _densities(run: TrainingRun) -> Figure:
    """Draw the model at some times over the true target."""
    x = _behaviours(run.ends)
    last = len(run.path.times) - 1
    moments = sorted({round(moment) for moment in np.linspace(0, last, MOMENTS)})
    order = [_moment(run, moment) for moment in moments]
    rows = [
        {"when": name, "x": a, "density": d}
        for name, moment in zip(order, moments, strict=True)
        for a, d in zip(x.tolist(), run.density(x, moment).tolist(), strict=True)
    ]
    truth = np.exp(run.target.log_density(x))
    below = [{"x": a, "density": d} for a, d in zip(x.tolist(), truth.tolist(), strict=True)]
    colour: Spec = {
        "field": "when",
        "type": "ordinal",
        "sort": order,
        "title": None,
        "scale": {"scheme": "viridis", "reverse": True},
    }
    layers = [
        {
            "data": {"values": below},
            "mark": {"type": "area", "color": TARGET, "opacity": 0.3},
            "encoding": {"x": BEHAVIOUR, "y": DENSITY},
        },
        {
            "data": {"values": rows},
            "mark": {"type": "line", "strokeWidth": 2},
            "encoding": {"x": BEHAVIOUR, "y": DENSITY, "color": colour},
        },
    ]
    title = f"{run.method}: the model over time, above the true target (grey)"
    return _figure("densities", title, rows, {"height": HEIGHT, "layer": layers})


def two_by_two_figure(runs: Mapping[tuple[str, str], TrainingRun]) -> Figure:
    """Draw models before and after, by direction of KL and target."""
    rows: list[Record] = []
    for (direction, target), run in runs.items():
        x = _behaviours(run.ends)
        panel = f"{direction}, target: {target}: {run.mass[-1]:.3f} old mass left"
        for moment, when in ((0, "before"), (-1, "after")):
            values = run.density(x, moment)
            rows += [
                {"panel": panel, "when": when, "x": a, "density": d}
                for a, d in zip(x.tolist(), values.tolist(), strict=True)
            ]
    inner = {
        "width": PANEL_WIDTH,
        "height": PANEL_HEIGHT,
        "mark": {"type": "line", "strokeWidth": 2},
        "encoding": {
            "x": BEHAVIOUR,
            "y": DENSITY,
            "color": {
                "field": "when",
                "type": "nominal",
                "title": None,
                "scale": {"domain": ["before", "after"], "range": [TARGET, OLD]},
            },
        },
    }
    parts = {
        "data": {"values": rows},
        "facet": {"field": "panel", "type": "nominal", "title": None, "sort": None},
        "columns": 2,
        "spec": inner,
    }
    figure = _figure(
        "two_by_two", "The target decides what is kept, not the direction of KL", rows, parts
    )
    # Panels have their own widths.
    spec = {name: part for name, part in (figure.spec or {}).items() if name not in _SIZED}
    return replace(figure, spec=spec)


def phase_figure(phase: Phase) -> Figure:
    """Draw the remaining old mass in every cell."""
    across, up = _edges(phase.separations), _edges(phase.values)
    # Cells overlap, so that there are no seams.
    rows = [
        {
            "separation": apart,
            "value": value,
            "mass": float(phase.mass[i, j]),
            "x1": across[i],
            "x2": across[min(i + 2, len(across) - 1)],
            "y1": up[j],
            "y2": up[min(j + 2, len(up) - 1)],
        }
        for i, apart in enumerate(phase.separations.tolist())
        for j, value in enumerate(phase.values.tolist())
    ]
    flat = {"nice": False, "zero": False}
    y_scale = flat | ({"type": "log"} if phase.parameter == "temperature" else {})
    shade = {
        "field": "mass",
        "type": "quantitative",
        "title": "old mass",
        "scale": {"domain": [0, max(0.5, float(phase.mass.max()))], "scheme": "viridis"},
    }
    parts = {
        "height": HEIGHT,
        "data": {"values": rows},
        "mark": {"type": "rect"},
        "encoding": {
            "x": {"field": "x1", "type": "quantitative", "title": "separation", "scale": flat},
            "x2": {"field": "x2"},
            "y": {
                "field": "y1",
                "type": "quantitative",
                "title": PHASE_PARAMETERS[phase.parameter],
                "scale": y_scale,
            },
            "y2": {"field": "y2"},
            "color": shade,
        },
    }
    title = f"Old mass left, by separation and {PHASE_PARAMETERS[phase.parameter]}"
    return _figure(f"phase_{phase.parameter}", title, rows, parts)


def _over_time(
    run: TrainingRun, name: str, title: str, series: Mapping[str, Floats], unit: str
) -> Figure:
    times = run.path.times
    logarithmic = run.unit == "time"
    drawn = times > 0 if logarithmic else times >= 0
    rows = [
        {"time": t, "value": v, "what": what}
        for what, values in series.items()
        for t, v in zip(times[drawn].tolist(), values[drawn].tolist(), strict=True)
    ]
    time: Spec = {"field": "time", "type": "quantitative", "title": run.unit}
    if logarithmic:
        time |= {"scale": {"type": "log", "nice": False}, "axis": {"format": "~g", "tickCount": 6}}
    else:
        time["axis"] = {"tickMinStep": 1}
    what: Spec = {"field": "what", "type": "nominal", "title": None}
    legend = {"orient": "top", "labelLimit": 300} if len(series) > 1 else None
    parts = {
        "height": HEIGHT,
        "data": {"values": rows},
        "mark": {"type": "line", "strokeWidth": 2.5},
        "encoding": {
            "x": time,
            "y": {"field": "value", "type": "quantitative", "title": unit, "scale": {"zero": True}},
            "color": what
            | {
                "scale": {"domain": list(series), "range": [OLD, NEW][: len(series)]},
                "legend": legend,
            },
            "strokeDash": what
            | {"legend": None, "scale": {"domain": list(series), "range": [[1, 0], [6, 3]]}},
        },
    }
    return _figure(name, title, rows, parts)


def _figure(name: str, title: str, rows: list[Record], parts: Spec) -> Figure:
    """Return a figure without a caption; the title is enough."""
    spec = look.base_spec(title) | parts
    return Figure(name=name, title=title, caption="", alt=title, table=as_table(rows), spec=spec)


def _edges(values: Floats) -> list[float]:
    """Return borders half way between values; in logs if values are evenly spaced there."""
    even = np.allclose(np.diff(values), np.diff(values)[0])
    scaled = values if even else np.log(values)
    half = np.diff(scaled) / 2
    borders = np.r_[scaled[0] - half[0], scaled[:-1] + half, scaled[-1] + half[-1]]
    edges: list[float] = (borders if even else np.exp(borders)).tolist()
    return edges


def _moment(run: TrainingRun, moment: int) -> str:
    return "before" if moment == 0 else f"{run.unit} {run.path.times[moment]:.3g}"


def _behaviours(ends: tuple[float, float]) -> Floats:
    return np.linspace(ends[0] - 4, ends[1] + 4, 241)
