"""The whole job: evaluate, compare, write everything."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forgetmap._lazy import load_on_use

if TYPE_CHECKING:
    from forgetmap.map.adaptive import Auto
    from forgetmap.map.job import REPEATS, REPORT, map_models

__all__ = [
    "REPEATS",
    "REPORT",
    "Auto",
    "map_models",
]

__getattr__ = load_on_use(__name__, __file__)
