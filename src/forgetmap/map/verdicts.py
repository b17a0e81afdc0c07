"""Put the verdicts that were reached look by look in the place of those of a single look."""

from __future__ import annotations

from dataclasses import replace

from forgetmap.comparison import (
    Chain,
    Comparison,
    ComparisonResult,
    FanOut,
    GroupResult,
    loss_sentence,
)
from forgetmap.map.adaptive import Spent
from forgetmap.results import Notice
from forgetmap.stats import Decision
from forgetmap.text import percent

NOTICE = (
    "repeats were spent until categories were decided: the verdicts of categories and of the total "
    "allow for that, the p-values, q-values and intervals do not, and a loss that was found early "
    "reads a little too large."
)


def with_decisions(result: Comparison | FanOut | Chain, spent: Spent) -> Comparison | FanOut:
    """The same result with the verdicts whose error rate holds over all looks and categories."""
    if isinstance(result, FanOut):
        return FanOut(tuple(_decided(each, spent) for each in result))
    assert isinstance(result, Comparison)  # noqa: S101  # chains are refused before
    return _decided(result, spent)


def _decided(comparison: Comparison, spent: Spent) -> Comparison:
    after = comparison.after.name
    found = {name: each for (run, name), each in spent.decisions.items() if run == after}
    result = comparison.result
    categories = [
        _category(group, found[group.name], spent) if group.name in found else group
        for group in result.categories
    ]
    total = _total(result.total, found, spent)
    pairing = result.pairing.model_copy(
        update={"warnings": [*result.pairing.warnings, Notice("repeats_auto", NOTICE)]}
    )
    changed: ComparisonResult = result.model_copy(
        update={
            "categories": categories,
            "total": total,
            "headline": f"{after}: {total.headline.words}.",
            "pairing": pairing,
        }
    )
    return replace(comparison, result=changed)


def _category(group: GroupResult, found: Decision, spent: Spent) -> GroupResult:
    said = group.headline
    words = said.words if said.verdict == found.verdict else _words(found, spent)
    return _with(group, found.verdict, f"{words}; {when(found)}")


def _total(total: GroupResult, found: dict[str, Decision], spent: Spent) -> GroupResult:
    """Lost if any category is: that is what the error rate is about."""
    lost = [name for name, each in found.items() if each.verdict == "lost"]
    if lost:
        return _with(total, "lost", f"{_loss(total)}; decided for {', '.join(lost)}")
    if total.headline.verdict != "lost":
        return total
    rate = percent(spent.rule.level, 0)
    words = f"cannot tell: no category is decided at an error rate of {rate} over all of them"
    return _with(total, "cannot_tell", words)


def _loss(total: GroupResult) -> str:
    if total.headline.verdict == "lost":
        return total.headline.words
    return loss_sentence(total.headline.forgetting.value)


def _words(found: Decision, spent: Spent) -> str:
    limits = f"{percent(found.low)} to {percent(found.high)} of all answers"
    if found.verdict == "lost":
        return f"{loss_sentence(found.look.value)} ({limits})"
    if found.verdict == "none_lost":
        return f"no loss found: {limits}"
    rate = percent(spent.rule.level, 0)
    return f"cannot tell at an error rate of {rate} over all looks and categories: {limits}"


def when(found: Decision) -> str:
    """How many answers it took, and what ended it."""
    took = f"{found.look.repeats} answers per item"
    return {
        "tested": f"decided by {took}",
        "hopeless": f"given up after {took}, more would hardly tell",
        "used_up": f"open after {took}, no more were allowed",
    }[found.why]


def _with(group: GroupResult, verdict: str, words: str) -> GroupResult:
    headline = group.headline.model_copy(update={"verdict": verdict, "words": words})
    return group.model_copy(update={"headline": headline})
