"""Sample sizes: items and repeats for a new run, or after an inconclusive one."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pydantic import Field

from forgetmap.comparison.api import make_rule
from forgetmap.comparison.choice_counts import TWO_OPTIONS
from forgetmap.comparison.choices import OPTION_COUNTS, REPEAT_COUNTS, Wish
from forgetmap.comparison.result import ComparisonResult, GroupResult
from forgetmap.errors import UsageError
from forgetmap.results import Value
from forgetmap.stats import (
    items_for_no_loss,
    items_needed,
    knowledge_scale,
    repeated_items_for_no_loss,
    repeated_items_needed,
)

MAX_ITEMS = 10_000_000
MAX_SAMPLED_NOISE = 0.25
"""Noise of a fair coin: the share that flips one way."""


class PlanRow(Value):
    """Requirements for a verdict with one kind of item."""

    k: int | None = Field(description="Number of options; null for open-ended items.")
    repeats: int = Field(description="Answers per item from each model; 1 is one greedy run.")
    estimator: str
    items: int | None = Field(
        description="Number of items with which the verdict detects the loss with 80 % "
        "probability; null if no number of items is enough."
    )
    answers: int | None = Field(description="Answers from each model: items times repeats.")
    items_no_loss: int | None = Field(
        description="Number of items with which the verdict is no_material_loss with 80 % "
        "probability if nothing was lost; null if no number of items is enough."
    )


class PlanResult(Value):
    """Before any run: items and repeats for a verdict with 80 % probability."""

    loss: float = Field(description="Share of all items that is lost.")
    accuracy: float
    churn: float = Field(
        description="Share of answers that flip one way between two sampled runs of the same model."
    )
    noise_floor: float = Field(
        description="Share of answers that flip one way between two greedy runs of the same model."
    )
    margin: float = Field(description="Largest acceptable loss, as a share of all items.")
    level: float = Field(description="Confidence level of the intervals and the verdict.")
    rows: list[PlanRow]


class Advice(Value):
    """Requirements for a verdict on a group without one."""

    name: str
    words: str = Field(description="The verdict of the group.")
    items: int
    detectable: float | None
    items_needed: int | None = Field(
        description="Approximate total number of such items for a verdict with 80 % probability."
    )
    advice: str


class AdviceResult(Value):
    """After a run: requirements for the undecided groups, and next steps."""

    loss: float
    decided: int = Field(description="Number of groups with a verdict.")
    open: list[Advice]
    next: list[str] = Field(description="What to do about the total, if it has a verdict.")


def make_plan(
    wish: Wish, ks: Sequence[float] = OPTION_COUNTS, repeats: Sequence[int] = REPEAT_COUNTS
) -> PlanResult:
    """Compute items and repeats for one greedy run and for repeated sampled ones.

    Raises:
        UsageError: the wish is impossible.
    """
    _check(wish, ks)
    rows = [_greedy_row(wish, k) for k in ks]
    rows += [_repeated_row(wish, count) for count in repeats]
    return PlanResult(
        loss=wish.loss,
        accuracy=wish.accuracy,
        churn=wish.sampled_noise,
        noise_floor=wish.noise_floor,
        margin=wish.margin,
        level=wish.level,
        rows=rows,
    )


def advise(result: ComparisonResult, *, by: str = "category", loss: float = 0.02) -> AdviceResult:
    """Compute what would decide the undecided groups, and what to do next."""
    _check_loss(loss)
    groups = {"category": result.categories, "task": result.tasks, "tag": result.tags}[by]
    groups = [result.total, *(groups or result.tasks)]
    undecided = [group for group in groups if group.verdict == "cannot_tell"]
    return AdviceResult(
        loss=loss,
        decided=len(groups) - len(undecided),
        open=[_advice(group, loss) for group in undecided],
        next=next_steps(result),
    )


def next_steps(result: ComparisonResult) -> list[str]:
    """Return the next steps once the total is decided; none before."""
    verdict, margin = result.total.verdict, f"{result.rule.margin:g}"
    steps = {
        "replay": (
            "replay set: `forgetmap export replay BEFORE AFTER --pool POOL --out FILE` chooses "
            "training examples similar to the forgotten items, and never the evaluation items "
            "themselves."
        ),
        "sweep": (
            "merge sweep: `forgetmap merge sweep BEFORE AFTER --suite SUITE --out FOLDER` tests "
            "whether a merge loses less and keeps the gains."
        ),
        "gate": (
            f"gate: `forgetmap gate BEFORE CHECKPOINT --margin {margin}` checks every later "
            "checkpoint against the same run."
        ),
        "probe": (
            "probe: `forgetmap probe BEFORE --out probe.jsonl` chooses a small set of items for "
            "monitoring."
        ),
    }
    order = {
        "lost": ("replay", "sweep", "gate"),
        "small_loss": ("gate", "replay"),
        "no_material_loss": ("gate", "probe"),
        "cannot_tell": (),
    }
    return [steps[name] for name in order[verdict]]


def _greedy_row(wish: Wish, k: float) -> PlanRow:
    size, floor = _size(wish), wish.noise_floor
    if math.isinf(k):
        kind = {"c": 1.0, "h": 0.0, "share_e": 0.0, "size": size}
        items = items_needed(wish.loss, noise_floor=floor, **kind)
        return _row(k, 1, "raw", items, items_for_no_loss(wish.margin, **kind))
    c = float(knowledge_scale(k))
    known = c * (wish.accuracy - 1 / k)
    never = 1 - max(known, 0.0)
    if k == TWO_OPTIONS:
        lower = {"c": c, "h": c**2 / k, "share_e": never / c**2, "size": size}
        upper = {"c": c, "h": 0.0, "share_e": 0.0, "lucky": never / k / c, "size": size}
    else:
        share = never * (k - 1) * (k - 2) / k**2
        lower = upper = {"c": c, "h": c / (k - 2), "share_e": share, "size": size}
    enough = wish.loss <= known
    items = items_needed(wish.loss, noise_floor=floor, **lower) if enough else MAX_ITEMS
    estimator = "bracket" if k == TWO_OPTIONS else "matched"
    return _row(k, 1, estimator, items, items_for_no_loss(wish.margin, **upper))


def _repeated_row(wish: Wish, repeats: int) -> PlanRow:
    noise, size = wish.sampled_noise, _size(wish)
    items = repeated_items_needed(wish.loss, repeats, churn=noise, size=size)
    no_loss = repeated_items_for_no_loss(wish.margin, repeats, noise=noise, size=size)
    return _row(math.inf, repeats, "excess", items, no_loss)


def _size(wish: Wish) -> float:
    """Return the one-sided error rate of a bound."""
    return (1 - wish.level) / 2


def _row(k: float, repeats: int, estimator: str, items: int, items_no_loss: int) -> PlanRow:
    enough = items < MAX_ITEMS
    return PlanRow(
        k=None if math.isinf(k) else int(k),
        repeats=repeats,
        estimator=estimator,
        items=items if enough else None,
        answers=items * repeats if enough else None,
        items_no_loss=items_no_loss if items_no_loss < MAX_ITEMS else None,
    )


def _advice(group: GroupResult, loss: float) -> Advice:
    decides = group.decides
    return Advice(
        name=group.name,
        words=group.headline.words,
        items=group.items,
        detectable=group.detectable,
        items_needed=None if decides is None else decides.items,
        advice=_what_to_do(group, loss),
    )


def _what_to_do(group: GroupResult, loss: float) -> str:
    decides = group.decides
    if not group.n:
        return "evaluate both models on the same items."
    if decides is not None and decides.repeats is not None:
        return (
            f"answer every item twice with each model ({2 * group.items:,} more answers in all), "
            "or evaluate both greedily."
        )
    if group.headline.estimator == "bracket" and group.matched.forgetting.reason is not None:
        return (
            "record which option was chosen (three or more options), or answer every item twice "
            "with each model; more items do not narrow the range."
        )
    if decides is None or decides.items is None:
        return "use items that the model before knows; it knows too few of these to lose any."
    more = decides.items - group.items
    return f"about {more:,} more items of this kind would decide{_wanted_loss(group, loss)}."


def _wanted_loss(group: GroupResult, loss: float) -> str:
    """Describe the items that detect a loss; detectable losses shrink at least with the root."""
    share = f"a loss of {100 * loss:g}%"
    if group.detectable is None:
        return ""
    if group.detectable <= loss:
        return f"; {share} would already have been detected"
    items = math.ceil(group.items * (group.detectable / loss) ** 2)
    return f"; {share} is detected with about {items:,} in total"


def _check(wish: Wish, ks: Sequence[float]) -> None:
    _check_loss(wish.loss)
    make_rule({"margin": wish.margin, "noise_floor": wish.noise_floor, "level": wish.level})
    faults = {
        "--accuracy": not 0 < wish.accuracy <= 1,
        "--noise-floor": not 0 <= wish.sampled_noise <= MAX_SAMPLED_NOISE,
        "--k": any(k < TWO_OPTIONS for k in ks),
    }
    for name, fault in faults.items():
        if fault:
            raise UsageError(
                f"{name} is out of range",
                hint="--accuracy is a share such as 0.6, --noise-floor is at most 0.25 in a "
                "plan, and --k is 2 or more, or `open`.",
            )
    if wish.loss > wish.accuracy:
        raise UsageError(
            f"a loss of {wish.loss:g} is more than the accuracy of {wish.accuracy:g}",
            hint="choose a smaller --loss; only what was right before can be lost.",
        )


def _check_loss(loss: float) -> None:
    if not 0 < loss < 1:
        raise UsageError(
            f"--loss is {loss:g}", hint="give a share of all items between 0 and 1, such as 0.02."
        )
