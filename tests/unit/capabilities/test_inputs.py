"""Pairs of runs to compare, and their names."""

from __future__ import annotations

from pathlib import Path

import pytest

from forgetmap.capabilities.inputs import (
    Compared,
    LabelledInput,
    base_name,
    column_names,
    plan_drift,
    read_label,
)
from forgetmap.errors import UsageError


def test_labels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a=b").mkdir()
    assert read_label("sft=runs/x") == ("sft", "runs/x")
    assert read_label("sft=runs/x=y") == ("sft", "runs/x=y")
    for path in ("runs/x", "a=b", "runs/rate=3/x", "=x", "x="):
        assert read_label(path) == (None, path), path
    frame = object()
    assert read_label(("sft", frame)) == ("sft", frame)
    assert read_label(frame).label is None


def test_several_after_one() -> None:
    plan = plan_drift(["base", "sft", "dpo"])
    assert plan.comparisons == ((0, 1), (0, 2))
    assert column_names(plan, ["base", "sft", "dpo"]) == ["sft", "dpo"]


def test_pairs_share_a_base() -> None:
    plan = plan_drift([], [("b=x", "sft"), ("b=x", "dpo"), ("other", "rl")])
    assert plan.inputs[0] == LabelledInput("b", "x")
    assert plan.comparisons == (Compared(0, 1), Compared(0, 2), Compared(3, 4))
    labels = ["b", "sft", "dpo", "other", "rl"]
    assert column_names(plan, labels) == ["sft", "dpo", "rl"]
    assert base_name(plan, labels) == "b, other"
    with_star = plan_drift(["base", "sft"], [("other", "rl")])
    assert with_star.comparisons == ((0, 1), (2, 3))


def test_a_chain_has_every_step_and_where_it_leads() -> None:
    plan = plan_drift(["base", "ift", "dpo", "rl"], chain=True)
    names = column_names(plan, ["base", "ift", "dpo", "rl"])
    assert names == ["ift", "ift → dpo", "dpo", "dpo → rl", "rl"]
    assert base_name(plan, ["base", "ift", "dpo", "rl"]) == "base"


def test_what_makes_no_sense() -> None:
    with pytest.raises(UsageError, match="nothing to compare"):
        plan_drift([])
    with pytest.raises(UsageError, match="nothing to compare"):
        plan_drift(["base"], [("a", "b")])
    with pytest.raises(UsageError, match="a chain needs at least three models"):
        plan_drift(["base", "sft"], chain=True)
    with pytest.raises(UsageError, match="2 models have the name 'x'"):
        plan_drift(["base", "x=a", "x=b"])
    with pytest.raises(UsageError, match="2 models have the name 'sft'") as caught:
        column_names(plan_drift(["base", "sft", "x"]), ["base", "sft", "sft"])
    assert "NAME=PATH" in str(caught.value.hint)
