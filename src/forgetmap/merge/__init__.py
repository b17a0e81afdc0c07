"""Merging models: recipes, methods, and an engine that goes tensor by tensor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forgetmap._lazy import load_on_use

if TYPE_CHECKING:
    from forgetmap.merge.apply import apply_recipe, prepare
    from forgetmap.merge.checkpoint import Checkpoint
    from forgetmap.merge.distance import (
        Distance,
        GroupDrift,
        WeightDrift,
        drift_between,
        weight_drift,
    )
    from forgetmap.merge.method import Method, Parameter, PerModel, Tensors, merge_method
    from forgetmap.merge.models import merge_models
    from forgetmap.merge.recipe import Recipe, read_recipe
    from forgetmap.merge.registry import find_method, method_names
    from forgetmap.merge.work import MergeStep

__all__ = [
    "Checkpoint",
    "Distance",
    "GroupDrift",
    "MergeStep",
    "Method",
    "Parameter",
    "PerModel",
    "Recipe",
    "Tensors",
    "WeightDrift",
    "apply_recipe",
    "drift_between",
    "find_method",
    "merge_method",
    "merge_models",
    "method_names",
    "prepare",
    "read_recipe",
    "weight_drift",
]

__getattr__ = load_on_use(__name__, __file__)
