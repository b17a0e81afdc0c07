"""Overlap of two models, estimated from log-probabilities.

    prompts -> completions of both models -> log-probabilities -> estimates -> forgetting by KL

`samples` are completions with their log-probabilities under both models, `estimate` computes the
numbers, `certificate` guarantees retained behaviour, `measure` samples from models, `records` uses
evaluation results, `bridge` relates divergence to forgetting over several models, and `conditions`
checks the conditions of the theory with measured values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from forgetmap._lazy import load_on_use

if TYPE_CHECKING:
    from forgetmap.overlap.bridge import BridgeResult, Fit, ModelRow, curve, fit_bridge, read_models
    from forgetmap.overlap.conditions import conditions_of_overlap, read_overlap
    from forgetmap.overlap.estimate import OverlapSettings, estimate_overlap, estimate_table
    from forgetmap.overlap.measure import SamplingPlan, measure_overlap
    from forgetmap.overlap.models.base import LanguageModel
    from forgetmap.overlap.models.local import LocalModel
    from forgetmap.overlap.models.server import ServerModel
    from forgetmap.overlap.prompts import read_prompts
    from forgetmap.overlap.records import EventGroup, EventResult, overlap_from_records
    from forgetmap.overlap.result import (
        Certificate,
        OverlapEstimates,
        OverlapGroup,
        OverlapNotice,
        OverlapResult,
    )
    from forgetmap.overlap.samples import read_samples, table_of, table_of_arrays

__all__ = [
    "BridgeResult",
    "Certificate",
    "EventGroup",
    "EventResult",
    "Fit",
    "LanguageModel",
    "LocalModel",
    "ModelRow",
    "OverlapEstimates",
    "OverlapGroup",
    "OverlapNotice",
    "OverlapResult",
    "OverlapSettings",
    "SamplingPlan",
    "ServerModel",
    "conditions_of_overlap",
    "curve",
    "estimate_overlap",
    "estimate_table",
    "fit_bridge",
    "measure_overlap",
    "overlap_from_records",
    "read_models",
    "read_overlap",
    "read_prompts",
    "read_samples",
    "table_of",
    "table_of_arrays",
]

__getattr__ = load_on_use(__name__, __file__)
