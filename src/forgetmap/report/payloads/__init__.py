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
"""Results of the lab, and what was seen in a training; they are drawn as they are."""
AnyPayload = Payload | SweepResult | BridgeResult | LabPayload
"""What figures, pages, Markdown and terminal read; they compute nothing."""
Reportable = AnyPayload | Comparison | FanOut | Chain | DriftResult | Sweep
"""What a report can be made of."""


def payload_for(result: Reportable) -> AnyPayload:
    """The payload itself, or that of a result, with all texts.

    What `drift` returned holds numbers only; `drift_with_runs` has the items too.
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
