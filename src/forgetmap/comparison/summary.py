"""The first screen of a comparison as sentences: verdict, one number, and "How we know".

Terminal, report, served page and notebook show the same summary; they differ in how it looks.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

from pydantic import Field

from forgetmap.comparison.contradictions import first_contradiction
from forgetmap.comparison.estimators import find_estimator, number_estimators
from forgetmap.comparison.result import (
    ComparisonResult,
    CoverageResult,
    GroupResult,
    PartResult,
    Verdict,
)
from forgetmap.comparison.words import (
    PART_WORDS,
    metrics_sentence,
    pairing_sentence,
    reasons_sentence,
)
from forgetmap.results import Estimate, Value
from forgetmap.stats import LOSSES
from forgetmap.text import counted, either, limit, listed, percent, share

TONES: dict[Verdict, Literal["bad", "minor", "good", "open"]] = {
    "lost": "bad",
    "small_loss": "minor",
    "no_material_loss": "good",
    "cannot_tell": "open",
}
Commands = Mapping[str, str]
"""Complete commands by their short names."""
NO_COMMANDS: Commands = MappingProxyType({})
"""Next steps show short names of commands."""
FULL = CoverageResult(before=1.0, after=1.0)
CLIPPED = "Shares are displayed between 0% and 100%; the JSON has the full intervals."


class Fact(Value):
    """A line of "How we know"."""

    label: str
    words: str


class EstimatorFigure(Value):
    """The result of one estimator for all items."""

    name: str
    label: str
    forgetting: str
    interval: str
    gained: str
    assumes: str
    decides: bool = Field(description="Whether the verdict is based on this estimator.")


class Summary(Value):
    """The first screen, as sentences."""

    badge: str = Field(description="The verdict, in capitals.")
    tone: Literal["bad", "minor", "good", "open"]
    figure: str = Field(description="The loss: an estimate, or a range.")
    limits: str = Field(description="At least and at most; empty if unknown.")
    number: str = Field(description="Both as one sentence; empty if unknown.")
    parts: str = Field(description="No longer known and no longer answered, if available.")
    by_task: str = Field(description="Tasks that lost something, and the mean over tasks.")
    note: str = Field(description="Cautions about the verdict.")
    rests_on: str
    gained: str = Field(description="Gains, and the signed change of accuracy.")
    what_next: str
    facts: list[Fact]
    estimators: list[EstimatorFigure]


def summarize(result: ComparisonResult) -> Summary:
    """Return the first screen of a comparison."""
    total, level = result.total, f"{100 * result.rule.level:g}% interval"
    figure, limits = loss_figure(total), _limits(total)
    against = result.pairing.contradictions
    number, note = _number(total, level), _sentence(total.headline.note or "")
    if against:  # before any number
        figure, limits, number = percent(None), "", f"{first_contradiction(against)}."
        note = ""
    return Summary(
        badge=badge_of(total),
        tone=TONES[total.verdict],
        figure=figure,
        limits=f"{limits} of {_noun(total)} ({level})" if limits else "",
        number=number,
        parts=_parts(total),
        by_task=_by_task(result),
        note=note,
        rests_on=f"Based on {total.headline.rests_on}.",
        gained=_gained(total),
        what_next=f"{either(list_steps(result))}.",
        facts=_facts(result),
        estimators=_estimators(total),
    )


def badge_of(group: GroupResult) -> str:
    """Return the verdict in capitals."""
    return verdict_words(group).upper()


def verdict_words(group: GroupResult) -> str:
    """Return the verdict in plain words."""
    if group.verdict == "no_material_loss":
        return f"no loss beyond {100 * group.margin:g}%"
    return group.verdict.replace("_", " ")


def short_verdict(group: GroupResult) -> str:
    """Return the verdict for a narrow column."""
    return verdict_words(group).replace("beyond ", ">")


def loss_figure(group: GroupResult) -> str:
    """Format the headline loss as one number, or as a range if the data allow no more."""
    loss = group.headline.forgetting
    if not _has_limits(loss):
        return percent(None)
    if loss.value is None:
        return f"{share(loss.low)} to {share(loss.high)}"
    return share(loss.value)


def _is_clipped(result: ComparisonResult) -> bool:
    """Return whether a displayed loss is outside 0 to 1."""
    groups = (result.total, result.total_macro, *result.categories, *result.tags, *result.tasks)
    losses = (group.headline.forgetting for group in groups)
    numbers = (number for loss in losses for number in (loss.value, loss.low, loss.high))
    return any(number is not None and not 0 <= number <= 1 for number in numbers)


def _has_limits(loss: Estimate) -> bool:
    return loss.low is not None and loss.high is not None and loss.high >= 0


def _limits(group: GroupResult) -> str:
    loss = group.headline.forgetting
    if not _has_limits(loss):
        return ""
    high = limit(loss.high, group.margin)
    if group.verdict in LOSSES:
        return f"at least {limit(loss.low, group.margin)}, at most {high}"
    if group.verdict == "no_material_loss":
        return f"at most {high}"
    return f"between {share(loss.low)} and {high}"


def _number(group: GroupResult, level: str) -> str:
    limits, noun = _limits(group), _noun(group)
    if not limits:
        return ""
    value, margin = group.headline.forgetting.value, f"margin {100 * group.margin:g}%"
    verb = "Lost" if group.verdict in LOSSES else "Loss"
    if value is None:
        verb = verb if group.verdict != "cannot_tell" else "Loss"
        return f"{verb} {limits} of {noun} (plausible range, {level}; {margin})."
    of = f"{share(value)} of {noun}"
    return f"{verb} {of}: {limits} ({level}; {margin})."


def _noun(group: GroupResult) -> str:
    from_repeats = find_estimator(group.headline.estimator).from_repeats
    return "all answers beyond the noise floor" if from_repeats else "all items"


def _parts(group: GroupResult) -> str:
    """Format knowledge and answering with their intervals, if either is a loss."""
    parts = [
        _part(getattr(group, name), words)
        for name, words in PART_WORDS.items()
        if _is_loss(getattr(group, name))
    ]
    if not parts or (not group.answering.value and not _is_loss(group.answering)):
        return ""
    rest = "" if _is_loss(group.knowledge) else "; no loss of knowledge is shown"
    return f"{_sentence(', '.join(parts) + rest)}"


def _is_loss(part: PartResult) -> bool:
    return part.low is not None and part.low > 0


def _part(part: PartResult, words: str) -> str:
    limits = f"{share(part.low)} to {share(part.high)}"
    return f"{limits} {words}" if part.value is None else f"{share(part.value)} {words} ({limits})"


def _by_task(result: ComparisonResult) -> str:
    """Describe the lost tasks and the mean over tasks, which the verdict of all items can hide."""
    if len(result.tasks) == 1:
        return ""
    losses = [task for task in result.tasks if task.verdict in LOSSES]
    losses.sort(key=lambda task: -(task.headline.forgetting.low or 0.0))  # largest "at least" first
    lost = [task.name for task in losses]
    tasks = [f"{len(lost):,} of {len(result.tasks):,} tasks lost: {listed(lost)}"] if lost else []
    macro = result.total_macro
    words = f"mean over tasks: {verdict_words(macro)}, {_limits(macro)}"
    mean = [words] if _mean_differs(result) else []
    return _sentence("; ".join([*tasks, *mean]))


def _mean_differs(result: ComparisonResult) -> bool:
    """Return whether the mean over tasks is decided, and differs from all items."""
    verdict = result.total_macro.verdict
    return verdict not in ("cannot_tell", result.total.verdict)


def _gained(group: GroupResult) -> str:
    if group.acc_before is None or group.acc_after is None:
        return ""
    accuracy = f"{percent(group.acc_before)} -> {percent(group.acc_after)}"
    gained = f"Gained {percent(group.backward_transfer.value)} of all {_counted_noun(group)}"
    return f"{gained}. Accuracy {accuracy} ({accuracy_change(group)})."


def _counted_noun(group: GroupResult) -> str:
    return "items" if group.n == group.items else "answers"


def accuracy_change(group: GroupResult) -> str:
    """Format the signed accuracy change; a dash if there is none."""
    if group.acc_before is None or group.acc_after is None:
        return percent(None)
    # Rounded, so that float errors are not shown as a change.
    change = round(group.acc_after - group.acc_before, 9)
    return f"{'+' if change > 0 else ''}{percent(change)}"


def list_steps(result: ComparisonResult, commands: Commands = NO_COMMANDS) -> list[str]:
    """Return what to do next: one step, or several of which one is enough.

    Args:
        result: the comparison.
        commands: complete commands by their short names, such as `report`; the short names are
            shown if omitted.
    """
    total = result.total
    if result.pairing.contradictions:
        return ["see what the log states and contains (`forgetmap records show LOG`)"]
    if total.verdict == "cannot_tell":
        return [_what_decides(total, commands)]
    if total.verdict == "lost":
        return [
            f"read what was forgotten ({_code('report', commands)})",
            f"train on similar examples ({_code('export replay', commands)})",
            "find a merge that keeps it (`forgetmap merge sweep`)",
        ]
    lost = sum(task.verdict == "lost" for task in result.tasks)
    if lost:
        return [f"look at the {counted(lost, 'task')} that lost something (`--by task`)"]
    return [_next_without_loss(result, commands)]


def _code(name: str, commands: Commands) -> str:
    """Return a command in backticks, complete if it is known."""
    return f"`{commands.get(name, f'forgetmap {name}')}`"


def _next_without_loss(result: ComparisonResult, commands: Commands) -> str:
    """Return the next step after no loss, or a loss within the margin."""
    if result.total.verdict == "small_loss":
        return (
            "the loss is within the margin; read what was forgotten "
            f"({_code('report', commands)}), and check later checkpoints against it (`forgetmap "
            "gate`)"
        )
    unclear = sum(task.verdict == "cannot_tell" for task in result.tasks)
    if unclear:
        return (
            f"nothing for all items; {unclear:,} of {counted(len(result.tasks), 'task')} have no "
            f"clear verdict: {_code('plan', commands)} shows how many items would decide"
        )
    return (
        "no task lost more than the margin either; check later checkpoints against it "
        "(`forgetmap gate`)"
    )


def _what_decides(total: GroupResult, commands: Commands) -> str:
    decides = total.decides
    if decides is not None and decides.repeats is not None:
        return (
            "answer each item more than once with each model (`forgetmap run --repeats "
            f"{decides.repeats}`)"
        )
    if decides is not None and decides.items is not None:
        items, plan = counted(decides.items, "item"), _code("plan", commands)
        return f"evaluate about {items}; {plan} shows which kinds"
    if not total.n:
        return "evaluate both models on the same items"
    if not total.n11 + total.n10:
        return "evaluate items that the model before answers right; only these can be lost"
    return "record which options are chosen, or answer each item more than once"


def _facts(result: ComparisonResult) -> list[Fact]:
    total = result.total
    facts = {
        "counted": result.seen,
        "limits": _lower_limit(total),
        "luck": _luck(total),
        "noise": _noise(total),
        "graded": _graded(total),
        "changed": _answer_changes(total),
        "reasons": reasons_sentence(total),
        "coverage": _coverage(result),
        "metric": metrics_sentence(result.measures),
        "shares": CLIPPED if _is_clipped(result) else "",
    }
    return [Fact(label=label, words=words) for label, words in facts.items() if words]


def _lower_limit(total: GroupResult) -> str:
    """Explain why the lower bound of the verdict differs from that of its estimator."""
    loss, row = total.headline.forgetting, find_estimator(total.headline.estimator)
    if row.is_range or loss.low is None or loss.low == total.estimates(row.name).forgetting.low:
        return ""
    assumed = total.noise_assumed
    noise = f", and a noise floor of {percent(assumed)} is subtracted" if assumed else ""
    return (
        f"The lower bound of the verdict is stricter than that of {row.name}, because it is an "
        f'"at least" statement{noise}.'
    )


def _luck(total: GroupResult) -> str:
    """State the luck that would explain the loss."""
    if total.luck_ratio_needed is None or total.verdict not in LOSSES:
        return ""
    if total.guess_rate_needed is not None:
        rate = percent(total.guess_rate_needed)
        return f"The loss holds unless more than {rate} of the guesses were lucky."
    times = f"{total.luck_ratio_needed:.2g} times as often as any other"
    return f"The loss holds unless the right option is guessed more than {times}."


def _noise(total: GroupResult) -> str:
    if total.noise_floor.value is not None and total.noise_assumed is None:
        floor = percent(total.noise_floor.value)
        return (
            f"Noise floor {floor} (measured): the share of answers that flip one way between two "
            "runs of the same model."
        )
    if not total.noise_assumed:
        return ""
    words = (
        f"Assumed noise floor: at most {percent(total.noise_assumed)} of the answers flip one way."
    )
    both = total.symmetric_noise
    if both.low is None or both.high is None:
        return words
    least = f"at least {share(both.low)} and " if both.low > 0 else ""
    return (
        f"{words} For noise that flips equally many answers either way: {least}at most "
        f"{share(both.high)} lost."
    )


def _graded(total: GroupResult) -> str:
    graded = total.graded
    if graded is None or graded.value is None:
        return ""
    limits = ""
    if graded.low is not None and graded.high is not None:
        limits = f" ({-graded.high:+.3f} to {-graded.low:+.3f})"
    return (
        f"{counted(graded.pairs, 'pair')} with graded scores: mean change {-graded.value:+.3f}"
        f"{limits}; losses and gains cancel."
    )


def _answer_changes(total: GroupResult) -> str:
    if not total.answer_changes:
        return ""
    return f"{counted(total.answer_changes, 'wrong answer')} changed to another wrong answer."


def _coverage(result: ComparisonResult) -> str:
    words, coverage = pairing_sentence(result.pairing), result.total.coverage
    if coverage.before is not None and coverage.after is not None and coverage != FULL:
        words += (
            f" Scored on both sides: {percent(coverage.before)} of the items scored before, "
            f"{percent(coverage.after)} of those scored after."
        )
    if result.total.worst_case is not None:
        worst = share(result.total.worst_case)
        words += f" If everything missing after was lost: at most {worst} lost."
    return words


def _estimators(total: GroupResult) -> list[EstimatorFigure]:
    """Return every estimate of all items, so that none can be picked silently."""
    rows = []
    for row in number_estimators():
        estimates = total.estimates(row.name)
        if estimates.forgetting.value is not None:
            rows.append(
                EstimatorFigure(
                    name=row.name,
                    label=row.label,
                    forgetting=share(estimates.forgetting.value),
                    interval=_interval(estimates.forgetting),
                    gained=share(estimates.backward_transfer.value),
                    assumes=row.assumes or "",
                    decides=row.name == total.headline.estimator,
                )
            )
    return rows


def _interval(estimate: Estimate) -> str:
    if estimate.low is None or estimate.high is None:
        return ""
    return f"{share(estimate.low)} to {share(estimate.high)}"


def _sentence(words: str) -> str:
    # A sentence that starts with a name keeps its spelling.
    first = words[:1].upper() if words.partition(" ")[0].islower() else words[:1]
    return f"{first}{words[1:]}." if words else ""
