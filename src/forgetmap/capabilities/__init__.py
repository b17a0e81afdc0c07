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
    from forgetmap.capabilities.drift_result import DriftResult, print_drift
    from forgetmap.capabilities.result import Cell, Gate, MetricCell
    from forgetmap.capabilities.taxonomy import TARGET, Metric, Taxonomy
    from forgetmap.capabilities.values import TaskPairs, TaxonomyRun, pair_items, relation_of, sql

__all__ = [
    "AGGREGATORS",
    "BOOTSTRAP_DRAWS",
    "BOOTSTRAP_SEED",
    "PROFILES",
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
    "drift",
    "drift_with_runs",
    "pair_items",
    "print_drift",
    "relation_of",
    "sql",
]

__getattr__ = load_on_use(__name__, __file__)
