"""How capabilities drifted: figures of a drift, drawn from `Capabilities.rows`."""

from __future__ import annotations

from forgetmap.report.figures.drift_forest import (
    of_all_metrics,
    of_capability,
    of_capability_in_all,
    of_model,
)
from forgetmap.report.figures.drift_form import form
from forgetmap.report.figures.drift_heat import heat_map
from forgetmap.report.figures.figure import Figure
from forgetmap.report.figures.plasticity import plasticity
from forgetmap.report.payload import Capabilities, Payload


def drift_figures(payload: Payload, found: Capabilities) -> list[Figure]:
    """All that the data allow; a single model needs no heat map."""
    alone = len(found.result.models) == 1
    figures = [
        None if alone else heat_map(payload, found),
        of_model(payload, found),
        plasticity(payload, found),
        of_all_metrics(payload, found) if alone else heat_map(payload, found, metrics=True),
        of_capability(payload, found),
        form(payload, found),
        of_capability_in_all(payload, found),
    ]
    return [each for each in figures if each is not None]
