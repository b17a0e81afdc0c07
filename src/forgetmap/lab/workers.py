"""Parallel training runs in separate processes."""

from __future__ import annotations

import atexit
import os
from collections.abc import Sequence
from multiprocessing import parent_process
from pathlib import Path
from threading import Thread

import torch
from transformers.utils.logging import disable_progress_bar, set_verbosity_error

from forgetmap.errors import WorkerError
from forgetmap.lab.arms import Arm, Bench, OnArm
from forgetmap.lab.recipe import LabRecipe
from forgetmap.lab.result import LabRun


def run_arms(
    recipe: LabRecipe,
    out: Path,
    arms: Sequence[Arm],
    *,
    workers: int = 1,
    on_arm: OnArm | None = None,
) -> list[LabRun]:
    """Run all arms, in separate processes if there are several workers; return results in order."""
    bench = Bench(recipe, out)
    bench.start_run  # noqa: B018  # computed once, before the processes need it
    if workers == 1:
        return [_report(bench.run(arm), on_arm) for arm in arms]
    return _in_processes(recipe, out, arms, workers, on_arm)


def _report(run: LabRun, on_arm: OnArm | None) -> LabRun:
    if on_arm is not None:
        on_arm(run)
    return run


def _in_processes(
    recipe: LabRecipe, out: Path, arms: Sequence[Arm], workers: int, on_arm: OnArm | None
) -> list[LabRun]:
    """Run arms in processes with one torch thread each: small models do not profit from more."""
    from concurrent.futures import ProcessPoolExecutor, as_completed
    from concurrent.futures.process import BrokenProcessPool
    from multiprocessing import active_children, get_context

    others = set(active_children())
    processes = ProcessPoolExecutor(workers, get_context("spawn"), _open_bench, (recipe, out))
    try:
        waiting = {processes.submit(_run_arm, arm): arm for arm in arms}
        results = {waiting[done]: _report(done.result(), on_arm) for done in as_completed(waiting)}
    except BrokenProcessPool:
        raise WorkerError(
            "a training process ended without a result",
            hint="it may have run out of memory; run the same command with fewer --workers. "
            "Finished runs are kept.",
        ) from None
    except BaseException:
        # Otherwise the pool would wait for trainings whose results are not used.
        for worker in set(active_children()) - others:
            worker.terminate()
        raise
    finally:
        processes.shutdown(cancel_futures=True)
    return [results[arm] for arm in arms]


_benches: list[Bench] = []
"""Bench of this worker process: distributions of the start model are computed once for all arms."""


def _open_bench(recipe: LabRecipe, out: Path) -> None:
    torch.set_num_threads(1)
    disable_progress_bar()  # one per loaded or saved model
    set_verbosity_error()
    # At exit, DuckDB would report everything that torch keeps alive.
    atexit.register(os._exit, 0)
    Thread(target=_end_with_parent, daemon=True).start()
    _benches.append(Bench(recipe, out))


def _end_with_parent() -> None:
    """End this worker if its parent is killed; otherwise it would train on and wait forever."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _run_arm(arm: Arm) -> LabRun:
    return _benches[-1].run(arm)
