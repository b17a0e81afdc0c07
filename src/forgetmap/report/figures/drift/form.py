"""Accuracy in any format against accuracy in the required format."""

from __future__ import annotations

from forgetmap.report.figures import look
from forgetmap.report.figures.drift import axes
from forgetmap.report.figures.figure import Figure, Record, Spec, as_table
from forgetmap.report.payloads.schema import Capabilities, Payload

STEP = 30
LENIENT, STRICT = "in any format", "as demanded"


def form(payload: Payload, drift: Capabilities) -> Figure | None:
    """Draw the figure if a metric has a strict and a lenient value."""
    records = _records(drift)
    if not records:
        return None
    alt = (
        "Change of the share of answers that are right in any format and in the requested "
        "format, by metric; the table below has the numbers."
    )
    return Figure(
        name="form_and_ability",
        title="Format and ability",
        caption="How the share of right answers changed, in percentage points: counted wherever "
        "the answer is, and only in the requested format. Where the square is left of the "
        "circle, answers are still right but no longer in the requested format.",
        alt=alt,
        table=as_table(records),
        spec=look.vega_lite(payload, alt)
        | {
            "data": {"values": records},
            "height": {"step": STEP},
            "transform": [
                {"filter": "datum.capability === capability && datum.comparison === comparison"}
            ],
            "encoding": {"y": _Y},
            "layer": [axes.ZERO, _LINE, _POINT],
        },
        page="capability",
    )


def _records(drift: Capabilities) -> list[Record]:
    models = drift.result.models
    return [
        {"comparison": models.index(cell.model), "capability": cell.capability, "id": cell.id,
         "label": look.label_of(f"{cell.id} {cell.name}"), "what": what, "points": points}
        for cell in drift.result.metrics
        if cell.form is not None and cell.points is not None
        for what, points in ((LENIENT, cell.points), (STRICT, cell.points + cell.form.points))
    ]  # fmt: skip


_Y: Spec = {
    "field": "label",
    "type": "nominal",
    "title": None,
    "sort": None,
    "axis": axes.NAME_AXIS | {"grid": False},
}
_X: Spec = {
    "field": "points",
    "type": "quantitative",
    "title": "change in percentage points",
    "scale": {"zero": True},
    "axis": axes.CHANGE_AXIS,
}
_LINE: Spec = {
    "mark": {"type": "line", "color": look.NEVER, "strokeWidth": 2},
    "encoding": {"x": _X, "detail": {"field": "label"}},
}
_POINT: Spec = {
    "mark": {"type": "point", "filled": True, "size": 80, "opacity": 1},
    "encoding": {
        "x": _X,
        "color": {
            "field": "what",
            "title": None,
            "scale": {"domain": [LENIENT, STRICT], "range": [look.KEPT, "#CC79A7"]},
            "legend": {"orient": "top"},
        },
        "shape": {
            "field": "what",
            "title": None,
            "scale": {"domain": [LENIENT, STRICT], "range": ["circle", "square"]},
        },
        "tooltip": [
            {"field": "label", "title": "metric"},
            {"field": "what"},
            {"field": "points", "format": "+.1f"},
        ],
    },
}
