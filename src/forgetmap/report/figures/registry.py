"""The figures of a payload, most informative first."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

from forgetmap.lab import LabResult, MergeDriftResult, RepairResult
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
from forgetmap.report.figures.lab.front import front, swept_runs
from forgetmap.report.figures.lab.merging import merge_paths, recovered_by_drift
from forgetmap.report.figures.lab.methods import categories as lab_categories
from forgetmap.report.figures.lab.methods import differences, rates, strengths
from forgetmap.report.figures.lab.repair import recovered, score_kept
from forgetmap.report.figures.overlap import BridgeUnits, bridge_figures, other_bridge_figures
from forgetmap.report.figures.panels import follow_page
from forgetmap.report.figures.plugins import plugin_figures
from forgetmap.report.figures.sweep.curves import categories, connectivity, path, trade
from forgetmap.report.figures.sweep.front import pareto_front
from forgetmap.report.figures.sweep.weights import benefits, weights
from forgetmap.report.figures.watch import watch_figures
from forgetmap.report.html.shell import has_vega
from forgetmap.report.payloads import AnyPayload, LabPayload
from forgetmap.report.payloads.schema import Capabilities, Payload
from forgetmap.sweep import SweepResult

Figures = Sequence[Figure | None]


def all_figures(payload: AnyPayload) -> list[Figure]:
    """Return every figure that the data allow, the most informative first, plugins last."""
    figures = [figure for figure in _built_in(payload) if figure is not None]
    return [*figures, *plugin_figures(payload)]


def records_of(payload: AnyPayload) -> list[Record]:
    """Return the data set `rows` of the figures of a payload."""
    if not isinstance(payload, Payload):
        return []
    if payload.capabilities:
        return rows_as_records(payload.capabilities.rows)
    return [clipped(record) for record in rows_as_records(payload.rows)]


def figures_json(payload: AnyPayload) -> str:
    """Return all figures of a payload as JSON for the page."""
    return as_json(all_figures(payload))


def as_json(figures: Sequence[Figure]) -> str:
    """Return figures as JSON for the page."""
    compiled = [_compiled(figure) for figure in figures]
    return json.dumps(compiled, ensure_ascii=False, allow_nan=False)


def _compiled(figure: Figure) -> dict[str, object]:
    """Return a figure for the page, with Vega-Lite compiled here so that the page loads faster."""
    content = asdict(figure)
    if figure.spec is not None and "vega-lite" in figure.spec["$schema"] and has_vega():
        import vl_convert

        vega = vl_convert.vegalite_to_vega(figure.spec)
        content["spec"] = follow_page(figure.spec, vega) if "facet" in figure.spec else vega
    return content


def _built_in(payload: AnyPayload) -> Figures:
    if isinstance(payload, LabPayload):
        return _of_training(payload)
    if isinstance(payload, SweepResult):
        return _of_sweep(payload)
    if isinstance(payload, BridgeResult):
        return bridge_figures(payload)
    return _of_drift(payload, payload.capabilities) if payload.capabilities else _of_pair(payload)


def _of_training(payload: LabPayload) -> Figures:
    if isinstance(payload, LabResult):
        return _of_lab(payload)
    if isinstance(payload, RepairResult):
        return [recovered(payload), score_kept(payload)]
    if isinstance(payload, MergeDriftResult):
        return [recovered_by_drift(payload), merge_paths(payload)]
    return watch_figures(payload)


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
    """Return the figures of a drift; a single model needs no heat map."""
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


LAB_UNITS = BridgeUnits("answer token", "of the known items")


def _of_lab(result: LabResult) -> Figures:
    bridge = result.bridge
    return [
        front(result, "near"),
        front(result, "far"),
        differences(result, "near"),
        differences(result, "far"),
        *lab_categories(result),
        swept_runs(result, "near"),
        swept_runs(result, "far"),
        rates(result),
        strengths(result),
        *(bridge_figures(bridge, LAB_UNITS) if bridge else ()),
        *(other_bridge_figures(bridge, LAB_UNITS) if bridge else ()),
    ]
