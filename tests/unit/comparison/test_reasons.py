"""Reasons for forgotten items, from the outcomes of their answers after."""

from __future__ import annotations

import pyarrow as pa
import pytest

import forgetmap as fm
from small_runs import table

FAILURES = ("no_answer", "refused", "truncated", "degenerate", "misread")
REASONS = ("wrong", *FAILURES, "unknown")


def reasons(outcomes: list[str | None] | None) -> dict[str, int | None]:
    """Of items that were all right before; with these outcomes after, or none recorded."""
    n = 3 if outcomes is None else len(outcomes)
    scores = [0.0] * n
    after = table(scores) if outcomes is None else table(scores, outcome=outcomes)
    return fm.compare(table([1.0] * n), after).result.total.reasons


def test_every_way_of_ending_is_counted_by_its_name() -> None:
    found = reasons(["incorrect", *FAILURES, "refused"])
    assert found == {
        "wrong": 1, "no_answer": 1, "refused": 2, "truncated": 1, "degenerate": 1, "misread": 1,
        "unknown": 0,
    }  # fmt: skip


def test_what_nobody_recorded_is_null_not_zero() -> None:
    assert reasons(None) == {name: 3 if name == "unknown" else None for name in REASONS}
    assert reasons([None, None]) == {name: 2 if name == "unknown" else None for name in REASONS}


def test_a_partly_recorded_outcome_counts_what_it_knows() -> None:
    found = reasons(["refused", None])
    assert (found["refused"], found["unknown"], found["wrong"]) == (1, 1, 0)


@pytest.mark.parametrize("outcome", ["incorrect", "partial", "correct"])
def test_an_answer_below_the_threshold_is_a_wrong_answer_whatever_it_is_called(
    outcome: str,
) -> None:
    after = table([0.4], outcome=[outcome])
    assert fm.compare(table([1.0]), after).result.total.reasons["wrong"] == 1


def test_nothing_lost_means_zero_for_every_reason() -> None:
    result = fm.compare(table([1, 0]), table([1, 1])).result
    assert result.total.reasons == dict.fromkeys(REASONS, 0)


def test_only_lost_items_have_a_reason() -> None:
    before = table([1.0, 0.0, 0.0], outcome=["correct", "refused", "truncated"])
    after = table([0.0, 0.0, 1.0], outcome=["degenerate", "refused", "correct"])
    found = fm.compare(before, after).result.total.reasons
    assert {name: count for name, count in found.items() if count} == {"degenerate": 1}


def test_errors_and_unscored_items_are_missing_never_lost() -> None:
    after = table([None, None, 0.0], outcome=["error", "unscored", "incorrect"])
    result = fm.compare(table([1.0, 1.0, 1.0]), after, min_paired=0.3).result
    assert (result.total.n, result.total.n10, result.pairing.unscored) == (1, 1, 2)


def test_each_task_has_its_own_reasons() -> None:
    before = pa.concat_tables([table([1.0], task=task) for task in ("a", "b")])
    after = pa.concat_tables(
        [table([0.0], task=t, outcome=[o]) for t, o in (("a", "refused"), ("b", None))]
    )
    a, b = fm.compare(before, after).result.tasks
    assert (a.reasons["refused"], a.reasons["unknown"]) == (1, 0)
    assert (b.reasons["refused"], b.reasons["unknown"]) == (None, 1)
