"""What a report can be made of."""

from __future__ import annotations

from forgetmap.capabilities import DriftResult
from forgetmap.comparison import Chain, Comparison, FanOut
from forgetmap.report.build import make_payload
from forgetmap.report.payload import Payload

Reportable = Payload | Comparison | FanOut | Chain | DriftResult


def payload_for(result: Reportable) -> Payload:
    """The payload itself, or with all texts that of what `compare` or `drift` returned.

    What `drift` returned holds numbers only; `drift_with_runs` has the items too.
    """
    if isinstance(result, Payload):
        return result
    if isinstance(result, DriftResult):
        from forgetmap.report.drifted import payload_of_numbers  # 90 ms

        return payload_of_numbers(result)
    return make_payload(result)
