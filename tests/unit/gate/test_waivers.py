"""Waivers are read strictly, and only for existing rules."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from forgetmap.errors import FieldError, MissingInputError
from forgetmap.gate import GatePolicy, GateRule, Waiver, read_waivers, run_gate
from releases import BAD, GOOD, one_task, release

FIELDS = {
    "rule": '"loss"',
    "owner": '"ada"',
    "reason": '"a known regression"',
    "ceiling": "0.15",
    "expires": "2026-12-01",
}


def write(path: Path, **fields: str) -> Path:
    file = path / "waivers.toml"
    lines = [f"{name} = {value}" for name, value in fields.items()]
    file.write_text("\n".join(["[[waiver]]", *lines]), encoding="utf-8")
    return file


def test_a_waiver_has_an_owner_a_reason_a_ceiling_and_an_end(tmp_path: Path) -> None:
    (waiver,) = read_waivers(write(tmp_path, **FIELDS))
    assert (waiver.owner, waiver.ceiling, waiver.expires) == ("ada", 0.15, date(2026, 12, 1))
    assert waiver.origin.endswith("waivers.toml, waiver 1")


@pytest.mark.parametrize("name", FIELDS)
def test_none_of_its_fields_may_be_left_out(tmp_path: Path, name: str) -> None:
    path = write(tmp_path, **{field: FIELDS[field] for field in FIELDS if field != name})
    with pytest.raises(FieldError) as error:
        read_waivers(path)
    assert (error.value.file, error.value.field) == (str(path), f"waiver[1].{name}")


@pytest.mark.parametrize(
    "fields",
    [
        {"expires": '"soon"'},
        {"ceiling": "0"},
        {"owner": '""'},
        {"reason": '" "'},
        {"ceiling": "true"},
        {"until": "2026-12-01"},
    ],
)
def test_what_cannot_be_used_is_an_error(tmp_path: Path, fields: dict[str, str]) -> None:
    with pytest.raises(FieldError):
        read_waivers(write(tmp_path, **{**FIELDS, **fields}))


def test_a_file_without_waivers_and_one_that_is_not_there_differ(tmp_path: Path) -> None:
    (tmp_path / "empty.toml").touch()
    assert read_waivers(tmp_path / "empty.toml") == ()
    with pytest.raises(MissingInputError):
        read_waivers(tmp_path / "none.toml")
    (tmp_path / "other.toml").write_text("margin = 1", encoding="utf-8")
    with pytest.raises(FieldError):
        read_waivers(tmp_path / "other.toml")


@pytest.mark.parametrize("fields", [{"rule": '"gone"'}, {"ceiling": "0.01"}])
def test_a_waiver_that_could_never_hold_is_refused(tmp_path: Path, fields: dict[str, str]) -> None:
    path = write(tmp_path, **{**FIELDS, **fields})
    with pytest.raises(FieldError) as error:
        run_gate(*one_task(GOOD), waivers=path)
    assert error.value.field in fields


def test_a_waiver_of_one_group_leaves_the_others_alone() -> None:
    tables = release({"facts": BAD, "logic": BAD})
    policy = GatePolicy(rule=(GateRule(name="tasks", scope="task"),))
    waiver = Waiver(
        rule="tasks", group="facts", owner="a", reason="b", ceiling=0.2, expires=date(2026, 12, 1)
    )
    result = run_gate(*tables, policy=policy, waivers=[waiver], today=date(2026, 11, 17))
    assert {check.group: check.status for check in result.checks} == {
        "facts": "PASS",
        "logic": "FAIL",
    }
