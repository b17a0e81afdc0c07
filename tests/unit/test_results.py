"""Result types that packages share."""

from __future__ import annotations

import json

import pytest
from pydantic import ValidationError

from forgetmap.results import Estimate, Estimates, Notice


def test_values_never_change_and_have_no_other_fields() -> None:
    estimate = Estimate(value=0.5, method="raw")
    with pytest.raises(AttributeError):
        estimate.value = 1.0  # type: ignore[misc]
    with pytest.raises(ValidationError):
        Estimate.from_json('{"value": 0.5, "method": "raw", "extra": 1}')
    assert Estimate.from_json(estimate.to_json()) == estimate


def test_json_keeps_letters_and_escapes_what_drives_a_terminal() -> None:
    text = Estimate(value=None, method="näive \x1b[2J").to_json(indent=None)
    assert "näive" in text
    assert "\x1b" not in text
    assert json.loads(text)["method"] == "näive \x1b[2J"


def test_missing_says_why_in_every_field() -> None:
    assert Estimate.missing("raw", "no items") == Estimate(
        value=None, method="raw", reason="no items"
    )
    missing = Estimates.missing("raw", "no items")
    assert {missing.forgetting.reason, missing.backward_transfer.reason} == {"no items"}


def test_notices_are_equal_by_content() -> None:
    assert Notice("few", "few items") == Notice("few", "few items")
