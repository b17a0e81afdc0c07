from __future__ import annotations

import re

import pytest

from forgetmap.gate import as_comment
from forgetmap.gate.markdown import MARKER, MOST_LETTERS
from forgetmap.gate.result import ForgottenItem, LookResult
from forgetmap.results import Notice
from gate_results import HOSTILE, make_check, make_group, make_result, make_waiver


def rows(text: str) -> list[list[str]]:
    """The cells of all tables, without what is escaped."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [re.split(r"(?<!\\)\|", line)[1:-1] for line in lines]


def test_it_begins_with_the_marker_and_the_decision() -> None:
    lines = as_comment(make_result(make_check("FAIL"), status="FAIL")).splitlines()
    assert lines[0] == MARKER
    assert lines[2] == "## ❌ forgetmap gate: FAIL"
    assert lines[4] == "FAIL: because."


def test_it_says_what_was_held_against_what() -> None:
    footer = as_comment(make_result(make_check())).splitlines()[-1]
    assert "`main` → `candidate`" in footer
    assert f"policy `default` (sha256 `{'0' * 64}`)" in footer
    assert "95.0% intervals" in footer
    assert "forgetmap 0.1.0" in footer
    assert "look" not in footer


def test_several_looks_are_named() -> None:
    planned = LookResult(number=2, planned=5, level=0.99)
    free = LookResult(number=2, planned=None, level=0.99)
    assert "look 2 of 5" in as_comment(make_result(look=planned))
    assert "look 2 of any number" in as_comment(make_result(look=free))


def test_what_matters_is_open_and_the_rest_is_folded() -> None:
    checks = [
        make_check("PASS"),
        make_check("FAIL", rule="net change"),
        make_group("maths", "INCONCLUSIVE"),
        make_group("law"),
        make_group("art", "FAIL", "info"),
    ]
    text = as_comment(make_result(*checks, status="FAIL"))
    shown, folded = text.split("<details><summary>All other checks (2)</summary>")
    assert shown.index("net change") < shown.index("| loss |")
    assert "loss of maths" in shown
    assert "loss of law" in folded
    assert "loss of art" in folded
    assert text.count("<details>") == text.count("</details>") == 2


def test_counts_and_what_would_decide_are_told() -> None:
    counts = {"forgotten": 31, "gained": 2, "compared": 1000}
    text = as_comment(make_result(make_check("INCONCLUSIVE"), status="INCONCLUSIVE", **counts))
    assert "31 forgotten, 2 gained of 1,000." in text
    assert "confirm the 31 flips: 62 answers, which can prove a loss of up to 2.5%" in text
    assert "What next" not in as_comment(make_result(make_check()))


def test_missing_tasks_waivers_and_notices_are_told() -> None:
    result = make_result(make_check(waiver=make_waiver()), status="FAIL", missing_tasks=["gsm8k"])
    text = as_comment(result)
    assert "- required task is missing: gsm8k" in text
    assert "waiver applied: Ada" in text
    assert "**1 check passed only because of a waiver.**" in text
    assert "✅ PASS (waived)" in text
    assert "another template" in text


def test_the_first_forgotten_items_are_listed() -> None:
    items = [ForgottenItem(task="gsm8k", item=f"i`{n}") for n in range(3)]
    result = make_result(make_check("FAIL"), status="FAIL", forgotten=40, forgotten_items=items)
    text = as_comment(result)
    assert "<details><summary>Forgotten items (3 of 40)</summary>" in text
    assert "- gsm8k: ``i`0``" in text


def test_no_name_is_html_a_mention_a_link_or_a_cell() -> None:
    check = make_group(HOSTILE, "FAIL", "blocking", sentence=HOSTILE)
    notes = [Notice("x", HOSTILE)]
    result = make_result(
        check,
        status="FAIL",
        headline=HOSTILE,
        missing_tasks=[HOSTILE],
        warnings=notes,
        forgotten_items=[ForgottenItem(task=HOSTILE, item="x")],
    )
    text = as_comment(result)
    assert "<b>" not in text
    assert not re.search(r"@\w", text)
    assert not re.search(r"[^\w]#\d|GH-\d|https://", text)
    assert not re.search(r"(?<!\\)\[y", text)
    assert "\x1b" not in text
    assert {len(row) for row in rows(text)} == {6}


@pytest.mark.parametrize("letter", ["x", "|", "&", "@a", "数", "🙂"])
def test_it_is_never_too_long(letter: str) -> None:
    name = 500 * letter
    checks = [
        make_group(f"{number}{name}", status, tier, sentence=name)
        for tier in ("blocking", "warning", "info")
        for status in ("FAIL", "INCONCLUSIVE", "PASS")
        for number in range(60)
    ]
    result = make_result(
        *checks,
        status="FAIL",
        headline=20 * name,
        missing_tasks=200 * [name],
        warnings=200 * [Notice("x", name)],
        forgotten_items=200 * [ForgottenItem(task=name, item=name)],
    )
    text = as_comment(result)
    assert len(text.encode()) < MOST_LETTERS
    shown = len([row for row in rows(text) if row[0].startswith(" loss of ")])
    left = sum(
        int(count.replace(",", "")) for count in re.findall(r"and ([\d,]+) checks? more", text)
    )
    assert shown + left == len(checks)
    assert "and 1" in text


def test_a_gate_of_many_short_checks_is_cut_at_what_passes() -> None:
    checks = [make_check(rule=f"rule {n}", status="PASS") for n in range(2000)]
    checks.append(make_check(rule="the bad one", status="FAIL"))
    text = as_comment(make_result(*checks, status="FAIL"))
    assert "the bad one" in text
