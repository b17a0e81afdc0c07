"""Run other evaluation harnesses and import their logs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forgetmap._lazy import load_on_use

if TYPE_CHECKING:
    from forgetmap.harness_runs.process import require_locks
    from forgetmap.harness_runs.request import HarnessRequest
    from forgetmap.harness_runs.run import DRIVERS, plan_harness, run_harness

__all__ = [
    "DRIVERS",
    "HarnessRequest",
    "plan_harness",
    "require_locks",
    "run_harness",
]

__getattr__ = load_on_use(__name__, __file__)
