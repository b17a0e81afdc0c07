"""Runs of merges whose truth is known: every answer is that of one parent or the other."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from forgetmap.records.build import build_run
from forgetmap.records.folder import write_run
from forgetmap.records.run import Run
from forgetmap.simulation.api import SimulatedTask, simulate
from forgetmap.sweep.compared import MergedPath
from forgetmap.sweep.grid import Merge

TASKS = [
    SimulatedTask("one", items=150, k=None, known=0.6, lost=0.4, gained=0.5, category="A"),
    SimulatedTask("two", items=150, k=None, known=0.7, lost=0.2, gained=0.6, category="B"),
]


def columns_of(run: Run) -> dict[str, list[Any]]:
    """What `build_run` made the run of, as far as a sweep needs it."""
    names = ["task", "item", "repeat", "score", "outcome", "category", "gold", "answer"]
    table = run.scores.sort("task", "item", "repeat").collect()
    return {name: table[name].to_list() for name in names}


def write_mixtures(
    folder: Path, weights: Sequence[float], *, seed: int = 0, tasks: Sequence[SimulatedTask] = TASKS
) -> MergedPath:
    """Base, tuned, and mixtures that take `weight` of their answers from tuned."""
    made = simulate(tasks, seed=seed)
    base, tuned = columns_of(made.before), columns_of(made.after)
    turn = np.random.default_rng(seed).random(len(base["item"]))
    runs = {"base": base, "tuned": tuned}
    for weight in weights:
        runs[f"mixed-{weight:g}"] = {
            name: [two if at < weight else one for one, two, at in zip(*cells, turn, strict=True)]
            for name, cells in ((key, (base[key], tuned[key])) for key in base)
        }
    for name, columns in runs.items():
        info = made.before.info.model_copy(update={"run_id": name})
        write_run(build_run(columns, info, name), folder / name)
    merges = {Merge("linear", 0.0): "base"}
    merges |= {Merge("linear", weight): f"mixed-{weight:g}" for weight in weights}
    merges[Merge("linear", 1.0)] = "tuned"
    return MergedPath("models/tuned", "tuned", merges)
