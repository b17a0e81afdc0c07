"""Capability drift: changes in what a model can do, will do, and how it answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forgetmap._lazy import load_on_use

if TYPE_CHECKING:
    from forgetmap.capabilities.api import (
        DriftOptions,
        DriftWithRuns,
        drift,
        drift_pairs,
        drift_with_runs,
    )
    from forgetmap.capabilities.changes import changed_items
    from forgetmap.capabilities.choices import (
        AGGREGATORS,
        BOOTSTRAP_DRAWS,
        BOOTSTRAP_SEED,
        PROFILES,
    )
    from forgetmap.capabilities.drift_result import (
        EITHER_WAY,
        DriftResult,
        describe_cell,
        leaves_out_zero,
    )
    from forgetmap.capabilities.inputs import ARROW, read_label
    from forgetmap.capabilities.ranking import DriftRanking, RankedModel, Recovery
    from forgetmap.capabilities.result import Caution, Cell, MetricCell
    from forgetmap.capabilities.taxonomy import (
        SHARES,
        SUITE_OF_TAXONOMY,
        TARGET,
        Taxonomy,
    )

__all__ = [
    "AGGREGATORS",
    "ARROW",
    "BOOTSTRAP_DRAWS",
    "BOOTSTRAP_SEED",
    "EITHER_WAY",
    "PROFILES",
    "SHARES",
    "SUITE_OF_TAXONOMY",
    "TARGET",
    "Caution",
    "Cell",
    "DriftOptions",
    "DriftRanking",
    "DriftResult",
    "DriftWithRuns",
    "MetricCell",
    "RankedModel",
    "Recovery",
    "Taxonomy",
    "changed_items",
    "describe_cell",
    "drift",
    "drift_pairs",
    "drift_with_runs",
    "leaves_out_zero",
    "read_label",
]

__getattr__ = load_on_use(__name__, __file__)
