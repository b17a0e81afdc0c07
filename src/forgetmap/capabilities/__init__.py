"""Forgetting as drift of what a model can do, will do, and how it does it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forgetmap._lazy import load_on_use

if TYPE_CHECKING:
    from forgetmap.capabilities.api import (
        DriftOptions,
        DriftWithRuns,
        drift,
        drift_with_runs,
    )
    from forgetmap.capabilities.choices import (
        AGGREGATORS,
        BOOTSTRAP_DRAWS,
        BOOTSTRAP_SEED,
        PROFILES,
    )
    from forgetmap.capabilities.drift_result import (
        EITHER_WAY,
        NO_DATA,
        DriftResult,
        capability_sheet,
        cells_in_order,
        drift_in_words,
        headline,
        lead,
        mark_of,
        opening,
        row_name,
        sentence,
        shade_of,
        signed,
        state_of,
        title_of_cell,
    )
    from forgetmap.capabilities.result import Cell, Gate, MetricCell
    from forgetmap.capabilities.taxonomy import SHARES, TARGET, Metric, Taxonomy
    from forgetmap.capabilities.values import TaskPairs, TaxonomyRun, pair_items, relation_of, sql

__all__ = [
    "AGGREGATORS",
    "BOOTSTRAP_DRAWS",
    "BOOTSTRAP_SEED",
    "EITHER_WAY",
    "NO_DATA",
    "PROFILES",
    "SHARES",
    "TARGET",
    "Cell",
    "DriftOptions",
    "DriftResult",
    "DriftWithRuns",
    "Gate",
    "Metric",
    "MetricCell",
    "TaskPairs",
    "Taxonomy",
    "TaxonomyRun",
    "capability_sheet",
    "cells_in_order",
    "drift",
    "drift_in_words",
    "drift_with_runs",
    "headline",
    "lead",
    "mark_of",
    "opening",
    "pair_items",
    "relation_of",
    "row_name",
    "sentence",
    "shade_of",
    "signed",
    "sql",
    "state_of",
    "title_of_cell",
]

__getattr__ = load_on_use(__name__, __file__)
