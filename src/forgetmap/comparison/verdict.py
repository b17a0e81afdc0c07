"""Verdicts: a loss and its interval compared with a margin, and the sentence for it.

The estimator: repeats of both models -> excess (with net beside it); repeats of the model before ->
excess_before; options logged, three or more of them and right answers balanced -> matched; other
multiple choice -> the range; open-ended -> raw. Sampled answers without repeats prove nothing,
because answers of one model vary as well.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from forgetmap.comparison.choices import MARGIN, NOISE_FLOOR
from forgetmap.comparison.estimators import AUTO, Estimator, choose, find_estimator
from forgetmap.comparison.evidence import Evidence
from forgetmap.comparison.loss import Loss, measure_loss, measure_total
from forgetmap.comparison.result import (
    DecidesResult,
    FamilyResult,
    GroupResult,
    Headline,
    PartResult,
    Verdict,
)
from forgetmap.comparison.words import PART_WORDS
from forgetmap.results import Estimate, outer_ends
from forgetmap.stats import FDR, LEVEL, LOSSES, items_to_decide, normal_quantile, selected_level
from forgetmap.text import counted, limit, percent, share

NO_REPEATS = "noise and forgetting cannot be separated without repeats"
BEYOND_NOISE = "all answers beyond the noise floor"
"""Denominator of a loss that is estimated from repeats."""
TOO_MUCH_NOISE = (
    "fewer answers were lost than noise explains: the model after is more consistent than the "
    "assumed noise"
)
NOT_BLIND = "fewer items were forgotten than by luck alone: guesses are not as blind as assumed"
LUCK_FREE = ("latent", "matched")
"""Estimators that remove luck; a negative loss shows that they remove too much."""
CLOSE = 1.5
"""Luck ratio below which the sentence states how much luck would explain the loss."""


@dataclass(frozen=True, slots=True)
class Policy:
    """The rules of a verdict.

    Attributes:
        estimator: the requested estimator, or `auto`.
        sampled: answers of some model were sampled; None if it is not recorded.
        knows_options: the number of options of items is recorded.
        margin: largest acceptable loss.
        noise_floor: assumed noise floor, if the data do not show it.
        level: confidence level of the intervals.
        contradiction: what a log states and its results contradict; then nothing is concluded.
    """

    estimator: str = AUTO
    sampled: bool | None = False
    knows_options: bool = True
    margin: float = MARGIN
    noise_floor: float = NOISE_FLOOR
    level: float = LEVEL
    contradiction: str | None = None


@dataclass(frozen=True, slots=True)
class Claim:
    """The loss of a group, before correction for other groups.

    Attributes:
        row: the estimator of the headline.
        evidence: evidence of the group.
        loss: its loss.
        reason: why nothing can be concluded, if so.
    """

    row: Estimator
    evidence: Evidence
    loss: Loss
    reason: str | None = None

    @property
    def p(self) -> float:
        """Two-sided p-value of no loss; nan if there is none."""
        return math.nan if self.loss.p is None or self.reason else min(1.0, 2 * self.loss.p)


@dataclass(frozen=True, slots=True)
class Standing:
    """A group among the others that were examined with it.

    Attributes:
        family: the family of groups.
        q: q-value of the group, by Benjamini and Hochberg.
        called: number of groups of the family that are called lost.
    """

    family: FamilyResult
    q: float
    called: int


def make_claim(group: GroupResult, evidence: Evidence, policy: Policy) -> Claim:
    """Compute the loss of a group under the estimator that the data allow."""
    name = policy.estimator if policy.estimator != AUTO else choose(evidence, _has_value(group))
    row = find_estimator(name)
    lacking = row.lacks(evidence)
    reason = policy.contradiction or _blocked(group, row, lacking, policy)
    if lacking is not None:
        missing = Estimate.missing(name, lacking)
        return Claim(row, evidence, Loss(missing, missing, missing), reason)
    loss = measure_loss(row, evidence, policy.noise_floor)
    if reason is None and (loss.total.high or 0.0) < 0:
        reason = NOT_BLIND if row.name in LUCK_FREE else _noise_reason(row)
    return Claim(row, evidence, loss, reason)


def select(claim: Claim, standing: Standing | None, policy: Policy) -> tuple[Claim, bool]:
    """Return the claim with bounds that hold after selection, and whether selection rejected it.

    A group of a family is called lost only if its q-value is small, and its "at least" uses a level
    that allows for selecting the largest losses (Benjamini and Yekutieli 2005).
    """
    low = claim.loss.total.low
    if standing is None or low is None or low <= 0:
        return claim, False
    if not _is_called(standing):
        return _not_lost(claim), True
    level = selected_level(standing.called, standing.family.size, policy.level)
    strict = measure_total(claim.row, replace(claim.evidence, level=level), policy.noise_floor)
    if strict.low is None or strict.low <= 0:
        return _not_lost(claim), True
    total = claim.loss.total.model_copy(update={"low": strict.low})
    return replace(claim, loss=replace(claim.loss, total=total)), False


def _is_called(standing: Standing | None) -> bool:
    """Return whether a group may claim a loss among the others of its family."""
    return standing is None or standing.q <= FDR


def _not_lost(claim: Claim) -> Claim:
    total = claim.loss.total.model_copy(update={"low": 0.0})
    return replace(claim, loss=replace(claim.loss, total=total))


def decide(loss: Estimate, margin: float) -> Verdict:
    """Return the verdict that the bounds allow: lost if and only if the lower one is above 0."""
    if loss.low is None or loss.high is None or math.isnan(loss.high):
        return "cannot_tell"
    if loss.high < margin:
        return "small_loss" if loss.low > 0 else "no_material_loss"
    return "lost" if loss.low > 0 else "cannot_tell"


def conclude(
    group: GroupResult, claim: Claim, policy: Policy, standing: Standing | None = None
) -> GroupResult:
    """Return the group with its verdict, the basis of it, and the sentence."""
    claim, is_aside = select(claim, standing, policy)
    loss, row, reason = claim.loss, claim.row, claim.reason
    verdict: Verdict = "cannot_tell" if reason else decide(loss.total, policy.margin)
    parts = {
        name: _part(getattr(loss, name), policy.margin, reason, is_called=_is_called(standing))
        for name in ("knowledge", "answering")
    }
    update = {
        "verdict": verdict,
        "margin": policy.margin,
        "family": None if standing is None else standing.family,
        "decides": _decides(group, claim, verdict, policy),
        "noise_assumed": loss.noise_assumed,
        "guess_rate_needed": loss.guess_rate,
        "luck_ratio_needed": loss.luck_ratio,
        **parts,
    }
    group = group.model_copy(update=update)
    among = _among(group, standing, is_aside=is_aside)
    estimates = (
        outer_ends(group.bracket_low, group.bracket_high)
        if row.is_range
        else group.estimates(row.name)
    )
    headline = Headline(
        verdict=verdict,
        estimator=row.name,
        forgetting=loss.total,
        backward_transfer=estimates.backward_transfer,
        of_known=_of_known(group, row, loss.total, claim.evidence),
        words=_words(group, claim, policy, among),
        note=_note(group, claim, policy, among),
        rests_on=_rests_on(group, claim, policy),
    )
    return group.model_copy(update={"headline": headline})


def _noise_reason(row: Estimator) -> str | None:
    """Return why a loss is below 0: too much noise subtracted, unless both models have repeats."""
    return None if row.name in ("excess", "net") else TOO_MUCH_NOISE


def _part(estimate: Estimate, margin: float, reason: str | None, *, is_called: bool) -> PartResult:
    """Return a part of the loss; no part is significant if the whole is not."""
    if not is_called and estimate.low is not None:
        estimate = estimate.model_copy(update={"low": min(estimate.low, 0.0)})
    verdict: Verdict = "cannot_tell" if reason else decide(estimate, margin)
    return PartResult(**estimate.model_dump(), verdict=verdict)


def _has_value(group: GroupResult) -> Callable[[str], bool]:
    return lambda name: group.estimates(name).forgetting.value is not None


def _blocked(group: GroupResult, row: Estimator, lacking: str | None, policy: Policy) -> str | None:
    """Return why nothing can be concluded whatever the numbers are, if so."""
    if not group.n:
        return "no item is scored on both sides"
    if not group.n11 + group.n10:
        return "no answer was right before"
    if row.name == "published":
        value = percent(group.published.forgetting.value)
        return (
            f"the published adjustment gives {value} of all items, without an interval and not 0 "
            "if nothing is lost"
        )
    if lacking is not None:
        return lacking if row.is_range else f"{row.name} is not available: {lacking}"
    if policy.sampled and not row.from_repeats and policy.estimator == AUTO:
        return NO_REPEATS
    return None


def _decides(
    group: GroupResult, claim: Claim, verdict: Verdict, policy: Policy
) -> DecidesResult | None:
    """Return what would decide an open verdict with 80 % probability."""
    if verdict != "cannot_tell":
        return None
    if claim.reason == NO_REPEATS:
        return DecidesResult(items=None, repeats=2)
    total = claim.loss.total
    if claim.reason:
        return DecidesResult(items=None, repeats=None)
    return items_that_decide(total, group.items, policy, floor=claim.loss.noise_assumed or 0.0)


def items_that_decide(
    loss: Estimate, items: int, policy: Policy, *, floor: float = 0.0
) -> DecidesResult:
    """Return the number of items that would decide, assuming that the estimate is true.

    Args:
        loss: the loss with its interval, at the level of the policy.
        items: number of items behind it.
        policy: margin and level.
        floor: value that the lower bound must exceed.
    """
    if loss.value is None or loss.low is None or loss.high is None:
        return DecidesResult(items=None, repeats=None)
    error = (loss.high - loss.low) / (2 * normal_quantile(policy.level))
    needed = items_to_decide(loss.value, error, items, policy.margin, floor=floor)
    return DecidesResult(items=needed, repeats=None)


def _of_known(
    group: GroupResult, row: Estimator, forgetting: Estimate, evidence: Evidence
) -> Estimate:
    """Return forgetting as a share of what could be forgotten.

    Its bounds are those of the loss divided by the known share. This is conservative: the error of
    that share is smaller and partly cancels.
    """
    on_knowledge = row.scale == "knowledge"
    known = group.known_before if on_knowledge else group.acc_before
    method = f"{forgetting.method}, of what was known"
    if known is None or forgetting.low is None or forgetting.high is None:
        return Estimate(value=None, method=method, reason=forgetting.reason or "no interval")
    if known - (_known_error(evidence) if on_knowledge else 0.0) <= 0:
        reason = "it knew no more before than by guessing"
        return Estimate(value=None, method=method, reason=reason)
    return Estimate(
        value=None if forgetting.value is None else forgetting.value / known,
        low=forgetting.low / known,
        high=min(forgetting.high / known, 1.0),
        method=method,
    )


def _known_error(evidence: Evidence) -> float:
    """Return two standard errors of the share known beyond guessing."""
    n = evidence.cells.n
    variance = 0.0
    for k, counts in evidence.options.items():
        scale = 1.0 if math.isinf(k) else k / (k - 1)
        right = (counts.n11 + counts.n10) / counts.n if counts.n else 0.0
        variance += counts.n / n * scale**2 * right * (1 - right)
    return 2 * math.sqrt(variance / n)


def _words(group: GroupResult, claim: Claim, policy: Policy, among: str) -> str:
    """Return the sentence of a verdict."""
    aside = f"; {among}" if among else ""
    if group.verdict == "cannot_tell":
        return _undecided(group, claim, policy) + aside
    words = decided_sentence(group.verdict, claim.loss.total, policy.margin, _noun(claim))
    if group.verdict == "no_material_loss":
        return words + aside
    return words + _parts(group) + aside + _assumes(group, claim, policy)


def decided_sentence(
    verdict: Verdict, loss: Estimate, margin: float, noun: str = BEYOND_NOISE
) -> str:
    """Return the sentence of a decided verdict: "at least" the lower bound, "at most" the upper."""
    accepted, high = f"{100 * margin:g}%", f"at most {limit(loss.high, margin)}"
    if verdict == "no_material_loss":
        return f"no loss beyond {accepted}: {high} of {noun}"
    low = f"lost at least {limit(loss.low, margin)}"
    if verdict == "small_loss":
        return f"{low}, {high} of {noun}, within the margin of {accepted}"
    more = f", more than the margin of {accepted}" if (loss.low or 0.0) > margin else ""
    value = "" if loss.value is None else f"estimate {share(loss.value)}, "
    return f"{low} of {noun}{more} ({value}{high})"


def _parts(group: GroupResult) -> str:
    """Describe what is no longer known and no longer answered, if it is significant."""
    parts = {name: getattr(group, name) for name in PART_WORDS}
    if all(part.value is None and part.low is None for part in parts.values()):
        return ""
    if parts["answering"].value == 0 and not (parts["answering"].low or 0) > 0:
        return ""
    sure = [name for name, part in parts.items() if part.low is not None and part.low > 0]
    if not sure:
        return ""
    words = [
        f"{share(parts[name].value)} {PART_WORDS[name]}"
        if parts[name].value is not None
        else f"at least {share(parts[name].low)} {PART_WORDS[name]}"
        for name in sure
    ]
    rest = "; no loss of knowledge is shown" if sure == ["answering"] else ""
    return f": {', '.join(words)}{rest}"


def _undecided(group: GroupResult, claim: Claim, policy: Policy) -> str:
    between = _between(claim, policy)
    note = _open_note(group, claim, policy)
    return f"cannot tell: {'; '.join(part for part in (between, note) if part)}"


def _between(claim: Claim, policy: Policy) -> str | None:
    """Return the interval of the loss as a sentence; None without bounds."""
    total = claim.loss.total
    if claim.reason or total.low is None or total.high is None:
        return None
    high = limit(total.high, policy.margin)
    return f"between {share(total.low)} and {high} of {_noun(claim)} may be lost"


def _open_note(group: GroupResult, claim: Claim, policy: Policy) -> str:
    """Return why there is no verdict, or what would decide."""
    if claim.reason is not None:
        return f"{claim.reason}{_cost(group, claim)}"
    if _between(claim, policy) is None:
        return claim.loss.total.reason or "no bounds"
    notes = []
    if group.decides is not None and group.decides.items is not None:
        notes.append(f"about {counted(group.decides.items, 'item')} would decide")
    elif claim.row.is_range:
        notes.append(
            "more items would not narrow the range: record which options are chosen, or repeat"
        )
    if group.detectable is not None and group.detectable > policy.margin:
        smallest = share(group.detectable)
        notes.append(f"{counted(group.items, 'item')} cannot detect a loss below {smallest}")
    return "; ".join(notes)


def _among(group: GroupResult, standing: Standing | None, *, is_aside: bool) -> str:
    """Return the significance of a loss within its family; empty without a loss."""
    if standing is None or not (is_aside or group.verdict in LOSSES):
        return ""
    family = standing.family
    of = f"significant among {family.size:,} {family.name} (q = {standing.q:.2g})"
    return f"not {of}" if is_aside else of


def _note(group: GroupResult, claim: Claim, policy: Policy, among: str) -> str | None:
    """Return what a reader must know besides verdict and bounds, if anything."""
    notes = [_open_note(group, claim, policy)] if group.verdict == "cannot_tell" else []
    return "; ".join([*notes, *([among] if among else [])]) or None


def _rests_on(group: GroupResult, claim: Claim, policy: Policy) -> str:
    """Return the basis of the verdict: items, estimator, assumptions."""
    answers = "" if group.n == group.items else f" with {counted(group.n, 'pair')} of answers"
    clusters = claim.evidence.cluster_count
    # Answers to one item are also a cluster.
    within = f" in {counted(clusters, 'cluster')}" if clusters and clusters < group.items else ""
    estimator = f"estimator {claim.row.name} ({claim.row.label})"
    assumed = "" if claim.reason else _assumes(group, claim, policy)
    return f"{counted(group.items, 'item')}{within}{answers}; {estimator}{assumed}"


def _assumes(group: GroupResult, claim: Claim, policy: Policy) -> str:
    """Return the assumptions of the claim."""
    row = claim.row
    if row.from_repeats:
        return f"; assumes {row.assumes}" if row.assumes else ""
    assumed = [row.assumes] if row.assumes and claim.loss.luck_ratio is not None else []
    if row.name == "raw" and not policy.knows_options:
        assumed.append("no lucky guesses (the number of options is not recorded)")
    if group.noise_assumed:
        assumed.append(f"a noise floor of at most {percent(group.noise_assumed)}")
    if policy.sampled is None and group.noise_assumed is not None:
        assumed.append("greedy answers")
    if row.name == "matched" and not claim.evidence.gold_positions_known:
        assumed.append("right answers spread evenly over the positions")
    words = f"; assumes {_join(assumed)}" if assumed else ""
    return words + _luck_words(claim)


def _luck_words(claim: Claim) -> str:
    """State how much luck would explain the loss, if little is enough."""
    ratio, rate = claim.loss.luck_ratio, claim.loss.guess_rate
    if ratio is None or not 1 < ratio < CLOSE:
        return ""
    if rate is None:
        times = f"{ratio:.2g} times as often as any other"
        return f"; holds unless the right option is guessed more than {times}"
    (k,) = {k for k, counts in claim.evidence.options.items() if counts.n}
    blind = percent(1 / k)
    return (
        f"; holds unless more than {percent(rate)} of the guesses were lucky (blind guesses: "
        f"{blind})"
    )


def _cost(group: GroupResult, claim: Claim) -> str:
    if claim.reason != NO_REPEATS:
        return ""
    return f"; one more answer per item of each model ({2 * group.items:,} in total) would tell"


def _noun(claim: Claim) -> str:
    return BEYOND_NOISE if claim.row.from_repeats else "all items"


def _join(parts: list[str]) -> str:
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 2 else parts)
