"""Sweeps: merges of a base with tuned models, compared with both parents."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forgetmap._lazy import load_on_use

if TYPE_CHECKING:
    from forgetmap.sweep.analyse import ALL_ITEMS, DEFAULT_BUDGET
    from forgetmap.sweep.api import MergedPath, Sweep, compare_runs
    from forgetmap.sweep.grid import DEFAULT_DENSITY, Merge, Weights, merges_of, recipe_of
    from forgetmap.sweep.result import Barrier, PairResult, PointGroup, PointResult, SweepResult
    from forgetmap.sweep.words import listed_points, point_name, share_with_limits, signed_percent

__all__ = [
    "ALL_ITEMS",
    "DEFAULT_BUDGET",
    "DEFAULT_DENSITY",
    "Barrier",
    "Merge",
    "MergedPath",
    "PairResult",
    "PointGroup",
    "PointResult",
    "Sweep",
    "SweepResult",
    "Weights",
    "compare_runs",
    "listed_points",
    "merges_of",
    "point_name",
    "recipe_of",
    "share_with_limits",
    "signed_percent",
]

__getattr__ = load_on_use(__name__, __file__)
