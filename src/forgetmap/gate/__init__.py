"""Gates: policies with margins, baselines, waivers, and the formats of a decision."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forgetmap._lazy import load_on_use

if TYPE_CHECKING:
    from forgetmap.gate.assertion import assert_no_forgetting, take_results
    from forgetmap.gate.baselines import Baseline, accept_run, read_baseline, summarize_history
    from forgetmap.gate.decision import run_gate
    from forgetmap.gate.github import as_annotations
    from forgetmap.gate.history import HistoryResult, read_history
    from forgetmap.gate.junit import as_junit, write_junit
    from forgetmap.gate.markdown import as_comment
    from forgetmap.gate.policy import GatePolicy, GateRule, make_default_policy, read_policy
    from forgetmap.gate.render import print_gate, tell_history, tell_policy
    from forgetmap.gate.result import Accept, CheckResult, GateResult, Status
    from forgetmap.gate.template import ABOUT_ACCEPT, write_template
    from forgetmap.gate.waivers import Waiver, read_waivers

__all__ = [
    "ABOUT_ACCEPT",
    "Accept",
    "Baseline",
    "CheckResult",
    "GatePolicy",
    "GateResult",
    "GateRule",
    "HistoryResult",
    "Status",
    "Waiver",
    "accept_run",
    "as_annotations",
    "as_comment",
    "as_junit",
    "assert_no_forgetting",
    "make_default_policy",
    "print_gate",
    "read_baseline",
    "read_history",
    "read_policy",
    "read_waivers",
    "run_gate",
    "summarize_history",
    "take_results",
    "tell_history",
    "tell_policy",
    "write_junit",
    "write_template",
]

__getattr__ = load_on_use(__name__, __file__)
