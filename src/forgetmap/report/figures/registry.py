"""Which figures a payload has, the most telling first."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

from forgetmap.overlap import BridgeResult
from forgetmap.report.figures.comparison.cells import cells
from forgetmap.report.figures.comparison.conventional import conventional
from forgetmap.report.figures.comparison.directions import directions
from forgetmap.report.figures.comparison.flow import flow
from forgetmap.report.figures.comparison.forest import forest
from forgetmap.report.figures.comparison.heat_maps import heat_maps
from forgetmap.report.figures.comparison.radar import radar
from forgetmap.report.figures.comparison.reasons import reasons
from forgetmap.report.figures.comparison.strips import strips
from forgetmap.report.figures.data import clipped, rows_as_records
from forgetmap.report.figures.drift.forest import (
    deep_dive_of_capability,
    of_all_metrics,
    of_capability,
    of_capability_in_all,
    of_model,
)
from forgetmap.report.figures.drift.form import form
from forgetmap.report.figures.drift.heat_map import heat_map
from forgetmap.report.figures.drift.plasticity import plasticity
from forgetmap.report.figures.figure import Figure, Record
from forgetmap.report.figures.overlap import bridge_figures
from forgetmap.report.figures.plugins import plugin_figures
from forgetmap.report.figures.sweep.curves import categories, connectivity, path, trade
from forgetmap.report.figures.sweep.front import pareto_front
from forgetmap.report.figures.sweep.weights import benefits, weights
from forgetmap.report.html.shell import vega_bundle
from forgetmap.report.payloads import AnyPayload
from forgetmap.report.payloads.schema import Capabilities, Payload
from forgetmap.sweep import SweepResult

Figures = Sequence[Figure | None]


def all_figures(payload: AnyPayload) -> list[Figure]:
    """Every figure that the data allow, the most telling first, then those of other packages."""
    figures = [figure for figure in _built_in(payload) if figure is not None]
    return [*figures, *plugin_figures(payload)]


def records_of(payload: AnyPayload) -> list[Record]:
    """The data set `rows` that figures of this payload may draw."""
    if not isinstance(payload, Payload):
        return []
    if payload.capabilities:
        return rows_as_records(payload.capabilities.rows)
    return [clipped(record) for record in rows_as_records(payload.rows)]


def figures_json(payload: AnyPayload) -> str:
    """All figures of a payload as the page takes them."""
    figures = [_compiled(figure) for figure in all_figures(payload)]
    return json.dumps(figures, ensure_ascii=False, allow_nan=False)


def _compiled(figure: Figure) -> dict[str, object]:
    """A figure as the page takes it: Vega-Lite is compiled here, so that no reader waits for it."""
    content = asdict(figure)
    if figure.spec is not None and "vega-lite" in figure.spec["$schema"] and vega_bundle():
        import vl_convert

        content["spec"] = vl_convert.vegalite_to_vega(figure.spec)
    return content


def _built_in(payload: AnyPayload) -> Figures:
    if isinstance(payload, SweepResult):
        return _of_sweep(payload)
    if isinstance(payload, BridgeResult):
        return bridge_figures(payload)
    return _of_drift(payload, payload.capabilities) if payload.capabilities else _of_pair(payload)


def _of_pair(payload: Payload) -> Figures:
    return [
        cells(payload),
        flow(payload),
        forest(payload),
        *heat_maps(payload),
        radar(payload),
        directions(payload),
        conventional(payload),
        reasons(payload),
        strips(payload),
        *(bridge_figures(payload.bridge) if payload.bridge else ()),
    ]


def _of_drift(payload: Payload, drift: Capabilities) -> Figures:
    """A single model needs no heat map."""
    alone = len(drift.result.models) == 1
    return [
        None if alone else heat_map(payload, drift),
        of_model(payload, drift),
        plasticity(payload, drift),
        of_all_metrics(payload, drift) if alone else heat_map(payload, drift, "metric"),
        of_all_metrics(payload, drift, "deep_dive")
        if alone
        else heat_map(payload, drift, "deep_dive"),
        of_capability(payload, drift),
        deep_dive_of_capability(payload, drift),
        form(payload, drift),
        of_capability_in_all(payload, drift),
    ]


def _of_sweep(result: SweepResult) -> Figures:
    return [
        pareto_front(result),
        path(result),
        trade(result),
        connectivity(result),
        benefits(result) if len(result.pairs) > 1 else None,
        *categories(result),
        weights(result, "layers"),
        weights(result, "kinds"),
    ]
