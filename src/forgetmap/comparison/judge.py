"""Verdicts of groups of items: limits of the loss against a margin, and everything beside them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from forgetmap.comparison.cells import Cells
from forgetmap.comparison.choices import AUTO, MARGIN
from forgetmap.comparison.coverage import missing_items
from forgetmap.comparison.estimators import (
    StatedNoise,
    find_estimator,
)
from forgetmap.comparison.evidence import Evidence
from forgetmap.comparison.fresh import asking_again
from forgetmap.comparison.kinds import Kinds
from forgetmap.comparison.noise import noise_words
from forgetmap.comparison.rates import count_group, count_reasons, mean_change, measure_rates
from forgetmap.comparison.result import (
    ConfirmedResult,
    CoverageResult,
    DecidesResult,
    ExchangeResult,
    FamilyResult,
    GroupResult,
    LimitsResult,
    Undecided,
    Unlucky,
)
from forgetmap.stats import (
    LEVEL,
    LOSSES,
    Bound,
    BoundName,
    LossLimits,
    PairedAnswers,
    Reals,
    ScoreBound,
    Verdict,
    decide,
    detectable_drop,
    divide_error,
    drop_upper,
    items_to_decide,
    look_share,
    loss_p,
    mcnemar_p,
    measure_exchange,
    measure_limits,
    normal_quantile,
    offered_bounds,
    reject_in_order,
    select_in_family,
    without_claim,
)

MIN_AT_POSITION = 5
"""Items at a position of the right answer, below which a number of options is left out."""


@dataclass(frozen=True, slots=True)
class VerdictSettings:
    """How a verdict is reached.

    Attributes:
        margin: largest acceptable loss.
        level: confidence level of the intervals.
        look: which look at these items this is.
        looks: number of looks, if it is fixed.
        chosen_among: number of checkpoints among which the one after was chosen by these items.
        estimator: estimator whose assumption the user states, or `auto`.
        noise_floor: share that reruns flip one way at most, if the user states it.
        selected: the run before helped to choose the items: stated, or by the sign that all are
            right.
        asked_later: flips were asked again only after an undecided comparison.
        undecided: why nothing can be concluded from these runs, if so.
    """

    margin: float = MARGIN
    level: float = LEVEL
    look: int = 1
    looks: int | None = None
    chosen_among: int = 1
    estimator: str = AUTO
    noise_floor: float | None = None
    selected: Literal["selected", "all_right"] | None = None
    asked_later: bool = True
    undecided: Undecided | None = None

    @property
    def alpha(self) -> float:
        """One-sided error of the lower limits, and of what is shown."""
        share = 1.0 if self.looks == 1 else look_share(self.look, self.looks)
        return (1 - self.level) / 2 * (share if self.look > 1 or self.looks else 1.0)

    @property
    def high_alpha(self) -> float:
        """One-sided error of the upper limits: the best of many is lucky."""
        return self.alpha / self.chosen_among


@dataclass(frozen=True)
class Claim:
    """The lower limits of a loss, before correction for other groups; a gain is a mirrored loss."""

    kinds: Kinds
    settings: VerdictSettings
    macro: bool = False

    @cached_property
    def answers(self) -> PairedAnswers:
        """Right answers of both models."""
        return self.kinds.answers(macro=self.macro)

    @cached_property
    def bounds(self) -> dict[BoundName, Bound]:
        """The lower limits that the design offers."""
        answers, settings = self.answers, self.settings
        confirmed = self.kinds.confirmed(answers.sample)
        more: dict[BoundName, Bound] = {} if confirmed is None else {"confirmed": confirmed}
        if settings.selected:
            # Every answer that helped to choose the items is lucky.
            return more
        earlier = self.kinds.earlier_stage(answers)
        if earlier is not None:
            more["earlier_stage"] = earlier
        stated = self._stated()
        if stated is not None:
            more["stated"] = stated
        return offered_bounds(answers, self.kinds.split(macro=self.macro), more)

    def _stated(self) -> Bound | None:
        """Return the limit that holds on what the user stated."""
        settings = self.settings
        if settings.noise_floor is not None:
            return StatedNoise(self.answers, settings.noise_floor)
        if settings.estimator == AUTO:
            return None
        row = find_estimator(settings.estimator)
        if row.lacks(self.kinds) is not None:
            return None
        sample = self.answers.sample
        return ScoreBound(sample, row.scores(self.kinds), row.largest(self.kinds))

    @cached_property
    def p(self) -> float:
        """Two-sided p-value of no loss; nan if nothing can be said."""
        if not self.bounds or self.settings.undecided:
            return math.nan
        return loss_p(self.bounds, asked_later=self.settings.asked_later)

    def limits(self, part: float = 1.0) -> LossLimits | None:
        """Return the limits; None if nothing can be said."""
        settings = self.settings
        if not self.bounds:
            return None
        limits = measure_limits(
            self.answers, self.bounds, settings.alpha, part=part,
            high_alpha=settings.high_alpha, asked_later=settings.asked_later,
        )  # fmt: skip
        if settings.selected:
            return replace(limits, high=1.0, drop_high=1.0)
        return limits

    @cached_property
    def _errors(self) -> dict[BoundName, float]:
        settings = self.settings
        return divide_error(self.bounds, settings.alpha, asked_later=settings.asked_later)

    @property
    def lower_alpha(self) -> float:
        """One-sided error of the drop among the lower limits."""
        return self._errors.get("drop", self.settings.alpha)


@dataclass(frozen=True, slots=True)
class Standing:
    """A claim among those that were examined with it.

    Attributes:
        q: q-value of the claim.
        part: factor of the error rate that allows for selecting the largest.
        is_selected: whether the family allows the claim.
    """

    q: float | None = None
    part: float = 1.0
    is_selected: bool = True


def judge_group(name: str, evidence: Evidence, settings: VerdictSettings) -> GroupResult:
    """Judge a group that is a claim of its own."""
    claims = _claims(evidence, settings)
    return _result(name, evidence, claims, (Standing(), Standing()), settings, None)


def judge_family(
    evidence: Mapping[str, Evidence], settings: VerdictSettings, family: str
) -> list[GroupResult]:
    """Judge groups that are examined together, by Benjamini and Hochberg.

    Args:
        evidence: evidence by the name of the group.
        settings: how verdicts are reached.
        family: kind of the groups: tasks, categories, tags or models.
    """
    return judge_together([*evidence.items()], [settings] * len(evidence), family)


def judge_together(
    groups: Sequence[tuple[str, Evidence]], settings: Sequence[VerdictSettings], family: str
) -> list[GroupResult]:
    """Judge groups with their own settings, such as several models after."""
    claims = [_claims(part, own) for (_, part), own in zip(groups, settings, strict=True)]
    error = 2 * min((own.alpha for own in settings), default=0.0)
    standings = [_standings([claim[way].p for claim in claims], error) for way in (0, 1)]
    size = sum(not math.isnan(claim[0].p) for claim in claims)
    shared = FamilyResult(name=family, size=size) if size > 1 else None
    return [
        _result(name, part, claim, both, own, shared)
        for (name, part), claim, both, own in zip(
            groups, claims, zip(*standings, strict=True), settings, strict=True
        )
    ]


@dataclass(frozen=True, slots=True)
class JudgedLoss:
    """The verdict on the loss of a group, without its counts and rates.

    Attributes:
        verdict: the verdict.
        margin: largest acceptable loss.
        loss: what is proven to be lost.
        undecided: why nothing can be concluded, if so.
        exchange: items that went either way while accuracy held.
        limits: the limits of the loss; None if nothing can be said.
    """

    verdict: Verdict
    margin: float
    loss: LimitsResult
    undecided: Undecided | None
    exchange: ExchangeResult | None
    limits: LossLimits | None


def judge_losses(
    groups: Sequence[Evidence], settings: Sequence[VerdictSettings]
) -> list[JudgedLoss]:
    """Judge the losses of groups with their own settings that are examined together."""
    claims = [_claims(part, own)[0] for part, own in zip(groups, settings, strict=True)]
    error = 2 * min((own.alpha for own in settings), default=0.0)
    standings = _standings([claim.p for claim in claims], error)
    return [_judge(claim, own) for claim, own in zip(claims, standings, strict=True)]


def _judge(claim: Claim, standing: Standing) -> JudgedLoss:
    settings = claim.settings
    limits, undecided = _limits(claim, standing), settings.undecided
    verdict = "cannot_tell" if limits is None else decide(limits, settings.margin)
    if verdict == "cannot_tell" and undecided is None:
        undecided = settings.selected
    return JudgedLoss(
        verdict=verdict,
        margin=settings.margin,
        loss=_limits_result(limits, standing, settings),
        undecided=undecided,
        exchange=_exchange(claim) if verdict == "no_net_loss" else None,
        limits=limits,
    )


def judge_stages(
    groups: Sequence[tuple[str, Evidence]], settings: Sequence[VerdictSettings]
) -> list[GroupResult]:
    """Judge the stages of a chain against the first, by Holm: any false stage is an error."""
    claims = [_claims(part, own) for (_, part), own in zip(groups, settings, strict=True)]
    both = []
    for way in (0, 1):
        p = [1.0 if math.isnan(claim[way].p) else claim[way].p for claim in claims]
        rejected = reject_in_order(p, 2 * settings[0].alpha)
        rank = np.argsort(np.argsort(p, kind="stable"), kind="stable")
        both.append(
            [
                Standing(part=1 / (len(p) - int(rank[index])), is_selected=one)
                for index, one in enumerate(rejected)
            ]
        )
    shared = FamilyResult(name="stages", size=len(groups)) if len(groups) > 1 else None
    return [
        _result(name, part, claim, (lost, gained), own, shared)
        for (name, part), claim, lost, gained, own in zip(
            groups, claims, *both, settings, strict=True
        )
    ]


def _claims(evidence: Evidence, settings: VerdictSettings) -> tuple[Claim, Claim]:
    kinds = evidence.kinds
    if not kinds.items:
        settings = replace(settings, undecided=settings.undecided or "nothing_paired")
    elif not kinds.tally("right_before").any():
        settings = replace(settings, undecided=settings.undecided or "nothing_right")
    gains = settings
    if settings.undecided == "nothing_right":
        gains = replace(settings, undecided=None)
    return (
        Claim(kinds, settings, evidence.macro),
        Claim(kinds.mirrored, gains, evidence.macro),
    )


def _standings(p: Sequence[float], error: float) -> list[Standing]:
    known = [value for value in p if not math.isnan(value)]
    if len(known) < 2:
        return [Standing() for _ in p]
    q, selected = select_in_family(p, error)
    part = max(selected, 1) / len(known)
    return [
        Standing(None if math.isnan(value) else float(value), part, bool(value <= error))
        for value in q
    ]


def _limits(claim: Claim, standing: Standing) -> LossLimits | None:
    if claim.settings.undecided:
        return None
    limits = claim.limits(standing.part)
    if limits is None or standing.is_selected:
        return limits
    return without_claim(limits)


def _result(
    name: str,
    evidence: Evidence,
    claims: tuple[Claim, Claim],
    standings: tuple[Standing, Standing],
    settings: VerdictSettings,
    family: FamilyResult | None,
) -> GroupResult:
    """Return counts, rates, limits and the verdict of one group."""
    claim, cells = claims[0], evidence.cells
    judged, gain = _judge(claim, standings[0]), _limits(claims[1], standings[1])
    verdict, undecided, loss = judged.verdict, judged.undecided, judged.limits
    return GroupResult(
        name=name,
        **count_group(cells, evidence.kinds),
        **measure_rates(claim.kinds, settings.alpha, settings.high_alpha, macro=evidence.macro),
        **_words(claim, loss, cells, standings[0].part),
        loss=judged.loss,
        gain=_limits_result(gain, standings[1], settings),
        verdict=verdict,
        margin=settings.margin,
        undecided=undecided,
        family=family,
        decides=_decides(claim, cells.first_flips, verdict, undecided)
        if verdict not in (*LOSSES, "no_material_loss")
        else None,
        exchange=judged.exchange,
        confirmed=_confirmed(claim.kinds),
        held_here=verdict == "cannot_tell" and undecided is None and _held_here(claim),
        reasons=count_reasons(cells),
        mcnemar_p=float(mcnemar_p(cells.n10, cells.n01)) if cells.n else None,
        detectable=_detectable(claim),
        coverage=CoverageResult(
            before=_covered(cells, cells.items_before), after=_covered(cells, cells.items_after)
        ),
        worst_case=_worst_case(cells, loss),
        **_changes(evidence, claim),
    )


def _limits_result(
    limits: LossLimits | None, standing: Standing, settings: VerdictSettings
) -> LimitsResult:
    if limits is None:
        return LimitsResult(low=None, high=None, carried_by=None, p=None)
    stated = None
    if limits.carried_by == "stated":
        floor = settings.noise_floor
        stated = find_estimator(settings.estimator).assumes if floor is None else noise_words(floor)
    return LimitsResult(
        assumes=stated,
        low=max(limits.low, -1.0),
        high=min(limits.high, 1.0),
        carried_by=limits.carried_by,
        p=limits.p,
        q=standing.q,
    )


def _words(claim: Claim, loss: LossLimits | None, cells: Cells, part: float) -> dict[str, Any]:
    """Return whether the loss may be called one of knowledge, and if not, why.

    Not where outcomes are not recorded: then nobody knows which answers were not given.
    """
    kinds = claim.kinds
    nones = [kinds.tally(f"none_{side}") / np.maximum(kinds.given(side), 1)
             for side in ("before", "after")]  # fmt: skip
    recorded = any(nones[side].any() for side in (0, 1))
    unanswered = kinds.sample.mean(nones[1] - nones[0]) if kinds.items and recorded else None
    words: dict[str, Any] = {
        "is_knowledge": False,
        "unlucky": None,
        "unanswered": unanswered,
        "readable_drop": _readable_drop(claim.answers, nones) if kinds.items and recorded else None,
    }
    if loss is None or loss.low <= 0:
        return words
    guessed = not np.isinf(kinds.k).all()
    if loss.carried_by not in ("drop", "tasks"):
        # These count guesses that changed for good, so the guards on the drop say nothing of them.
        by_flips = guessed and loss.carried_by != "stated"
        return words | {"unlucky": "guesses_count" if by_flips else None}
    a, luck = part * claim.lower_alpha, np.where(np.isinf(kinds.k), 0.0, 1 / kinds.k)
    scores = claim.answers.change + luck * (nones[0] - nones[1])
    if claim.answers.sample.lower(scores, a) <= 0:
        explained: Unlucky | None = "too_small" if guessed else None
        return words | {"unlucky": "unanswered" if (unanswered or 0.0) > 0 else explained}
    if not np.isnan(kinds.gold).all() and _at_equal_positions(claim, scores, a) <= 0:
        return words | {"unlucky": "letters_moved"}
    if cells.reasons.get("unknown"):
        return words | {"unlucky": "not_recorded" if guessed else None}
    return words | {"is_knowledge": True}


def _readable_drop(answers: PairedAnswers, nones: Sequence[Reals]) -> float | None:
    """Return the drop in accuracy among pairs of answers that were given on both sides.

    Args:
        answers: right answers of both models.
        nones: shares of answers that were not given, before and after.
    """
    before, after = (1 - none for none in nones)
    both = answers.sample.mean(before * after)
    return answers.sample.mean(answers.x * after - answers.y * before) / both if both else None


def _at_equal_positions(claim: Claim, scores: Reals, a: float) -> float:
    """Return the lower limit of the drop if right answers were spread evenly over positions.

    Items with options whose position is not recorded count as not changed.
    """
    kinds, count = claim.kinds, claim.kinds.count
    estimate = variance = 0.0
    for k in np.unique(kinds.k):
        of_k = kinds.k == k
        places = [of_k] if np.isinf(k) else [of_k & (kinds.gold == at) for at in range(int(k))]
        sizes = [float(count[own].sum()) for own in places]
        if min(sizes) < MIN_AT_POSITION and not np.isinf(k):
            continue
        share = sum(sizes) / kinds.items / len(places)
        for own, n in zip(places, sizes, strict=True):
            mean = float(count[own] @ scores[own]) / n
            spread = float(count[own] @ (scores[own] - mean) ** 2) / max(n - 1, 1)
            estimate += share * mean
            variance += share**2 * (spread + 1 / n) / n
    effect = claim.answers.sample.design_effect(scores)
    return estimate - normal_quantile(1 - 2 * a) * math.sqrt(variance * effect)


def _decides(
    claim: Claim, flips: int, verdict: Verdict, undecided: Undecided | None
) -> DecidesResult | None:
    """Return what would decide: items, or the flips asked again.

    Once accuracy has held, more items only show again that it held: fresh answers decide.
    """
    if undecided in ("nothing_paired", "nothing_right", "contradicted"):
        return None
    answers, settings = claim.answers, claim.settings
    items = None
    if undecided is None and verdict == "cannot_tell":
        items = items_to_decide(answers, settings.margin, claim.lower_alpha)
    return replace(asking_again(answers, flips, settings.alpha), items=items)


def _held_here(claim: Claim) -> bool:
    """Return whether accuracy held in these clusters; unseen ones may differ."""
    settings, answers = claim.settings, claim.answers
    if answers.sample.cluster is None:
        return False
    return drop_upper(answers, settings.high_alpha, unseen=False) < settings.margin


def _exchange(claim: Claim) -> ExchangeResult:
    settings = claim.settings
    moved = measure_exchange(
        claim.answers, settings.alpha, round(settings.alpha / claim.lower_alpha)
    )
    return ExchangeResult(
        noise_needed=max(moved.flips_low, 0.0),
        rose_by=moved.rose_by,
        is_large=moved.flips_low > settings.margin,
    )


def _confirmed(kinds: Kinds) -> ConfirmedResult | None:
    if kinds.fresh is None:
        return None
    flip, right_before, before, right_after, after = kinds.fresh.T
    asked = (flip > 0) & (before > 0) & (after > 0)
    held = right_before / np.maximum(before, 1) - right_after / np.maximum(after, 1)
    return ConfirmedResult(
        flips=int(kinds.count @ (flip > 0)),
        asked=int(kinds.count @ asked),
        held=float(kinds.count[asked] @ held[asked]),
    )


def _detectable(claim: Claim) -> float | None:
    if claim.kinds.items < 2:
        return None
    return min(detectable_drop(claim.answers, claim.lower_alpha), 1.0)


def _worst_case(cells: Cells, loss: LossLimits | None) -> float | None:
    """Return the largest possible loss: everything missing after was lost (Manski's bound)."""
    missing = missing_items(cells)
    if not cells.n or missing is None or loss is None:
        return None
    return min((cells.n * loss.high + missing[1]) / cells.scored_before, 1.0)


def _covered(cells: Cells, scored: int) -> float | None:
    """Return the share of the scored items of a side that are scored on both."""
    return min(cells.items / scored, 1.0) if scored else None


def _changes(evidence: Evidence, claim: Claim) -> dict[str, Any]:
    """Return mean changes of fractional scores and of the probability of the right answer."""
    if evidence.macro:
        return {"graded": None, "probability": None}
    answers, alpha, graded = claim.answers, claim.settings.alpha, evidence.graded
    scored = graded if graded is not None and graded.graded else None
    return {
        "graded": mean_change(scored, answers, alpha, "score"),
        "probability": mean_change(
            evidence.probability, answers, alpha, "probability of the right answer"
        ),
    }
