"""Forgetting against divergence, and predicted against measured forgetting."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from forgetmap.overlap import BridgeResult, Fit, curve
from forgetmap.report.figures import look
from forgetmap.report.figures.figure import Figure, Record, Spec, as_table
from forgetmap.report.payloads.overlap import divergence_name, fit_sentence

HEIGHT = 340
_SHARE: Spec = {"type": "quantitative", "axis": {"format": look.SHARE}}


class BridgeUnits(NamedTuple):
    """Units of the numbers of a bridge.

    Attributes:
        per: unit per which divergence is in nats.
        of: items of which forgetting is a share.
    """

    per: str = "completion"
    of: str = "of all items"


OF_COMPLETIONS = BridgeUnits()


def bridge_figures(result: BridgeResult, units: BridgeUnits = OF_COMPLETIONS) -> list[Figure]:
    """Draw the figures of the best predictor."""
    fit = result.fits[0]
    notes = "".join(f" {notice.text}" for notice in result.notices)
    return [_measured(result, fit, units, notes), _predicted(fit, units, notes)]


def other_bridge_figures(result: BridgeResult, units: BridgeUnits = OF_COMPLETIONS) -> list[Figure]:
    """Draw the figures of the other divergences, from the next best on."""
    return [
        replace(_measured(result, fit, units, ""), name=f"forgetting_against_{fit.divergence}")
        for fit in result.fits[1:]
    ]


def _measured(result: BridgeResult, fit: Fit, units: BridgeUnits, notes: str) -> Figure:
    rows: list[Record] = [
        {
            "method": row.method, "model": row.model, "divergence": row.divergences[fit.divergence],
            "forgetting": row.forgetting, "low": row.low, "high": row.high,
        }
        for row in result.models
    ]  # fmt: skip
    x: Spec = {
        "field": "divergence", "type": "quantitative",
        "title": f"{divergence_name(fit)}, nats per {units.per}",
    }  # fmt: skip
    y = _SHARE | {"field": "forgetting", "title": f"forgotten, share {units.of}"}
    words = fit_sentence(fit, units.of)
    alt = f"{fit.n} models; {words}"
    layers = [
        {
            "data": {"values": curve(fit)},
            "mark": {"type": "line", "color": look.NEVER, "strokeDash": [4, 3]},
            "encoding": {"x": x, "y": y},
        },
        {
            "mark": {"type": "rule", "color": look.NEVER, "opacity": 0.7},
            "encoding": {"x": x, "y": y | {"field": "low"}, "y2": {"field": "high"}},
        },
        {
            "mark": {"type": "point", "filled": True, "size": 70},
            "encoding": {"x": x, "y": y, "color": _by_method(look.MODELS),
                         "shape": _by_method(look.SHAPES), "tooltip": _tooltip(rows)},
        },
    ]  # fmt: skip
    return Figure(
        name="forgetting_against_divergence",
        title=f"Forgetting against {divergence_name(fit)}",
        caption=f"{words} Each point is a model. The curve is fitted to all of them.{notes}",
        alt=alt,
        table=as_table(rows),
        spec=_spec(alt, rows, layers),
    )


def _predicted(fit: Fit, units: BridgeUnits, notes: str) -> Figure:
    rows: list[Record] = [
        {
            "method": row.method, "model": row.model, "measured": row.measured,
            "predicted": row.predicted, "extrapolated": row.extrapolated,
        }
        for row in fit.predictions
    ]  # fmt: skip
    ends = [value for row in fit.predictions for value in (row.measured, row.predicted)]
    line = [{"measured": end, "predicted": end} for end in (min(0.0, *ends), max(ends))]
    x = _SHARE | {"field": "measured", "title": "measured forgetting"}
    y = _SHARE | {"field": "predicted", "title": "predicted without data of the model's own method"}
    alt = f"Root mean square error {fit.error_left_out:.3f}; of the mean {fit.error_of_mean:.3f}."
    colour = _by_method(look.MODELS)
    hollow = {"condition": {"test": "datum.extrapolated", "value": 0}, "value": 1}
    layers = [
        {
            "data": {"values": line},
            "mark": {"type": "line", "color": look.NEVER},
            "encoding": {"x": x, "y": y},
        },
        {
            "mark": {"type": "point", "size": 70},
            "encoding": {"x": x, "y": y, "color": colour, "shape": _by_method(look.SHAPES),
                         "fillOpacity": hollow, "fill": colour, "tooltip": _tooltip(rows)},
        },
    ]  # fmt: skip
    return Figure(
        name="predicted_against_measured",
        title="Predicted against measured forgetting",
        caption=f"{fit_sentence(fit, units.of)} Predictions on the line are exact. Hollow: the "
        f"divergence is outside the range of the other methods.{notes}",
        alt=alt,
        table=as_table(rows),
        spec=_spec(alt, rows, layers),
    )


def _spec(alt: str, rows: list[Record], layers: list[Spec]) -> Spec:
    return look.base_spec(alt) | {"height": HEIGHT, "data": {"values": rows}, "layer": layers}


def _by_method(choices: list[str]) -> Spec:
    """Return the encoding of methods by colour or shape."""
    return {"field": "method", "type": "nominal", "title": "method", "scale": {"range": choices}}


def _tooltip(rows: list[Record]) -> list[Spec]:
    return [{"field": name} for name in rows[0]]
