"""Forgetting against divergence, and predicted against measured, as Vega-Lite."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

from forgetmap.overlap.bridge import BridgeResult, Fit, curve
from forgetmap.text import printable

Spec = dict[str, Any]

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8c8c8c"]
SHAPES = ["circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right"]
"""Methods are told apart by colour and by shape."""
NAMES = {
    "kl": "KL(before||after), nats per completion",
    "kl_old": "KL(before||after) on old prompts, nats per completion",
    "kl_new": "KL(before||after) on new prompts, nats per completion",
    "reverse_kl": "KL(after||before), nats per completion",
    "reverse_kl_old": "KL(after||before) on old prompts, nats per completion",
    "reverse_kl_new": "KL(after||before) on new prompts, nats per completion",
}


def bridge_section(result: BridgeResult) -> dict[str, Any]:
    """What a report shows of it: words, figures with their tables, and what to mind.

    Returns:
        `title`, `text`, `notices` (texts) and `figures`, each with `name`, `title`, `caption`,
        `alt`, `table` (column -> values) and `spec` (Vega-Lite with its data inside).
    """
    fit = result.fits[0]
    return {
        "title": "Forgetting against divergence",
        "text": in_words(fit),
        "notices": [notice.text for notice in result.notices],
        "figures": [_against(result, fit), _predicted(fit)],
    }


def draw(figure: dict[str, Any], folder: Path) -> None:
    """Write a figure as SVG, PNG and Vega-Lite."""
    convert = importlib.import_module("vl_convert")
    spec = json.dumps(figure["spec"])
    # Control characters make vl-convert end the whole process.
    safe = json.dumps(json.loads(spec, object_hook=_printable))
    stem = folder / figure["name"]
    svg = convert.vegalite_to_svg(safe, allowed_base_urls=[])
    stem.with_suffix(".svg").write_text(svg, encoding="utf-8")
    stem.with_suffix(".png").write_bytes(
        convert.vegalite_to_png(safe, scale=2, allowed_base_urls=[])
    )
    stem.with_suffix(".vl.json").write_text(spec + "\n", encoding="utf-8")


def _printable(entry: dict[str, Any]) -> dict[str, Any]:
    return {
        key: printable(value) if isinstance(value, str) else value for key, value in entry.items()
    }


def in_words(fit: Fit) -> str:
    """How well a divergence predicts, in one sentence."""
    better = fit.r_squared_left_out
    share = "" if better is None else f", R\u00b2 {better:.2f} against the mean of the others"
    name = NAMES[fit.divergence].partition(",")[0]
    return (
        f"{name} predicts what {fit.n} models of {fit.methods} methods forgot to within "
        f"{fit.error_left_out:.1%} of all items, each method left out of the fit in turn"
        f"{share}."
    )


def _against(result: BridgeResult, fit: Fit) -> dict[str, Any]:
    rows = [
        {
            "method": row.method, "model": row.model, "divergence": row.divergences[fit.divergence],
            "forgetting": row.forgetting, "low": row.low, "high": row.high,
        }
        for row in result.models
    ]  # fmt: skip
    x: Spec = {"field": "divergence", "type": "quantitative", "title": NAMES[fit.divergence]}
    y: Spec = {
        "field": "forgetting",
        "type": "quantitative",
        "title": "forgotten, share of all items",
    }
    y |= {"axis": {"format": "~%"}}
    alt = f"{fit.n} models; {in_words(fit)}"
    layers = [
        {
            "data": {"values": curve(fit)},
            "mark": {"type": "line", "color": "#8c8c8c", "strokeDash": [4, 3]},
            "encoding": {"x": x, "y": y},
        },
        {
            "mark": {"type": "rule", "color": "#8c8c8c", "opacity": 0.7},
            "encoding": {"x": x, "y": y | {"field": "low"}, "y2": {"field": "high"}},
        },
        {"mark": {"type": "point", "filled": True, "size": 70},
         "encoding": {"x": x, "y": y, "color": _colour(), "shape": _shape(),
                      "tooltip": _said(*rows[0])}},
    ]  # fmt: skip
    return {
        "name": "forgetting-against-divergence",
        "title": "Forgetting against divergence",
        "caption": "Each point is a model. The curve is fitted to all of them; how well it "
        "predicts is shown in the next figure.",
        "alt": alt,
        "table": _columns(rows),
        "spec": _figure(alt, rows, layers),
    }


def _predicted(fit: Fit) -> dict[str, Any]:
    rows = [
        {
            "method": each.method, "model": each.model, "measured": each.measured,
            "predicted": each.predicted, "extrapolated": each.extrapolated,
        }
        for each in fit.predictions
    ]  # fmt: skip
    ends = [value for each in fit.predictions for value in (each.measured, each.predicted)]
    line = [{"measured": end, "predicted": end} for end in (min(0.0, *ends), max(ends))]
    share = {"type": "quantitative", "axis": {"format": "~%"}}
    x = share | {"field": "measured", "title": "measured forgetting"}
    y = share | {"field": "predicted", "title": "predicted without the model's own method"}
    alt = f"Root mean square error {fit.error_left_out:.3f}; of the mean {fit.error_of_mean:.3f}."
    layers = [
        {"data": {"values": line}, "mark": {"type": "line", "color": "#8c8c8c"},
         "encoding": {"x": x, "y": y}},
        {"mark": {"type": "point", "size": 70},
         "encoding": {"x": x, "y": y, "color": _colour(), "shape": _shape(),
                      "fillOpacity": {"condition": {"test": "datum.extrapolated", "value": 0},
                                      "value": 1},
                      "fill": _colour(), "tooltip": _said(*rows[0])}},
    ]  # fmt: skip
    return {
        "name": "predicted-against-measured",
        "title": "Predicted against measured forgetting",
        "caption": "On the line a prediction is right. Hollow: its divergence lies beyond those of "
        "the other methods.",
        "alt": alt,
        "table": _columns(rows),
        "spec": _figure(alt, rows, layers),
    }


def _figure(alt: str, rows: list[dict[str, Any]], layers: list[Spec]) -> Spec:
    return {
        "$schema": SCHEMA,
        "description": alt,
        "background": "white",
        "width": 520,
        "height": 340,
        "data": {"values": rows},
        "layer": layers,
        "config": {"view": {"stroke": None}, "font": "system-ui, sans-serif"},
    }


def _colour() -> Spec:
    return {"field": "method", "type": "nominal", "title": "method", "scale": {"range": COLOURS}}


def _shape() -> Spec:
    return {"field": "method", "type": "nominal", "title": "method", "scale": {"range": SHAPES}}


def _said(*names: str) -> list[Spec]:
    return [{"field": name} for name in names]


def _columns(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    return {name: [row[name] for row in rows] for name in rows[0]}
