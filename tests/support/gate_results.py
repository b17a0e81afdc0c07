"""Hand-made results of gates, for tests of their output."""

from __future__ import annotations

from typing import Any

from forgetmap.comparison import DecidesResult, LimitsResult, RunResult
from forgetmap.gate import CheckResult, GateResult
from forgetmap.gate.result import LookResult, PolicyResult, WaiverResult
from forgetmap.results import Notice

HOSTILE = (
    "a|b <b>x</b> @everyone #12 GH-7 https://evil.example [y](z) `c` %0A::error::\x1b[31m\r\n|--|"
)
"""A task name with markup of every kind."""


def make_check(status: str = "PASS", tier: str = "blocking", **changes: Any) -> CheckResult:
    """Return a check with plausible numbers."""
    fields: dict[str, Any] = {
        "name": changes.get("rule", "loss"),
        "rule": "loss",
        "tier": tier,
        "scope": "total",
        "group": "total",
        "quantity": "loss",
        "margin": 0.02,
        "status": status,
        "verdict": {"PASS": "no_material_loss", "FAIL": "lost"}.get(status, "cannot_tell"),
        "loss": LimitsResult(low=0.022, high=0.04, carried_by="drop", p=0.001),
        "drop_high": 0.035,
        "forgotten": 31,
        "gained": 2,
        "items": 1000,
        "coverage": 0.998,
        "decides": DecidesResult(items=4000, flips=31, answers=62, provable=0.025)
        if status == "INCONCLUSIVE"
        else None,
        "sentence": f"the sentence of {status}",
        "reasons": [],
    }
    return CheckResult(**{**fields, **changes})


def make_group(
    name: str, status: str = "PASS", tier: str = "warning", **changes: Any
) -> CheckResult:
    """Return a check of one category."""
    about = {"rule": "loss of every category", "scope": "category", "group": name}
    return make_check(status, tier, **{**about, "name": f"loss of {name}", **changes})


def make_waiver(state: str = "applied") -> WaiverResult:
    """Return a waiver."""
    return WaiverResult.model_validate(
        {
            "owner": "Ada",
            "reason": "new tokenizer",
            "ceiling": 0.05,
            "expires": "2030-01-31",
            "state": state,
        }
    )


def make_result(*checks: CheckResult, status: str = "PASS", **changes: Any) -> GateResult:
    """Return the result of a gate with these checks."""
    side: dict[str, Any] = {
        "origin": "runs/x",
        "run_id": None,
        "model": None,
        "stage": None,
        "simulated": False,
    }
    fields: dict[str, Any] = {
        "status": status,
        "headline": f"{status}: because.",
        "decision": "because.",
        "before": RunResult(name="main", **side),
        "after": RunResult(name="candidate", **side),
        "policy": PolicyResult(origin="default", hash="0" * 64),
        "look": LookResult(number=1, planned=1, level=0.95),
        "checks": list(checks),
        "missing_tasks": [],
        "warnings": [Notice("template", "another template")],
        "created": "2030-01-01T10:00:00+00:00",
        "forgetmap": "0.1.0",
    }
    return GateResult(**{**fields, **changes})
