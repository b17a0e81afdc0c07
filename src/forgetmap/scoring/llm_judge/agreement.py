"""Several judgements of the same: what they come to, and how far they agree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import median_low

from forgetmap.scoring.grades import Judged
from forgetmap.scoring.scorer import Fields


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far repeats agree.

    Attributes:
        items: with at least two judgements.
        same: share of pairs of judgements of an item that are equal; None without items.
        alpha: Krippendorff's alpha for values at equal distances: 1 is perfect, 0 is chance; None
            if all values are the same, or without items.
    """

    items: int
    same: float | None
    alpha: float | None


def agreement(repeats: Sequence[Sequence[float | None]]) -> Agreement:
    """Agreement of repeats.

    Args:
        repeats: for each item the values of its repeats; None where one failed.

    References:
        Krippendorff, Computing Krippendorff's alpha-reliability, 2011.
    """
    rows = [[value for value in row if value is not None] for row in repeats]
    rows = [row for row in rows if len(row) > 1]
    if not rows:
        return Agreement(0, None, None)
    pairs = [(one, other) for row in rows for one, other in combinations(row, 2)]
    same = sum(one == other for one, other in pairs) / len(pairs)
    return Agreement(len(rows), same, _alpha(rows))


def _alpha(rows: Sequence[Sequence[float]]) -> float | None:
    """1 - observed / expected disagreement, squared differences."""
    values = [value for row in rows for value in row]
    expected = _squares(values) / (len(values) - 1)
    if expected == 0:
        return None
    return 1 - sum(_squares(row) / (len(row) - 1) for row in rows) / expected


def _squares(values: Sequence[float]) -> float:
    """Sum of squared differences over all ordered pairs."""
    mean = sum(values) / len(values)
    return 2 * len(values) * sum((value - mean) ** 2 for value in values)


def combined(repeats: Sequence[Fields]) -> Fields:
    """The middle value of each field, the lower of two; missing only if all are."""
    names = dict.fromkeys(name for fields in repeats for name in fields)
    return {name: _middle([fields[name] for fields in repeats if name in fields]) for name in names}


def _middle(judged: Sequence[Judged]) -> Judged:
    by_score: Mapping[float, Judged] = {
        each.score: each for each in reversed(judged) if each.score is not None
    }
    scores = [each.score for each in judged if each.score is not None]
    return by_score[median_low(scores)] if scores else judged[0]
