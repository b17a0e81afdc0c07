"""Sentences of a comparison: one for each verdict and each thing that is added to it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

import forgetmap as fm
from forgetmap.comparison import ComparisonResult, GroupResult, phrases
from forgetmap.comparison.noise import measured_noise, typical_noise
from forgetmap.comparison.result import (
    ConfirmedResult,
    ExchangeResult,
    FamilyResult,
    LimitsResult,
)
from forgetmap.results import Notice
from small_runs import table


def result_of(lost: int, gained: int, size: int = 1000, **columns: Any) -> ComparisonResult:
    """Half of the items are right before; so many flip."""
    half = size // 2
    before = [1.0] * half + [0.0] * (size - half)
    after = [0.0] * lost + [1.0] * (half - lost + gained) + [0.0] * (size - half - gained)
    return fm.compare(table(before, **columns), table(after, **columns)).result


ENDING = "one run cannot tell noise from exchange"
SENTENCES = {
    (80, 10, 1000): "LOST: lost at least 5.3%, at most 9.8% of all items, more than the margin of "
    "2%, by the drop in accuracy",
    (30, 5, 1000): "LOST: lost at least 1.4%, at most 4.3% of all items, by the drop in accuracy",
    (20, 0, 4000): "SMALL LOSS: lost at least 0.3%, at most 0.8% of all items, within the margin "
    "of 2%, by the drop in accuracy",
    (4, 4, 2000): "NO LOSS BEYOND 2%: no loss beyond 2%: at most 0.5% of all items",
    (80, 90, 4000): "ACCURACY HELD: accuracy held: it fell by at most 0.4 points (50.0% -> 50.2%); "
    f"2.0% of the items went from right to wrong and 2.2% from wrong to right; {ENDING}",
    (400, 400, 4000): "ACCURACY HELD, ITEMS EXCHANGED: accuracy held: it fell by at most 1.4 "
    "points (50.0% -> 50.0%); 400 of the 2,000 it had right (20.0%) are wrong now, 400 others "
    f"became right; {ENDING}",
    (200, 500, 4000): "ACCURACY ROSE, ITEMS EXCHANGED: accuracy rose by at least 6.2 points (50.0% "
    "-> 57.5%); 200 of the 2,000 it had right (10.0%) are wrong now, 500 others became right; "
    f"{ENDING}",
    (5, 4, 100): "CANNOT TELL: cannot tell: between 0% and 11.3% of all items may be lost; about "
    "7,348 items would decide",
}
"""Forgotten, gained and number of items -> badge and sentence."""


@pytest.mark.parametrize("counts", SENTENCES, ids=str)
def test_one_sentence_for_each_verdict(counts: tuple[int, int, int]) -> None:
    result = result_of(*counts)
    badge, said = phrases.badge(result.total), phrases.sentence(result.total)
    assert f"{badge}: {said}" == SENTENCES[counts]
    assert result.headline == f"after: {said}."


@pytest.fixture(scope="module")
def lost() -> GroupResult:
    return result_of(80, 10).total


def limits(lost: GroupResult, **changes: Any) -> GroupResult:
    return replace(lost, loss=replace(lost.loss, **changes))


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"is_knowledge": True}, "no longer knows at least 5.3%"),
        ({"unlucky": "unanswered", "unanswered": 0.09},
         "; that may be lost luck: 9.0% are no longer answered"),
        ({"unlucky": "letters_moved"},
         "; that may be lost luck: it does not hold when answers are weighed by position"),
        ({"unlucky": "too_small"}, "; that may be lost luck: the drop of all items is too small"),
        ({"unlucky": "guesses_count"},
         "; guesses that changed for good count here: 1.0% became right"),
        ({"family": FamilyResult(name="tasks", size=57)}, "by the drop in accuracy"),
    ],
)  # fmt: skip
def test_what_is_added_to_a_loss(lost: GroupResult, changes: dict[str, Any], part: str) -> None:
    assert part in phrases.sentence(replace(lost, **changes))


def test_what_carries_a_loss_and_what_it_assumes(lost: GroupResult) -> None:
    for name, words in phrases.CARRIED.items():
        found = phrases.sentence(limits(lost, carried_by=name))
        assert (f", {words}" in found) == (name != "stated")
    stated = phrases.sentence(limits(lost, carried_by="stated", assumes="guesses are blind"))
    assert stated.startswith("if guesses are blind, lost at least 5.3%")
    among = replace(limits(lost, q=0.0012), family=FamilyResult(name="tasks", size=57))
    assert phrases.sentence(among).endswith("; significant among 57 tasks (q = 0.0012)")


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ([0.0] * 60, [1.0] * 60, "no answer was right before, so nothing could be lost"),
        ([1.0] * 60, [0.0] * 60,
         "the model before has all 60 items right, as if it had helped to choose them"),
        ([1.0] * 60, [None] * 60, "no item is scored on both sides"),
    ],
)  # fmt: skip
def test_why_nothing_can_be_concluded(
    before: list[float], after: list[float | None], said: str
) -> None:
    result = fm.compare(table(before), table(after)).result
    assert phrases.sentence(result.total, result.pairing) == f"cannot tell: {said}"
    assert phrases.interval(result.total) == ""


def test_a_contradiction_is_named_first(lost: GroupResult) -> None:
    pairing = replace(
        result_of(1, 1).pairing,
        contradictions=[Notice("totals", "b.json states 9 of 10 right, but 3 are."),
                        Notice("totals", "b.json states 11 items, but has 10.")],
    )  # fmt: skip
    said = phrases.sentence(replace(lost, undecided="contradicted"), pairing)
    assert said.startswith("cannot tell: b.json states 9 of 10 right, but 3 are")


def test_passages_that_held_are_said_where_unseen_ones_leave_it_open() -> None:
    """120 passages of 12 items, nothing changed: 3.7 / 120 is open."""
    scores = [float(n % 12 > 0) for n in range(1440)]
    names = [f"{n // 12}" for n in range(1440)]
    before, after = (table(scores, cluster=names) for _ in range(2))
    total = fm.compare(before, after).result.total
    assert (total.verdict, total.held_here) == ("cannot_tell", True)
    assert phrases.sentence(total).endswith(
        "; on these passages accuracy held, unseen ones may differ"
    )
    alone = result_of(5, 4, 100).total
    assert not alone.held_here


def test_the_noise_it_would_take() -> None:
    large = result_of(400, 400, 4000).total
    assert large.exchange is not None
    said = phrases.noise_sentence(large)
    assert "If reruns flip at most 3.0%, at least 6.1% was lost." in said
    assert "Reruns would have to flip 9.1% of the items one way to explain it" in said
    little = replace(large, exchange=ExchangeResult(noise_needed=0.021, rose_by=0.0, is_large=True))
    assert phrases.noise_sentence(little).startswith("Reruns would have to flip 2.1%")
    assert phrases.noise_sentence(result_of(5, 4, 100).total) == ""


def test_gains_are_told_in_the_same_way() -> None:
    total = result_of(10, 80).total
    assert phrases.gain_sentence(total) == (
        "gained at least 5.3% of all items, by the rise in accuracy"
    )
    assert phrases.gain_sentence(result_of(80, 10).total) == ""


def test_counts_reasons_and_pairing() -> None:
    total = result_of(2, 1, 8).total
    assert phrases.counts_sentence(total) == (
        "2 forgotten, 1 gained of 8 items; accuracy 50.0% -> 37.5% (-12.5%)."
    )
    assert phrases.counts_sentence(replace(total, items=4)).startswith(
        "2 forgotten, 1 gained of 8 answers"
    )
    reasons: dict[str, int | None] = {
        **dict.fromkeys(total.reasons, 0),
        "wrong": 2,
        "truncated": 5,
        "unknown": 1,
    }
    assert phrases.reasons_sentence(replace(total, n10=8, reasons=reasons)) == (
        "Why 8 were forgotten: cut at the token limit 5, wrong answer 2, not recorded 1."
    )
    assert phrases.reasons_sentence(total) == "Why 2 were forgotten is not recorded."
    assert phrases.reasons_sentence(replace(total, n10=0)) == "Nothing was forgotten."
    part = fm.compare(table([1]), table([1, 1, 0]), min_paired=0.3).result.pairing
    assert phrases.pairing_sentence(part) == "Paired 1 of 1 result before and 3 after."
    whole = fm.compare(table([1, 0]), table([1, 1])).result.pairing
    assert phrases.pairing_sentence(whole) == "All 2 results of both sides paired."


def test_confirmed_flips_are_counted(lost: GroupResult) -> None:
    held = ConfirmedResult(flips=80, asked=80, held=61.0)
    assert phrases.confirmed_sentence(replace(lost, confirmed=held)) == (
        "Of 80 flips, 61 held in the fresh answers."
    )
    part = ConfirmedResult(flips=80, asked=40, held=30.5)
    assert "(40 asked again), 30 held" in phrases.confirmed_sentence(replace(lost, confirmed=part))
    assert phrases.confirmed_sentence(lost) == ""


# ---------------------------------------------------------------------------- next steps


@pytest.mark.parametrize(
    ("lost", "gained", "size", "commands"),
    [
        (80, 10, 1000, ["report", "export replay", "merge sweep"]),
        (20, 0, 4000, ["report"]),
        (4, 4, 2000, ["gate"]),
        (400, 400, 4000, ["confirm"]),
        (5, 4, 100, ["confirm", "plan"]),
        (0, 0, 60, ["plan"]),
    ],
)
def test_what_next(lost: int, gained: int, size: int, commands: list[str]) -> None:
    result = result_of(lost, gained, size)
    steps = phrases.next_steps(result)
    assert [step.command for step in steps] == commands
    if commands[0] == "confirm":
        assert result.total.decides is not None
        assert steps[0].words.startswith(f"confirm the {lost} flips: {2 * lost} answers")
    known = {"confirm": "forgetmap confirm a b"}
    assert steps[0].text(known) == f"{steps[0].words} (`{known.get(commands[0])}`)" or (
        commands[0] not in known
    )


def test_confirming_again_is_not_proposed() -> None:
    result = result_of(400, 400, 4000)
    again = replace(result.total, confirmed=ConfirmedResult(flips=400, asked=400, held=3.0))
    commands = [step.command for step in phrases.next_steps(replace(result, total=again))]
    assert "confirm" not in commands


def test_a_task_that_lost_is_looked_at_where_all_items_did_not() -> None:
    sides = [
        pa.concat_tables([
            table([float(n % 2) for n in range(20_000)], task="large"),
            table([0.0] * (40 if side else 1) + [1.0] * (60 if side else 99), task="small"),
        ])
        for side in (0, 1)
    ]  # fmt: skip
    result = fm.compare(sides[0], sides[1]).result
    assert result.total.verdict in ("small_loss", "no_material_loss")
    assert phrases.next_steps(result)[0].words == "look at the 1 task that lost something"
    assert phrases.tasks_sentence(result.tasks) == "1 of 2 tasks lost something: small."


def test_easy_or_chosen_items_offer_both_ways() -> None:
    scores = [1.0] * 60
    result = fm.compare(table(scores), table([0.0] * 20 + scores[20:])).result
    confirmed, again, easy = phrases.next_steps(result)
    assert (confirmed.command, easy.command) == ("confirm", "compare --not-selected")
    assert again.words == "compare another run of the model before on these items"
    stated = fm.compare(table(scores), table([0.0] * 20 + scores[20:]), selected=True).result
    assert phrases.sentence(stated.total).endswith("so what it has right is lucky")
    assert [step.command for step in phrases.next_steps(stated)] == ["confirm", ""]


def test_accuracy_is_that_of_all_answers() -> None:
    """As in the table; a repeat of the model before has more right answers than its first run."""
    before, after = [0.0, 1.0] * 500, [1.0] * 5 + [0.0, 1.0] * 497 + [0.0]
    again = table([0.0, 1.0] * 450 + [1.0] * 100)
    total = fm.compare(table(before), table(after), noise=again).result.total
    assert (total.acc_before, total.acc_after) == (0.525, 0.502)
    assert "accuracy 52.5% -> 50.2% (-2.3%)" in phrases.counts_sentence(total)


def test_the_range_of_measured_noise_has_only_known_decoding() -> None:
    assert {row.decoding for row in measured_noise()} == {"greedy", "sampled", "unknown"}
    assert typical_noise() == "greedy 1 to 1.8%, sampled at T = 0.7 0.6 to 11.4%"


def test_an_exchange_of_unpaired_repeats_has_no_share_of_nothing(lost: GroupResult) -> None:
    """Right answers may be among the repeats that the other side lacks."""
    none = replace(
        lost, verdict="no_net_loss", n11=0, n10=0, forgotten=0,
        loss=LimitsResult(low=0.0, high=0.1, carried_by="drop", p=1.0),
        exchange=ExchangeResult(noise_needed=0.05, rose_by=-0.1, is_large=True),
    )  # fmt: skip
    assert "went from right to wrong" in phrases.sentence(none)
