"""Rules about drift: the effect of a capability, which is not a share of items."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import narwhals as nw
import pytest

import forgetmap as fm
from drifting_runs import ITEMS, TAXONOMY, small_run
from forgetmap.gate import GatePolicy, GateResult, GateRule, as_comment, as_junit, run_gate
from forgetmap.gate.policy import DriftSection
from forgetmap.gate.render import tell_gate
from forgetmap.text import blocks_to_text


@pytest.fixture
def taxonomy(tmp_path: Path) -> str:
    (tmp_path / "small.toml").write_bytes(TAXONOMY)
    return str(tmp_path / "small.toml")


def one_metric(model: int) -> fm.Run:
    run = small_run(model)
    return replace(run, scores=run.scores.filter(nw.col("metric") != "acc_strict"))


def gate(after: fm.Run, taxonomy: str, **rule: Any) -> GateResult:
    held = GateRule(scope="capability", quantity="drift", **rule)
    policy = GatePolicy(rule=(held,), drift=DriftSection(taxonomy=taxonomy))
    return run_gate(one_metric(0), after, policy=policy)


def test_every_capability_is_decided_by_its_own_limits(taxonomy: str) -> None:
    after = one_metric(2)
    result = gate(after, taxonomy, margin=0.1)
    assert {check.group: check.status for check in result.checks} == {
        "maths": "FAIL",
        "facts": "INCONCLUSIVE",
        "tools": "INCONCLUSIVE",
        "style": "FAIL",
    }
    (maths,) = [check for check in result.checks if check.group == "maths"]
    cells = fm.drift(one_metric(0), after, taxonomy=taxonomy).capabilities
    (cell,) = [cell for cell in cells if cell.id == "maths"]
    assert (maths.loss.low, maths.loss.high) == pytest.approx((-(cell.high or 0), -(cell.low or 0)))
    assert (maths.drop_high, maths.forgotten, maths.accept) == (None, None, "items")


def test_an_effect_is_not_told_as_a_share(taxonomy: str) -> None:
    result = gate(one_metric(2), taxonomy, margin=0.1, groups=("maths",))
    words = "Mathematics drifted by an effect of at least 0.7"
    text = blocks_to_text(tell_gate(result))
    for told in (text, as_junit(result), as_comment(result)):
        assert words in " ".join(told.split())
        assert "70.7%" not in told


def test_items_missing_from_a_small_task_count_against_its_capability(taxonomy: str) -> None:
    after = one_metric(0)
    is_gone = (nw.col("task") == "facts") & (nw.col("item") < f"{ITEMS // 2:03d}")
    thin = replace(after, scores=after.scores.filter(~is_gone))
    result = gate(thin, taxonomy, margin=0.9, groups=("maths", "facts"))
    assert [(check.status, check.coverage) for check in result.checks] == [
        ("PASS", 1.0),
        ("INCONCLUSIVE", 0.5),
    ]
