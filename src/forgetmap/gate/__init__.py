"""From a comparison to a decision: rules with margins, baselines, waivers, and who is told."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forgetmap._lazy import load_on_use

if TYPE_CHECKING:
    from forgetmap.gate.decision import run_gate
    from forgetmap.gate.policy import GatePolicy, GateRule, make_default_policy, read_policy
    from forgetmap.gate.result import CheckResult, GateResult, Status
    from forgetmap.gate.waivers import Waiver, read_waivers

__all__ = [
    "CheckResult",
    "GatePolicy",
    "GateResult",
    "GateRule",
    "Status",
    "Waiver",
    "make_default_policy",
    "read_policy",
    "read_waivers",
    "run_gate",
]

__getattr__ = load_on_use(__name__, __file__)
