"""forgetmap shows what a language model lost in post-training: which items, how many, and why.

    import forgetmap as fm

    comparison = fm.compare("runs/base", "runs/tuned")    # run folders, logs of a harness, tables
    print(comparison.headline)
    forgotten = comparison.flips("forgotten", texts=True)  # a dataframe of items with both answers
    fm.write_report(comparison, "report.html")
    fm.run_gate("runs/base", "runs/tuned").status          # PASS, FAIL or INCONCLUSIVE

Without runs yet, evaluate the models first; without models, simulate runs whose truth is known:

    fm.evaluate("models/tuned", "basics", out="runs/tuned")
    truth = fm.simulate([fm.SimulatedTask("capitals", items=400, k=4, lost=0.2)])
    print(fm.compare(truth.before, truth.after))

Everything else is imported from its package, such as `from forgetmap.evaluation import Suite`.
Every error that is raised on purpose is a `ForgetmapError`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from forgetmap._lazy import load_on_use

if TYPE_CHECKING:
    from forgetmap.capabilities import DriftResult, drift
    from forgetmap.comparison import Chain, Comparison, FanOut, chain, compare
    from forgetmap.confirmation import Confirmation, confirm
    from forgetmap.errors import ForgetmapError
    from forgetmap.evaluation import Settings, evaluate, load_suite
    from forgetmap.gate import GateResult, run_gate
    from forgetmap.map import map_models, merge_sweep
    from forgetmap.merge import merge_models, weight_drift
    from forgetmap.records import Run, write_run
    from forgetmap.report import (
        as_markdown,
        make_payload,
        plot,
        to_frame,
        to_latex,
        write_figures,
        write_report,
    )
    from forgetmap.simulation import SimulatedTask, simulate
    from forgetmap.sources import open_run
    from forgetmap.train import ForgettingCallback, protect, watch

__all__ = [
    "Chain",
    "Comparison",
    "Confirmation",
    "DriftResult",
    "FanOut",
    "ForgetmapError",
    "ForgettingCallback",
    "GateResult",
    "Run",
    "Settings",
    "SimulatedTask",
    "as_markdown",
    "chain",
    "compare",
    "confirm",
    "drift",
    "evaluate",
    "load_suite",
    "make_payload",
    "map_models",
    "merge_models",
    "merge_sweep",
    "open_run",
    "plot",
    "protect",
    "run_gate",
    "simulate",
    "to_frame",
    "to_latex",
    "watch",
    "weight_drift",
    "write_figures",
    "write_report",
    "write_run",
]
__version__ = "0.2.0"

__getattr__ = load_on_use(__name__, __file__)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
