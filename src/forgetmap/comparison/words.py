"""Sentences of a comparison."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from forgetmap.comparison.result import GroupResult, PairingResult
from forgetmap.pairing import Measure
from forgetmap.text import counted, listed, percent

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
PART_WORDS = {"knowledge": "it no longer knows", "answering": "it no longer answers"}
"""Part of a loss -> its words in sentences."""


def counts_sentence(before: str, after: str, total: GroupResult) -> str:
    """Return the counts in one sentence."""
    known = total.n11 + total.n10
    if not total.n:
        return f"No result: no item is scored in both {before} and {after}."
    if not known:
        return (
            f"{before} had none of the {counted(total.n, _noun(total))} right, so nothing could "
            f"be forgotten; {after} gained {_number(total.n01)}."
        )
    share = f" ({percent(total.n10 / known)})" if total.n10 else ""
    return (
        f"{after} forgot {_number(total.n10)} of the {counted(known, _noun(total))} that {before} "
        f"had right{share} and gained {_number(total.n01)}. {_accuracy_sentence(total)}"
    )


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


def _number(count: int) -> str:
    return f"{count:,}" if count else "none"


def _noun(total: GroupResult) -> str:
    return "item" if total.items == total.n else "answer"


def _accuracy_sentence(total: GroupResult) -> str:
    """State how much of the loss the accuracy shows: each gained item hides a forgotten one."""
    before, after = percent(total.acc_before), percent(total.acc_after)
    drop = total.n10 - total.n01
    move = f"fell from {before} to {after}" if drop > 0 else f"rose from {before} to {after}"
    accuracy = f"Accuracy {move if drop else f'stayed at {before}'}"
    if not total.n10:
        return f"{accuracy}."
    losses = "this loss" if total.n10 == 1 else "these losses"
    if drop <= 0:
        return f"{accuracy}, which hides {losses}."
    if drop < total.n10:
        return f"{accuracy}, which shows only {drop:,} of {losses}."
    return f"{accuracy}, which shows {'' if total.n10 == 1 else 'all of '}{losses}."
