"""The join: every result of either side exactly once, with its counterpart if there is one."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import narwhals as nw

from forgetmap.pairing.keys import Keys
from forgetmap.records import Frame

SIDES = ("before", "after")
"""The two sides of a pair, in order."""
WRONG, RIGHT, UNSCORED = 0, 1, 2
"""The state of a result; null in a joined row means there is no result on that side."""

CARRIED = (
    "item", "score", "outcome", "k", "category", "tags", "cluster", "gold", "gold_index", "answer",
    "choice",
    "prompt_hash", "question_hash", "options_hash", "gold_hash",
)  # fmt: skip
"""Columns of each side that are kept, with the suffix `_before` or `_after`."""
LOGPROBS = ("logprob_gold", "logprob_answer", "logprob_next")
"""Log-probabilities of the right answer, of the given one, and of the most likely other one."""
MAX_GAP = 50.0
"""Largest difference of log-probabilities that is told apart; engines overflow beyond 700."""


@dataclass(frozen=True, slots=True)
class Pairs:
    """All results of both sides, joined on their keys.

    Attributes:
        frame: lazy; columns `task`, `repeat`, `key_*`, then `NAME_before` and `NAME_after`.
        keys: keys of the items.
        columns: columns of `frame`.
        item_columns: columns that identify an item within its task.
        repeats: whether any item was answered more than once.
    """

    frame: Frame
    keys: Keys
    columns: frozenset[str]
    item_columns: tuple[str, ...]
    repeats: bool


def join_sides(
    before: Frame, after: Frame, keys: Keys, *, correct_at: float, repeats: bool, tie: bool = False
) -> Pairs:
    """Join two sides on task, key and repeat; no row is dropped.

    Whether a result is right is computed before the join, so that only a small state is joined.

    Args:
        before: canonical scores, one measure per task.
        after: the same of the other side.
        keys: keys of the items.
        correct_at: minimum score of a right result.
        repeats: whether any item was answered more than once.
        tie: whether both sides have a column `tie` that distinguishes items of equal content.
    """
    on = [*keys.joined_on(repeats=repeats), *(["tie"] if tie else [])]
    sides = [
        _side(keys.add_to(frame), on, side, correct_at)
        for frame, side in zip((before, after), SIDES, strict=True)
    ]
    joined = _full_join(sides[0], sides[1], on)
    names = joined.collect_schema().names()
    merged = {name: nw.coalesce(f"{name}_before", f"{name}_after") for name in on}
    # pandas turns integers in a column with missing values into floats.
    merged["repeat"] = merged.get("repeat", nw.lit(0)).cast(nw.Int32)
    carried = [name for name in names if name.rpartition("_")[0] not in on]
    frame = joined.select(*(value.alias(name) for name, value in merged.items()), *carried)
    columns = frozenset(frame.collect_schema().names())
    item_columns = tuple(name for name in on if name not in ("task", "repeat"))
    return Pairs(frame, keys, columns, item_columns, repeats)


def _full_join(before: Frame, after: Frame, on: list[str]) -> Frame:
    """Join all rows of both sides."""
    keys = [[f"{name}_{side}" for name in on] for side in SIDES]
    if not before.implementation.is_pyarrow():
        return before.join(after, left_on=keys[0], right_on=keys[1], how="full")
    # With threads, Arrow now and then loses the rows that only the right side has.
    joined = nw.to_native(before).join(
        nw.to_native(after),
        keys=keys[0],
        right_keys=keys[1],
        join_type="full outer",
        coalesce_keys=False,
        use_threads=False,
    )
    lazy: Frame = nw.from_native(joined).lazy()
    return lazy


def is_in(side: str) -> nw.Expr:
    """Whether a joined row has a result on this side."""
    return ~nw.col(f"state_{side}").is_null()


def both_sides() -> nw.Expr:
    """Whether a joined row has a result on both sides."""
    return is_in("before") & is_in("after")


def scored_pair() -> nw.Expr:
    """Whether a joined row has a score on both sides."""
    before, after = (nw.col(f"state_{side}") != UNSCORED for side in SIDES)
    return both_sides() & before & after


def is_transition(before: int, after: int) -> nw.Expr:
    """Whether a joined row has these states before and after."""
    return (nw.col("state_before") == before) & (nw.col("state_after") == after)


def side_value(name: str, columns: Collection[str]) -> nw.Expr:
    """Return a property of the item from the before side, else from the after side."""
    columns_present = [f"{name}_{side}" for side in SIDES if f"{name}_{side}" in columns]
    return nw.coalesce(*columns_present) if columns_present else nw.lit(None)


def _state(correct_at: float) -> nw.Expr:
    score = nw.col("score")
    wrong, right, unscored = (nw.lit(state, dtype=nw.Int8) for state in (WRONG, RIGHT, UNSCORED))
    right_or_wrong = nw.when(score >= correct_at).then(right).otherwise(wrong)
    return nw.when(score.is_null()).then(unscored).otherwise(right_or_wrong)


def _side(scores: Frame, on: list[str], side: str, correct_at: float) -> Frame:
    present = scores.collect_schema().names()
    kept = [*on, *(name for name in CARRIED if name in present)]
    columns = [nw.col(name).alias(f"{name}_{side}") for name in kept]
    if "choice" in present:
        # Only wrong choices are compared, and texts are expensive to join.
        wrong = nw.when(nw.col("score") < correct_at).then(nw.col("choice"))
        columns.append(wrong.alias(f"wrong_{side}"))
    if set(LOGPROBS) <= set(present):
        columns.append(_probability(correct_at).alias(f"probability_{side}"))
    return scores.select(*columns, _state(correct_at).alias(f"state_{side}"))


def _probability(correct_at: float) -> nw.Expr:
    """Return the probability of the right answer against the strongest other one."""
    gold, answer, following = (nw.col(name) for name in LOGPROBS)
    other = nw.when(nw.col("score") >= correct_at).then(following).otherwise(answer)
    return 1 / (1 + (other - gold).clip(-MAX_GAP, MAX_GAP).exp())
