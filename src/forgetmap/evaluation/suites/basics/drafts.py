"""Conversion of a question generator into a task with balanced options."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from random import Random

from forgetmap.evaluation.items import Item, Task, insert_gold
from forgetmap.evaluation.suites.lessons import format_lessons
from forgetmap.scoring import AnswerKind

ITEMS = 50
OPTIONS = 4


@dataclass(frozen=True, slots=True)
class Draft:
    """A question with unordered options; without wrong answers it is open-ended."""

    question: str
    gold: str
    wrong: tuple[str, ...] = ()


Generator = Callable[[Random], Draft]


@dataclass(frozen=True, slots=True)
class Kind:
    """One sub-benchmark: name, answer format and question generator."""

    name: str
    category: str
    answer: AnswerKind
    instruction: str
    make: Generator
    options: int = OPTIONS
    version: str = "1"


def as_task(kind: Kind) -> Task:
    """Convert a sub-benchmark into a task of the suite."""
    return Task(
        name=kind.name,
        category=kind.category,
        kind=kind.answer,
        load=partial(draw_items, kind),
        instruction=kind.instruction,
        lessons=format_lessons(kind.answer, options=kind.options),
        version=kind.version,
    )


def draw_items(kind: Kind) -> tuple[Item, ...]:
    """Return distinct, reproducible questions; the right option is at each index equally often."""
    rng = Random(f"basics:{kind.name}")  # noqa: S311 - repeatable, not secret
    drafts: dict[object, Draft] = {}
    while len(drafts) < ITEMS:
        draft = kind.make(rng)
        drafts.setdefault((draft.question, draft.gold, frozenset(draft.wrong)), draft)
    indices = [number % kind.options for number in range(ITEMS)]
    rng.shuffle(indices)
    numbered = enumerate(zip(drafts.values(), indices, strict=True))
    return tuple(_item(f"{number:03d}", draft, index) for number, (draft, index) in numbered)


def _item(name: str, draft: Draft, index: int) -> Item:
    if not draft.wrong:
        return Item(name, draft.question, draft.gold)
    return Item(name, draft.question, draft.gold, insert_gold(draft.gold, draft.wrong, index))


def choice(
    rng: Random,
    question: str,
    gold: object,
    candidates: Iterable[object],
    *,
    options: int = OPTIONS,
) -> Draft:
    """Return a multiple-choice question; wrong options are drawn from distinct candidates."""
    texts = dict.fromkeys(str(value) for value in candidates)
    texts.pop(str(gold), None)
    return Draft(question, str(gold), tuple(rng.sample(list(texts), options - 1)))
