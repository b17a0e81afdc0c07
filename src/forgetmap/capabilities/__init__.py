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
    from forgetmap.capabilities.changes import changed_items
    from forgetmap.capabilities.choices import (
        AGGREGATORS,
        BOOTSTRAP_DRAWS,
        BOOTSTRAP_SEED,
        PROFILES,
    )
    from forgetmap.capabilities.drift_result import EITHER_WAY, DriftResult, describe_cell
    from forgetmap.capabilities.result import Caution, Cell, MetricCell
    from forgetmap.capabilities.taxonomy import SHARES, TARGET, Taxonomy

__all__ = [
    "AGGREGATORS",
    "BOOTSTRAP_DRAWS",
    "BOOTSTRAP_SEED",
    "EITHER_WAY",
    "PROFILES",
    "SHARES",
    "TARGET",
    "Caution",
    "Cell",
    "DriftOptions",
    "DriftResult",
    "DriftWithRuns",
    "MetricCell",
    "Taxonomy",
    "changed_items",
    "describe_cell",
    "drift",
    "drift_with_runs",
]

__getattr__ = load_on_use(__name__, __file__)
