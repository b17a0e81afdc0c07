"""Simulated runs of merges: every answer is that of one parent or the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from forgetmap.merge import WeightDrift
from forgetmap.records.folder import write_run
from forgetmap.records.run import Run
from forgetmap.records.tables import build_run
from forgetmap.simulation.api import SimulatedTask, simulate
from forgetmap.sweep.api import MergedPath, Sweep, compare_runs
from forgetmap.sweep.grid import Merge

TUNED = Merge("linear", 1.0)
TASKS = [
    SimulatedTask("one", items=150, k=None, known=0.6, lost=0.4, gained=0.5, category="A"),
    SimulatedTask("two", items=150, k=None, known=0.7, lost=0.2, gained=0.6, category="B"),
]
FEW = [replace(TASKS[0], items=30, category=None), replace(TASKS[1], items=30)]


def columns_of(run: Run) -> dict[str, list[Any]]:
    """Return the columns of a run that a sweep needs, for `build_run`."""
    names = ["task", "item", "repeat", "score", "outcome", "category", "gold", "answer"]
    table = run.scores.sort("task", "item", "repeat").collect()
    return {name: table[name].to_list() for name in names}


def write_mixtures(
    folder: Path, weights: Sequence[float], *, seed: int = 0, tasks: Sequence[SimulatedTask] = TASKS
) -> MergedPath:
    """Write base, tuned, and mixtures that take a share `weight` of their answers from tuned."""
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
    merges[TUNED] = "tuned"
    return MergedPath("models/tuned", "tuned", merges)


def sweep_mixtures(
    folder: Path,
    weights: Sequence[float],
    *,
    tasks: Sequence[SimulatedTask] = FEW,
    seeds: Sequence[int] = (0,),
    targets: Sequence[str] = (),
    budget: float = 0.5,
    drift: bool = False,
) -> Sweep:
    """Return the sweep of one base and a tuned model for each seed.

    Args:
        folder: folder for the runs.
        weights: weights of the mixtures.
        tasks: simulated tasks.
        seeds: seeds of the answers; the base is that of the first.
        targets: tasks that the tuned models were trained for.
        budget: largest acceptable forgetting of the best merge.
        drift: whether to add invented distances of weights.
    """
    base = f"{seeds[0]}/base"
    paths = []
    for seed in seeds:
        made = write_mixtures(folder / f"{seed}", weights, seed=seed, tasks=tasks)
        runs = {merge: f"{seed}/{run}" for merge, run in made.merges.items()}
        paths.append(
            MergedPath(f"models/tuned-{seed}", runs[TUNED], runs | {Merge("linear", 0.0): base})
        )
    drifts = [_drift(path.model, 0.1 * n) for n, path in enumerate(paths, start=1)] if drift else ()
    return compare_runs(
        folder, ("models/base", base), paths,
        suite="simulated", targets=targets, budget=budget, drifts=drifts,
    )  # fmt: skip


def _drift(tuned: str, relative: float) -> WeightDrift:
    total = {
        "name": "all", "tensors": 1, "parameters": 1, "relative": relative, "cosine": 1.0,
        "difference": 1.0, "length": 1.0, "effective_rank": None, "rank_share": None,
    }  # fmt: skip
    lists = (
        "layers", "kinds", "modules", "tensors", "only_base", "only_tuned", "other_shape", "notices"
    )  # fmt: skip
    named = {"base": "models/base", "tuned": tuned, "total": total, "unchanged": 0}
    return WeightDrift.model_validate(named | {name: [] for name in lists})
