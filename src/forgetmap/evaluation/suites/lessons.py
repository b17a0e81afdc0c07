"""Worked examples that show the answer format and contain no knowledge."""

from __future__ import annotations

from forgetmap.evaluation.items import Item
from forgetmap.scoring import AnswerKind

WORDS = ("blue", "chair", "river", "seven", "lamp", "green", "paper", "north", "apple", "stone")
PLACES = (1, 3, 0)
"""Index of the right option in each lesson, so that no letter is preferred."""

OPEN_ENDED: dict[AnswerKind, tuple[tuple[str, str], ...]] = {
    "text": (
        ("Repeat this word: blue", "blue"),
        ("Repeat these words: green paper", "green paper"),
        ("Repeat this word: north", "north"),
    ),
    "number": (
        ("Which number stands here: 7", "7"),
        ("Which number stands here: 42", "42"),
        ("Which number stands here: 130", "130"),
    ),
    "maths": (
        ("Repeat this number: 2/3", "2/3"),
        ("Repeat this number: 15", "15"),
        ("Repeat this number: 7/4", "7/4"),
    ),
}


def format_lessons(kind: AnswerKind, *, options: int = 4) -> tuple[Item, ...]:
    """Return three worked examples whose questions contain the answer.

    Args:
        kind: how answers are read.
        options: number of options of a multiple-choice question.
    """
    if kind == "option":
        return tuple(_choice(number, options) for number in range(len(PLACES)))
    pairs = enumerate(OPEN_ENDED[kind], start=1)
    return tuple(Item(f"lesson-{number}", question, gold) for number, (question, gold) in pairs)


def _choice(number: int, options: int) -> Item:
    words = tuple(WORDS[(number + step) % len(WORDS)] for step in range(min(options, len(WORDS))))
    gold = words[PLACES[number] % len(words)]
    return Item(f"lesson-{number + 1}", f"Which of these is the word '{gold}'?", gold, words)
