"""Recipes: a start model, new examples to learn, and old ones to keep."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from forgetmap.evaluation import Settings, Suite

Row = Mapping[str, Any]
"""An example: `prompt` and `completion`, or `messages`."""


class MeasuredQuestions:
    """Evaluation questions, which no method may use, compared by their words only.

    Args:
        questions: texts of the questions.
        template: prompt of a plain model, with {question}.
    """

    def __init__(self, questions: Iterable[str], template: str) -> None:
        self._asked = {
            _words(text)
            for question in questions
            for text in (question, template.replace("{question}", question))
        }

    def has(self, prompt: str) -> bool:
        """Whether a prompt, or a line of it without its label (`Question:`), is such a question."""
        return any(_words(part) in self._asked for part in _parts(prompt))

    def may_be_in(self, text: str) -> bool:
        """Whether a text or a line of it begins with such a question; for texts to be dropped."""
        return any(
            words[:count] in self._asked
            for part in _parts(text)
            for words in [_words(part)]
            for count in range(1, len(words) + 1)
        )


def _parts(text: str) -> Iterator[str]:
    for part in (text, *text.splitlines()):
        yield part
        yield part.partition(":")[2]


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.casefold().split())


@dataclass(frozen=True)
class LabRecipe:
    """Start model, data and settings of a lab.

    Attributes:
        name: name of the recipe.
        start: folder or hub id of the start model.
        new_rows: new examples to learn, by seed.
        pool: old examples that a mitigation may use.
        near: questions on the topics of the pool, without its items.
        far: questions on other topics.
        old_rows: near and far questions with right answers, to measure KL on; possibly a sample.
        target: share of the new examples to learn; training stops when it is reached.
        rates: learning rates to try with every method.
        low_rates: further rates of plain fine-tuning, as the baseline of equal compute.
        batch_size: new examples per step.
        max_steps: maximum number of steps.
        warm_up: number of steps in which the learning rate rises.
        question_template: prompt of a near or far question for a plain model.
        free_prompt: beginning of texts that the start model generates.
        answer_mark: text between question and answer in such a text.
        question_tokens: maximum length of such a question.
        hint_template: a prompt that contains the answer, for methods that learn from
            demonstrations.
        max_tokens: maximum length of an answer.
        settings: settings of evaluations.
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
    question_template: str = "Question: {question}\nAnswer:"
    free_prompt: str = ""
    answer_mark: str = ""
    question_tokens: int = 32
    hint_template: str = "{prompt}\n\n{privileged_context}"
    max_tokens: int = 8
    settings: Settings = field(default_factory=Settings)

    @cached_property
    def measured(self) -> MeasuredQuestions:
        """All near and far questions."""
        tasks = (*self.near.tasks, *self.far.tasks)
        return MeasuredQuestions(
            (item.question for task in tasks for item in task.load()), self.question_template
        )

    @property
    def single_rate(self) -> float:
        """The learning rate if only one is used: the lowest, as it forgets least."""
        return min(self.rates)
