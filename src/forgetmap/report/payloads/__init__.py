"""Payloads: all contents of a report as plain values."""

from __future__ import annotations

from forgetmap.capabilities import DriftResult
from forgetmap.comparison import Chain, Comparison, FanOut
from forgetmap.lab import LabResult, MergeDriftResult, RepairResult
from forgetmap.overlap import BridgeResult
from forgetmap.report.payloads.schema import Payload
from forgetmap.sweep import Sweep, SweepResult
from forgetmap.train import WatchHistory

LabPayload = LabResult | RepairResult | MergeDriftResult | WatchHistory
"""Results of the lab and the history of a training; they are drawn directly."""
AnyPayload = Payload | SweepResult | BridgeResult | LabPayload
"""Input of figures, pages, Markdown and terminal, which compute nothing themselves."""
Reportable = AnyPayload | Comparison | FanOut | Chain | DriftResult | Sweep
"""Results that can be reported."""


def payload_for(result: Reportable) -> AnyPayload:
    """Return the payload of a result with all texts; a payload is returned unchanged.

    A result of `drift` has only numbers; that of `drift_with_runs` has items too.
    """
    if isinstance(result, AnyPayload):
        return result
    if isinstance(result, Sweep):
        return result.result
    if isinstance(result, DriftResult):
        from forgetmap.report.payloads.drift import payload_of_numbers  # 90 ms

        return payload_of_numbers(result)
    from forgetmap.report.payloads.comparison import make_payload

    return make_payload(result)
