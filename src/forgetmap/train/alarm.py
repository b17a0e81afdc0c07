"""Results of a look by category, and the decision on an alarm.

Every look compares its answers with those at step 0, by the limits of `compare`. Every look uses
the same items, so looks add no independent evidence: look l has alpha / (l (l + 1)) of the error
rate. Half of that is for the total, the other half is split evenly between the categories. So a
training that never loses more than the margin raises a false alarm, at any look and in any group,
with a probability of at most alpha.

From the second look on, the answers of the look before add a limit: what was wrong there and is
wrong here, but right at the start, is lost and not noise, also where as much was gained.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from forgetmap.comparison import Claim, ItemAnswers, Label, VerdictSettings, kinds_of
from forgetmap.stats import LossLimits, ScoreBound, look_share, measure_limits
from forgetmap.train.history import WatchGroup

Key = tuple[str, str]
"""Task and item."""
Scores = Mapping[Key, bool | None]
"""Whether each item is right; None without an answer."""
TOTAL = "total"


@dataclass(frozen=True, slots=True)
class AlarmRule:
    """Rule for alarms.

    Attributes:
        margin: share of all items that may be lost without an alarm.
        alpha: probability of any false alarm in a training.
        noise_floor: share of answers that batching and hardware flip one way at most, if the user
            states it.
    """

    margin: float
    alpha: float
    noise_floor: float | None = None

    def group_alpha(self, look: int, categories: int, *, is_total: bool) -> float:
        """Return the error rate of one group at one look."""
        rate = self.alpha * look_share(look)
        if categories < 2:
            return rate
        return rate / 2 if is_total else rate / (2 * categories)

    def settings(self, look: int, categories: int, *, is_total: bool) -> VerdictSettings:
        """Return how the limits of one group are computed at one look."""
        alpha = self.group_alpha(look, categories, is_total=is_total)
        return VerdictSettings(
            margin=self.margin, level=1 - 2 * alpha, noise_floor=self.noise_floor
        )


@dataclass(frozen=True, slots=True)
class KlMeans:
    """KL to and from the start model in one group."""

    to_start: float | None = None
    from_start: float | None = None


@dataclass(frozen=True, slots=True)
class WatchedItems:
    """Properties of the items of a probe.

    Attributes:
        categories: category of each task; a single category equals the total and is not listed.
        clusters: cluster of each item that has one.
    """

    categories: Mapping[str, str]
    clusters: Mapping[Key, str]


def judge_look(
    look: int,
    start: Scores,
    now: Scores,
    items: WatchedItems,
    rule: AlarmRule,
    *,
    earlier: Scores | None = None,
    kl: Mapping[str, KlMeans] | None = None,
) -> dict[str, WatchGroup]:
    """Return the results of all groups of one look, the total first.

    Args:
        look: number of the look; 0 is the start, which is not tested.
        start: scores at step 0.
        now: scores at this step.
        items: categories and clusters of the items.
        rule: rule for alarms.
        earlier: scores of the look before, if it was not the start.
        kl: KL of each group.
    """
    groups: dict[str, list[Key]] = {TOTAL: list(start)}
    for key in start:
        groups.setdefault(items.categories[key[0]], []).append(key)
    count = len(groups) - 1
    if count < 2:
        groups = {TOTAL: groups[TOTAL]}
    results = {}
    for name, keys in groups.items():
        settings = rule.settings(look, count, is_total=name == TOTAL) if look else None
        answers = [
            _answers(key, start, now, items, earlier)
            for key in keys
            if start[key] is not None and now.get(key) is not None
        ]
        missing = sum(start[key] is not None for key in keys) - len(answers)
        results[name] = _judge_group(answers, missing, settings, (kl or {}).get(name, KlMeans()))
    return results


def _answers(
    key: Key, start: Scores, now: Scores, items: WatchedItems, earlier: Scores | None
) -> ItemAnswers:
    between = None if earlier is None else earlier.get(key)
    return ItemAnswers(
        label=Label(key[0], items.categories[key[0]]),
        key="\n".join(key),
        before=(float(start[key] or 0), 1.0),
        after=(float(now[key] or 0), 1.0),
        cluster=items.clusters.get(key),
        # Without an answer at the look before, the weight of an item is 0.
        earlier=None if earlier is None else (float(between or 0), float(between is not None)),
    )


def _judge_group(
    answers: Sequence[ItemAnswers], missing: int, settings: VerdictSettings | None, kl: KlMeans
) -> WatchGroup:
    count = len(answers)
    right = [(item.before[0], item.after[0]) for item in answers]
    limits = None
    if settings is not None and answers:
        limits = _limits(Claim(kinds_of(answers), settings))
    low = 0.0 if limits is None else max(limits.low, 0.0)
    return WatchGroup(
        items=count,
        missing=missing,
        accuracy=sum(after for _, after in right) / count if count else None,
        forgotten=sum(before > after for before, after in right) / count if count else None,
        gained=sum(before < after for before, after in right) / count if count else None,
        lost_at_least=low,
        lost_at_most=None if limits is None else min(limits.high, 1.0),
        kl_to_start=kl.to_start,
        kl_from_start=kl.from_start,
        alarm=settings is not None and low > settings.margin,
    )


def _limits(claim: Claim) -> LossLimits:
    """Return the limits of the loss; that of the drop is a t limit.

    Late looks have small parts of the error rate, where the score limit of single answers is above
    a loss of the margin up to five times as often as it may be.
    """
    answers = claim.answers
    bounds = {**claim.bounds, "drop": ScoreBound(answers.sample, answers.change)}
    return measure_limits(answers, bounds, claim.settings.alpha)
