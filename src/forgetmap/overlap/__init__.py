"""How much of a model's behaviour is left, from log-probabilities.

    prompts -> completions of both models -> weighed by both -> estimates -> forgetting against KL

`samples` are completions with the log-probabilities both models give them, `estimate` makes numbers
of them, `measure` gets them from models, `records` from evaluation results, and `bridge` relates
divergence to forgetting over several models.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from forgetmap._lazy import load_on_use

if TYPE_CHECKING:
    from forgetmap.overlap.bridge import BridgeResult, fit_bridge, read_models
    from forgetmap.overlap.estimate import Asked, estimate_overlap, estimate_table
    from forgetmap.overlap.figures import bridge_section, draw
    from forgetmap.overlap.local import LocalModel
    from forgetmap.overlap.measure import Manner, measure_overlap
    from forgetmap.overlap.models import Model
    from forgetmap.overlap.prompts import read_prompts
    from forgetmap.overlap.records import overlap_of_records
    from forgetmap.overlap.render import tell_bridge, tell_events, tell_overlap
    from forgetmap.overlap.result import OverlapResult
    from forgetmap.overlap.samples import read_samples, table_of
    from forgetmap.overlap.server import ServerModel

__all__ = [
    "Asked",
    "BridgeResult",
    "LocalModel",
    "Manner",
    "Model",
    "OverlapResult",
    "ServerModel",
    "bridge_section",
    "draw",
    "estimate_overlap",
    "estimate_table",
    "fit_bridge",
    "measure_overlap",
    "overlap_of_records",
    "read_models",
    "read_prompts",
    "read_samples",
    "table_of",
    "tell_bridge",
    "tell_events",
    "tell_overlap",
]

__getattr__ = load_on_use(__name__, __file__)
