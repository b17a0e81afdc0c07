"""`map`: evaluate models, compare them, and write all results."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forgetmap._lazy import load_on_use

if TYPE_CHECKING:
    from forgetmap.map.adaptive import Auto
    from forgetmap.map.job import REPEATS, REPORT, map_models
    from forgetmap.map.sweep_job import check_asking, joined_suite, merge_sweep

__all__ = [
    "REPEATS",
    "REPORT",
    "Auto",
    "check_asking",
    "joined_suite",
    "map_models",
    "merge_sweep",
]

__getattr__ = load_on_use(__name__, __file__)
