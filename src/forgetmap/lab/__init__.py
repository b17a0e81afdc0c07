"""The lab: training methods compared from the same start, by what they keep and learn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forgetmap._lazy import load_on_use

if TYPE_CHECKING:
    from forgetmap.lab.compare import LabPlan, compare_methods, plan_comparison
    from forgetmap.lab.merge_drift import merge_under_drift
    from forgetmap.lab.methods import METHODS, LabMethod
    from forgetmap.lab.recipe import LabRecipe
    from forgetmap.lab.recipe_file import read_recipe
    from forgetmap.lab.repair import REPAIRS, RepairPlan, repair_model
    from forgetmap.lab.result import (
        Divergences,
        LabCapability,
        LabCategory,
        LabCell,
        LabDifference,
        LabResult,
        LabRun,
        MergeDriftResult,
        MergeLevel,
        MergePoint,
        MethodResult,
        RepairResult,
        RepairRun,
        RepairSummary,
    )
    from forgetmap.lab.start_store import kept_start, write_start
    from forgetmap.lab.starters import write_starter
    from forgetmap.lab.tiny_world import Pretraining, make_start, tiny_recipe
    from forgetmap.lab.training import StopAtScore, load_start, supervised_trainer

__all__ = [
    "METHODS",
    "REPAIRS",
    "Divergences",
    "LabCapability",
    "LabCategory",
    "LabCell",
    "LabDifference",
    "LabMethod",
    "LabPlan",
    "LabRecipe",
    "LabResult",
    "LabRun",
    "MergeDriftResult",
    "MergeLevel",
    "MergePoint",
    "MethodResult",
    "Pretraining",
    "RepairPlan",
    "RepairResult",
    "RepairRun",
    "RepairSummary",
    "StopAtScore",
    "compare_methods",
    "kept_start",
    "load_start",
    "make_start",
    "merge_under_drift",
    "plan_comparison",
    "read_recipe",
    "repair_model",
    "supervised_trainer",
    "tiny_recipe",
    "write_start",
    "write_starter",
]

__getattr__ = load_on_use(__name__, __file__)
