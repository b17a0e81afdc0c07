"""Training runs, each in a folder of its own: what is finished is not done again."""

from __future__ import annotations

import atexit
import os
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from multiprocessing import parent_process
from pathlib import Path
from threading import Thread
from typing import Any

import torch
from transformers import PrinterCallback
from transformers.utils.logging import disable_progress_bar, set_verbosity_error

from forgetmap._disk import whole_file
from forgetmap.errors import ConvergenceError, EmptyInputError, UnreadableError, WorkerError
from forgetmap.lab.measure import (
    StartDivergence,
    count_cells,
    divergences,
    run_items,
)
from forgetmap.lab.methods import ArmSetting, find_method
from forgetmap.lab.peak import PeakWatch
from forgetmap.lab.recipe import LabRecipe
from forgetmap.lab.result import LabCell, LabRun
from forgetmap.lab.training import (
    ComputeCounter,
    StopAtScore,
    is_finite,
    load_start,
    share_right,
)
from forgetmap.train import read_examples

RESULT = "result.json"
DEVELOPMENT_SEED = 0
"""Chooses the settings and is not reported; its trainings are not watched."""
OnArm = Callable[[LabRun], None]
"""Called with each run as it is finished."""


@dataclass(frozen=True, order=True)
class Arm:
    """One training run to be made."""

    method: str
    strength: float
    rate: float
    seed: int

    @property
    def folder(self) -> str:
        """Its name in the lab's folder."""
        return f"{self.method}-{self.strength:g}-rate{self.rate:g}-seed{self.seed}"


@dataclass(frozen=True)
class Bench:
    """Where arms are trained and measured: the recipe, and a folder."""

    recipe: LabRecipe
    out: Path

    @cached_property
    def start_run(self) -> Path:
        """The start model's answers to all near and far questions."""
        model, tokenizer = load_start(self.recipe.start)
        return run_items(self.recipe, model, tokenizer, self.out / "start")

    @cached_property
    def old_divergence(self) -> StartDivergence:
        """Distributions of the start model on near and far questions."""
        model, tokenizer = load_start(self.recipe.start)
        return StartDivergence(model, self.recipe.old_rows, tokenizer)

    def run(self, arm: Arm) -> LabRun:
        """Train and measure, or read what an earlier attempt found."""
        folder = self.out / arm.folder
        result = folder / RESULT
        if result.exists():
            return _read(result)
        shutil.rmtree(folder, ignore_errors=True)
        run = self._train(arm, folder)
        with whole_file(result) as file:
            file.write_text(run.to_json(), encoding="utf-8")
        return run

    def _train(self, arm: Arm, folder: Path) -> LabRun:
        recipe = self.recipe
        model, tokenizer = load_start(recipe.start)
        new = StartDivergence(model, recipe.new_rows(arm.seed), tokenizer)
        counter = ComputeCounter(model)
        began = time.perf_counter()
        setting = ArmSetting(recipe, arm.strength, arm.rate, arm.seed, folder)
        trainer = find_method(arm.method).make_trainer(setting, model, tokenizer)
        for name in ("ref_model", "teacher_model"):
            helper = getattr(trainer, name, None)
            if helper is not None and helper is not trainer.model:
                counter.add(helper)
        examples = read_examples(recipe.new_rows(arm.seed), tokenizer, eos=False)
        stop = StopAtScore(examples, recipe.target, counter)
        trainer.add_callback(stop)
        trainer.remove_callback(PrinterCallback)  # would print a line for every run
        watch = (
            None if arm.seed == DEVELOPMENT_SEED else PeakWatch(recipe, counter, folder / "watch")
        )
        if watch is not None:
            trainer.add_callback(watch)
        has_diverged = not train_to_end(trainer)
        seconds = time.perf_counter() - began
        facts = {
            "method": arm.method, "strength": arm.strength, "rate": arm.rate, "seed": arm.seed,
            "steps": trainer.state.global_step, "compute": counter.tokens, "seconds": seconds,
            "folder": arm.folder,
        }  # fmt: skip
        if has_diverged:
            cells = count_cells(recipe, self.start_run, None)
            return LabRun(**facts, score=0.0, reached=False, cells=cells, kl=None, diverged=True)
        peak = watch.peak if watch is not None else None
        with counter.paused():
            model = finished_model(trainer.model)
            score = share_right(model, examples)
            model.save_pretrained(folder / "model")
            tokenizer.save_pretrained(folder / "model")
            run = run_items(recipe, model, tokenizer, folder / "run")
            kl = divergences(self.old_divergence, new, model)
        cells = count_cells(recipe, self.start_run, run)
        _require_known(cells)
        return LabRun(
            **facts, score=score, reached=score >= recipe.target, cells=cells, kl=kl,
            peak=peak.lost if peak else None, peak_step=peak.step if peak else None,
        )  # fmt: skip


def train_to_end(trainer: Any) -> bool:
    """Train; False if the weights became infinite on the way."""
    try:
        trainer.train()
    except RuntimeError:
        # Sampling from a model whose weights are no numbers fails in torch.
        if is_finite(trainer.model):
            raise
    return is_finite(trainer.model)


def require_convergence(trainer: Any, what: str) -> None:
    """Train, where a training that diverged would be of no use.

    Raises:
        ConvergenceError: it did.
    """
    if not train_to_end(trainer):
        raise ConvergenceError(
            f"{what} diverged: its weights are no numbers any more",
            hint="give the recipe lower `rates`.",
        )


def _require_known(cells: Sequence[LabCell]) -> None:
    if not any(cell.known for cell in cells):
        raise EmptyInputError(
            "the start model knows no near and no far question: nothing can be forgotten",
            hint="take a start model that was trained, or easier questions.",
        )


def finished_model(model: Any) -> Any:
    """The model as it would be shipped: an adapter is merged into its base."""
    return model.merge_and_unload() if hasattr(model, "merge_and_unload") else model


def start_score(recipe: LabRecipe, seed: int) -> float:
    """Share of the new examples that the start model knows."""
    model, tokenizer = load_start(recipe.start)
    return share_right(model, read_examples(recipe.new_rows(seed), tokenizer, eos=False))


def parameter_count(recipe: LabRecipe) -> int:
    """Of the start model."""
    model, _ = load_start(recipe.start)
    return int(model.num_parameters())


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
            "a process that trained a model ended without a result",
            hint="is the memory used up? Run the same command again with fewer --workers: what is "
            "finished is kept.",
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


def _read(path: Path) -> LabRun:
    try:
        return LabRun.model_validate_json(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise UnreadableError(
            f"it is no result of this version: {error}",
            file=str(path),
            hint="remove the folder, or give another --out.",
        ) from None
