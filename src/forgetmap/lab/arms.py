"""Training runs in folders of their own; finished ones are not repeated."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from transformers import PrinterCallback

from forgetmap.errors import ConvergenceError, EmptyInputError
from forgetmap.lab.folder import as_output_error, kept_result
from forgetmap.lab.measure import (
    StartDivergence,
    count_cells,
    divergences,
    right_items,
    run_items,
)
from forgetmap.lab.methods import ArmSetting, find_method
from forgetmap.lab.peak import PeakWatch
from forgetmap.lab.recipe import LabRecipe
from forgetmap.lab.result import LabRun
from forgetmap.lab.seeds import DEVELOPMENT_SEED
from forgetmap.lab.training import (
    ComputeCounter,
    StopAtScore,
    is_finite,
    load_start,
    share_right,
)
from forgetmap.train import TokenExample, read_examples

RESULT = "result.json"
MODEL, RUN = "model", "run"
"""Folders of an arm: the trained model, and its answers."""
OnArm = Callable[[LabRun], None]
"""Callback that receives each finished run."""


@dataclass(frozen=True, order=True)
class Arm:
    """One training run to be done."""

    method: str
    strength: float
    rate: float
    seed: int

    @property
    def folder(self) -> str:
        """Name of its folder in the lab."""
        return f"{self.method}-{self.strength:g}-rate{self.rate:g}-seed{self.seed}"


@dataclass(frozen=True)
class Bench:
    """A recipe and a folder, in which arms are trained and evaluated."""

    recipe: LabRecipe
    out: Path

    @cached_property
    def start_run(self) -> Path:
        """Run of the start model on all near and far questions.

        Raises:
            EmptyInputError: it answers none correctly.
        """
        model, tokenizer = load_start(self.recipe.start)
        run = run_items(self.recipe, model, tokenizer, self.out / "start")
        if not any(right_items(run).values()):
            raise EmptyInputError(
                "the start model knows no near or far question, so nothing can be forgotten",
                hint="use a trained start model, or easier questions.",
            )
        return run

    @cached_property
    def old_divergence(self) -> StartDivergence:
        """Distributions of the start model on near and far questions."""
        model, tokenizer = load_start(self.recipe.start)
        return StartDivergence(model, self.recipe.old_rows, tokenizer)

    def run(self, arm: Arm) -> LabRun:
        """Train and evaluate, or read the result of an earlier attempt."""
        folder = self.out / arm.folder
        return kept_result(folder / RESULT, LabRun, lambda: self._train(arm, folder))

    def _train(self, arm: Arm, folder: Path) -> LabRun:
        shutil.rmtree(folder, ignore_errors=True)
        self.start_run  # noqa: B018  # fail now, not after minutes
        training = _ArmTraining(self.recipe, arm, folder)
        if not training.run():
            return LabRun(
                **training.facts, score=None, reached=False, cells=[], kl=None, diverged=True
            )
        with training.counter.paused():
            return self._measure(training)

    def _measure(self, training: _ArmTraining) -> LabRun:
        model, folder = finished_model(training.trainer.model), training.folder
        score = share_right(model, training.examples)
        with as_output_error(folder / MODEL):
            model.save_pretrained(folder / MODEL)
            training.tokenizer.save_pretrained(folder / MODEL)
        run = run_items(self.recipe, model, training.tokenizer, folder / RUN)
        return LabRun(
            **training.facts,
            **training.peak,
            score=score,
            reached=score >= self.recipe.target,
            cells=count_cells(self.recipe, self.start_run, run),
            kl=divergences(self.old_divergence, training.new_divergence, model),
        )


class _ArmTraining:
    """One training with its measurements."""

    def __init__(self, recipe: LabRecipe, arm: Arm, folder: Path) -> None:
        self.arm, self.folder = arm, folder
        model, self.tokenizer = load_start(recipe.start)
        rows = recipe.new_rows(arm.seed)
        self.examples: list[TokenExample] = read_examples(rows, self.tokenizer, eos=False)
        self.new_divergence = StartDivergence(model, rows, self.tokenizer)
        self.counter = ComputeCounter(model)
        self.seconds = 0.0
        self._began = time.perf_counter()
        setting = ArmSetting(recipe, arm.strength, arm.rate, arm.seed, folder)
        self.trainer = find_method(arm.method).make_trainer(setting, model, self.tokenizer)
        self._count_helpers()
        self.watch: PeakWatch | None = None
        self._add_callbacks(recipe)

    def _count_helpers(self) -> None:
        """Count passes of copies of the start model that a trainer has loaded."""
        for name in ("ref_model", "teacher_model"):
            helper = getattr(self.trainer, name, None)
            if helper is not None and helper is not self.trainer.model:
                self.counter.add(helper)

    def _add_callbacks(self, recipe: LabRecipe) -> None:
        trainer = self.trainer
        trainer.remove_callback(PrinterCallback)  # prints a line for every run
        trainer.add_callback(StopAtScore(self.examples, recipe.target, self.counter, trainer))
        if self.arm.seed != DEVELOPMENT_SEED:
            self.watch = PeakWatch(recipe, self.counter, self.folder / "watch")
            trainer.add_callback(self.watch)

    def run(self) -> bool:
        """Train; return False if it diverged."""
        is_trained = train_to_end(self.trainer)
        self.seconds = time.perf_counter() - self._began
        return is_trained

    @property
    def facts(self) -> dict[str, Any]:
        """Fields of the result, whether it diverged or not."""
        arm = self.arm
        return {
            "method": arm.method, "strength": arm.strength, "rate": arm.rate, "seed": arm.seed,
            "steps": self.trainer.state.global_step, "compute": self.counter.tokens,
            "seconds": self.seconds, "folder": arm.folder,
        }  # fmt: skip

    @property
    def peak(self) -> dict[str, Any]:
        """The worst look, if there was any."""
        peak = self.watch.peak if self.watch is not None else None
        return {"peak": peak.lost, "peak_step": peak.step} if peak is not None else {}


def train_to_end(trainer: Any) -> bool:
    """Train; return False if weights or values computed from them became infinite."""
    try:
        trainer.train()
    except ConvergenceError:  # from a mitigation whose penalty is not finite
        return False
    except RuntimeError:
        # Sampling from a model with weights that are not finite fails in torch.
        if is_finite(trainer.model):
            raise
    return is_finite(trainer.model)


def require_convergence(trainer: Any, what: str) -> None:
    """Train, and raise an error if training diverged.

    Raises:
        ConvergenceError: training diverged.
    """
    if not train_to_end(trainer):
        raise ConvergenceError(
            f"{what} diverged: its weights are not finite",
            hint="use lower `rates` in the recipe.",
        )


def finished_model(model: Any) -> Any:
    """Return the final model: an adapter is merged into its base."""
    return model.merge_and_unload() if hasattr(model, "merge_and_unload") else model


class StartFacts(NamedTuple):
    """Description of the start model."""

    parameters: int
    score: float


def describe_start(recipe: LabRecipe, seed: int) -> StartFacts:
    """Return its size, and the share of the new examples that it knows."""
    model, tokenizer = load_start(recipe.start)
    examples = read_examples(recipe.new_rows(seed), tokenizer, eos=False)
    return StartFacts(int(model.num_parameters()), share_right(model, examples))
