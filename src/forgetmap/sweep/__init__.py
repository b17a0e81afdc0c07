"""Sweeps: many merges of two models, evaluated, and compared with both of their parents."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forgetmap._lazy import load_on_use

if TYPE_CHECKING:
    from forgetmap.sweep.compared import REPORT, Sweep
    from forgetmap.sweep.drawing import draw_drift
    from forgetmap.sweep.grid import merges_of
    from forgetmap.sweep.job import joined_suite, merge_sweep
    from forgetmap.sweep.render import tell_sweep, tell_weights

__all__ = [
    "REPORT",
    "Sweep",
    "draw_drift",
    "joined_suite",
    "merge_sweep",
    "merges_of",
    "tell_sweep",
    "tell_weights",
]

__getattr__ = load_on_use(__name__, __file__)
