"""The published schema accepts the payloads of reports and refuses others."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

import forgetmap as fm
from forgetmap._cache import temporary_path
from forgetmap.comparison.export import write_result
from forgetmap.report import Payload
from forgetmap.report.payloads.comparison import payload_from_folder
from reports import two_runs

SCHEMA = Path(__file__).parents[2] / "docs" / "schemas" / "payload.schema.json"
COUNTS = {"a": {"n11": 20, "n10": 5, "n01": 5, "n00": 10}, "b": {"n11": 4, "n10": 1}}
TEXTS = {"question": "What?", "options": ["x", "y"], "gold": "x", "response": "x", "k": 2}


@pytest.fixture(scope="module")
def validator() -> Draft202012Validator:
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


@pytest.fixture(scope="module")
def pair() -> Any:
    """A payload that is valid."""
    return as_values(fm.make_payload(compared("pair")))


def as_values(payload: Payload) -> Any:
    return json.loads(payload.to_json())


@cache
def compared(kind: str) -> fm.Comparison | fm.FanOut | fm.Chain:
    folder = temporary_path()
    folder.mkdir()
    before, after = two_runs(folder, COUNTS, category="C", **TEXTS)
    if kind == "pair":
        return fm.compare(before, after)
    third = after.with_name("third.jsonl")
    third.write_bytes(before.read_bytes())
    return fm.compare(before, after, third) if kind == "many" else fm.chain(before, after, third)


@pytest.mark.parametrize(
    ("kind", "texts"), [("pair", True), ("pair", False), ("many", True), ("chain", True)]
)
def test_every_kind_of_report(validator: Draft202012Validator, kind: str, texts: bool) -> None:
    payload = fm.make_payload(compared(kind), texts=texts)
    assert payload.kind == kind
    validator.validate(as_values(payload))


def test_a_report_from_a_folder(validator: Draft202012Validator, tmp_path: Path) -> None:
    write_result(compared("chain"), tmp_path / "result")
    validator.validate(as_values(payload_from_folder(tmp_path / "result")))


@pytest.mark.parametrize(
    "change",
    [
        {"payload_version": 1},
        {"surprise": 1},
        {"kind": "triple"},
        {"rows": {}},
        {"items": [{"comparison": 0}]},
    ],
)
def test_nothing_else_is_a_payload(
    validator: Draft202012Validator, pair: dict[str, Any], change: dict[str, Any]
) -> None:
    assert not validator.is_valid({**pair, **change})
