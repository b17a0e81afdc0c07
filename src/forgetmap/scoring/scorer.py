"""The protocol of scorers: one response in, several values out, without side effects.

A rule scorer computes its values. A judge scorer returns questions and turns replies into values; a
code scorer returns a program and turns its result into values. Asking and running happen elsewhere,
so every scorer is a pure function of a sample.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

from forgetmap.records import Outcome
from forgetmap.scoring.grade import Grade

Polarity = Literal["up", "down", "both"]
"""Whether more is better, less is better, or any change is drift."""


@dataclass(frozen=True, slots=True)
class Scale:
    """The range of the values of a field.

    Attributes:
        low: the smallest value.
        high: the largest value; None if there is none, as for a length.
        binary: whether only `low` and `high` occur, so that an item can flip.
    """

    low: float = 0.0
    high: float | None = 1.0
    binary: bool = False


SHARE = Scale()
RIGHT_OR_WRONG = Scale(binary=True)
COUNT = Scale(high=None)
RATING = Scale(1.0, 10.0)


@dataclass(frozen=True, slots=True)
class ScorerInput:
    """A response and everything needed to score it.

    Attributes:
        response: the complete response, with thinking.
        gold: the right answer: a text, or a JSON value of the data set.
        question: the question; in a conversation, the turns in order.
        options: options as shown, in order.
        material: further data of the item: `context`, `schema`, `tests`, `first_response`, ...
        finish_reason: `length` if the response was truncated.
    """

    response: str
    gold: Any = None
    question: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    material: Mapping[str, Any] = field(default_factory=dict)
    finish_reason: str | None = None


Fields = Mapping[str, Grade]
"""The value of each field; fields that do not apply to the sample are absent."""


class Scorer(Protocol):
    """Attributes of all scorers; `name@version` is part of every record they make.

    A scorer that needs packages outside the core installation lists them in `packages`. Importing
    it must not need them, so that its records can be read without them.
    """

    name: str
    version: int
    fields: Mapping[str, Scale]


class RuleScorer(Scorer, Protocol):
    """Scorer by a rule."""

    def score(self, sample: ScorerInput) -> Fields:
        """Return the values; no response raises an error, an unusable item raises FieldError."""


@dataclass(frozen=True, slots=True)
class JudgeQuestion:
    """A question to a judge: system prompt and user prompt."""

    system: str
    user: str


class JudgeScorer(Scorer, Protocol):
    """Scorer by the replies of a judge."""

    def questions(self, sample: ScorerInput) -> Sequence[JudgeQuestion]:
        """Return the questions to the judge; none if the sample is enough to score it."""

    def settle(self, sample: ScorerInput, replies: Sequence[str | None]) -> Fields:
        """Return the values from the replies, in order; None stands for a missing reply."""


TAMPERING = "tampering"
"""Beginning of the reason if a program tried to write its own verdict."""


@dataclass(frozen=True, slots=True)
class Program:
    """Python source to run in a sandbox.

    Attributes:
        source: the code of the model.
        tests: tests that decide whether it passes, run in a separate process that the source
            cannot reach; without tests it passes if it reports that it ran to its end.
        replaced: names of builtins that the tests take from the source.
    """

    source: str
    tests: str | None = None
    replaced: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class ProgramResult:
    """How a program ended."""

    passed: bool
    reason: str = ""
    """Why it failed: `timeout`, `memory`, `exit`, `exception`, ... with its last line of output."""
    failed_to_start: bool = False
    """Whether the sandbox failed, not the program: the score is then missing."""
    tampered: bool = False
    """Whether it tried to write its own verdict: it fails, and `reason` begins with `TAMPERING`."""


class CodeScorer(Scorer, Protocol):
    """Scorer by running code."""

    def program(self, sample: ScorerInput) -> Program | None:
        """Return the program to run; None if the response contains no code."""

    def settle(self, sample: ScorerInput, result: ProgramResult | None) -> Fields:
        """Return the values from the result of the program."""


FORMS: Mapping[str, Scale] = {"acc": RIGHT_OR_WRONG, "acc_strict": RIGHT_OR_WRONG}


def both_forms(grade: Grade) -> Fields:
    """Return `acc`, and `acc_strict`, which counts answers not in the requested form as none."""
    if grade.score is None or grade.strict is not False:
        return {"acc": grade, "acc_strict": grade}
    return {"acc": grade, "acc_strict": replace(grade, score=0.0, outcome=Outcome.NO_ANSWER)}
