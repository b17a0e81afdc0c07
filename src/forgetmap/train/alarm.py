"""Results of a look by category, and the decision on an alarm.

Every look uses the same items, so looks add no independent evidence: look l is tested alone, at
level alpha / (l (l + 1)). Half of that is for the total, the other half is split evenly between the
categories. So a training that never forgets more than the margin raises a false alarm, at any look
and in any group, with a probability of at most alpha.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from forgetmap.stats import look_alpha, lower_loss_limit
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
        margin: share of all items that may be forgotten without an alarm.
        noise_floor: share of answers that batching and hardware flip one way.
        alpha: probability of any false alarm in a training.
    """

    margin: float
    noise_floor: float
    alpha: float

    def group_alpha(self, look: int, categories: int, *, is_total: bool) -> float:
        """Return the test level of one group at one look."""
        rate = look_alpha(look, self.alpha)
        if categories < 2:
            return rate
        return rate / 2 if is_total else rate / (2 * categories)


@dataclass(frozen=True, slots=True)
class KlMeans:
    """KL to and from the start model in one group."""

    to_start: float | None = None
    from_start: float | None = None


def judge_look(
    look: int,
    start: Scores,
    now: Scores,
    categories: Mapping[str, str],
    rule: AlarmRule,
    kl: Mapping[str, KlMeans] | None = None,
) -> dict[str, WatchGroup]:
    """Return the results of all groups of one look, the total first.

    Args:
        look: number of the look; 0 is the start, which is not tested.
        start: scores at step 0.
        now: scores at this step.
        categories: category of each task; a single category equals the total and is not listed.
        rule: rule for alarms.
        kl: KL of each group.
    """
    groups: dict[str, list[Key]] = {TOTAL: list(start)}
    for key in start:
        groups.setdefault(categories[key[0]], []).append(key)
    count = len(groups) - 1
    results = {}
    for name, keys in groups.items():
        if name != TOTAL and count < 2:
            continue
        alpha = rule.group_alpha(look, count, is_total=name == TOTAL) if look else None
        results[name] = _judge_group(keys, start, now, alpha, rule, (kl or {}).get(name, KlMeans()))
    return results


def _judge_group(
    keys: Sequence[Key],
    start: Scores,
    now: Scores,
    alpha: float | None,
    rule: AlarmRule,
    kl: KlMeans,
) -> WatchGroup:
    pairs = [
        (before, after)
        for before, after in ((start[key], now.get(key)) for key in keys)
        if before is not None and after is not None
    ]
    scored = sum(start[key] is not None for key in keys)
    lost = [float(before and not after) for before, after in pairs]
    count = len(pairs)
    low = lower_loss_limit(lost, alpha) if alpha is not None else 0.0
    at_least = max(0.0, low - rule.noise_floor)
    return WatchGroup(
        items=count,
        missing=scored - count,
        accuracy=sum(after for _, after in pairs) / count if count else None,
        forgotten=sum(lost) / count if count else None,
        forgotten_at_least=at_least,
        gained=sum(after and not before for before, after in pairs) / count if count else None,
        kl_to_start=kl.to_start,
        kl_from_start=kl.from_start,
        alarm=at_least > rule.margin,
    )
