"""A Hypothesis strategy for pairs of small runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol, TypeVar

from hypothesis import strategies as st

from oracle import Row

T = TypeVar("T")
Pair = tuple[list[Row], list[Row]]
IDS = ("9", "10", "x y", "é", "O'Neill", "nan", "1.0", "a,b", "007")
ITEMS: list[Row] = [
    {"category": category, "tags": tags, "k": k}
    for category in ("x", "y", None)
    for tags in ("p;q", " q ", None)
    for k in (2, 4, None)
]
ANSWERS: list[Row] = [
    {"score": score, "outcome": outcome, "choice": choice}
    for score, outcomes in {
        0.0: ("incorrect", "no_answer", "refused", "truncated", "degenerate", None),
        1.0: ("correct", None),
        0.5: ("partial", None),
        0.49: ("partial", None),
        None: ("unscored", "error", None),
    }.items()
    for outcome in outcomes
    for choice in ("else", None)
]
NO_ANSWER: list[Row | None] = [None] * (len(ANSWERS) // 3)


LABELS: tuple[tuple[int | None, ...], ...] = ((None,), (5,), (11, 42, 7))
CONTENTS = ("none", "own", "shared", "changed")


class Pick(Protocol):
    """Function that chooses one of several options."""

    def __call__(self, options: Sequence[T], /) -> T: ...


@st.composite
def pairs_of_runs(draw: st.DrawFn, contents: Sequence[str] = CONTENTS) -> Pair:
    """Draw two small runs, see `make_pair`."""

    def pick(options: Sequence[T], /) -> T:
        return draw(st.sampled_from(options))

    return make_pair(pick, contents)


def make_pair(
    pick: Pick,
    contents: Sequence[str] = CONTENTS,
    repeats: Sequence[tuple[int | None, ...]] = LABELS,
) -> Pair:
    """Return two small runs of the same items, of which each side may lack some.

    Contents: `none`; its `own` for each item; `shared` by several; `changed` for some after.
    Repeats: possible labels.
    """
    content = pick(contents)
    labels = pick(repeats)
    same_ids = content == "none" or pick((True, False))
    runs: Pair = [], []
    described: dict[tuple[str, str], Row] = {}
    for task in pick((("a",), ("a", "b"), ("b", "c d"))):
        for number, name in enumerate(IDS[: pick(range(1, len(IDS) + 1))]):
            text = _text(content, number)
            # Descriptions belong to the content: they are the same in every repeat.
            item = described.setdefault((task, text.get("gold", name)), pick(ITEMS))
            for label in labels:
                for side, rows in enumerate(runs):
                    # The first item is complete, so that both sides have every repeat.
                    answer = pick(ANSWERS + NO_ANSWER if number else ANSWERS)
                    own = {"task": task, "item": name if same_ids else f"{side}{name}"}
                    if side and content == "changed" and number % 4 == 2:
                        own["question"] = "Something else?"
                    if answer is not None:
                        # Repeats are drawn anew: no two of them are copies.
                        said = {} if labels == (None,) else {"response": f"so, in {label}"}
                        rows.append(item | text | {"repeat": label} | answer | own | said)
    named = ("category", "tags", "k", "outcome", "choice")
    unused = {name for name in named if pick((True, False))}
    unused |= {"repeat"} if labels == (None,) else set()
    kept = [name for name in runs[0][0] if name not in unused]
    return [_only(row, kept) for row in runs[0]], [_only(row, kept) for row in runs[1]]


def _text(content: str, number: int) -> Row:
    if content == "none":
        return {}
    group = number // 3 if content == "shared" else number
    options = [f"{group}", "else"] if group % 2 else None
    return {"question": f"What is {group}?", "options": options, "gold": f"{group}"}


def _only(row: Row, names: Iterable[str]) -> Row:
    return {name: row[name] for name in names}
