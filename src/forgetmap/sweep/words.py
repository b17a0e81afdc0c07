"""Sentences of a sweep."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from forgetmap.results import Estimate
from forgetmap.stats import MIN_PAIRS
from forgetmap.sweep.result import PairResult, PointResult
from forgetmap.sweep.states import Flags, States
from forgetmap.text import counted, percent

FEW_GAINED = 30
"""Number of gained items below which the kept share is hardly reliable."""
WORTH_KEEPING = 0.05
"""Minimum share of the gains that a merge must keep to be worthwhile."""
NEAR_CHANCE = 0.2
"""Mean chance of guessing above which luck is worth a warning."""


def rule(budget: float, error: float) -> str:
    """Describe how the best merge is chosen."""
    return (
        f"Best: of the merges that are certified to forget at most {percent(budget, 0)} of what "
        "the tuned model forgot, the one that keeps most of its gains. Weights are tested from "
        f"small to large up to the first that fails; at most {percent(error)} of sweeps have a "
        "false certificate."
    )


def point_name(point: PointResult) -> str:
    """Return the name of a point, such as `linear 0.3`."""
    return f"{point.method} {point.weight:g}"


def share_with_limits(estimate: Estimate) -> str:
    """Format a share with its interval."""
    if estimate.value is None:
        return "unknown"
    return f"{percent(estimate.value)} ({percent(estimate.low)} to {percent(estimate.high)})"


def choice(point: PointResult, budget: float, tuned: str) -> str:
    """Describe the best merge."""
    return (
        f"{point_name(point)} is certified: it {_what_it_does(point, budget, tuned)} Of all "
        f"certified merges, it keeps the largest part of what {tuned} gained: "
        f"{share_with_limits(point.retained_all)}. {benefit(point)}"
    )


def unsure_choice(point: PointResult, budget: float, tuned: str) -> str:
    """Describe the best merge if its estimate is right."""
    return (
        f"No merge is certified to help. According to its estimate, {point_name(point)} "
        f"{_what_it_does(point, budget, tuned)} It keeps {share_with_limits(point.retained_all)} "
        f"of what {tuned} gained. {benefit(point)}"
    )


def none_helps(point: PointResult, budget: float, tuned: str) -> str:
    """State that no merge within the budget keeps enough."""
    return (
        f"No merge helps: of those that forget at most {percent(budget, 0)} of what {tuned} "
        f"forgot, none keeps more than {percent(WORTH_KEEPING, 0)} of what it gained; "
        f"{point_name(point)} keeps {share_with_limits(point.retained_all)}."
    )


def _what_it_does(point: PointResult, budget: float, tuned: str) -> str:
    return (
        f"forgets at most {percent(budget, 0)} of what {tuned} forgot: "
        f"{share_with_limits(point.forgetting_all)} of all items."
    )


def benefit(point: PointResult) -> str:
    """State whether a merge is better than a mixture of the answers of its parents."""
    estimate = point.benefit_all
    if estimate.low is not None and estimate.low > 0:
        return "It is better than mixing the answers of both parents."
    if estimate.high is not None and estimate.high < 0:
        return "Mixing the answers of both parents would be better."
    return "It is unclear whether it is better than mixing the answers of both parents."


def none_within(point: PointResult, budget: float, tuned: str) -> str:
    """State that every merge forgets too much."""
    return (
        f"No merge helps: every merge forgets more than {percent(budget, 0)} of what {tuned} "
        f"forgot; the smallest loss is that of {point_name(point)} with "
        f"{share_with_limits(point.forgetting_all)} of all items."
    )


def no_choice(reason: str) -> str:
    """State why there is no best merge."""
    return f"No merge helps: {reason}."


def notices(states: States, gained: Flags) -> list[str]:
    """Return the limitations of the numbers."""
    sentences = []
    count = int(gained.sum())
    if not states.target.any():
        sentences.append(
            "gains are counted on the suite itself, where answers also flip by chance, which "
            "makes merging look better than it is: set the tasks the tuned model was trained "
            "for with --target or --target-suite."
        )
    if 0 < count < FEW_GAINED:
        sentences.append(
            f"the tuned model gained only {counted(count, 'item')}, too few to measure what is "
            "kept of them."
        )
    chance = float(np.mean(states.chance[gained])) if count else 0.0
    if chance >= NEAR_CHANCE:
        sentences.append(
            f"guesses alone would answer {percent(chance)} of the {count:,} gained items right: "
            "part of what is gained, kept and recovered is luck."
        )
    if states.left_out:
        sentences.append(
            f"{counted(states.left_out, 'answer')} left out that have no score in some run."
        )
    return sentences


def correlation(rank: Estimate) -> str:
    """Describe the rank correlation."""
    assert rank.low is not None  # noqa: S101  # it was estimated
    assert rank.high is not None  # noqa: S101
    numbers = f"rank correlation {rank.value:.2f} ({rank.low:.2f} to {rank.high:.2f})"
    if rank.high < 0:
        return f"The farther the weights moved, the less merging helped: {numbers}."
    if rank.low > 0:
        return f"The farther the weights moved, the more merging helped: {numbers}."
    return f"It is unclear whether merging helps more where the weights moved less: {numbers}."


def no_correlation(known: Sequence[object]) -> str:
    """State why there is no rank correlation."""
    if len(known) < MIN_PAIRS:
        return (
            f"{counted(len(known), 'tuned model')} cannot show whether merging helps more where "
            f"the weights moved less; use {MIN_PAIRS} or more."
        )
    return (
        "All tuned models moved, or gained by merging, by the same amount, so there is nothing "
        "to rank."
    )


def headline(pair: PairResult) -> str:
    """Return one sentence on a pair."""
    return f"{pair.name}: {pair.best.words}"


def listed_points(pair: PairResult) -> list[int]:
    """Return the indices of points in table order: base first, tuned last, each parent once."""
    merges = [index for index, point in enumerate(pair.points) if point.reused is None]
    parents = {point.reused: index for index, point in enumerate(pair.points) if point.reused}
    first = [parents["base"]] if "base" in parents else []
    last = [parents["tuned"]] if "tuned" in parents else []
    return [*first, *merges, *last]


def signed_percent(value: float | None) -> str:
    """Format a difference of shares, with its sign; a dash if there is none."""
    if value is None:
        return "-"
    return f"{100 * value:+.1f}".replace("-", "\N{MINUS SIGN}") + "%"
