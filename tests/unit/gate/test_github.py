from __future__ import annotations

import re

from forgetmap.gate import as_annotations
from gate_results import HOSTILE, make_check, make_group, make_result, make_waiver


def levels(lines: list[str]) -> list[str]:
    return [line.split(" ")[0].strip(":") for line in lines]


def test_a_gate_that_passes_is_one_notice() -> None:
    lines = as_annotations(make_result(make_check(), make_group("maths")))
    assert lines == ["::notice title=forgetmap gate%3A PASS::PASS: because."]


def test_tiers_are_levels() -> None:
    checks = [
        make_group("law", "INCONCLUSIVE", "info"),
        make_group("maths", "FAIL"),
        make_check("FAIL"),
    ]
    lines = as_annotations(make_result(*checks, status="FAIL"))
    assert levels(lines) == ["error", "error", "warning", "notice"]
    assert lines[1].startswith(
        "::error title=FAIL%3A loss::the sentence of FAIL%0Alost 2.2%25 to 4.0%25, margin 2%25, "
        "31 forgotten, 2 gained"
    )


def test_an_open_gate_and_missing_tasks_are_errors() -> None:
    lines = as_annotations(make_result(status="INCONCLUSIVE", missing_tasks=["gsm8k"]))
    assert levels(lines) == ["error", "error"]
    assert lines[1].endswith("::the task gsm8k is missing")


def test_waivers_are_seen() -> None:
    lines = as_annotations(make_result(make_check(waiver=make_waiver())))
    assert levels(lines) == ["warning", "notice"]
    assert lines[0].startswith("::warning title=waived%3A loss::")


def test_no_name_can_be_a_command() -> None:
    result = make_result(make_group(HOSTILE, "FAIL", sentence=HOSTILE), status="FAIL")
    for line in as_annotations(result):
        assert "\n" not in line
        assert "\r" not in line
        assert "\x1b" not in line
        match = re.fullmatch(r"::(error|warning|notice) title=([^:,]*)::(.*)", line)
        assert match is not None
    assert "%250A" in line


def test_what_github_would_drop_is_counted() -> None:
    checks = [make_group(f"g{number}", "FAIL") for number in range(30)]
    lines = as_annotations(make_result(*checks, status="FAIL"))
    assert levels(lines).count("warning") == 10
    assert "and 21 checks more" in lines[-1]
