"""forgetmap shows what a language model lost in post-training: which items, how many, and why.

import forgetmap as fm

comparison = fm.compare("runs/base", "runs/tuned")
print(comparison.headline)
comparison.flips("forgotten")
fm.write_report(comparison, "report.html")
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from forgetmap._lazy import load_on_use

if TYPE_CHECKING:
    from forgetmap.capabilities import DriftResult, drift
    from forgetmap.comparison import Chain, Comparison, FanOut, chain, compare
    from forgetmap.errors import ForgetmapError
    from forgetmap.evaluation import Item, Settings, Suite, Task, evaluate, load_suite
    from forgetmap.map import map_models, merge_sweep
    from forgetmap.merge import WeightDrift, merge_models, weight_drift
    from forgetmap.records import Outcome, Run, RunInfo, write_run
    from forgetmap.report import Payload, as_markdown, make_payload, write_figures, write_report
    from forgetmap.simulation import Habits, SimulatedTask, Simulation, simulate
    from forgetmap.sources import open_run
    from forgetmap.sweep import Sweep

__all__ = [
    "Chain",
    "Comparison",
    "DriftResult",
    "FanOut",
    "ForgetmapError",
    "Habits",
    "Item",
    "Outcome",
    "Payload",
    "Run",
    "RunInfo",
    "Settings",
    "SimulatedTask",
    "Simulation",
    "Suite",
    "Sweep",
    "Task",
    "WeightDrift",
    "as_markdown",
    "chain",
    "compare",
    "drift",
    "evaluate",
    "load_suite",
    "make_payload",
    "map_models",
    "merge_models",
    "merge_sweep",
    "open_run",
    "simulate",
    "weight_drift",
    "write_figures",
    "write_report",
    "write_run",
]
__version__ = "0.1.0"

__getattr__ = load_on_use(__name__, __file__)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
