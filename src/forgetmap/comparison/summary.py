"""The first screen of a comparison: badge, interval, sentence, counts, and "How we know".

Terminal, report, served page and notebook show the same summary; they differ in how it looks.
"""

from __future__ import annotations

from dataclasses import dataclass

from forgetmap.comparison import phrases
from forgetmap.comparison.estimators import all_estimators
from forgetmap.comparison.phrases import Tone
from forgetmap.comparison.result import ComparisonResult, GroupResult
from forgetmap.results import Estimate, Notice, Plain
from forgetmap.text import percent

MAX_WARNINGS = 3
URGENT = (
    "copies",
    "repeats_exactly",
    "thin_task",
    "tiny",
    "one_sided",
    "failures_differ",
    "below_chance",
)
"""Warnings that are shown first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact(Plain):
    """A line of "How we know"."""

    label: str
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StepText(Plain):
    """One thing to do next, with the name of its command."""

    words: str
    command: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimatorFigure(Plain):
    """The result of one estimator for all items."""

    name: str
    label: str
    formula: str
    role: str
    forgetting: str
    interval: str
    """Its interval, or why there is no value."""
    gained: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary(Plain):
    """The first screen, as sentences."""

    badge: str
    """The verdict, in capitals."""
    tone: Tone
    interval: str
    """At least and at most, as a share of all items; empty if unknown or in the sentence."""
    sentence: str
    noise: str
    """How much noise would explain an exchange; empty if there is none to speak of."""
    counts: str
    """Forgotten, gained, and accuracy before and after."""
    gained: str
    """What is proven to be gained; empty if nothing is."""
    confirmed: str
    """How many flips held when they were asked again; empty if none were."""
    tasks: str
    """Tasks that lost something, where the verdict of all items does not say so."""
    warnings: list[Notice]
    """The most important warnings."""
    more_warnings: int
    steps: list[StepText]
    facts: list[Fact]
    estimators: list[EstimatorFigure]


def summarize(result: ComparisonResult) -> Summary:
    """Return the first screen of a comparison."""
    total = result.total
    level = f"{100 * result.rule.level:g}%; margin {100 * total.margin:g}%"
    sentence = phrases.as_sentence(phrases.sentence(total, result.pairing))
    # Only where accuracy held, the sentence is about something else than the interval.
    held, limits = total.verdict == "no_net_loss", phrases.interval(total)
    if limits and not held and total.undecided is None:
        sentence = f"{sentence.removesuffix('.')} ({level})."
    facts = _facts(result)
    # A loss of all items says it already; only flips that were asked again were asked for.
    tasks = "" if total.verdict == "lost" else facts.pop("tasks")
    gained = facts.pop("gained")
    warnings = sorted(result.pairing.warnings, key=lambda notice: notice.code not in URGENT)
    return Summary(
        badge=phrases.badge(total),
        tone=phrases.TONES[total.verdict],
        interval=f"Loss: {limits} of all items ({level})" if limits and held else "",
        sentence=sentence,
        noise=phrases.noise_sentence(total),
        counts=phrases.counts_sentence(total),
        gained=gained,
        confirmed=phrases.confirmed_sentence(total),
        tasks=tasks,
        warnings=warnings[:MAX_WARNINGS],
        more_warnings=len(warnings[MAX_WARNINGS:]),
        steps=[
            StepText(words=one.words, command=one.command) for one in phrases.next_steps(result)
        ],
        facts=[Fact(label=label, words=words) for label, words in facts.items() if words],
        estimators=_estimators(total),
    )


def _facts(result: ComparisonResult) -> dict[str, str]:
    total = result.total
    return {
        "based on": phrases.basis_sentence(total),
        "carried by": phrases.carried_sentence(total),
        "gained": phrases.as_sentence(phrases.gain_sentence(total)),
        "tasks": phrases.tasks_sentence(result.tasks),
        "means": phrases.macro_sentence(result),
        "noise": phrases.repeats_sentence(total),
        "readable": phrases.readable_sentence(total),
        "graded": phrases.change_sentence(total, "graded"),
        "probability": phrases.change_sentence(total, "probability"),
        "changed": phrases.answer_changes_sentence(total),
        "reasons": phrases.reasons_sentence(total),
        "coverage": phrases.coverage_sentence(result),
        "metric": phrases.metrics_sentence(result.measures),
        "detectable": phrases.detectable_sentence(total),
    }


def _estimators(total: GroupResult) -> list[EstimatorFigure]:
    """Return every estimate of all items, so that none can be picked silently."""
    rows = []
    for row in all_estimators():
        estimates = total.estimators.get(row.name)
        if estimates is not None:
            reason = estimates.forgetting.reason
            rows.append(
                EstimatorFigure(
                    name=row.name,
                    label=row.label,
                    formula=row.formula,
                    role=row.role,
                    forgetting=percent(estimates.forgetting.value),
                    interval=reason or _interval(estimates.forgetting),
                    gained=percent(estimates.backward_transfer.value),
                )
            )
    return rows


def _interval(estimate: Estimate) -> str:
    if estimate.low is None or estimate.high is None:
        return ""
    return f"{percent(estimate.low)} to {percent(estimate.high)}"
