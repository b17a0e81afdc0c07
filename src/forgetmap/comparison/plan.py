"""How many items and repeats it takes: before a run, and after one that could not tell."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pydantic import Field

from forgetmap.comparison.choice_counts import TWO_OPTIONS
from forgetmap.comparison.choices import OPTION_COUNTS, REPEAT_COUNTS, Wish
from forgetmap.comparison.result import ComparisonResult, GroupResult
from forgetmap.comparison.verdict import NO_REPEATS
from forgetmap.errors import UsageError
from forgetmap.results import Value
from forgetmap.stats import items_needed, knowledge_scale, repeated_items_needed

MAX_ITEMS = 10_000_000


class PlanRow(Value):
    """What it takes to find a loss with one kind of item."""

    k: int | None = Field(description="Number of options; null for open-ended items.")
    repeats: int = Field(description="Answers per item from each model; 1 is one greedy run.")
    estimator: str
    items: int | None = Field(description="Null where no number of items would do.")
    answers: int | None = Field(description="Answers from each model: items times repeats.")


class PlanResult(Value):
    """Before any run: items and repeats that find a wanted loss four times in five."""

    loss: float = Field(description="Share of all items that is lost.")
    accuracy: float
    churn: float = Field(description="How often two runs of one model flip one way, if sampled.")
    rows: list[PlanRow]


class Advice(Value):
    """What more would decide a group that could not be told."""

    name: str
    words: str = Field(description="What was concluded.")
    items: int
    detectable: float | None
    items_needed: int | None = Field(description="About so many items of this kind in all.")
    advice: str


class AdviceResult(Value):
    """After a run: what more would decide the groups that are open."""

    loss: float
    decided: int = Field(description="Groups of which something can be said already.")
    open: list[Advice]


def make_plan(
    wish: Wish, ks: Sequence[float] = OPTION_COUNTS, repeats: Sequence[int] = REPEAT_COUNTS
) -> PlanResult:
    """Items and repeats for one greedy run and for repeated sampled ones.

    Raises:
        UsageError: what is wished for cannot be.
    """
    _check(wish, ks)
    rows = [_greedy_row(wish, k) for k in ks]
    rows += [_repeated_row(wish, count) for count in repeats]
    return PlanResult(loss=wish.loss, accuracy=wish.accuracy, churn=wish.noise_floor, rows=rows)


def advise(result: ComparisonResult, *, by: str = "category", loss: float = 0.02) -> AdviceResult:
    """What more would decide the groups of which nothing can be said yet."""
    _check_loss(loss)
    groups = {"category": result.categories, "task": result.tasks, "tag": result.tags}[by]
    groups = [result.total, *(groups or result.tasks)]
    undecided = [group for group in groups if group.headline.verdict == "cannot_tell"]
    return AdviceResult(
        loss=loss,
        decided=len(groups) - len(undecided),
        open=[_advice(group, loss) for group in undecided],
    )


def _greedy_row(wish: Wish, k: float) -> PlanRow:
    if math.isinf(k):
        return _row(k, 1, "raw", items_needed(wish.loss, c=1.0, h=0.0, share_e=0.0))
    c = float(knowledge_scale(k))
    known = c * (wish.accuracy - 1 / k)
    estimator = "bracket" if k == TWO_OPTIONS else "matched"
    if wish.loss > known:
        return _row(k, 1, estimator, MAX_ITEMS)
    h = c**2 / k if k == TWO_OPTIONS else c / (k - 2)
    share = (1 - known) * ((k - 1) ** 2 if k == TWO_OPTIONS else (k - 1) * (k - 2)) / k**2
    return _row(k, 1, estimator, items_needed(wish.loss, c=c, h=h, share_e=share))


def _repeated_row(wish: Wish, repeats: int) -> PlanRow:
    items = repeated_items_needed(wish.loss, repeats, churn=wish.noise_floor)
    return _row(math.inf, repeats, "excess", items)


def _row(k: float, repeats: int, estimator: str, items: int) -> PlanRow:
    enough = items < MAX_ITEMS
    return PlanRow(
        k=None if math.isinf(k) else int(k),
        repeats=repeats,
        estimator=estimator,
        items=items if enough else None,
        answers=items * repeats if enough else None,
    )


def _advice(group: GroupResult, loss: float) -> Advice:
    needed = _items_needed(group, loss)
    return Advice(
        name=group.name,
        words=group.headline.words,
        items=group.items,
        detectable=group.detectable,
        items_needed=needed,
        advice=_what_to_do(group, needed, loss),
    )


def _items_needed(group: GroupResult, loss: float) -> int | None:
    """Detectable losses shrink with the root of the items; a little faster, so this is enough."""
    if group.detectable is None:
        return None
    return max(group.items, math.ceil(group.items * (group.detectable / loss) ** 2))


def _what_to_do(group: GroupResult, needed: int | None, loss: float) -> str:
    estimator, share = group.headline.estimator, f"{100 * loss:g}%"
    if not group.n:
        return "evaluate both models on the same items."
    if NO_REPEATS in group.headline.words:
        return (
            f"answer every item twice with each model ({2 * group.items:,} more answers in all), "
            "or evaluate both greedily."
        )
    if estimator == "bracket" and group.matched.forgetting.reason is not None:
        return (
            "record which option was chosen (k of 3 or more), or answer every item twice with "
            "each model: more items do not narrow the range."
        )
    if needed is None:
        return "take items that the model before knows: here it knows too few to lose any."
    more = max(needed - group.items, 0)
    if not more:
        return f"a loss of {share} would have been found; only a smaller one is open."
    return f"about {more:,} more items of this kind would find a loss of {share}."


def _check(wish: Wish, ks: Sequence[float]) -> None:
    _check_loss(wish.loss)
    faults = {
        "--accuracy": not 0 < wish.accuracy <= 1,
        "--churn": not 0 <= wish.noise_floor <= 0.25,  # a coin flips one way this often
        "--k": any(k < TWO_OPTIONS for k in ks),
    }
    for name, fault in faults.items():
        if fault:
            raise UsageError(
                f"{name} is out of range",
                hint="--accuracy is a share such as 0.6; --churn is at most 0.25; --k is 2 or "
                "more, or `open`.",
            )
    if wish.loss > wish.accuracy:
        raise UsageError(
            f"a loss of {wish.loss:g} is more than the accuracy of {wish.accuracy:g}",
            hint="only what was right before can be lost: choose a smaller --loss.",
        )


def _check_loss(loss: float) -> None:
    if not 0 < loss < 1:
        raise UsageError(
            f"--loss is {loss:g}", hint="it is a share of all items between 0 and 1, such as 0.02."
        )
