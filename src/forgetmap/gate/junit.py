"""The result of a gate as JUnit XML, which continuous integration shows as test results.

There is no official schema. The output is valid by two schemas of Jenkins: `junit-4.xsd` of its
dtkit, and `junit-10.xsd` of its xUnit plugin, which allows more.

docs/gate-ci.md says how readers show each kind of check. The reason for a skip is the text of its
element, not an attribute: `junit-4.xsd` allows no other place, and readers accept either.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import get_args
from xml.etree import ElementTree as ET

from forgetmap.gate.check_text import check_lines, figures, is_waived, unexplained
from forgetmap.gate.result import CheckResult, GateResult, Tier
from forgetmap.records import writable

_UNSAFE = re.compile("[^\t\n\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 forbids or advises against: control characters and surrogates."""
_CLASS = "forgetmap.gate"


def write_junit(result: GateResult, path: str | Path) -> None:
    """Write the result of a gate as JUnit XML.

    Raises:
        OutputError: the file cannot be written.
    """
    path = Path(path)
    with writable(path):
        path.write_bytes(as_junit(result).encode())


def as_junit(result: GateResult) -> str:
    """Format the result as JUnit XML: a suite for each tier, a test case for each check."""
    root = ET.Element("testsuites", name="forgetmap gate")
    names = _names(result)
    for number, tier in enumerate(get_args(Tier)):
        cases = list(_cases(result, tier, names))
        if cases or tier == "blocking":
            root.append(_suite(result, tier, number, cases))
    for name in ("tests", "failures", "errors"):
        root.set(name, str(sum(int(suite.get(name, "0")) for suite in root)))
    ET.indent(root)
    body = ET.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{body}\n'


def _suite(result: GateResult, tier: Tier, number: int, cases: list[ET.Element]) -> ET.Element:
    def count(kind: str) -> str:
        return str(sum(case.find(kind) is not None for case in cases))

    suite = ET.Element(
        "testsuite",
        name=tier,
        id=str(number),
        tests=str(len(cases)),
        failures=count("failure"),
        errors=count("error"),
        skipped=count("skipped"),
        time="0",
        timestamp=result.created[:19],
    )
    properties = ET.SubElement(suite, "properties")
    for name, value in _facts(result):
        ET.SubElement(properties, "property", name=name, value=_safe(value))
    suite.extend(cases)
    return suite


def _facts(result: GateResult) -> Iterator[tuple[str, str]]:
    look = result.look
    yield "status", result.status
    yield "headline", result.headline
    yield "policy", result.policy.origin
    yield "policy sha256", result.policy.hash
    yield "look", f"{look.number} of {'any number' if look.planned is None else look.planned}"
    yield "level", f"{look.level:g}"
    yield "forgetmap", result.forgetmap
    for side, run in (("before", result.before), ("after", result.after)):
        if run is not None:
            yield side, run.origin
    for notice in result.warnings:
        yield f"note {notice.code}", notice.message


def _names(result: GateResult) -> dict[int, str]:
    """Return the names of checks by object id; equal names get the rule added."""
    seen = Counter((check.tier, check.scope, check.name) for check in result.checks)
    return {
        id(check): check.name
        if seen[check.tier, check.scope, check.name] == 1
        else f"{check.name} ({check.rule})"
        for check in result.checks
    }


def _cases(result: GateResult, tier: Tier, names: dict[int, str]) -> Iterator[ET.Element]:
    if tier == "blocking":
        for task in result.missing_tasks:
            message = f"the required task {task} is missing"
            case = _case(tier, "required_task", f"required task {task}")
            _add(case, "failure", message, [message], kind="MISSING_TASK")
            yield case
        if unexplained(result):
            case = _case(tier, "gate", "gate")
            kind = "failure" if result.status == "FAIL" else "error"
            _add(case, kind, result.headline, [result.headline], kind=result.status)
            yield case
    for check in result.of_tier(tier):
        yield _check_case(check, names[id(check)])


def _check_case(check: CheckResult, name: str) -> ET.Element:
    case = _case(check.tier, check.scope, name)
    lines = check_lines(check)
    if is_waived(check) or (check.tier != "blocking" and check.status != "PASS"):
        ET.SubElement(case, "skipped").text = _safe(lines[0])
    elif check.status != "PASS":
        kind = "failure" if check.status == "FAIL" else "error"
        _add(case, kind, check.sentence, [check.sentence, figures(check)], kind=check.status)
    ET.SubElement(case, "system-out").text = _safe("\n".join(lines))
    return case


def _case(tier: Tier, what: str, name: str) -> ET.Element:
    return ET.Element(
        "testcase", classname=f"{_CLASS}.{tier}.{what}", name=_safe(name, one_line=True), time="0"
    )


def _add(case: ET.Element, tag: str, message: str, lines: list[str], *, kind: str) -> None:
    element = ET.SubElement(case, tag, type=kind, message=_safe(message, one_line=True))
    element.text = _safe("\n".join(lines))


def _safe(text: str, *, one_line: bool = False) -> str:
    words = " ".join(text.split()) if one_line else text
    return _UNSAFE.sub("\N{REPLACEMENT CHARACTER}", words)
