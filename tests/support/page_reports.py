"""Small reports of hand-made runs, for tests in a browser."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import forgetmap as fm
from backends import as_arrow
from forgetmap.report.payloads.comparison import make_payload
from forgetmap.report.payloads.schema import Payload

Row = dict[str, Any]
TOWNS = ("Oslo", "Rome", "Lima", "Cairo")
CATEGORIES = {"capitals": "Knowledge", "sums": "Math", "stories": "Language"}
PATTERN = ("11", "10", "01", "00", "11", "10", "11", "11")
"""Right (1) or wrong before and after, item by item, repeated."""
HOSTILE = (
    "<script>window.hacked = 1</script><img src=x onerror='window.hacked = 2'>"
    "</script><!-- {{payload}} --> [a](javascript:window.hacked=3) \u202egnp.exe \x1b[31mred\x1b[0m"
)


def rows_of(side: int, count: int = 24, *, drift: int = 0) -> list[Row]:
    """Return three tasks of `count` items; `drift` changes which items are forgotten."""
    found = []
    for task in CATEGORIES:
        for place in range(count):
            went = PATTERN[(place + (drift if side else 0)) % len(PATTERN)]
            found.append(_row(task, place, side, right=went[bool(side)] == "1"))
    return found


def _row(task: str, place: int, side: int, *, right: bool) -> Row:
    gold = TOWNS[place % 4]
    answer = gold if right else TOWNS[(place + 1 + side) % 4]
    cut = side == 1 and not right and place % 3 == 0
    said = (
        f"The question names a country. I recall that {answer} is its largest town, "
        f"{'and so' if side else 'therefore'} the answer is {answer}."
    )
    thought = f"<think>Let me see. Is it {TOWNS[0]}? Or rather {answer}?"
    response = thought if cut else f"{thought}</think>\n{said}" if side else said
    return {
        "task": task,
        "item": f"{task}-{place}",
        "category": CATEGORIES[task],
        "k": 4,
        "question": f"Which town is the capital of country {place} in {task}?",
        "options": list(TOWNS),
        "gold": gold,
        "answer": None if cut else answer,
        "choice": None if cut else answer,
        "score": float(right),
        "outcome": "correct" if right else "truncated" if cut else "incorrect",
        "prompt": f"Q: Which town is the capital of country {place} in {task}? A:",
        "response": response,
    }


def payload_of(*runs: Sequence[Row]) -> Payload:
    """Return the report of a pair."""
    return make_payload(fm.compare(*(as_arrow(list(rows)) for rows in runs)))


def pair(count: int = 24) -> Payload:
    return payload_of(rows_of(0, count), rows_of(1, count))


def many() -> Payload:
    after = [as_arrow(rows_of(1, drift=drift)) for drift in range(3)]
    return make_payload(fm.compare(as_arrow(rows_of(0)), *after))


def chain() -> Payload:
    runs = [as_arrow(rows_of(min(stage, 1), drift=stage)) for stage in range(4)]
    return make_payload(fm.chain(*runs))


def hostile() -> Payload:
    """Return a report with hostile content in all names and texts."""
    before, after = rows_of(0), rows_of(1)
    for rows in (before, after):
        for row in rows:
            row["task"] += HOSTILE
            row["category"] += HOSTILE
            row["item"] += HOSTILE
            row["options"] = [*TOWNS, HOSTILE]
            for name in ("question", "response", "prompt"):
                row[name] += HOSTILE
            row["answer"] = "=HYPERLINK(1)" if row["answer"] else None
    after[1]["response"] = "x" * 1_000_000
    return payload_of(before, after)
