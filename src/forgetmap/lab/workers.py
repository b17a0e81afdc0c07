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
    """All arms, in processes of their own if there are several workers; in the order given."""
    bench = Bench(recipe, out)
    bench.start_run  # noqa: B018  # made once, before processes want it
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
    """One thread of torch per process: small models gain nothing by more."""
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
        # Else the pool would wait for trainings whose results nobody takes.
        for worker in set(active_children()) - others:
            worker.terminate()
        raise
    finally:
        processes.shutdown(cancel_futures=True)
    return [results[arm] for arm in arms]


_benches: list[Bench] = []
"""Of this worker process: the start's distributions are computed once for all of its arms."""


def _open_bench(recipe: LabRecipe, out: Path) -> None:
    torch.set_num_threads(1)
    disable_progress_bar()  # one for every model that is loaded or saved
    set_verbosity_error()
    # On the way out DuckDB would report all that torch keeps alive, which helps nobody.
    atexit.register(os._exit, 0)
    Thread(target=_end_with_parent, daemon=True).start()
    _benches.append(Bench(recipe, out))


def _end_with_parent() -> None:
    """A worker whose parent was killed would train on, and then wait forever."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _run_arm(arm: Arm) -> LabRun:
    return _benches[-1].run(arm)
