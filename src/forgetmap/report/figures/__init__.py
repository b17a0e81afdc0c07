"""The pictures of a report: one module each, all drawn from the payload."""

from __future__ import annotations

from forgetmap.report.figures.bridge import bridge
from forgetmap.report.figures.cells import cells
from forgetmap.report.figures.conventional import conventional
from forgetmap.report.figures.data import records_of, rows_as_records
from forgetmap.report.figures.directions import directions
from forgetmap.report.figures.drift import drift_figures
from forgetmap.report.figures.figure import Figure
from forgetmap.report.figures.flow import flow
from forgetmap.report.figures.forest import forest
from forgetmap.report.figures.heatmap import heat_maps
from forgetmap.report.figures.radar import radar
from forgetmap.report.figures.reasons import reasons
from forgetmap.report.figures.strips import strips
from forgetmap.report.payload import Payload

__all__ = ["Figure", "all_figures", "records_of", "rows_as_records"]


def all_figures(payload: Payload) -> list[Figure]:
    """Every figure that the data allow, the most telling first."""
    if payload.capabilities:
        return drift_figures(payload, payload.capabilities)
    found = [
        cells(payload),
        flow(payload),
        forest(payload),
        *heat_maps(payload),
        radar(payload),
        directions(payload),
        conventional(payload),
        reasons(payload),
        strips(payload),
        *(bridge(payload, payload.bridge) if payload.bridge else ()),
    ]
    return [each for each in found if each is not None]
