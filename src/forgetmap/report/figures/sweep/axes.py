"""Marks of methods and axes that the figures of a sweep share."""

from __future__ import annotations

from forgetmap.report.figures import look
from forgetmap.report.figures.figure import Spec
from forgetmap.sweep import SweepResult

HEIGHT = 320
DASHES = [[1, 0], [6, 4], [2, 3], [8, 3, 2, 3], [4, 2], [10, 4], [1, 2]]
"""Dashes of methods, in addition to shapes."""
SHARES: Spec = {"format": "~%", "labelFlush": False, "tickCount": 6}
SELECTED_PAIR: Spec = {"filter": "datum.comparison === comparison"}


def spec(alt: str) -> Spec:
    """Return the common part of figures of a sweep; the page selects the tuned model."""
    return look.base_spec(alt, [look.DARK, {"name": "comparison", "value": 0}])


def _methods(result: SweepResult) -> list[str]:
    return list(dict.fromkeys(point.method for pair in result.pairs for point in pair.points))


def method_colour(result: SweepResult) -> Spec:
    """Return one colour per method, with a legend if there are several."""
    names = _methods(result)
    colours = [look.MODELS[index % len(look.MODELS)] for index in range(len(names))]
    return {
        "field": "method",
        "type": "nominal",
        "title": None,
        "scale": {"domain": names, "range": colours},
        "legend": {"orient": "top", "symbolOpacity": 1} if len(names) > 1 else None,
    }


def method_shape(result: SweepResult) -> Spec:
    """Return one shape per method."""
    names = _methods(result)
    shapes = [look.SHAPES[index % len(look.SHAPES)] for index in range(len(names))]
    return {"field": "method", "title": None, "scale": {"domain": names, "range": shapes}}


def method_dash(result: SweepResult) -> Spec:
    """Return one dash pattern per method."""
    names = _methods(result)
    dashes = [DASHES[index % len(DASHES)] for index in range(len(names))]
    return {
        "field": "method",
        "title": None,
        "scale": {"domain": names, "range": dashes},
        "legend": {
            "orient": "top",
            "symbolType": "stroke",
            "symbolSize": 260,
            "symbolStrokeWidth": 2,
        }
        if len(names) > 1
        else None,
    }
