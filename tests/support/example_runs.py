"""Named pairs of runs that cover everything that can make a comparison go wrong."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache

from oracle import Row

OUTCOMES = ("incorrect", "no_answer", "refused", "truncated", "degenerate", None)


def bare_rows(seed: int) -> list[Row]:
    """Return rows of two tasks; some items are unscored, and each side lacks some."""
    dice = random.Random(seed)
    return [
        {"task": task, "item": f"{task}-{item}", "score": dice.choice([0.0, 1.0, 0.3, 0.7, None])}
        for task in ("arc", "gsm8k")
        for item in range(40)
        if dice.random() > 0.05
    ]


def labelled(seed: int) -> list[Row]:
    """Return the same rows with descriptions of the items and outcomes."""
    rows = []
    for place, row in enumerate(bare_rows(seed)):
        dice = random.Random(f"{row['task']} {row['item']}")
        described: Row = {
            "category": dice.choice(["science", "maths", None]),
            "tags": dice.choice(["hard;long", "hard; easy ;hard", None]),
            "k": dice.choice([2, 4, None]),
            "choice": dice.choice(["Paris", "Rome", None]),
        }
        rows.append(row | described | {"outcome": ended(row["score"], place)})
    return rows


def ended(score: float | None, place: int) -> str | None:
    """Return an outcome that fits the score; None without a score."""
    if score is None:
        return None
    if score:
        return "correct" if score >= 0.5 else "partial"
    return OUTCOMES[place % len(OUTCOMES)]


def repeated(seed: int) -> list[Row]:
    """Return three unordered seeds of each item; some answers are missing."""
    dice = random.Random(seed)
    return [
        row | {"repeat": label, "score": score, "outcome": ended(score, place)}
        for place, row in enumerate(labelled(seed))
        for label in (11, 42, 7)
        for score in dice.choices([0.0, 1.0, 1.0, None])
        if dice.random() > 0.1
    ]


def asked(seed: int) -> list[Row]:
    """Return rows with texts; ids differ between sides, as does the order of options."""
    rows = []
    for row in labelled(seed):
        number = int(row["item"].rpartition("-")[2])
        options = [f"city {number}", "Rome", "Oslo"]
        random.Random(f"{seed} {number}").shuffle(options)
        gold = "ABC"[options.index(f"city {number}")] if seed else f"city {number}"
        text = {"question": f"Where  is {number}?", "options": options, "gold": gold}
        rows.append(row | text | {"item": f"{seed}-{number}"})
    return rows


def twins(seed: int, *, same_ids: bool) -> list[Row]:
    """Return items that share their whole content, in groups of up to three."""
    rows = []
    for row in asked(0 if same_ids else seed):
        number = int(row["item"].rpartition("-")[2])
        score = random.Random(f"{seed} {number}").choice([0.0, 1.0, None])
        text = {"question": f"group {number // 3}", "options": None, "gold": "yes"}
        rows.append(row | text | {"score": score, "outcome": None})
    return rows[:-2] if seed else rows


def conflicted(seed: int) -> list[Row]:
    """Return rows with the same ids on both sides, some with different questions."""
    rows = [row | {"item": row["item"][2:]} for row in asked(seed)]
    for row in rows[:6]:
        row["question"] += f" {seed}"
    return rows


DATA: dict[str, Callable[[int], list[Row]]] = {
    "bare": bare_rows,
    "labelled": labelled,
    "repeats": repeated,
    "repeats on one side": lambda seed: repeated(seed) if seed else labelled(seed),
    "content": asked,
    "content and repeats": lambda seed: [
        row | {"repeat": label, "response": f"answer {label}"}
        for row in asked(seed)
        for label in (3, 1)
    ],
    "content on one side": lambda seed: [
        row | ({"question": row["item"]} if seed else {}) for row in labelled(seed)
    ],
    "conflicts": conflicted,
    "twins, same ids": lambda seed: twins(seed, same_ids=True),
    "twins, other ids": lambda seed: twins(seed, same_ids=False),
}


@cache
def rows_for(name: str) -> tuple[list[Row], list[Row]]:
    return DATA[name](0), DATA[name](1)
