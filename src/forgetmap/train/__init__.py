"""Watching forgetting in any trainer, and mitigations for trainers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forgetmap._lazy import load_on_use

if TYPE_CHECKING:
    from forgetmap.train.api import watch
    from forgetmap.train.callback import ForgettingCallback
    from forgetmap.train.examples import TokenExample, read_examples, read_rows
    from forgetmap.train.history import (
        KeptCheckpoint,
        WatchAlarm,
        WatchGap,
        WatchGroup,
        WatchHistory,
        WatchLook,
        WatchRule,
        read_history,
    )
    from forgetmap.train.mitigations.ema import EMAWeights, WiSEFT
    from forgetmap.train.mitigations.ewc import EWC
    from forgetmap.train.mitigations.files import load_mitigations
    from forgetmap.train.mitigations.grpo import GRPOWithKL
    from forgetmap.train.mitigations.kl import KLToStart, StartDistributions
    from forgetmap.train.mitigations.l2sp import L2SP
    from forgetmap.train.mitigations.lora import LoRA
    from forgetmap.train.mitigations.margin import MarginPenalty
    from forgetmap.train.mitigations.mitigation import Mitigation, Protection
    from forgetmap.train.mitigations.oapl import OAPL
    from forgetmap.train.mitigations.old_batches import collate, device_of, predict, predict_batches
    from forgetmap.train.mitigations.onpolicy import OnPolicyReplay
    from forgetmap.train.mitigations.projection import GradientProjection
    from forgetmap.train.mitigations.replay import Replay, SyntheticReplay
    from forgetmap.train.mitigations.sampling import sample_answers
    from forgetmap.train.mitigations.sdft import SDFT
    from forgetmap.train.mitigations.ttt_discover import TTTDiscover
    from forgetmap.train.options import WatchOptions
    from forgetmap.train.protection import as_finished, protect

__all__ = [
    "EWC",
    "L2SP",
    "OAPL",
    "SDFT",
    "EMAWeights",
    "ForgettingCallback",
    "GRPOWithKL",
    "GradientProjection",
    "KLToStart",
    "KeptCheckpoint",
    "LoRA",
    "MarginPenalty",
    "Mitigation",
    "OnPolicyReplay",
    "Protection",
    "Replay",
    "StartDistributions",
    "SyntheticReplay",
    "TTTDiscover",
    "TokenExample",
    "WatchAlarm",
    "WatchGap",
    "WatchGroup",
    "WatchHistory",
    "WatchLook",
    "WatchOptions",
    "WatchRule",
    "WiSEFT",
    "as_finished",
    "collate",
    "device_of",
    "load_mitigations",
    "predict",
    "predict_batches",
    "protect",
    "read_examples",
    "read_history",
    "read_rows",
    "sample_answers",
    "watch",
]

__getattr__ = load_on_use(__name__, __file__)
