"""What the verdict says of one data set whose truth is known; benchmarks/verdicts.py has the rows.

Truth is the loss of the population of items (benchmarks/worlds.py) and that of the drawn items:
every rate is returned for both.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, Literal

import numpy as np
from scipy import stats
from simulated_rows import OWN, TINY, Rates
from worlds import Items, Rng, World, checkpoints, draw

from forgetmap.stats.limits import ItemSample, PairedAnswers, ScoreBound
from forgetmap.stats.multiplicity import FDR
from forgetmap.stats.verdicts import (
    LOSSES,
    Bound,
    BoundName,
    LossLimits,
    TaskSplit,
    confirmed_bound,
    decide,
    items_to_decide,
    look_share,
    loss_p,
    measure_limits,
    offered_bounds,
    reject_in_order,
    select_in_family,
    without_claim,
)

MARGIN, ALPHA = 0.02, 0.025
AFTER_UNDECIDED = 0.00625
"""Error of a confirmation that was asked for only after an undecided comparison."""
CLEAR = 0.001
"""p-value of a usual test at which a loss must be claimed."""

Draw = Callable[[Rng], Items]
Repeats = int | tuple[int, int]
"""PairedAnswers per item: a number, or the range from which each item has its own."""


def make_sample(items: Items) -> ItemSample:
    """Return items as the kernel takes them; here every item is its own kind."""
    count = np.ones(items.p.size)
    if not items.is_macro:
        return ItemSample(count, items.cluster)
    weights = items.item_weights
    return ItemSample(count, items.cluster, weights * weights.size, float(weights.max()))


def ask(rng: Rng, items: Items, before: Repeats = 1, after: Repeats = 1) -> PairedAnswers:
    """Return new answers of both models."""
    sides = []
    for rates, repeats in ((items.p, before), (items.q, after)):
        size = rates.size
        if isinstance(repeats, tuple):
            asked = rng.integers(repeats[0], repeats[1] + 1, size)
        else:
            asked = np.full(size, repeats)
        sides += [items.answer(rng, rates, asked), asked.astype(float)]
    return PairedAnswers(sides[0], sides[1], sides[2], sides[3], make_sample(items))


def split_tasks(rng: Rng, items: Items, *, by_item: bool = False) -> TaskSplit | None:
    """Return halves of whole clusters, in an order that has nothing to do with the answers."""
    if items.weights.size == 1:
        return None
    is_alone = items.cluster is None or by_item
    unit = np.arange(items.p.size) if is_alone else items.cluster
    assert unit is not None
    half = rng.permutation(int(unit.max()) + 1)[unit] % 2
    return TaskSplit(items.task, half, items.weights)


def judge(items: Items, limits: LossLimits) -> Rates:
    """Compare what is said with the truth."""
    verdict = decide(limits, MARGIN)
    is_claimed, is_within = verdict in LOSSES, limits.high < MARGIN
    rates = {"found": float(is_claimed), "cannot_tell": float(verdict == "cannot_tell")}
    truths = (("", items.loss, items.net), (OWN, items.own_loss, items.own_net))
    for end, loss, net in truths:
        rates |= {
            f"false_lost{end}": float(is_claimed and loss < TINY),
            f"false_within{end}": float(is_within and loss >= MARGIN - TINY),
            f"false_held{end}": float(verdict == "no_net_loss" and net >= MARGIN - TINY),
            f"low_above{end}": float(limits.low > max(loss, 0.0) + TINY),
            f"high_below{end}": float(limits.high < loss - TINY),
            f"drop_below{end}": float(limits.drop_high < net - TINY),
        }
    return rates


def is_clear(answers: PairedAnswers) -> bool:
    """Whether the usual test of a drop in accuracy has a two-sided p below .001."""
    change, cluster = answers.change, answers.sample.cluster
    if answers.sample.factor is not None:
        return False  # there is no usual test of a mean over tasks
    if cluster is None and not answers.has_repeats:
        lost, gained = (change > 0).sum(), (change < 0).sum()
        return bool(2 * stats.binom.sf(lost - 1, lost + gained, 0.5) < CLEAR)
    sums = change if cluster is None else np.bincount(cluster, change)
    sizes = np.ones(change.size) if cluster is None else np.bincount(cluster)
    around = sums - change.mean() * sizes
    variance = sums.size / (sums.size - 1) * (around @ around)
    if variance <= 0:
        return False
    return bool(2 * stats.t.sf(change.sum() / math.sqrt(variance), sums.size - 1) < CLEAR)


def measure_once(
    draw_items: Draw,
    rng: Rng,
    *,
    before: Repeats = 1,
    after: Repeats = 1,
    by_item: bool = False,
    confirm: float = 0.0,
    fresh: int = 1,
) -> Rates:
    """Compare two models once.

    Args:
        draw_items: draws the items.
        rng: random generator.
        before: answers per item of the model before.
        after: the same for the model after.
        by_item: divide items, not clusters, into halves (a control).
        confirm: share of the flipped items that is asked again.
        fresh: answers per item and model that is asked again.
    """
    items = draw_items(rng)
    answers = ask(rng, items, before, after)
    more = confirm_flips(rng, items, answers, confirm, fresh) if confirm else {}
    bounds = offered_bounds(answers, split_tasks(rng, items, by_item=by_item), more)
    limits = measure_limits(answers, bounds, ALPHA)
    rates = judge(items, limits)
    named = rates["found"] or limits.high < MARGIN
    return rates | {"unseen": float(is_clear(answers) and not named)}


def confirm_flips(
    rng: Rng, items: Items, answers: PairedAnswers, part: float, fresh: int
) -> dict[BoundName, Bound]:
    """Ask a random part of the flipped items again."""
    flipped = np.flatnonzero((answers.x == 1) & (answers.y == 0))
    asked = rng.permutation(flipped)[: math.ceil(part * flipped.size)]
    again = ask(rng, items, fresh, fresh)
    change = np.zeros(items.p.size)
    change[asked] = again.change[asked]
    bound = confirmed_bound(answers.sample, change, flipped.size, asked.size)
    return {} if bound is None else {"confirmed": bound}


# --- several claims about the same items ----------------------------------------------------------


def measure_after_undecided(draw_items: Draw, rng: Rng) -> Rates:
    """Compare; where no loss is claimed, ask all flips again and test that limit alone."""
    items = draw_items(rng)
    answers = ask(rng, items)
    limits = measure_limits(answers, offered_bounds(answers), ALPHA)
    bounds = confirm_flips(rng, items, answers, 1.0, 1)
    if decide(limits, MARGIN) not in LOSSES and bounds:
        low = measure_limits(answers, bounds, AFTER_UNDECIDED).low
        limits = replace(limits, low=low, high=max(limits.high, low))
    return judge(items, limits)


def worst(many: Sequence[Rates]) -> Rates:
    """Return whether anything that was said was false."""
    rates = {name: max(one[name] for one in many) for name in many[0]}
    return rates | {"cannot_tell": min(one["cannot_tell"] for one in many)}


def measure_looks(
    draw_items: Draw, rng: Rng, *, looks: int = 12, growing: bool = False, spend: bool = True
) -> Rates:
    """Look several times: new runs of the model after, or more and more items."""
    items = draw_items(rng)
    answers = ask(rng, items)
    seen = []
    for look in range(1, looks + 1):
        if growing:
            some, now = _first(items, answers, look / looks)
        else:
            right = items.answer(rng, items.q)
            some, now = items, replace(answers, right_after=right)
        alpha = ALPHA * (look_share(look) if spend else 1.0)
        seen.append(judge(some, measure_limits(now, offered_bounds(now), alpha)))
    return worst(seen)


def _first(items: Items, answers: PairedAnswers, share: float) -> tuple[Items, PairedAnswers]:
    own = slice(round(share * items.p.size))
    some = replace(items, p=items.p[own], q=items.q[own], task=items.task[own])
    return some, _only(answers, own, some)


def measure_confirmations(
    draw_items: Draw, rng: Rng, *, looks: int = 12, spend: bool = True
) -> Rates:
    """Ask all flips again and again, and look each time."""
    items = draw_items(rng)
    answers = ask(rng, items)
    flipped = (answers.x == 1) & (answers.y == 0)
    total, seen = np.zeros(items.p.size), []
    for look in range(1, looks + 1):
        total += np.where(flipped, ask(rng, items).change, 0.0)
        number = float(flipped.sum())
        bound = confirmed_bound(answers.sample, total / look, number, number)
        bounds = offered_bounds(answers, None, {"confirmed": bound} if bound else None)
        alpha = ALPHA * (look_share(look) if spend else 1.0)
        seen.append(judge(items, measure_limits(answers, bounds, alpha)))
    return worst(seen)


def measure_best(
    draw_items: Draw, rng: Rng, *, of: int = 20, lost: float = MARGIN, spend: bool = True
) -> Rates:
    """Choose the checkpoint with the fewest losses on these items, then judge it on them."""
    items = draw_items(rng)
    alpha = ALPHA / (of if spend else 1)
    world = replace(items.worlds[0], loss=lost, net=lost)
    found = []
    for q in checkpoints(rng, items, of, lost):
        tuned = replace(items, q=q, worlds=(world,))
        answers = ask(rng, tuned)
        limits = measure_limits(answers, offered_bounds(answers), alpha)
        found.append((limits.high, tuned, limits))
    _, tuned, limits = min(found, key=lambda each: each[0])
    return judge(tuned, replace(limits, low=-1.0))  # only the upper limits are at this level


def measure_chain(draw_items: Draw, rng: Rng, *, stages: int = 3, with_stage: bool = True) -> Rates:
    """Compare each stage with the first one; what changes, changes from the first to the second."""
    items = draw_items(rng)
    first = ask(rng, items)
    previous, limits = None, []
    for _ in range(1, stages):
        answers = replace(first, right_after=items.answer(rng, items.q))
        more: dict[BoundName, Bound] = {}
        if previous is not None and with_stage:
            scores = (1 - previous) * answers.change
            more = {"earlier_stage": ScoreBound(answers.sample, scores)}
        limits.append(measure_limits(answers, offered_bounds(answers, None, more), ALPHA))
        previous = answers.y
    rejected = reject_in_order([each.p for each in limits], 2 * ALPHA)
    seen = [
        judge(items, each if is_rejected else without_claim(each))
        for each, is_rejected in zip(limits, rejected, strict=True)
    ]
    ends = ("low", "high", "drop")  # limits hold for each stage, claims for all of them together
    means = {name: _mean(seen, name) for name in seen[0] if name.startswith(ends)}
    return worst(seen) | means | {name: seen[-1][name] for name in ("found", "cannot_tell")}


def measure_family(draw_items: Draw, rng: Rng, *, before: Repeats = 1, after: Repeats = 1) -> Rates:
    """Judge every task: false claims are those among the claims (the false discovery rate)."""
    items = draw_items(rng)
    answers = ask(rng, items, before, after)
    parts = [_of_task(items, answers, task) for task in range(items.weights.size)]
    q, number = select_in_family([loss_p(offered_bounds(some)) for _, some in parts])
    seen = []
    for (part, some), own_q in zip(parts, q, strict=True):
        share = max(number, 1) / len(parts)
        limits = measure_limits(some, offered_bounds(some), ALPHA, part=share)
        seen.append(judge(part, limits if own_q <= FDR else without_claim(limits)))
    lossy = [one for one, (part, _) in zip(seen, parts, strict=True) if part.loss > 0]
    claims = [one for one in seen if one["found"]]
    among = [name + end for name in ("false_lost", "low_above") for end in ("", OWN)]
    return {
        **{name: _mean(seen, name) for name in seen[0]},
        **{name: _mean(claims, name) for name in among},
        "found": _mean(lossy, "found"),
    }


def _mean(many: Sequence[Rates], name: str) -> float:
    return float(np.mean([one[name] for one in many])) if many else 0.0


def _of_task(items: Items, answers: PairedAnswers, task: int) -> tuple[Items, PairedAnswers]:
    own = items.task == task
    cluster = None
    if items.cluster is not None:
        cluster = np.unique(items.cluster[own], return_inverse=True)[1]
    part = Items(
        items.p[own], items.q[own], (items.worlds[task],), np.zeros(own.sum(), int), np.ones(1),
        cluster,
    )  # fmt: skip
    return part, _only(answers, own, part)


def _only(answers: PairedAnswers, own: Any, part: Items) -> PairedAnswers:
    return PairedAnswers(
        answers.right_before[own],
        answers.answers_before[own],
        answers.right_after[own],
        answers.answers_after[own],
        make_sample(part),
    )


# --- other claims ---------------------------------------------------------------------------------


def measure_copies(draw_items: Draw, rng: Rng, *, copied: float) -> Rates:
    """Compare three answers per item, of which some are copies of the first."""
    items = draw_items(rng)
    once, thrice = ask(rng, items), ask(rng, items, 3, 3)
    is_copy = rng.random(items.p.size) < copied
    answers = replace(
        thrice,
        right_before=np.where(is_copy, 3 * once.right_before, thrice.right_before),
        right_after=np.where(is_copy, 3 * once.right_after, thrice.right_after),
    )
    return judge(items, measure_limits(answers, offered_bounds(answers), ALPHA))


def measure_selected(draw_items: Draw, rng: Rng, *, is_known: bool = True) -> Rates:
    """Compare on the items that the run before has right, and ask the flips again.

    Args:
        draw_items: draws the items that were chosen from.
        rng: random generator.
        is_known: that the run before helped to choose is taken into account: only the answers
            given after the choice count. Otherwise its first answers are compared (a control).
    """
    pool = draw_items(rng)
    first = ask(rng, pool)
    own = np.flatnonzero(first.x == 1)
    items = replace(pool, p=pool.p[own], q=pool.q[own], task=pool.task[own])
    answers = _only(first, own, items)
    if is_known:
        fresh = confirm_flips(rng, items, answers, 1.0, 1)
        limits = measure_limits(answers, fresh, AFTER_UNDECIDED)
        limits = replace(limits, high=1.0, drop_high=1.0)
    else:
        limits = measure_limits(answers, offered_bounds(answers), ALPHA)
    # The truth is that of the chosen items: they are not like those that they were chosen from.
    rates = judge(items, limits)
    return {name: rates.get(name + OWN, rate) for name, rate in rates.items() if OWN not in name}


def measure_refusals(draw_items: Draw, rng: Rng, *, k: int = 4) -> Rates:
    """Judge "no longer knows" where a model only refuses to guess: no answer scores 1/k."""
    items = draw_items(rng)
    answers = ask(rng, items)
    bounds = offered_bounds(answers, split_tasks(rng, items))
    limits = measure_limits(answers, bounds, ALPHA)
    refused = (items.p == 1 / k) & (items.q == 0)
    scores = answers.x - np.where(refused, 1 / k, answers.y)
    rates = judge(items, limits)
    knows_less = answers.sample.lower(scores, ALPHA / len(bounds)) > 0
    return rates | {"false_knows": float(bool(rates["found"]) and knows_less)}


def measure_plan(world: Callable[[int], World], rng: Rng) -> Rates:
    """Return whether as many items as recommended decide."""
    rates = measure_once(lambda rng: draw(rng, world(planned_items(world))), rng)
    return rates | {"decided": 1 - rates["cannot_tell"]}


@cache
def planned_items(world: Callable[[int], World]) -> int:
    """Return the recommendation after a comparison of very many items."""
    rng = np.random.default_rng(0)
    number = items_to_decide(ask(rng, draw(rng, world(200_000))), MARGIN, ALPHA)
    assert number is not None
    return number


def measure_gate(
    draw_items: Draw,
    rng: Rng,
    *,
    accept: Literal["items", "net"] = "items",
    before: Repeats = 1,
    after: Repeats = 1,
) -> Rates:
    """Decide on a release: FAIL if more than the margin was lost, PASS if less."""
    items = draw_items(rng)
    answers = ask(rng, items, before, after)
    limits = measure_limits(answers, offered_bounds(answers, split_tasks(rng, items)), ALPHA)
    fails = limits.low > MARGIN
    held = accept == "net" and limits.drop_high < MARGIN
    passes = not fails and (limits.high < MARGIN or held)
    rates = {"fail": float(fails), "pass": float(passes), "inconclusive": float(not fails | passes)}
    for end, loss, net in (("", items.loss, items.net), (OWN, items.own_loss, items.own_net)):
        rates[f"false_fail{end}"] = float(fails and loss <= MARGIN + TINY)
        accepted = net if accept == "net" else loss
        rates[f"false_pass{end}"] = float(passes and accepted >= MARGIN - TINY)
    return rates
