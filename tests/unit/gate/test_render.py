"""The text of a gate's result: a badge, one sentence, one table, and the next command."""

from __future__ import annotations

import pyarrow as pa

from forgetmap.gate import GatePolicy, GateRule, HistoryResult, run_gate, tell_history, tell_policy
from forgetmap.gate.render import tell_gate
from forgetmap.gate.result import GateResult
from forgetmap.text import blocks_to_text
from releases import BAD, CLOSE, GOOD, Cells, one_task, release
from small_runs import table


def text(result: GateResult, *, explain: bool = False) -> str:
    return blocks_to_text(tell_gate(result, explain=explain), 80)


def test_the_status_comes_first_and_the_sentence_next() -> None:
    first, second, _, counts, *_ = text(run_gate(*one_task(BAD))).splitlines()
    assert first.strip() == "FAIL  before -> after"
    assert second.startswith("Loss: lost at least 8.7%, at most 11.4% of all items, more than the")
    assert counts == "200 forgotten, 0 gained of 2,000."


def test_counts_of_repeats_are_those_of_answers() -> None:
    before, after = (
        pa.concat_tables(
            [
                table(scores, repeat=[n] * 400, response=[f"drawn {n} {m}" for m in range(400)])
                for n in range(3)
            ]
        )
        for scores in ([1.0] * 300 + [0.0] * 100, [0.0] * 30 + [1.0] * 270 + [0.0] * 100)
    )
    assert run_gate(before, after).counts == "90 forgotten, 0 gained of 1,200 answers."


def test_what_to_type_next_depends_on_the_status() -> None:
    for cells, command in (
        (GOOD, "gate accept"),
        (BAD, "export replay"),
        (CLOSE, "items, to see on which side of the margin it is"),
        (Cells(kept=1000, lost=200, gained=400, never=400), "(command: confirm)"),
        (Cells(kept=900, lost=50, gained=50, never=100), "(command: run --repeats 3)"),
        (Cells(kept=1400), "(command: gate --not-selected)"),
    ):
        assert command in " ".join(text(run_gate(*one_task(cells))).split())


def test_the_decision_is_a_field_beside_the_headline() -> None:
    result = run_gate(*one_task(BAD))
    assert result.headline == f"{result.status}: {result.decision}"
    changed = result.model_copy(update={"headline": "for others"})
    assert text(changed) == text(result)


def test_failed_checks_stand_above_the_others() -> None:
    tasks = {"a": GOOD, "b": CLOSE, "c": BAD}
    policy = GatePolicy(rule=(GateRule(scope="task"),))
    lines = text(run_gate(*release(tasks), policy=policy)).splitlines()
    table = [line.split()[2] for line in lines if line.startswith("loss of ")]
    assert table == ["c", "b", "a"]


def test_explain_says_every_check_as_a_sentence() -> None:
    result = run_gate(*one_task(GOOD))
    assert "no loss beyond 2%: at most 0.2% of all items." in text(result, explain=True)


def test_every_rule_of_a_policy_is_a_sentence() -> None:
    rules = (
        GateRule(),
        GateRule(scope="category", tier="warning", margin=0.05),
        GateRule(name="exchange", accept="net"),
        GateRule(quantity="net_change", tier="info"),
        GateRule(scope="capability", quantity="drift", groups=("C1",), tier="info"),
    )
    lines = blocks_to_text(
        tell_policy(GatePolicy(rule=rules, required_tasks=("facts",))), 200
    ).splitlines()
    assert lines[1:6] == [
        "- The loss of all items must be below 2%: otherwise the release is blocked.",
        "- The loss of every category must be below 5%: otherwise a warning is shown.",
        (
            "- The loss of all items, or the accuracy drop, must be below 2%: otherwise the "
            "release is blocked."
        ),
        "- The accuracy drop of all items must be below 2%: shown only.",
        "- Drift of the capability C1 must be below an effect of 0.02: shown only.",
    ]
    assert "Required: facts; a release without one of them fails." in " ".join(lines)


def test_a_history_without_decisions_says_so() -> None:
    empty = HistoryResult(releases=[], recurring=[], escaped=[])
    assert blocks_to_text(tell_history(empty)) == "No decisions recorded yet."
