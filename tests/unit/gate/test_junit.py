from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from forgetmap.errors import OutputError
from forgetmap.gate import CheckResult, GateResult, as_junit, write_junit
from forgetmap.gate.result import LookResult
from forgetmap.results import Notice
from gate_results import HOSTILE, make_check, make_group, make_result, make_waiver


def parse(result: GateResult) -> ET.Element:
    return ET.fromstring(as_junit(result))


def kinds(result: GateResult) -> dict[str, list[str]]:
    """Of every test case, the elements that say how it went."""
    return {
        case.get("name", ""): [part.tag for part in case if part.tag != "system-out"]
        for case in parse(result).iter("testcase")
    }


@pytest.mark.parametrize(
    ("check", "kind"),
    [
        (make_check("PASS"), []),
        (make_check("FAIL"), ["failure"]),
        (make_check("INCONCLUSIVE"), ["error"]),
        (make_check("FAIL", "warning"), ["skipped"]),
        (make_check("INCONCLUSIVE", "warning"), ["skipped"]),
        (make_check("FAIL", "info"), ["skipped"]),
        (make_check("PASS", "info"), []),
    ],
)
def test_only_blocking_checks_make_a_build_red(check: CheckResult, kind: list[str]) -> None:
    assert kinds(make_result(check))["loss"] == kind


def test_suites_count_their_cases() -> None:
    checks = [
        make_check("FAIL"),
        make_check("INCONCLUSIVE", rule="net change"),
        make_group("maths", "FAIL"),
        make_group("law"),
    ]
    root = parse(make_result(*checks, status="FAIL", missing_tasks=["gsm8k"]))
    counts = ("tests", "failures", "errors", "skipped")
    assert [(suite.get("name"), *map(suite.get, counts)) for suite in root] == [
        ("blocking", "3", "2", "1", "0"),
        ("warning", "2", "0", "0", "1"),
    ]
    assert [root.get(name) for name in counts[:3]] == ["5", "2", "1"]


def test_an_open_check_says_so_by_its_type() -> None:
    error = parse(make_result(make_check("INCONCLUSIVE"))).find(".//error")
    assert error is not None
    assert error.get("type") == "INCONCLUSIVE"
    assert error.get("message") == "the sentence of INCONCLUSIVE"
    assert "lost 2.2% to 4.0%, margin 2%, 31 forgotten, 2 gained, 1,000 items" in (error.text or "")


def test_a_missing_task_fails() -> None:
    result = make_result(make_check(), status="FAIL", missing_tasks=["gsm8k"])
    assert kinds(result) == {"required task gsm8k": ["failure"], "loss": []}


def test_runs_that_cannot_be_compared_are_errors() -> None:
    reason = Notice("refused", "only 3 of 1,000 items are paired")
    check = make_check("INCONCLUSIVE", sentence=reason.message, reasons=[reason])
    result = make_result(check, status="INCONCLUSIVE", before=None, after=None)
    assert kinds(result) == {"loss": ["error"]}


@pytest.mark.parametrize("checks", [[make_check()], []])
def test_a_gate_that_fails_without_a_check_is_still_red(checks: list[CheckResult]) -> None:
    look = LookResult(number=6, planned=5, level=0.99)
    result = make_result(*checks, status="INCONCLUSIVE", look=look)
    assert kinds(result)["gate"] == ["error"]
    root = parse(result)
    assert root.get("errors") == "1"


def test_a_gate_that_passes_has_no_case_of_its_own() -> None:
    assert "gate" not in kinds(make_result(make_check()))


def test_a_waived_check_is_neither_red_nor_green_and_says_who_waived_it() -> None:
    assert kinds(make_result(make_check(waiver=make_waiver())))["loss"] == ["skipped"]
    assert kinds(make_result(make_check(waiver=make_waiver("not needed"))))["loss"] == []
    assert kinds(make_result(make_check("FAIL", waiver=make_waiver("expired"))))["loss"] == [
        "failure"
    ]
    out = parse(make_result(make_check(waiver=make_waiver()))).find(".//system-out")
    assert out is not None
    assert "waiver applied: Ada, up to 5% until 2030-01-31: new tokenizer" in (out.text or "")


def test_two_checks_of_one_name_are_told_apart() -> None:
    checks = [make_group("maths", rule=f"loss, {kind}") for kind in ("strict", "loose")]
    assert list(kinds(make_result(*checks))) == [
        "loss of maths (loss, strict)",
        "loss of maths (loss, loose)",
    ]


def test_no_name_can_break_the_file() -> None:
    name = f"{HOSTILE}\x00\ud800]]>\ufffe"
    result = make_result(make_group(name, "FAIL", "blocking", sentence=name), missing_tasks=[name])
    text = as_junit(result)
    assert "\x1b" not in text
    assert "\x00" not in text
    assert len(list(parse(result).iter("testcase"))) == 2
    assert "<b>x</b>" not in text


def test_the_file_is_utf_8(tmp_path: Path) -> None:
    path = tmp_path / "gate.xml"
    result = make_result(make_group("Mathé 数学"))
    write_junit(result, path)
    assert path.read_bytes().decode("utf-8") == as_junit(result)


def test_a_file_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="cannot write"):
        write_junit(make_result(), tmp_path / "none" / "gate.xml")
