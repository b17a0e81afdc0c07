"""Holds lm-eval in the middle of its work, so that a signal surely finds it there.

In a folder of its own: with that folder on PYTHONPATH and HOLD_LM_EVAL set to a file, lm-eval
answers a few batches, writes the file and then waits for ever.
"""

from __future__ import annotations

import importlib.util
import itertools
import os
import signal
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

MODULE = "lm_eval.models.huggingface"
BATCHES = 4


class HoldingFinder:
    """Finds lm-eval's model class, and has it wait after some batches."""

    def find_spec(self, name: str, *_: object) -> ModuleSpec | None:
        if name != MODULE:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        assert spec is not None
        assert spec.loader is not None
        load = spec.loader.exec_module

        def load_and_hold(module: ModuleType) -> None:
            load(module)
            hold(module.HFLM)

        spec.loader.exec_module = load_and_hold  # type: ignore[method-assign]
        return spec


def hold(model_class: Any) -> None:
    """Wait for a signal instead of computing one batch more."""
    compute, calls = model_class._model_call, itertools.count(1)

    def compute_or_wait(*args: Any, **options: Any) -> Any:
        if next(calls) > BATCHES:
            Path(os.environ["HOLD_LM_EVAL"]).touch()
            while True:
                signal.pause()
        return compute(*args, **options)

    model_class._model_call = compute_or_wait


if os.environ.get("HOLD_LM_EVAL"):
    sys.meta_path.insert(0, HoldingFinder())
