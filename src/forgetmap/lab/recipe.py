"""What methods are compared on: a start model, new examples to learn, old ones to keep."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from forgetmap.evaluation import Settings, Suite

Row = Mapping[str, Any]
"""An example: `prompt` and `completion`, or `messages`."""


@dataclass(frozen=True)
class LabRecipe:
    """A world to train in.

    Attributes:
        name: of the recipe.
        start: folder or hub id of the start model.
        new_rows: new examples to learn, by seed.
        pool: old examples that a mitigation may see.
        near: questions on what the pool is about, without its items.
        far: questions on other things.
        old_rows: near and far questions with their right answers, to measure KL on.
        target: share of the new examples that must be known; training stops there.
        rates: learning rates that are tried with every method.
        low_rates: further ones for plain fine-tuning, as the baseline of equal compute.
        batch_size: new examples per step.
        max_steps: training ends there, target or not.
        warm_up: steps in which the learning rate rises.
        free_prompt: what a text begins with that the start model writes by itself.
        answer_mark: where a question ends in such a text, and the answer begins.
        question_tokens: of such a question, at most.
        hint_template: a prompt that gives the answer away, for methods that learn from
            demonstrations.
        max_tokens: of an answer.
        settings: how models are asked.
    """

    name: str
    start: str
    new_rows: Callable[[int], Sequence[Row]]
    pool: Sequence[Row]
    near: Suite
    far: Suite
    old_rows: Sequence[Row]
    target: float = 0.95
    rates: tuple[float, ...] = (4e-4, 8e-4, 1.6e-3)
    low_rates: tuple[float, ...] = (2e-4,)
    batch_size: int = 16
    max_steps: int = 1500
    warm_up: int = 10
    free_prompt: str = ""
    answer_mark: str = ""
    question_tokens: int = 32
    hint_template: str = "{prompt}\n\n{privileged_context}"
    max_tokens: int = 8
    settings: Settings = field(default_factory=Settings)

    @property
    def single_rate(self) -> float:
        """The learning rate where only one is tried: the lowest, as it forgets least."""
        return min(self.rates)
