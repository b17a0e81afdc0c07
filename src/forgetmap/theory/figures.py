"""Plots of runs and grids as Vega-Lite; drawing them is left to others."""

from __future__ import annotations

from typing import Any

import numpy as np

from forgetmap.theory.estimators import Floats
from forgetmap.theory.phase import KNOBS, Phase
from forgetmap.theory.simulation import TrainingRun

Spec = dict[str, Any]
SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
OLD, NEW, TARGET = "#D55E00", "#0072B2", "#8c8c8c"
FONT = "system-ui, sans-serif"
WIDTH, HEIGHT = 520, 280
SNAPSHOTS = 5
BEHAVIOUR: Spec = {
    "field": "x",
    "type": "quantitative",
    "title": "behaviour, in standard deviations",
    "scale": {"nice": False},
}
DENSITY: Spec = {"field": "density", "type": "quantitative", "title": "density"}


def run_figures(run: TrainingRun) -> dict[str, Spec]:
    """Densities over time, old mass and drift of one run."""
    return {"densities": densities(run), "old-mass": old_mass(run), "drift": drift(run)}


def densities(run: TrainingRun) -> Spec:
    """The model at some moments, over the true target."""
    x = _line(run.separation)
    last = len(run.path.times) - 1
    places = sorted({round(place) for place in np.linspace(0, last, SNAPSHOTS)})
    order = [_moment(run, place) for place in places]
    rows = [
        {"x": a, "density": d, "when": name}
        for name, place in zip(order, places, strict=True)
        for a, d in zip(x.tolist(), run.density(x, place).tolist(), strict=True)
    ]
    truth = np.exp(run.setting.target.log_density(x))
    below = [{"x": a, "density": d} for a, d in zip(x.tolist(), truth.tolist(), strict=True)]
    spec = _spec(f"{run.method}: the model over time, above the true target (grey)")
    spec["layer"] = [
        {
            "data": {"values": below},
            "mark": {"type": "area", "color": TARGET, "opacity": 0.3},
            "encoding": {"x": BEHAVIOUR, "y": DENSITY},
        },
        {
            "data": {"values": rows},
            "mark": {"type": "line", "strokeWidth": 2},
            "encoding": {
                "x": BEHAVIOUR,
                "y": DENSITY,
                "color": {
                    "field": "when",
                    "type": "ordinal",
                    "sort": order,
                    "title": None,
                    "scale": {"scheme": "viridis", "reverse": True},
                },
            },
        },
    ]
    return spec


def old_mass(run: TrainingRun) -> Spec:
    """How much of the old behaviour is left."""
    series = {"weight of the old component": run.weight, "mass near the old mode": run.mass}
    return _over_time(run, series, "share", f"{run.method}: what is left of the old", [OLD, NEW])


def drift(run: TrainingRun) -> Spec:
    """How far the old component has moved."""
    series = {"drift of the old component": run.drift}
    title = f"{run.method}: how far the old component has moved"
    return _over_time(run, series, "standard deviations", title, [OLD])


def two_by_two_figure(runs: dict[tuple[str, str], TrainingRun]) -> Spec:
    """Models before and after, by direction of KL and target."""
    rows = []
    for (direction, target), run in runs.items():
        x = _line(run.separation)
        named = f"{direction}, target: {target}: {run.mass[-1]:.3f} old mass left"
        for place, when in ((0, "before"), (-1, "after")):
            values = run.density(x, place)
            rows += [
                {"x": a, "density": d, "when": when, "panel": named}
                for a, d in zip(x.tolist(), values.tolist(), strict=True)
            ]
    spec = _spec("The target retains, not the direction of KL")
    inner = {
        "width": WIDTH // 2,
        "height": HEIGHT // 2,
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
    for key in ("width", "height"):
        del spec[key]
    facet = {"field": "panel", "type": "nominal", "title": None, "sort": None}
    return spec | {"data": {"values": rows}, "facet": facet, "columns": 2, "spec": inner}


def phase_figure(phase: Phase) -> Spec:
    """Old mass left in every cell."""
    across, up = _edges(phase.separations), _edges(phase.values)
    # Each cell reaches under the next one: no seams.
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
    spec = _spec(f"Old mass left, by separation and {KNOBS[phase.knob]}")
    spec["data"] = {"values": rows}
    spec["mark"] = {"type": "rect"}
    shade = {
        "field": "mass",
        "type": "quantitative",
        "title": "old mass",
        "scale": {"domain": [0, max(0.5, float(phase.mass.max()))], "scheme": "viridis"},
    }
    flat = {"nice": False, "zero": False}
    spec["encoding"] = {
        "x": {"field": "x1", "type": "quantitative", "title": "separation", "scale": flat},
        "x2": {"field": "x2"},
        "y": {
            "field": "y1",
            "type": "quantitative",
            "title": KNOBS[phase.knob],
            "scale": flat | ({"type": "log"} if phase.knob == "temperature" else {}),
        },
        "y2": {"field": "y2"},
        "color": shade,
    }
    return spec


def _edges(values: Floats) -> list[float]:
    """Borders half way between values; evenly spaced in logs where the values are."""
    even = np.allclose(np.diff(values), np.diff(values)[0])
    scaled = values if even else np.log(values)
    half = np.diff(scaled) / 2
    borders = np.r_[scaled[0] - half[0], scaled[:-1] + half, scaled[-1] + half[-1]]
    found: list[float] = (borders if even else np.exp(borders)).tolist()
    return found


def _over_time(
    run: TrainingRun, series: dict[str, Floats], unit: str, title: str, colours: list[str]
) -> Spec:
    times = run.path.times
    logarithmic = run.unit == "time"
    kept = times > 0 if logarithmic else times >= 0
    rows = [
        {"time": t, "value": v, "what": name}
        for name, values in series.items()
        for t, v in zip(times[kept].tolist(), values[kept].tolist(), strict=True)
    ]
    spec = _spec(title)
    spec["data"] = {"values": rows}
    spec["mark"] = {"type": "line", "strokeWidth": 2.5}
    time_axis: Spec = {"field": "time", "type": "quantitative", "title": run.unit}
    time_axis["axis"] = {"tickMinStep": 1}
    if logarithmic:
        time_axis["scale"] = {"type": "log", "nice": False}
        time_axis["axis"] = {"format": "~g", "tickCount": 6}
    spec["encoding"] = {
        "x": time_axis,
        "y": {"field": "value", "type": "quantitative", "title": unit, "scale": {"zero": True}},
        "color": {
            "field": "what",
            "type": "nominal",
            "title": None,
            "scale": {"domain": list(series), "range": colours},
            "legend": {"orient": "top", "labelLimit": 300} if len(series) > 1 else None,
        },
        "strokeDash": {
            "field": "what",
            "type": "nominal",
            "title": None,
            "legend": None,
            "scale": {"domain": list(series), "range": [[1, 0], [6, 3]]},
        },
    }
    return spec


def _spec(title: str) -> Spec:
    words = {"labelFont": FONT, "titleFont": FONT, "labelFontSize": 12, "titleFontSize": 12}
    words["titleFontWeight"] = "normal"
    return {
        "$schema": SCHEMA,
        "title": {"text": title, "anchor": "start", "font": FONT, "fontWeight": "normal"},
        "width": WIDTH,
        "height": HEIGHT,
        "background": "#ffffff",
        "config": {"axis": words, "legend": words, "header": words, "view": {"stroke": None}},
    }


def _moment(run: TrainingRun, place: int) -> str:
    return "before" if place == 0 else f"{run.unit} {run.path.times[place]:.3g}"


def _line(separation: float) -> Floats:
    return np.linspace(-4, separation + 4, 241)
