"""The protocol of scorers: one response in, several values out, without side effects.

A rule scores by itself. A judge scorer says what to ask and settles the replies; a code scorer says
what to run and settles how it ended. Who asks and who runs is not its business, so every scorer is
a pure function of one sample and is tested as one.
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
    """What the values of one field can be.

    Attributes:
        low: the least value.
        high: the greatest, None where there is none (a length).
        binary: only `low` and `high` occur, so that an item can flip.
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
    """One response and what is needed to score it.

    Attributes:
        response: all of it, thinking included.
        gold: the right answer: a text, or the JSON value the data set gives.
        question: what was asked; of a conversation the turns in order.
        options: as shown, in order.
        material: whatever else the item has: `context`, `schema`, `tests`, `first_response`, ...
        finish_reason: `length` if the response was cut off.
    """

    response: str
    gold: Any = None
    question: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    material: Mapping[str, Any] = field(default_factory=dict)
    finish_reason: str | None = None


Fields = Mapping[str, Grade]
"""The value of each field; a field that does not apply to this sample is left out."""


class Scorer(Protocol):
    """What all scorers say of themselves; `name@version` stands in every record they make.

    One that scores with packages outside the core installation lists them in `packages`; they must
    not be needed to import it, so that its records can be read without them.
    """

    name: str
    version: int
    fields: Mapping[str, Scale]


class RuleScorer(Scorer, Protocol):
    """Scores by itself."""

    def score(self, sample: ScorerInput) -> Fields:
        """The values; a response never raises an error, an unusable item raises FieldError."""


@dataclass(frozen=True, slots=True)
class JudgeQuestion:
    """One question to a judge: what it is told to be, and what it is asked."""

    system: str
    user: str


class JudgeScorer(Scorer, Protocol):
    """Scores by what a judge replies."""

    def questions(self, sample: ScorerInput) -> Sequence[JudgeQuestion]:
        """What to ask; nothing where the sample decides itself."""

    def settle(self, sample: ScorerInput, replies: Sequence[str | None]) -> Fields:
        """The values, from the replies in order; None is a question that got no reply."""


TAMPERING = "tampering"
"""How the reason begins where a program tried to write its own verdict."""


@dataclass(frozen=True, slots=True)
class Program:
    """Python source to run in a sandbox.

    Attributes:
        source: what a model wrote.
        tests: what decides whether it passes, run in a process of their own that the source cannot
            reach; without tests it passes if it runs to its end, by its own account.
        replaced: names of builtins that tests take from the source.
    """

    source: str
    tests: str | None = None
    replaced: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class ProgramResult:
    """How a program ended."""

    passed: bool
    reason: str = ""
    """Why not: `timeout`, `memory`, `exit`, `exception`, ... with its last line of output."""
    failed_to_start: bool = False
    """The sandbox is at fault, not the program: the score is missing."""
    tampered: bool = False
    """It tried to write its own verdict: it is wrong, and the reason begins with `TAMPERING`."""


class CodeScorer(Scorer, Protocol):
    """Scores by running code."""

    def program(self, sample: ScorerInput) -> Program | None:
        """What to run; None where the response holds no code."""

    def settle(self, sample: ScorerInput, result: ProgramResult | None) -> Fields:
        """The values, from how it ended."""


FORMS: Mapping[str, Scale] = {"acc": RIGHT_OR_WRONG, "acc_strict": RIGHT_OR_WRONG}


def both_forms(grade: Grade) -> Fields:
    """`acc` is the verdict; `acc_strict` has no answer where it stood in another form."""
    if grade.score is None or grade.strict is not False:
        return {"acc": grade, "acc_strict": grade}
    return {"acc": grade, "acc_strict": replace(grade, score=0.0, outcome=Outcome.NO_ANSWER)}
