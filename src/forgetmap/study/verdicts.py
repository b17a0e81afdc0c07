"""What is proven to be lost in each pair of a study: the verdicts of `compare`."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import narwhals as nw

from forgetmap.comparison import (
    Evidence,
    ExchangeResult,
    LimitsResult,
    Rule,
    Undecided,
    VerdictSettings,
    gather_grounds,
    judge_losses,
    undecided_reason,
)
from forgetmap.errors import PairingError
from forgetmap.pairing import Side, check_directions
from forgetmap.results import Notice
from forgetmap.stats import Reals, Verdict
from forgetmap.study.answers import StudyAnswers


@dataclass(frozen=True, slots=True)
class PairVerdict:
    """The verdict on a pair, and the limits of its loss.

    Attributes:
        verdict: the verdict.
        margin: largest acceptable loss.
        loss: what is proven to be lost.
        exchange: items that went either way while accuracy held.
        undecided: kind of the reason why nothing can be concluded, if so.
        reason: the reason, without a full stop; also if the two runs cannot be compared.
    """

    verdict: Verdict
    margin: float
    loss: LimitsResult
    exchange: ExchangeResult | None = None
    undecided: Undecided | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class _Gathered:
    """What a verdict rests on.

    Attributes:
        total: all items of a pair.
        settings: how the verdict is reached.
        against: what contradicts the results.
    """

    total: Evidence
    settings: VerdictSettings
    against: Sequence[Notice]


def judge_pairs(
    answers: StudyAnswers, weights: Reals, pairs: Sequence[tuple[str, str]], rule: Rule
) -> list[PairVerdict]:
    """Judge pairs that are examined together, by Benjamini and Hochberg.

    Args:
        answers: answers of all models.
        weights: weight of each task in the total.
        pairs: the models before and after.
        rule: rule of the comparison.
    """
    own = dict(zip(answers.tasks, weights.tolist(), strict=True))
    rows = [_gather(answers, own, pair, rule) for pair in pairs]
    known = [row for row in rows if isinstance(row, _Gathered)]
    judged = iter(judge_losses([row.total for row in known], [row.settings for row in known]))
    verdicts = []
    for row in rows:
        if isinstance(row, str):
            nothing = LimitsResult(low=None, high=None, carried_by=None, p=None)
            verdicts.append(PairVerdict("cannot_tell", rule.margin, nothing, reason=row))
            continue
        one = next(judged)
        reason = ""
        if one.undecided:
            reason = undecided_reason(one.undecided, int(row.total.kinds.items), row.against)
        verdicts.append(
            PairVerdict(one.verdict, one.margin, one.loss, one.exchange, one.undecided, reason)
        )
    return verdicts


def _gather(
    answers: StudyAnswers, weights: Mapping[str, float], pair: tuple[str, str], rule: Rule
) -> _Gathered | str:
    """Pair and count two models; returns the reason if they cannot be compared."""
    counted = {task for task, weight in weights.items() if weight > 0}
    before, after = (_only(answers.sides[name], counted) for name in pair)
    try:
        for side in (before, after):
            check_directions(side.run, side.measured.measures)
        grounds, against = gather_grounds(before, after, rule)
    except PairingError as error:
        return error.message
    total = grounds.evidence.total()
    kinds = replace(total.kinds, weights=weights)
    # A mean over tasks in which all items have equal weights is the total of `compare`.
    total = replace(total, kinds=kinds, macro=kinds.items > 0 and not kinds.has_equal_weights)
    return _Gathered(total, grounds.settings, against)


def _only(side: Side, tasks: Collection[str]) -> Side:
    """Return the results of these tasks."""
    measured = side.measured
    if measured.measures.keys() <= set(tasks):
        return side
    scores = measured.scores.filter(nw.col("task").is_in(sorted(tasks)))
    kept = replace(
        measured,
        scores=scores,
        measures={task: one for task, one in measured.measures.items() if task in tasks},
        recorded={task: one for task, one in measured.recorded.items() if task in tasks},
    )
    return replace(side, run=replace(side.run, scores=scores), measured=kept)
