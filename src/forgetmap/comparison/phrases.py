"""Every sentence about a comparison: verdicts, counts, warnings and next steps.

The numbers are fields of the result; terminal, page, Markdown, JUnit and notebooks write these
sentences from them. Nothing reads a sentence back.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, Protocol

from forgetmap.comparison.contradictions import first_contradiction
from forgetmap.comparison.noise import typical_noise
from forgetmap.comparison.result import (
    ComparisonResult,
    DecidesResult,
    ExchangeResult,
    GroupResult,
    PairingResult,
    StageResult,
    Undecided,
    Unlucky,
)
from forgetmap.pairing import Measure
from forgetmap.results import Estimate, Notice
from forgetmap.stats import LOSSES, BoundName, Verdict
from forgetmap.text import counted, limit, listed, percent, share

SIMULATED = "SIMULATED data, not a measured model."
"""Shown above every result of simulated models."""
REASON_LABELS = {
    "wrong": "wrong answer",
    "no_answer": "no answer found",
    "refused": "refused",
    "truncated": "cut at the token limit",
    "degenerate": "endless repetition",
    "misread": "right, but not extracted",
    "unknown": "not recorded",
}
"""Outcome of an answer -> its name in sentences."""
Tone = Literal["bad", "minor", "good", "open"]
TONES: dict[Verdict, Tone] = {
    "lost": "bad",
    "small_loss": "minor",
    "no_material_loss": "good",
    "no_net_loss": "open",
    "cannot_tell": "open",
}
"""Verdict -> colour of its badge."""
CARRIED: dict[BoundName, str] = {
    "drop": "by the drop in accuracy",
    "tasks": "by tasks that fell in both halves of their items",
    "repeats": "by repeats",
    "confirmed": "by confirmed flips",
    "earlier_stage": "by items that an earlier stage lost too",
    "stated": "as stated",
}
"""What carries a lower limit, in one clause."""
GAIN_CARRIED: dict[BoundName, str] = {
    **CARRIED,
    "drop": "by the rise in accuracy",
    "tasks": "by tasks that rose in both halves of their items",
    "earlier_stage": "by items that an earlier stage gained too",
}
UNDECIDED: dict[Undecided, str] = {
    "nothing_paired": "no item is scored on both sides",
    "nothing_right": "no answer was right before, so nothing could be lost",
    "contradicted": "a log contradicts itself",
    "selected": "the run before helped (or may have helped) to choose these items, so what it has "
    "right is lucky",
    "all_right": "the model before has all {items} right, as if it had helped to choose them",
}
UNLUCKY: dict[Unlucky, str] = {
    "unanswered": "that may be lost luck: {unanswered} are no longer answered",
    "letters_moved": "that may be lost luck: it does not hold when answers are weighed by position",
    "too_small": "that may be lost luck: the drop of all items is too small to tell",
    "not_recorded": "that may be lost luck: which answers were not given is not recorded",
    "guesses_count": "guesses that changed for good count here: {gained} became right",
}
STATES = {"lost": "lost", "small_loss": "small loss", "cannot_tell": "cannot tell"}
USUAL_NOISE = 0.03
"""Noise of greedy reruns that the sentence about an exchange takes as an example."""


# ---------------------------------------------------------------------- verdicts


class HasVerdict(Protocol):
    """Whatever has a verdict: a group, a pair of a study, a group of a probe."""

    @property
    def verdict(self) -> Verdict:
        """The verdict."""
        ...

    @property
    def margin(self) -> float:
        """Largest acceptable loss."""
        ...

    @property
    def exchange(self) -> ExchangeResult | None:
        """Items that went either way while accuracy held."""
        ...


def verdict_words(group: HasVerdict, *, narrow: bool = False) -> str:
    """Return the verdict in plain words.

    Args:
        group: the group.
        narrow: for the column of a table.
    """
    if group.verdict == "no_material_loss":
        return f"no loss {'>' if narrow else 'beyond '}{100 * group.margin:g}%"
    if group.verdict == "no_net_loss":
        rose = group.exchange is not None and group.exchange.rose_by > 0
        return "accuracy rose" if rose else "accuracy held"
    return STATES[group.verdict]


def badge(group: GroupResult) -> str:
    """Return the verdict in capitals."""
    large = group.exchange is not None and group.exchange.is_large
    return f"{verdict_words(group)}{', items exchanged' if large else ''}".upper()


def interval(group: GroupResult) -> str:
    """Return the limits of the loss in one clause; empty if there are none."""
    low, high = group.loss.low, group.loss.high
    if low is None or high is None:
        return ""
    most = limit(high, group.margin)
    if group.verdict in LOSSES:
        return f"at least {limit(low, group.margin)}, at most {most}"
    return f"at most {most}" if group.verdict == "no_material_loss" else f"between 0% and {most}"


def sentence(group: GroupResult, pairing: PairingResult | None = None) -> str:
    """Return the verdict as a sentence without its first capital and its full stop.

    Args:
        group: the group.
        pairing: names what a log contradicts, if nothing is decided because of it.
    """
    if group.undecided is not None:
        return _undecided(group, pairing)
    words = {
        "lost": _lost,
        "small_loss": _lost,
        "no_material_loss": lambda g: f"no loss beyond {_margin(g)}: {interval(g)} of all items",
        "no_net_loss": _held,
        "cannot_tell": _open,
    }[group.verdict](group)
    return words + _among(group)


def headline(name: str, group: GroupResult, pairing: PairingResult | None = None) -> str:
    """Return the verdict on a model as one sentence."""
    return f"{name}: {sentence(group, pairing)}."


def _margin(group: GroupResult) -> str:
    return f"{100 * group.margin:g}%"


def _undecided(group: GroupResult, pairing: PairingResult | None) -> str:
    assert group.undecided is not None  # noqa: S101  # the caller looked
    against = () if pairing is None else pairing.contradictions
    return f"cannot tell: {undecided_reason(group.undecided, group.items, against)}"


def undecided_reason(
    undecided: Undecided, items: int, contradictions: Sequence[Notice] = ()
) -> str:
    """Return why nothing can be concluded, without a full stop.

    Args:
        undecided: kind of the reason.
        items: number of items.
        contradictions: what the results contradict.
    """
    if undecided == "contradicted" and contradictions:
        return first_contradiction(contradictions)
    return UNDECIDED[undecided].format(items=counted(items, "item"))


def _lost(group: GroupResult) -> str:
    if_stated = f"if {group.loss.assumes}, " if group.loss.assumes else ""
    verb = "no longer knows" if group.is_knowledge else "lost"
    within = ""
    if group.verdict == "small_loss":
        within = f", within the margin of {_margin(group)}"
    elif (group.loss.low or 0.0) > group.margin:
        within = f", more than the margin of {_margin(group)}"
    carried = group.loss.carried_by
    by = f", {CARRIED[carried]}" if carried and carried != "stated" else ""
    return f"{if_stated}{verb} {interval(group)} of all items{within}{by}{_unlucky(group)}"


def _unlucky(group: GroupResult) -> str:
    if group.unlucky is None:
        return ""
    words = UNLUCKY[group.unlucky].format(
        unanswered=share(group.unanswered), gained=share(group.backward_transfer.value)
    )
    return f"; {words}"


def _held(group: GroupResult) -> str:
    """Say that accuracy held or rose, and what was exchanged."""
    exchange, accuracy = group.exchange, _accuracy(group)
    if exchange is not None and exchange.rose_by > 0:
        first = f"accuracy rose by at least {points(exchange.rose_by)} ({accuracy})"
    else:
        first = f"accuracy held: it fell by at most {points(group.drop.high or 0.0)} ({accuracy})"
    right = group.n11 + group.n10
    if exchange is not None and exchange.is_large and right:
        counts = (
            f"{group.forgotten:,} of the {right:,} it had right "
            f"({percent(group.forgotten / right)}) are wrong now, {group.gained:,} others became "
            "right"
        )
    else:
        counts = (
            f"{percent(group.forgetting.value)} of the items went from right to wrong and "
            f"{percent(group.backward_transfer.value)} from wrong to right"
        )
    noise = group.noise_floor.value
    known = "one run cannot tell noise from exchange"
    if noise is not None:
        known = f"reruns alone flip {share(noise)} of the items one way"
    return f"{first}; {counts}; {known}"


def noise_sentence(group: GroupResult) -> str:
    """Say how much noise would explain an exchange; empty if there is none to speak of."""
    if group.exchange is None or not group.exchange.is_large or group.noise_floor.value is not None:
        return ""
    needed = group.exchange.noise_needed
    example = ""
    if needed > USUAL_NOISE:
        left = share(needed - USUAL_NOISE)
        example = f"If reruns flip at most {share(USUAL_NOISE)}, at least {left} was lost. "
    return (
        f"{example}Reruns would have to flip {share(needed)} of the items one way to explain it "
        f"(measured reruns: {typical_noise()})."
    )


def _open(group: GroupResult) -> str:
    words = f"cannot tell: {interval(group)} of all items may be lost"
    items = None if group.decides is None else group.decides.items
    if items is not None:
        words = f"{words}; about {counted(items, 'item')} would decide"
    here = "; on these passages accuracy held, unseen ones may differ" if group.held_here else ""
    return words + here


def _among(group: GroupResult) -> str:
    """Return the significance of a loss within its family; empty without a loss."""
    family, q = group.family, group.loss.q
    if family is None or q is None or group.verdict not in LOSSES:
        return ""
    return f"; significant among {family.size:,} {family.name} (q = {q:.2g})"


def gain_sentence(group: GroupResult) -> str:
    """Say what is proven to be gained; empty if nothing is."""
    low = group.gain.low
    if low is None or low <= 0 or group.gain.high is None:
        return ""
    carried = group.gain.carried_by
    by = f", {GAIN_CARRIED[carried]}" if carried and carried != "stated" else ""
    return f"gained at least {share(low)} of all items{by}"


def drop_sentence(drop: Estimate, margin: float) -> str:
    """Say how far accuracy fell, whatever was exchanged."""
    low, high = drop.low or 0.0, limit(drop.high, margin)
    if low > 0:
        more = f", more than the margin of {100 * margin:g}%" if low > margin else ""
        least = limit(low, margin)
        return f"accuracy fell by at least {least}, at most {high} of all items{more}"
    if drop.high is not None and drop.high < margin:
        return f"accuracy fell by at most {high} of all items"
    return f"cannot tell: accuracy may have fallen by up to {high} of all items"


def points(value: float) -> str:
    """Format a difference of accuracies."""
    return f"{100 * max(value, 0.0):.1f} points"


def _accuracy(group: GroupResult) -> str:
    return f"{percent(group.acc_before)} -> {percent(group.acc_after)}"


# ---------------------------------------------------------------------- counts


def counts_sentence(group: GroupResult) -> str:
    """Return the counts in one line."""
    if not group.n:
        return "No item is scored on both sides."
    noun = "item" if group.items == group.n else "answer"
    return (
        f"{group.forgotten:,} forgotten, {group.gained:,} gained of {counted(group.n, noun)}; "
        f"accuracy {_accuracy(group)} ({accuracy_change(group)})."
    )


def confirmed_sentence(group: GroupResult) -> str:
    """Say how many flips held when they were asked again; empty if none were."""
    confirmed = group.confirmed
    if confirmed is None or not confirmed.asked:
        return ""
    part = "" if confirmed.asked == confirmed.flips else f" ({confirmed.asked:,} asked again)"
    return (
        f"Of {counted(confirmed.flips, 'flip')}{part}, {max(confirmed.held, 0.0):,.0f} held in the "
        "fresh answers."
    )


def accuracy_change(group: GroupResult) -> str:
    """Format the signed accuracy change; a dash if there is none."""
    if group.acc_before is None or group.acc_after is None:
        return percent(None)
    return signed_percent(group.acc_after - group.acc_before)


def signed_percent(change: float) -> str:
    """Format a change with its sign."""
    # Rounded, so that float errors are not shown as a change.
    change = round(change, 9)
    return f"{'+' if change > 0 else ''}{percent(change)}"


def stages_sentence(stages: Sequence[StageResult]) -> str:
    """Name the stage at which a loss or a gain is first shown; it may have happened before."""
    lost = [stage.name for stage in stages if stage.against_first.verdict in LOSSES]
    gained = [stage.name for stage in stages if (stage.against_first.gain.low or 0.0) > 0]
    parts = [
        f"{what} is first shown at {names[0]}"
        for what, names in (("a loss", lost), ("a gain", gained))
        if names
    ]
    return as_sentence("; ".join(parts))


def tasks_sentence(tasks: Sequence[GroupResult]) -> str:
    """Name the tasks that lost something, which the verdict of all items can hide."""
    losses = [task for task in tasks if task.verdict in LOSSES]
    if len(tasks) < 2 or not losses:
        return ""
    losses.sort(key=lambda task: -(task.loss.low or 0.0))  # largest "at least" first
    names = listed([task.name for task in losses])
    return f"{len(losses):,} of {len(tasks):,} tasks lost something: {names}."


def macro_sentence(result: ComparisonResult) -> str:
    """Return the verdict of the mean over tasks, if it is another one."""
    macro = result.total_macro
    if len(result.tasks) < 2 or macro.verdict in ("cannot_tell", result.total.verdict):
        return ""
    return f"Mean over tasks: {verdict_words(macro)}, {interval(macro)}."


def reasons_sentence(total: GroupResult) -> str:
    """Describe the outcomes of the forgotten answers, the most frequent first."""
    if not total.n10:
        return "Nothing was forgotten."
    subject = f"Why {total.n10:,} {'was' if total.n10 == 1 else 'were'} forgotten"
    if total.reasons["unknown"] == total.n10:
        return f"{subject} is not recorded."
    reasons = [(count, name) for name, count in total.reasons.items() if count]
    reasons.sort(key=lambda reason: -reason[0])
    return f"{subject}: {', '.join(f'{REASON_LABELS[name]} {count:,}' for count, name in reasons)}."


def pairing_sentence(pairing: PairingResult) -> str:
    """Return the number of paired results as a sentence."""
    if pairing.paired == pairing.rows_before == pairing.rows_after:
        return f"All {counted(pairing.paired, 'result')} of both sides paired."
    return (
        f"Paired {pairing.paired:,} of {counted(pairing.rows_before, 'result')} before and "
        f"{pairing.rows_after:,} after."
    )


def metrics_sentence(measures: Mapping[str, str]) -> str:
    """Name the compared metrics, the most frequent first; empty if results name none."""
    tasks: dict[str, list[str]] = defaultdict(list)
    for task, measure in measures.items():
        tasks[measure].append(task)
    if set(tasks) <= {str(Measure())}:
        return ""
    (most, _), *rest = sorted(tasks.items(), key=lambda entry: (-len(entry[1]), entry[0]))
    rest_words = "".join(f"; {listed(names, 'tasks')} by {measure}" for measure, names in rest)
    return f"Compared by {most}{rest_words}."


def change_sentence(group: GroupResult, name: Literal["graded", "probability"]) -> str:
    """Describe the mean change of graded scores, or of the probability of the right answer."""
    change = getattr(group, name)
    if change is None or change.value is None:
        return ""
    limits = ""
    if change.low is not None and change.high is not None:
        limits = f" ({-change.high:+.3f} to {-change.low:+.3f})"
    what = {
        "graded": f"{counted(change.pairs, 'pair')} with graded scores: mean change",
        "probability": "Probability of the right answer against the strongest other one: mean "
        "change",
    }[name]
    return f"{what} {-change.value:+.3f}{limits}; losses and gains cancel."


def as_sentence(words: str) -> str:
    """Return words with a capital and a full stop; a name at the beginning keeps its spelling."""
    first = words[:1].upper() if words.partition(" ")[0].islower() else words[:1]
    return f"{first}{words[1:]}." if words else ""


# ---------------------------------------------------------------------- next steps

Commands = Mapping[str, str]
"""Complete commands by their short names."""
NO_COMMANDS: Commands = MappingProxyType({})
"""Next steps name commands in words: what does not work as it stands is not to be pasted."""


@dataclass(frozen=True, slots=True)
class NextStep:
    """One thing to do next.

    Attributes:
        words: what to do.
        command: name of the command that does it, such as `confirm`; empty if none does.
    """

    words: str
    command: str = ""

    def text(self, commands: Commands = NO_COMMANDS) -> str:
        """Return the step with its command: in backticks if it is complete, else in words."""
        if not self.command:
            return self.words
        line = commands.get(self.command)
        return f"{self.words} ({f'command: {self.command}' if line is None else f'`{line}`'})"


def next_steps(result: ComparisonResult) -> list[NextStep]:
    """Return what to do next: one step, or several of which one is enough."""
    total = result.total
    if total.verdict in ("cannot_tell", "no_net_loss"):
        return _to_decide(total)
    if total.verdict == "lost":
        return [
            NextStep("read what was forgotten", "report"),
            NextStep("train on similar examples", "export replay"),
            NextStep("find a merge that keeps it", "merge sweep"),
        ]
    lost = sum(task.verdict == "lost" for task in result.tasks)
    if lost:
        return [NextStep(f"look at the {counted(lost, 'task')} that lost something", "report")]
    if total.verdict == "small_loss":
        return [NextStep("the loss is within the margin; read what was forgotten", "report")]
    return [NextStep("check later checkpoints against the same run", "gate")]


def _to_decide(total: GroupResult) -> list[NextStep]:
    if total.undecided == "nothing_paired":
        return [NextStep("evaluate both models on the same items")]
    if total.undecided == "nothing_right":
        return [
            NextStep("evaluate items that the model before answers right; only these can be lost")
        ]
    if total.undecided == "contradicted":
        return [
            NextStep("find out which part of the log is wrong, and compare again", "records show")
        ]
    decides = total.decides
    steps: list[NextStep] = []
    is_confirmed = total.confirmed is not None and total.confirmed.asked > 0
    if decides is not None and decides.flips > 1 and not is_confirmed:
        steps.append(confirm_step(decides))
    if total.undecided in ("selected", "all_right"):
        steps.append(NextStep("compare another run of the model before on these items"))
        if total.undecided == "all_right":
            steps.append(NextStep("if the items are merely easy, say so", "compare --not-selected"))
        return steps
    if decides is not None and decides.items is not None and total.verdict == "cannot_tell":
        steps.append(NextStep(f"evaluate about {counted(decides.items, 'item')}", "plan"))
    return steps or [NextStep("answer each item more than once with each model", "run --repeats 3")]


def confirm_step(decides: DecidesResult) -> NextStep:
    """Return the step of asking the flips again."""
    proof = ""
    if decides.provable is not None:
        proof = f", which can prove a loss of up to {share(decides.provable)}"
    asked = counted(decides.answers, "answer")
    return NextStep(f"confirm the {counted(decides.flips, 'flip')}: {asked}{proof}", "confirm")


def step_texts(result: ComparisonResult, commands: Commands = NO_COMMANDS) -> list[str]:
    """Return the next steps as texts."""
    return [step.text(commands) for step in next_steps(result)]


def basis_sentence(total: GroupResult) -> str:
    """Return on how many items and answers a verdict rests."""
    answers = "" if total.n == total.items else f" with {counted(total.n, 'pair')} of answers"
    within = "" if total.clusters is None else f" in {counted(total.clusters, 'cluster')}"
    p = "" if total.mcnemar_p is None else f"; McNemar p = {total.mcnemar_p:.2g}"
    return f"{counted(total.items, 'item')}{within}{answers}{p}."


def carried_sentence(total: GroupResult) -> str:
    """Return what is proven, and by what; empty if nothing can be said."""
    if total.loss.low is None or total.loss.carried_by is None:
        return ""
    low, carried = total.loss.low, total.loss.carried_by
    if low <= 0:
        return "Proven to be lost: nothing."
    return f"Proven to be lost: at least {share(low)}, {CARRIED[carried]}."


def repeats_sentence(total: GroupResult) -> str:
    """Return how much reruns flip, if it is known."""
    floor = total.noise_floor
    if floor.value is None:
        return "One answer per item does not show how much of the flips is noise."
    return f"Reruns of a model flip {share(floor.value)} of the items one way, by the repeats."


def readable_sentence(total: GroupResult) -> str:
    """Return the drop among pairs that are readable on both sides; empty if all are."""
    if total.readable_drop is None:
        return ""
    moved = "rose" if total.readable_drop < 0 else "fell"
    return (
        f"Where both models gave an answer, accuracy {moved} by "
        f"{points(abs(total.readable_drop))}; this is no limit, because which answers can be read "
        "changes with the model."
    )


def answer_changes_sentence(total: GroupResult) -> str:
    """Return how many wrong answers became other wrong answers; empty if none did."""
    if not total.answer_changes:
        return ""
    return f"{counted(total.answer_changes, 'wrong answer')} changed to another wrong answer."


def detectable_sentence(total: GroupResult) -> str:
    """Return the drop that would have been detected."""
    if total.detectable is None:
        return ""
    return f"A drop of {share(total.detectable)} is detected with 80% probability."


def coverage_sentence(result: ComparisonResult) -> str:
    """Return how many results paired and are scored on both sides."""
    words, coverage = pairing_sentence(result.pairing), result.total.coverage
    before, after = coverage.before, coverage.after
    if before is not None and after is not None and (before, after) != (1.0, 1.0):
        words += (
            f" Scored on both sides: {percent(before)} of the items scored before, "
            f"{percent(after)} of those scored after."
        )
    if result.total.worst_case is not None:
        worst = share(result.total.worst_case)
        words += f" If everything missing after was lost: at most {worst} lost."
    return words
