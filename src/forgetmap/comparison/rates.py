"""What was counted in a group: rates with their intervals, estimates, reasons, mean changes."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from forgetmap.comparison.cells import REASONS, Cells
from forgetmap.comparison.choices_made import TWO_OPTIONS
from forgetmap.comparison.estimators import all_estimators, estimate_mean
from forgetmap.comparison.graded import ChangeSums
from forgetmap.comparison.kinds import Kinds
from forgetmap.comparison.result import ChangeResult
from forgetmap.results import Estimate
from forgetmap.stats import (
    DropBound,
    PairedAnswers,
    drop_upper,
    flips_lower,
    graded_interval,
    plain_flips_upper,
)


def count_group(cells: Cells, kinds: Kinds) -> dict[str, Any]:
    """Return the counts of a group, by the names of its result."""
    clustered = kinds.sample.cluster is not None
    return {
        "items": cells.items,
        **{name: getattr(cells, name) for name in ("n", "n11", "n10", "n01", "n00")},
        "forgotten": cells.n10,
        "gained": cells.n01,
        "clusters": int(kinds.sample.clusters) if clustered else None,
        "answer_changes": _answer_changes(kinds),
    }


def measure_rates(kinds: Kinds, alpha: float, high_alpha: float, *, macro: bool) -> dict[str, Any]:
    """Return the rates and estimates of a group; a rate of no items is null.

    Args:
        kinds: the items.
        alpha: one-sided error of the intervals.
        high_alpha: one-sided error of the upper limit of the drop.
        macro: every task has the same weight.
    """
    estimators = {row.name: row.estimate(kinds, alpha, macro=macro) for row in all_estimators()}
    if not kinds.items:
        nothing = Estimate.missing("counted", "no scored pair")
        names = ("forgetting", "backward_transfer", "conditional_forgetting", "drop", "noise_floor")
        return {
            **dict.fromkeys(names, nothing),
            **dict.fromkeys(("acc_before", "acc_after", "conventional_forgetting")),
            "estimators": estimators,
        }
    answers = kinds.answers(macro=macro)
    mean = answers.sample.mean
    before, after = mean(answers.x), mean(answers.y)
    flips = _flip_rate(answers, alpha)
    estimators["flips"] = replace(
        estimators["flips"], forgetting=flips, backward_transfer=_flip_rate(answers.mirrored, alpha)
    )
    drop, low = estimators["drop"].forgetting, DropBound(answers).lower(alpha)
    high = drop_upper(answers, high_alpha)
    return {
        "acc_before": before,
        "acc_after": after,
        "forgetting": flips,
        "backward_transfer": estimators["flips"].backward_transfer,
        "conditional_forgetting": _of_right(flips, before),
        "conventional_forgetting": max(before - after, 0.0),
        "drop": replace(drop, low=max(low, -1.0), high=min(max(high, low), 1.0)),
        "noise_floor": _noise_floor(kinds, alpha),
        "estimators": estimators,
    }


def _flip_rate(answers: PairedAnswers, alpha: float) -> Estimate:
    """Return the share that went from right to wrong, with limits that hold for few flips."""
    sample, scores = answers.sample, answers.x * (1 - answers.y)
    if answers.is_plain:
        high = float(plain_flips_upper(answers.flips[0], sample.n, alpha))
    else:
        high = sample.upper(scores, alpha)
    value = sample.mean(scores)
    return Estimate(
        value=value,
        low=min(max(flips_lower(answers, alpha), 0.0), value),
        high=min(max(high, value), 1.0),
        method="score interval" if answers.is_plain else "t interval with room for the unseen",
    )


def _of_right(flips: Estimate, accuracy: float) -> Estimate:
    """Return flips as a share of what was right before; its limits are conservative."""
    method = f"{flips.method}, of what was right before"
    if not accuracy or flips.value is None or flips.low is None or flips.high is None:
        return Estimate.missing(method, "no answer was right before")
    return Estimate(
        value=flips.value / accuracy,
        low=flips.low / accuracy,
        high=min(flips.high / accuracy, 1.0),
        method=method,
    )


def _noise_floor(kinds: Kinds, alpha: float) -> Estimate:
    """Return how often two runs of one model flip one way, averaged over the repeated models."""
    shares = []
    for side in ("before", "after"):
        right, given = kinds.tally(f"right_{side}"), kinds.given(side)
        with np.errstate(invalid="ignore", divide="ignore"):
            flips = right * (given - right) / (given * (given - 1))
        shares.append(np.where(given > 1, flips, np.nan))
    known = ~np.isnan(shares).all(axis=0)
    if not known.any():
        return Estimate.missing("noise floor", "needs repeats of a model")
    part = kinds.take(known)
    scores = np.nanmean(np.array(shares)[:, known], axis=0)
    return estimate_mean(part.sample, scores, alpha, "noise floor", 0.5)


def _answer_changes(kinds: Kinds) -> int | None:
    """Count pairs of answers with one wrong option before and another wrong option after."""
    closed = (kinds.k > TWO_OPTIONS) & ~np.isinf(kinds.k)
    if not closed.any():
        return None
    part = kinds.take(closed)
    if (part.tally("unknown_before") + part.tally("unknown_after")).any():
        return None
    both = part.tally("option_before") * part.tally("option_after") - part.tally("same")
    pairs = np.maximum(np.maximum(part.given("before"), part.given("after")), 1)
    return round(float(part.count @ (both / pairs)))


def count_reasons(cells: Cells) -> dict[str, int | None]:
    """Count forgotten items by reason; null for known reasons if no outcome is recorded."""
    if cells.n10 and cells.reasons.get("unknown") == cells.n10:
        return {name: cells.n10 if name == "unknown" else None for name in REASONS}
    return {name: cells.reasons.get(name, 0) for name in REASONS}


def mean_change(
    sums: ChangeSums | None, answers: PairedAnswers, alpha: float, name: str
) -> ChangeResult | None:
    """Return the mean decrease of a value, widened by the clusters of the items.

    Args:
        sums: sums of the decreases.
        answers: right answers, whose clusters count.
        alpha: one-sided error of the interval.
        name: the value, in words.
    """
    if sums is None or not sums.n:
        return None
    interval = graded_interval(sums.n, sums.total, sums.squares, sums.cubes, level=1 - 2 * alpha)
    value, low, high = (float(end) for end in (interval.value, interval.low, interval.high))
    wider = math.sqrt(answers.sample.design_effect(answers.change))
    known = not math.isnan(low)
    return ChangeResult(
        value=value,
        low=value - wider * (value - low) if known else None,
        high=value + wider * (high - value) if known else None,
        method=f"mean of the {name} before minus after, t interval",
        pairs=int(sums.graded),
    )
