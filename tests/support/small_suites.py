"""A small suite for tests of runs: multiple choice shown and hidden, text and number."""

from __future__ import annotations

from forgetmap.evaluation.items import Item, Suite, Task

WORDS = ("cat", "dog", "bird", "mat", "tree", "house", "river", "mountain")


def choice_items(n: int) -> tuple[Item, ...]:
    return tuple(
        Item(
            str(i),
            f"Which of these is the word '{WORDS[i % 8]}', number {i}?",
            WORDS[i % 8],
            tuple(WORDS[(i + step) % 8] for step in (2, 0, 3)),
        )
        for i in range(n)
    )


def text_items(n: int) -> tuple[Item, ...]:
    return tuple(Item(str(i), f"Say {WORDS[i % 8]} {i}", WORDS[i % 8]) for i in range(n))


def number_items(n: int) -> tuple[Item, ...]:
    return tuple(Item(str(i), f"What is {i} and {i + 1}?", str(2 * i + 1)) for i in range(n))


def small_suite(n: int = 8) -> Suite:
    return Suite(
        "small",
        (
            Task("shown", "choice", "option", lambda: choice_items(n), "Choose."),
            Task("hidden", "choice", "option", lambda: choice_items(n), hides_options=True),
            Task("text", "open", "text", lambda: text_items(n)),
            Task("number", "open", "number", lambda: number_items(n)),
        ),
    )
