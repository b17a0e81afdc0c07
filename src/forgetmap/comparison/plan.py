"""Sample sizes: items and repeats for a new run, or after an inconclusive one.

The expected answers of a planned run go through the same limits as those of a real one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from math import comb
from statistics import NormalDist

import numpy as np

from forgetmap.comparison.api import make_rule
from forgetmap.comparison.choices import REPEAT_COUNTS, PlanInput
from forgetmap.comparison.phrases import NO_COMMANDS, Commands, next_steps, sentence
from forgetmap.comparison.result import ComparisonResult, GroupResult
from forgetmap.errors import UsageError
from forgetmap.results import Plain
from forgetmap.stats import (
    BoundName,
    ItemSample,
    PairedAnswers,
    drop_upper,
    flips_upper,
    offered_bounds,
)
from forgetmap.text import counted, share

MAX_ITEMS = 10_000_000
MAX_NOISE = 0.25
"""Noise of a fair coin: the share that flips one way."""
POWER = 0.8
"""Probability with which a plan decides."""
UNSURE = (0.5, 0.9)
"""How often an item that is not sure is right: noise sits on few items, or on many. A plan holds
for both."""
SMALLEST_P = 1e-300
"""Smaller p-values have no normal quantile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRow(Plain):
    """Requirements for a verdict with a number of answers per item."""

    repeats: int
    """Answers per item from each model."""
    items: int | None
    """Number of items with which the loss is found with 80 % probability; null if no number is
    enough."""
    answers: int | None
    """Answers from each model: items times repeats."""
    items_no_loss: int | None
    """Number of items with which the verdict is no_material_loss with 80 % probability if nothing
    was lost; null if no number is enough."""
    items_no_net_loss: int | None
    """The same for no_net_loss: accuracy held."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanResult(Plain):
    """Before any run: items and repeats for a verdict with 80 % probability."""

    loss: float
    """Share of all items that is lost."""
    gain: float
    """Share of all items that is gained at the same time."""
    noise: float
    """Share of answers that flip one way between two runs of the same model."""
    margin: float
    level: float
    rows: list[PlanRow]


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice(Plain):
    """Requirements for a verdict on a group without one."""

    name: str
    words: str
    """The verdict of the group."""
    items: int
    detectable: float | None
    items_needed: int | None
    """Approximate total number of such items for a verdict with 80 % probability."""
    advice: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AdviceResult(Plain):
    """After a run: requirements for the undecided groups, and next steps."""

    loss: float
    decided: int
    """Number of groups with a verdict."""
    open: list[Advice]
    next: list[str]
    """What to do next about the total."""


def make_plan(wish: PlanInput, repeats: Sequence[int] = REPEAT_COUNTS) -> PlanResult:
    """Compute items for each number of repeats.

    Raises:
        UsageError: the wish is impossible.
    """
    _check(wish)
    return PlanResult(
        loss=wish.loss,
        gain=wish.gain,
        noise=wish.noise,
        margin=wish.margin,
        level=wish.level,
        rows=[_row(wish, count) for count in repeats],
    )


def expected_answers(
    items: float, repeats: int, *, loss: float, gain: float, noise: float, unsure: float = 0.5
) -> PairedAnswers:
    """Return the answers that a run is expected to have.

    Items are always right, lost, gained, or not sure: these make the noise.

    Args:
        items: number of items.
        repeats: answers of each model to each.
        loss: share of the items that is lost.
        gain: share that is gained.
        noise: share that two runs of a model flip one way.
        unsure: how often an item that is not sure is answered right, before and after; closer to
            a half if all others together do not make as much noise.
    """
    room = 1 - loss - gain
    shaky = min(noise / (unsure * (1 - unsure)), room)
    rate = (1 + math.sqrt(max(1 - 4 * noise / shaky, 0.0))) / 2 if shaky else 1.0
    rates = {(1.0, 0.0): loss, (0.0, 1.0): gain, (rate, rate): shaky, (1.0, 1.0): room - shaky}
    counts: dict[tuple[int, int], float] = {}
    for ((p, q), part), m, n in product(rates.items(), range(repeats + 1), range(repeats + 1)):
        own = items * part * _binomial(m, repeats, p) * _binomial(n, repeats, q)
        counts[m, n] = counts.get((m, n), 0.0) + own
    kinds = np.array([(*key, own) for key, own in counts.items() if own > 0], float)
    given = np.full(len(kinds), float(repeats))
    return PairedAnswers(kinds[:, 0], given, kinds[:, 1], given, ItemSample(kinds[:, 2]))


def _binomial(right: int, repeats: int, p: float) -> float:
    return comb(repeats, right) * p**right * (1 - p) ** (repeats - right)


def _row(wish: PlanInput, repeats: int) -> PlanRow:
    alpha = (1 - wish.level) / 2

    def runs(items: float, loss: float, gain: float) -> list[PairedAnswers]:
        return [
            expected_answers(items, repeats, loss=loss, gain=gain, noise=wish.noise, unsure=unsure)
            for unsure in UNSURE
        ]

    def finds(items: float) -> bool:
        for answers in runs(items, wish.loss, wish.gain):
            bounds = offered_bounds(answers)
            enough = _quantile_above(alpha / len(bounds))
            if not any(_usual(partial(_score, name), answers, -1) > enough for name in bounds):
                return False
        return True

    def shows(limit: Callable[[PairedAnswers, float], float], items: float) -> bool:
        return all(
            _usual(lambda own: limit(own, alpha), answers, 1) < wish.margin
            for answers in runs(items, 0.0, 0.0)
        )

    found = _smallest(finds)
    return PlanRow(
        repeats=repeats,
        items=found,
        answers=None if found is None else found * repeats,
        items_no_loss=_smallest(partial(shows, flips_upper)),
        items_no_net_loss=_smallest(partial(shows, drop_upper)),
    )


def _usual(statistic: Callable[[PairedAnswers], float], answers: PairedAnswers, sign: int) -> float:
    """Return what a statistic reaches, or does not exceed, with the planned probability.

    Its standard deviation is that of a sum over items (delta method): every kind of item adds what
    one more such item changes.

    Args:
        statistic: number of a run, by its answers.
        answers: the expected ones.
        sign: -1 for what is reached, 1 for what is not exceeded.
    """
    count, n = answers.sample.count, answers.sample.n
    value, step = statistic(answers), max(1.0, n / 10_000)
    slopes = np.zeros(count.size)
    for kind in range(count.size):
        more = count.copy()
        more[kind] += step
        slopes[kind] = (statistic(replace(answers, sample=ItemSample(more))) - value) / step
    variance = float(slopes**2 @ count) - float(slopes @ count) ** 2 / n
    return value + sign * _quantile_above(1 - POWER) * math.sqrt(max(variance, 0.0))


def _score(name: BoundName, answers: PairedAnswers) -> float:
    """Return how far a lower limit is above 0, in standard errors."""
    p = offered_bounds(answers)[name].p_value
    return _quantile_above(min(max(p, SMALLEST_P), 0.5))


def _quantile_above(p: float) -> float:
    return -NormalDist().inv_cdf(p)


def _smallest(is_enough: Callable[[float], bool]) -> int | None:
    """Return the smallest number of items that is enough; None if not even the largest is."""
    low, high = 2, 4  # two items have a spread
    while not is_enough(high):
        low, high = high, 2 * high
        if high > MAX_ITEMS:
            return None
    while high - low > max(1, low // 200):
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high


def advise(
    result: ComparisonResult, *, by: str = "category", loss: float = 0.02,
    commands: Commands = NO_COMMANDS,
) -> AdviceResult:  # fmt: skip
    """Compute what would decide the undecided groups, and what to do next."""
    _check_loss(loss)
    groups = {"category": result.categories, "task": result.tasks, "tag": result.tags}[by]
    groups = groups or result.tasks
    groups = [result.total, *(groups if len(groups) > 1 else [])]
    undecided = [group for group in groups if group.verdict in ("cannot_tell", "no_net_loss")]
    return AdviceResult(
        loss=loss,
        decided=len(groups) - len(undecided),
        open=[_advice(group, loss) for group in undecided],
        next=[step.text(commands) for step in next_steps(result) if step.command != "plan"],
    )


def _advice(group: GroupResult, loss: float) -> Advice:
    decides = group.decides
    return Advice(
        name=group.name,
        words=sentence(group),
        items=group.items,
        detectable=group.detectable,
        items_needed=None if decides is None else decides.items,
        advice=_what_to_do(group, loss),
    )


def _what_to_do(group: GroupResult, loss: float) -> str:
    decides = group.decides
    if not group.n:
        return "evaluate both models on the same items."
    if decides is None:
        return "use items that the model before answers right; only these can be lost."
    parts = []
    if decides.flips > 1:
        proof = "" if decides.provable is None else f", to prove up to {share(decides.provable)}"
        parts.append(f"confirm {counted(decides.flips, 'flip')}{proof}")
    if decides.items is not None and decides.items > group.items:
        parts.append(f"add about {counted(decides.items - group.items, 'item')} of this kind")
    words = ", or ".join(parts) or "answer each item more than once with each model"
    return f"{words}{_wanted_loss(group, loss)}."


def _wanted_loss(group: GroupResult, loss: float) -> str:
    """Describe the items that detect a loss; detectable losses shrink at least with the root."""
    if group.detectable is None:
        return ""
    wanted = f"a loss of {100 * loss:g}%"
    if group.detectable <= loss:
        return f"; {wanted} would already have been detected"
    items = math.ceil(group.items * (group.detectable / loss) ** 2)
    return f"; {wanted} is detected with about {items:,} in total"


def _check(wish: PlanInput) -> None:
    _check_loss(wish.loss)
    make_rule({"margin": wish.margin, "level": wish.level})
    if not 0 <= wish.noise <= MAX_NOISE or not 0 <= wish.gain < 1:
        raise UsageError(
            "--noise or --gain is out of range",
            hint="--noise is at most 0.25, the noise of a coin; --gain is a share such as 0.02.",
        )
    if wish.loss + wish.gain + 4 * wish.noise > 1:
        raise UsageError(
            "loss, gain and noise together are more than all items",
            hint="choose a smaller --loss, --gain or --noise.",
        )


def _check_loss(loss: float) -> None:
    if not 0 < loss < 1:
        raise UsageError(
            f"--loss is {loss:g}", hint="give a share of all items between 0 and 1, such as 0.02."
        )
