"""The registry of claims: complete, with checks that can fail."""

from __future__ import annotations

import json
import math

import pytest

from forgetmap.errors import UsageError
from forgetmap.theory import formulas, verification
from forgetmap.theory.claims.registry import (
    Check,
    Perturbation,
    at_least,
    at_most,
    find_claims,
    verify,
)
from forgetmap.theory.verification import LIMITS

WANTED = {"F": 6, "R": 4, "H": 5, "L": 3, "P": 6, "SD": 6, "TT": 5, "OA": 4, "E": 9}
QUICK = [
    "F1", "F2", "F3", "R2", "H1", "H5", "L3", "P3",
    "SD3", "TT4", "TT5", "OA1", "OA4", "E3", "E4", "E7",
]  # fmt: skip


def test_every_claim_is_there_and_says_where_it_comes_from() -> None:
    names = {f"{kind}{k}" for kind, count in WANTED.items() for k in range(1, count + 1)}
    assert {each.id for each in find_claims()} == names | {"CHEN"}
    for each in find_claims():
        assert each.statement.endswith(".")
        assert "[D]" in each.provenance
        assert "Theorem" not in each.statement + each.provenance
        assert 0.9 <= each.control.factor <= 1.1


@pytest.mark.parametrize("name", QUICK)
def test_quick_claims_hold_and_their_controls_fail(name: str) -> None:
    outcome = verify(name, control=True)
    failing = [check for check in outcome.checks if not check.passed]
    assert failing == []
    assert outcome.control_passed is False


def test_a_change_is_undone() -> None:
    before = formulas.replay_weight(0.3)
    with Perturbation("formulas.replay_weight").apply():
        assert formulas.replay_weight(0.3) == pytest.approx(0.315)
    assert formulas.replay_weight(0.3) == before


def test_checks_can_fail_on_either_side() -> None:
    assert Check("x", 1.04, 1.0, 0.05, "relative").passed
    assert not Check("x", 0.94, 1.0, 0.05, "relative").passed
    assert not Check("x", 1.06, 1.0, 0.05, "within").passed
    assert not Check("x", math.nan, 1.0, 10.0, "within").passed
    assert at_most("x", 1.0, 1.0).passed
    assert not at_most("x", 1.1, 1.0).passed
    assert at_most("x", 1.1, 1.0, 0.2).passed
    assert not at_least("x", -0.1, 0.0).passed


def test_unknown_claims_are_named() -> None:
    with pytest.raises(UsageError, match="no claim X9"):
        find_claims(("X9",))


def test_outcomes_as_json_and_markdown() -> None:
    outcomes = list(verification.verify_claims(("h5", "R2"), controls=False, processes=1))
    output = json.loads(verification.outcomes_json(outcomes))
    assert [each["id"] for each in output["claims"]] == ["R2", "H5"]
    first = output["claims"][0]
    wanted = [
        "id", "statement", "provenance", "measured", "expected", "tolerance", "passed",
        "control_passed",
    ]  # fmt: skip
    assert set(wanted) <= set(first)
    assert first["passed"] is True
    assert first["control_passed"] is None
    assert output["limits"] == list(LIMITS)
    table = verification.outcomes_markdown(outcomes).splitlines()
    assert len(table) == 4
    assert table[2].startswith("| R2 |")
