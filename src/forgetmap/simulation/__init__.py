"""Simulated models with known knowledge, for the demo, the docs and the tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forgetmap._lazy import load_on_use

if TYPE_CHECKING:
    from forgetmap.simulation.answers import Habits
    from forgetmap.simulation.api import SimulatedTask, Simulation, simulate

__all__ = [
    "Habits",
    "SimulatedTask",
    "Simulation",
    "simulate",
]

__getattr__ = load_on_use(__name__, __file__)
