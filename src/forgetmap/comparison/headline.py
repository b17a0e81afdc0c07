"""Which number is the headline, and what a reader may conclude from it.

The rule: repeats of both models -> excess (with net beside it); repeats of the model before ->
excess_before; options logged, three or more of them and right answers balanced -> matched; other
multiple choice -> the range; open-ended -> raw. Sampled answers without repeats tell nothing:
a model disagrees with itself as well.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from forgetmap.comparison.estimators import AUTO, BRACKET, Estimator, choose, find_estimator
from forgetmap.comparison.evidence import Evidence
from forgetmap.comparison.from_counts import outer_ends
from forgetmap.comparison.result import GroupResult, Headline, Verdict
from forgetmap.results import Estimate
from forgetmap.stats import LEVEL
from forgetmap.text import counted, percent

NEGLIGIBLE_LOSS = 0.01
"""If at most this share of what was known can be lost, the words say that none was."""

NO_REPEATS = "cannot tell: noise and forgetting cannot be separated without repeats"


class Conclusion(NamedTuple):
    """A verdict and its words."""

    verdict: Verdict
    words: str


@dataclass(frozen=True, slots=True)
class HeadlinePolicy:
    """How the headline is chosen.

    Attributes:
        estimator: the one the user asks for, or `auto`.
        sampled: answers of some model were sampled; None where nobody recorded it.
        knows_options: it is recorded how many options items have.
        tasks: how many tasks lost something, of how many tested; for the total only.
    """

    estimator: str = AUTO
    sampled: bool | None = False
    knows_options: bool = True
    tasks: tuple[int, int] | None = None

    def with_headline(self, group: GroupResult, evidence: Evidence) -> GroupResult:
        """The group with its headline."""
        name = self.estimator if self.estimator != AUTO else choose(evidence, _has_value(group))
        row = find_estimator(name)
        estimates = (
            outer_ends(group.bracket_low, group.bracket_high)
            if row.is_range
            else group.estimates(name)
        )
        forgetting = estimates.forgetting
        of_known = _of_known(group, row, forgetting, evidence)
        verdict, words = self._conclude(group, row, forgetting, of_known)
        if verdict == "lost" and name == "matched" and not evidence.gold_positions_known:
            words += " and right answers spread evenly over the positions"
        headline = Headline(
            verdict=verdict,
            estimator=name,
            forgetting=forgetting,
            backward_transfer=estimates.backward_transfer,
            of_known=of_known,
            words=words,
        )
        return group.model_copy(update={"headline": headline})

    def _conclude(
        self, group: GroupResult, row: Estimator, forgetting: Estimate, of_known: Estimate
    ) -> Conclusion:
        plain = _plain_cases(group, row, forgetting)
        if plain is not None:
            return plain
        if self.sampled and not row.from_repeats and self.estimator == AUTO:
            cost = f"one more answer per item of each model ({2 * group.items:,} in all) would tell"
            return Conclusion("cannot_tell", f"{NO_REPEATS}; {cost}")
        if of_known.reason is not None:
            return Conclusion("cannot_tell", f"cannot tell: {of_known.reason}")
        assert forgetting.low is not None  # noqa: S101  # an estimate with a value has limits
        assert forgetting.high is not None  # noqa: S101
        if forgetting.high < 0:
            return Conclusion("cannot_tell", _too_little(row))
        if _is_lost(group, row, forgetting.low):
            words = _lost(group, row, forgetting, of_known) + self._over_tasks()
            return Conclusion("lost", words + _beside(group, row) + self._assumes(row))
        return _not_found(group, row, of_known)

    def _assumes(self, row: Estimator) -> str:
        if row.from_repeats:
            return ""
        assumed = [row.assumes] if row.assumes else []
        if row.name == "raw" and not self.knows_options:
            assumed.append("no lucky guesses (no item says how many options it has)")
        if self.sampled is None:
            assumed.append("greedy answers")
        return f"; assumes {' and '.join(assumed)}" if assumed else ""

    def _over_tasks(self) -> str:
        if self.tasks is None or self.tasks[1] < 2:  # one task is the total
            return ""
        return f"; {self.tasks[0]:,} of {self.tasks[1]:,} tasks at FDR 5%"


def _has_value(group: GroupResult) -> Callable[[str], bool]:
    return lambda name: group.estimates(name).forgetting.value is not None


def _of_known(
    group: GroupResult, row: Estimator, forgetting: Estimate, evidence: Evidence
) -> Estimate:
    """Forgetting as a share of what could be forgotten.

    Its limits are those of the loss divided by the known share, which is conservative: the error of
    that share is smaller and partly cancels.
    """
    on_knowledge = row.scale == "knowledge"
    known = group.known_before if on_knowledge else group.acc_before
    method = f"{forgetting.method}, of what was known"
    if known is None or forgetting.low is None or forgetting.high is None:
        return Estimate(value=None, method=method, reason=forgetting.reason or "no interval")
    if known - (_known_error(evidence) if on_knowledge else 0.0) <= 0:
        reason = "it knew no more before than guessing would"
        return Estimate(value=None, method=method, reason=reason)
    return Estimate(
        value=None if forgetting.value is None else forgetting.value / known,
        low=forgetting.low / known,
        high=min(forgetting.high / known, 1.0),
        method=method,
    )


def _known_error(evidence: Evidence) -> float:
    """Two standard errors of the share that was known beyond guessing."""
    n = evidence.cells.n
    variance = 0.0
    for k, counts in evidence.options.items():
        scale = 1.0 if math.isinf(k) else k / (k - 1)
        right = (counts.n11 + counts.n10) / counts.n if counts.n else 0.0
        variance += counts.n / n * scale**2 * right * (1 - right)
    return 2 * math.sqrt(variance / n)


def _plain_cases(group: GroupResult, row: Estimator, forgetting: Estimate) -> Conclusion | None:
    """What needs no estimate."""
    if not group.n:
        return Conclusion("cannot_tell", "cannot tell: no item is scored on both sides")
    if not group.n11 + group.n10:
        return Conclusion("cannot_tell", "cannot tell: no answer was right before")
    if not group.n10:
        most = f"at most {percent(group.forgetting.high)} of items like these"
        return Conclusion("none_lost", f"nothing was lost: no item was forgotten ({most})")
    if row.name == "published":
        value = percent(group.published.forgetting.value)
        return Conclusion(
            "cannot_tell",
            f"cannot tell: the published adjustment says {value} of all items, without an interval "
            "and not 0 where nothing is lost",
        )
    if not row.is_range and forgetting.value is None:
        return Conclusion("cannot_tell", f"cannot tell: no {row.name} here: {forgetting.reason}")
    return None


def _is_lost(group: GroupResult, row: Estimator, low: float) -> bool:
    """Counts are plain to see; else the test decides, or the interval that agrees with it."""
    if row.is_count:
        return group.n10 > 0
    if row.name == "excess" and group.p_lost is not None:
        return group.p_lost <= (1 - LEVEL) / 2
    return low > 0


def _lost(group: GroupResult, row: Estimator, forgetting: Estimate, of_known: Estimate) -> str:
    limits = f"({percent(_positive(of_known.low))} to {percent(of_known.high)})"
    knew = _of_what(row)
    if row.is_range:
        low, high = group.bracket_low.forgetting.value, group.bracket_high.forgetting.value
        return (
            f"lost between {percent(low)} and {percent(high)} of all items: {limits[1:-1]} {knew}"
        )
    loss = row.sentence.format(percent(forgetting.value))
    return f"{loss}: {percent(of_known.value)} {limits} {knew}"


def loss_sentence(share: float | None) -> str:
    """A loss beyond noise whose size was tested, not bounded: where repeats were spent in looks."""
    return f"lost {percent(share)} of all answers beyond the noise floor"


def _of_what(row: Estimator) -> str:
    on_knowledge = row.scale == "knowledge"
    return "of what it knew beyond guessing" if on_knowledge else "of what it had right"


def _beside(group: GroupResult, row: Estimator) -> str:
    """What `net` says, where repeats and options allow both."""
    net = group.net.forgetting
    if row.name != "excess" or net.value is None or group.known_before == group.acc_before:
        return ""
    limits = f"({percent(net.low)} to {percent(net.high)})"
    return f"; on the scale of knowledge {percent(net.value)} {limits} of all items"


def _not_found(group: GroupResult, row: Estimator, of_known: Estimate) -> Conclusion:
    if of_known.high is not None and of_known.high < NEGLIGIBLE_LOSS:
        luck = group.bracket_high.forgetting.high if row.name in ("matched", BRACKET) else None
        most = "" if luck is None else f"; {percent(luck)} of all items if none of it was luck"
        return Conclusion(
            "none_lost", f"no loss found: at most {percent(of_known.high)} {_of_what(row)}{most}"
        )
    items = counted(group.items, "item")
    if row.is_range:
        most = percent(of_known.high)
        return Conclusion(
            "cannot_tell",
            "cannot tell: luck and loss cannot be separated here; at most "
            f"{most} {_of_what(row)} was lost",
        )
    if group.detectable is None:
        words = f"cannot tell: {items} would not detect even the loss of all that was known"
        return Conclusion("cannot_tell", words)
    least = percent(group.detectable)
    return Conclusion("cannot_tell", f"cannot tell: {items} detect no loss below {least}")


def _too_little(row: Estimator) -> str:
    if row.from_repeats:
        return "cannot tell: the models differ by less than the noise floor"
    return (
        "cannot tell: fewer items were forgotten than by luck alone, so guesses are not as blind "
        "as assumed"
    )


def _positive(value: float | None) -> float | None:
    return None if value is None else max(value, 0.0)
