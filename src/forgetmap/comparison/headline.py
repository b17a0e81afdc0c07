"""Which number is the headline, and what a reader may conclude from it.

The rule: repeats of both models -> excess (with net beside it); repeats of the model before ->
excess_before; options logged, three or more of them and right answers balanced -> matched; other
multiple choice -> the bracket; open-ended -> raw. Sampled answers without repeats tell nothing:
a model disagrees with itself as well.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from forgetmap.comparison.choice_counts import PAIR
from forgetmap.comparison.evidence import Evidence
from forgetmap.comparison.result import Estimator, GroupResult, Headline, Verdict
from forgetmap.results import Estimate, Estimates
from forgetmap.stats import LEVEL
from forgetmap.text import counted, percent

NEGLIGIBLE = 0.01
"""If at most this share of what was known can be lost, the words say that none was."""

KNOWLEDGE = ("matched", "bracket", "latent", "upper", "net")
"""Estimators on the scale of knowledge; the others are on that of answers."""

FROM_REPEATS = ("excess", "excess_before", "net")
"""Estimators that measure self-churn instead of assuming how a model guesses."""

ASSUMES = {
    "matched": "blind guesses where it does not know",
    "bracket": "guessing habits that did not move",
    "latent": "blind guesses, all redrawn",
}
CHURN = "cannot tell: self-churn and forgetting cannot be separated without repeats"


class Found(NamedTuple):
    """A verdict and its words."""

    verdict: Verdict
    words: str


@dataclass(frozen=True, slots=True)
class Judge:
    """How the headline is chosen.

    Attributes:
        asked: the estimator the user wants, or `auto`.
        sampled: answers of some model were sampled; None where nobody recorded it.
        knows_options: it is recorded how many options items have.
        tasks: how many tasks lost something, of how many tested; for the total only.
    """

    asked: Estimator = "auto"
    sampled: bool | None = False
    knows_options: bool = True
    tasks: tuple[int, int] | None = None

    def with_headline(self, group: GroupResult, found: Evidence) -> GroupResult:
        """The group with its headline."""
        name = self.asked if self.asked != "auto" else choose(group, found)
        forgetting, transfer = _headline_estimates(group, name)
        of_known = _of_known(group, name, forgetting, found)
        verdict, words = self._conclude(group, name, forgetting, of_known)
        if verdict == "lost" and name == "matched" and not found.places_known:
            words += " and right answers spread evenly over the places"
        headline = Headline(
            verdict=verdict,
            estimator=name,
            forgetting=forgetting,
            backward_transfer=transfer,
            of_known=of_known,
            words=words,
        )
        return group.model_copy(update={"headline": headline})

    def _conclude(
        self, group: GroupResult, name: str, forgetting: Estimate, of_known: Estimate
    ) -> Found:
        plain = _plain_cases(group, name, forgetting)
        if plain is not None:
            return plain
        if self.sampled and name not in FROM_REPEATS and self.asked == "auto":
            cost = f"one more answer per item of each model ({2 * group.items:,} in all) would tell"
            return Found("cannot_tell", f"{CHURN}; {cost}")
        if of_known.reason is not None:
            return Found("cannot_tell", f"cannot tell: {of_known.reason}")
        assert forgetting.low is not None  # noqa: S101  # an estimate with a value has limits
        assert forgetting.high is not None  # noqa: S101
        if forgetting.high < 0:
            return Found("cannot_tell", _too_little(name))
        if _is_lost(group, name, forgetting.low):
            words = _lost(group, name, forgetting, of_known) + self._over_tasks()
            return Found("lost", words + _beside(group, name) + self._assumes(name))
        return _not_found(group, name, of_known)

    def _assumes(self, name: str) -> str:
        if name in FROM_REPEATS:
            return ""
        assumed = [ASSUMES[name]] if name in ASSUMES else []
        if name == "raw" and not self.knows_options:
            assumed.append("no lucky guesses (no item says how many options it has)")
        if self.sampled is None:
            assumed.append("greedy answers")
        return f"; assumes {' and '.join(assumed)}" if assumed else ""

    def _over_tasks(self) -> str:
        if self.tasks is None or self.tasks[1] < 2:  # one task is the total
            return ""
        return f"; {self.tasks[0]:,} of {self.tasks[1]:,} tasks at FDR 5%"


def choose(group: GroupResult, found: Evidence) -> str:
    """The estimator that the data allow."""
    if group.excess.forgetting.value is not None:
        return "excess"
    if group.excess_before.value is not None:
        return "excess_before"
    if all(math.isinf(k) for k in found.options):
        return "raw"
    identified = PAIR not in found.options and group.matched.forgetting.value is not None
    return "matched" if identified else "bracket"


def _headline_estimates(group: GroupResult, name: str) -> tuple[Estimate, Estimate]:
    if name == "raw":
        return group.forgetting, group.backward_transfer
    if name == "excess_before":
        nothing = Estimate(value=None, method=name, reason="says nothing of what was gained")
        return group.excess_before, nothing
    if name == "bracket":
        return (
            _outer(group.bracket_low.forgetting, group.bracket_high.forgetting),
            _outer(group.bracket_low.backward_transfer, group.bracket_high.backward_transfer),
        )
    both: Estimates = getattr(group, name)
    return both.forgetting, both.backward_transfer


def _outer(low: Estimate, high: Estimate) -> Estimate:
    """Both ends of a bracket and the uncertainty of each."""
    method = f"from {low.method} to {high.method}"
    reason = low.reason or "guesses may be redrawn or repeated: the truth lies between the ends"
    return Estimate(value=None, low=low.low, high=high.high, method=method, reason=reason)


def _of_known(group: GroupResult, name: str, forgetting: Estimate, found: Evidence) -> Estimate:
    """Forgetting as a share of what could be forgotten.

    Its limits are those of the loss divided by the known share, which is conservative: the error of
    that share is smaller and partly cancels.
    """
    on_knowledge = name in KNOWLEDGE
    known = group.known_before if on_knowledge else group.acc_before
    method = f"{forgetting.method}, of what was known"
    if known is None or forgetting.low is None or forgetting.high is None:
        return Estimate(value=None, method=method, reason=forgetting.reason or "no interval")
    if known - (_known_error(found) if on_knowledge else 0.0) <= 0:
        reason = "it knew no more before than guessing would"
        return Estimate(value=None, method=method, reason=reason)
    return Estimate(
        value=None if forgetting.value is None else forgetting.value / known,
        low=forgetting.low / known,
        high=min(forgetting.high / known, 1.0),
        method=method,
    )


def _known_error(found: Evidence) -> float:
    """Two standard errors of the share that was known beyond guessing."""
    n = found.cells.n
    variance = 0.0
    for k, counts in found.options.items():
        scale = 1.0 if math.isinf(k) else k / (k - 1)
        right = (counts.n11 + counts.n10) / counts.n if counts.n else 0.0
        variance += counts.n / n * scale**2 * right * (1 - right)
    return 2 * math.sqrt(variance / n)


def _plain_cases(group: GroupResult, name: str, forgetting: Estimate) -> Found | None:
    """What needs no estimate."""
    if not group.n:
        return Found("cannot_tell", "cannot tell: no item is scored on both sides")
    if not group.n11 + group.n10:
        return Found("cannot_tell", "cannot tell: no answer was right before")
    if not group.n10:
        most = f"at most {percent(group.forgetting.high)} of items like these"
        return Found("none_lost", f"nothing was lost: no right answer turned wrong ({most})")
    if name == "published":
        value = percent(group.published.forgetting.value)
        return Found(
            "cannot_tell",
            f"cannot tell: the published adjustment says {value} of all items, without an interval "
            "and not 0 where nothing is lost",
        )
    if name != "bracket" and forgetting.value is None:
        return Found("cannot_tell", f"cannot tell: no {name} here: {forgetting.reason}")
    return None


def _is_lost(group: GroupResult, name: str, low: float) -> bool:
    """Raw losses are plain to see; else the test decides, or the interval that agrees with it."""
    if name in ("raw", "upper"):
        return group.n10 > 0
    if name == "excess" and group.p_lost is not None:
        return group.p_lost <= (1 - LEVEL) / 2
    return low > 0


def _lost(group: GroupResult, name: str, forgetting: Estimate, of_known: Estimate) -> str:
    limits = f"({percent(_positive(of_known.low))} to {percent(of_known.high)})"
    knew = _of_what(name)
    share = f"{percent(of_known.value)} {limits} {knew}"
    if name == "bracket":
        low, high = group.bracket_low.forgetting.value, group.bracket_high.forgetting.value
        return (
            f"lost between {percent(low)} and {percent(high)} of all items: {limits[1:-1]} {knew}"
        )
    beyond = {
        "excess": "lost at least {} of all answers beyond self-churn",
        "excess_before": "lost {} of all answers beyond the self-churn of the model before",
        "net": "lost {} of all items beyond self-churn",
    }
    said = beyond.get(name, "lost {} of all items").format(percent(forgetting.value))
    return f"{said}: {share}"


def _of_what(name: str) -> str:
    return "of what it knew beyond guessing" if name in KNOWLEDGE else "of what it had right"


def _beside(group: GroupResult, name: str) -> str:
    """What `net` says, where repeats and options allow both."""
    net = group.net.forgetting
    if name != "excess" or net.value is None or group.known_before == group.acc_before:
        return ""
    limits = f"({percent(net.low)} to {percent(net.high)})"
    return f"; on the scale of knowledge {percent(net.value)} {limits} of all items"


def _not_found(group: GroupResult, name: str, of_known: Estimate) -> Found:
    if of_known.high is not None and of_known.high < NEGLIGIBLE:
        luck = group.bracket_high.forgetting.high if name in ("matched", "bracket") else None
        most = "" if luck is None else f"; {percent(luck)} of all items if none of it was luck"
        return Found(
            "none_lost", f"no loss found: at most {percent(of_known.high)} {_of_what(name)}{most}"
        )
    items = counted(group.items, "item")
    if name == "bracket":
        most = percent(of_known.high)
        return Found(
            "cannot_tell",
            "cannot tell: luck and loss cannot be separated here; at most "
            f"{most} {_of_what(name)} was lost",
        )
    if group.detectable is None:
        words = f"cannot tell: {items} would not detect even the loss of all that was known"
        return Found("cannot_tell", words)
    least = percent(group.detectable)
    return Found("cannot_tell", f"cannot tell: {items} detect no loss below {least}")


def _too_little(name: str) -> str:
    if name in FROM_REPEATS:
        return "cannot tell: the models differ less than each differs from itself"
    return (
        "cannot tell: fewer right answers turned wrong than luck alone would turn, so guesses are "
        "not as blind as assumed"
    )


def _positive(value: float | None) -> float | None:
    return None if value is None else max(value, 0.0)
