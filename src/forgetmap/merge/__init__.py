"""Merging of models: recipes, methods, and an engine that works tensor by tensor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forgetmap._lazy import load_on_use

if TYPE_CHECKING:
    from forgetmap.merge.api import apply_recipe, merge_models, prepare
    from forgetmap.merge.checkpoint import Checkpoint
    from forgetmap.merge.chunks import ChunkedTensor, ChunkFunction
    from forgetmap.merge.distance import (
        GroupDrift,
        WeightDistance,
        WeightDrift,
        drift_between,
        weight_drift,
    )
    from forgetmap.merge.engine import MergeStep
    from forgetmap.merge.method import (
        ChunkedTensors,
        Draws,
        Method,
        One,
        OneChunkedTensor,
        Parameter,
        PerModel,
        Share,
        SharePerModel,
        Tensors,
        merge_method,
    )
    from forgetmap.merge.recipe.model import Recipe
    from forgetmap.merge.recipe.read import read_recipe
    from forgetmap.merge.registry import METHODS, find_method, method_names

__all__ = [
    "METHODS",
    "Checkpoint",
    "ChunkFunction",
    "ChunkedTensor",
    "ChunkedTensors",
    "Draws",
    "GroupDrift",
    "MergeStep",
    "Method",
    "One",
    "OneChunkedTensor",
    "Parameter",
    "PerModel",
    "Recipe",
    "Share",
    "SharePerModel",
    "Tensors",
    "WeightDistance",
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
