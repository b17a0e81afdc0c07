"""Base class of mitigations: a frozen config with its additions to a trainer."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar

import torch

from forgetmap.errors import ConvergenceError, UsageError
from forgetmap.train.examples import (
    ExampleSource,
    TokenExample,
    check_vocabulary,
    context_of,
    read_examples,
)

PenaltyFunction = Callable[[Any], torch.Tensor | None]
"""Returns a scalar with a gradient for the model; None if there is nothing to add at this step."""


@dataclass(frozen=True)
class Mitigation:
    """Base class of mitigations: a config, and its additions to a trainer.

    A subclass is a frozen dataclass whose fields are plain values; `kind` names it in JSON.
    """

    kind: ClassVar[str] = ""

    def apply(self, run: Protection) -> None:
        """Add penalties, data, hooks or callbacks to a trainer."""
        raise NotImplementedError

    def to_json(self, *, indent: int | None = 2) -> str:
        """Return JSON that `load_mitigations` reads."""
        values = {"mitigation": self.kind, **asdict(self)}
        return json.dumps(values, indent=indent, default=str)


@dataclass(frozen=True)
class Penalty:
    """A term added to the loss.

    Attributes:
        name: its value is logged as `protect/NAME`.
        function: the term before its weight.
        weight: weight of the term, read at each step.
    """

    name: str
    function: PenaltyFunction
    weight: Callable[[], float]


@dataclass
class Protection:
    """A trainer with mitigations: their additions and measurements.

    Attributes:
        trainer: a transformers `Trainer` or one of TRL's.
        tokenizer: tokenizer for rows of text.
        mitigations: mitigations in the order of application.
    """

    trainer: Any
    tokenizer: Any
    mitigations: list[Mitigation] = field(default_factory=list)
    penalties: list[Penalty] = field(default_factory=list)
    gradient_hooks: list[Callable[[Any], None]] = field(default_factory=list)
    endings: list[Callable[[], None]] = field(default_factory=list)
    _sums: dict[str, tuple[torch.Tensor | float, int]] = field(default_factory=dict)

    @property
    def model(self) -> Any:
        """The trained model, without the wrappers of distributed training."""
        return self.trainer.model

    @property
    def device(self) -> torch.device:
        """Device of the inputs."""
        return torch.device(self.trainer.args.device)

    @property
    def step(self) -> int:
        """Number of optimizer steps done."""
        return int(self.trainer.state.global_step)

    @property
    def rank(self) -> int:
        """Rank of this process."""
        return int(self.trainer.args.process_index)

    @property
    def processes(self) -> int:
        """Number of processes."""
        return int(self.trainer.args.world_size)

    def to_json(self) -> str:
        """Return all configs as a JSON list that `load_mitigations` reads."""
        return json.dumps([json.loads(one.to_json()) for one in self.mitigations], indent=2)

    def read(self, source: ExampleSource, *, eos: bool = True) -> list[TokenExample]:
        """Read examples for this model, checked against its context length and vocabulary."""
        context = context_of(self.model, self.tokenizer)
        examples = read_examples(source, self.tokenizer, context=context, eos=eos)
        check_vocabulary(examples, self.model.get_input_embeddings().weight.shape[0])
        return examples

    def add_penalty(
        self, name: str, function: PenaltyFunction, weight: float | Callable[[], float]
    ) -> str:
        """Add a loss term, computed once per optimizer step; return the name used in logs."""
        taken = {penalty.name for penalty in self.penalties}
        number = next(n for n in range(1, 1000) if (name if n == 1 else f"{name}_{n}") not in taken)
        unique = name if number == 1 else f"{name}_{number}"
        share = weight if callable(weight) else lambda: float(weight)
        self.penalties.append(Penalty(unique, function, share))
        return unique

    def add_gradient_hook(self, hook: Callable[[Any], None]) -> None:
        """Add a function to be called with the model after backward, before the optimizer step."""
        self.gradient_hooks.append(hook)

    def add_ending(self, ending: Callable[[], None]) -> None:
        """Add a function that puts the final weights into the model when training ends.

        It may be called earlier to evaluate these weights, so it must not change its own state.
        """
        self.endings.append(ending)

    def record(self, name: str, value: torch.Tensor | float) -> None:
        """Record a value; its mean is in the next log line of the trainer as `protect/NAME`."""
        kept = value.detach() if isinstance(value, torch.Tensor) else value
        total, count = self._sums.get(name, (0.0, 0))
        self._sums[name] = (total + kept, count + 1)

    def take_metrics(self) -> dict[str, float]:
        """Return the means since the last call."""
        means = {
            f"protect/{name}": float(total) / count for name, (total, count) in self._sums.items()
        }
        self._sums.clear()
        return means

    def descend(self) -> None:
        """Add the gradients of all penalties to those of the step.

        Raises:
            ConvergenceError: a penalty is not finite.
        """
        self.model.train()
        trainer = self.trainer
        with trainer.compute_loss_context_manager():
            total = self._total()
        if total is None or not total.requires_grad:
            return
        # The backward pass of the trainer, which follows, averages gradients over processes.
        wrapped = getattr(trainer, "model_wrapped", None)
        alone = wrapped is None or wrapped is self.model
        with nullcontext() if alone else trainer.accelerator.no_sync(wrapped):
            trainer.accelerator.backward(total)

    def _total(self) -> torch.Tensor | None:
        total: torch.Tensor | None = None
        for penalty in self.penalties:
            value = penalty.function(self.model)
            if value is None:
                continue
            if not math.isfinite(float(value.detach())):
                raise ConvergenceError(
                    f"the penalty {penalty.name} is {float(value.detach())} at step {self.step}",
                    hint="lower the learning rate; the model has probably diverged.",
                )
            self.record(penalty.name, value)
            term = penalty.weight() * value
            total = term if total is None else total + term
        return total


# ------------------------------------------------------------------------------------------ checks


def check_above_zero(**values: float | None) -> None:
    """Check that numbers are positive; None is skipped.

    Raises:
        UsageError: a number is not positive.
    """
    for name, value in values.items():
        if value is not None and not value > 0:
            raise UsageError(f"{name} is {value}", hint="use a value above 0.")


def check_not_negative(**values: float | None) -> None:
    """Check that numbers are not negative; None is skipped.

    Raises:
        UsageError: a number is negative or NaN.
    """
    for name, value in values.items():
        if value is not None and not value >= 0:
            raise UsageError(f"{name} is {value}", hint="use a value of 0 or more.")


def check_below_one(**values: float | None) -> None:
    """Check that shares are strictly between 0 and 1; None is skipped.

    Raises:
        UsageError: a share is out of range.
    """
    for name, value in values.items():
        if value is not None and not 0 < value < 1:
            raise UsageError(f"{name} is {value}", hint="use a value between 0 and 1.")


def check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    """Check that a value is one of the choices.

    Raises:
        UsageError: it is not.
    """
    if value not in choices:
        raise UsageError(f"{name} is {value!r}", hint=f"choose one of {', '.join(choices)}.")
