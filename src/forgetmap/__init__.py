"""forgetmap shows what a language model lost in post-training: which items, how many, and why.

import forgetmap as fm

comparison = fm.compare("runs/base", "runs/tuned")
print(comparison.headline)
comparison.flips("forgotten")
fm.write_report(comparison, "report.html")
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from forgetmap.capabilities.drift import drift
    from forgetmap.capabilities.result import DriftResult
    from forgetmap.errors import ForgetmapError
    from forgetmap.map.job import map_models
    from forgetmap.merge.drift import WeightDrift, weight_drift
    from forgetmap.merge.models import merge_models
    from forgetmap.records.folder import write_run
    from forgetmap.records.manifest import RunInfo
    from forgetmap.records.outcome import Outcome
    from forgetmap.records.run import Run
    from forgetmap.report.build import make_payload
    from forgetmap.report.html import write_report
    from forgetmap.report.markdown import as_markdown
    from forgetmap.report.payload import Payload
    from forgetmap.report.static import write_figures
    from forgetmap.runner.evaluate import evaluate
    from forgetmap.runner.items import Item, Suite, Task
    from forgetmap.runner.settings import Settings
    from forgetmap.runner.suites.catalogue import load_suite
    from forgetmap.simulator.answers import Habits
    from forgetmap.simulator.simulate import SimulatedTask, Simulation, simulate
    from forgetmap.sources.open import open_run
    from forgetmap.sweeps.compared import Sweep
    from forgetmap.sweeps.job import merge_sweep
    from forgetmap.transitions.chains import Chain
    from forgetmap.transitions.compare import FanOut, chain, compare
    from forgetmap.transitions.comparison import Comparison

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

_HOMES = {
    "Chain": "transitions.chains",
    "Comparison": "transitions.comparison",
    "DriftResult": "capabilities.result",
    "FanOut": "transitions.compare",
    "ForgetmapError": "errors",
    "Habits": "simulator.answers",
    "Item": "runner.items",
    "Outcome": "records.outcome",
    "Payload": "report.payload",
    "Run": "records.run",
    "RunInfo": "records.manifest",
    "Settings": "runner.settings",
    "SimulatedTask": "simulator.simulate",
    "Simulation": "simulator.simulate",
    "Suite": "runner.items",
    "Sweep": "sweeps.compared",
    "Task": "runner.items",
    "WeightDrift": "merge.drift",
    "as_markdown": "report.markdown",
    "chain": "transitions.compare",
    "compare": "transitions.compare",
    "drift": "capabilities.drift",
    "evaluate": "runner.evaluate",
    "load_suite": "runner.suites.catalogue",
    "make_payload": "report.build",
    "map_models": "map.job",
    "merge_models": "merge.models",
    "merge_sweep": "sweeps.job",
    "open_run": "sources.open",
    "simulate": "simulator.simulate",
    "weight_drift": "merge.drift",
    "write_figures": "report.static",
    "write_report": "report.html",
    "write_run": "records.folder",
}


def __getattr__(name: str) -> object:
    """Load a name when it is first used, so that `import forgetmap` costs nothing."""
    if name not in _HOMES:
        raise AttributeError(f"module 'forgetmap' has no attribute {name!r}")
    value = getattr(import_module(f"forgetmap.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
