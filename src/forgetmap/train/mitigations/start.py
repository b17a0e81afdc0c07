"""The start model, kept for computations during training.

Most mitigations compute everything they need of it before training. If new texts must be scored, an
adapter that started at no change is switched off, which needs no memory; otherwise a frozen copy of
the model is kept.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from forgetmap.train.mitigations.old_batches import device_of


class StartModel:
    """The model at the creation of this object.

    Attributes:
        is_copy: whether a copy of all weights is kept.
    """

    def __init__(self, model: Any) -> None:
        self.is_copy = not starts_without_adapter(model)
        self._model = frozen_copy(model) if self.is_copy else model

    @contextmanager
    def use(self) -> Iterator[Any]:
        """Yield the start model for passes without gradient; restore the mode of the model."""
        if self.is_copy:
            with torch.no_grad():
                yield self._model
            return
        was_training = self._model.training
        self._model.eval()
        try:
            with torch.no_grad(), self._model.disable_adapter():
                yield self._model
        finally:
            self._model.train(was_training)


def frozen_copy(model: Any) -> Any:
    """Return a copy that is never trained.

    TRL replaces `forward` of trained models by a function that calls the original model: a copy of
    that function would still call the trained model. The copy gets the method of its class.
    """
    kept = copy.deepcopy(model)
    for module in kept.modules():
        module.__dict__.pop("forward", None)
    return kept.eval().requires_grad_(requires_grad=False)


@torch.no_grad()
def starts_without_adapter(model: Any) -> bool:
    """Whether switching the adapter off changes nothing, because it is not trained yet."""
    if not hasattr(model, "disable_adapter") or not hasattr(model, "peft_config"):
        return False
    device = device_of(model)
    tokens = torch.arange(1, 9, device=device).unsqueeze(0)
    was_training = model.training
    model.eval()
    try:
        with_adapter = model(input_ids=tokens, use_cache=False).logits
        with model.disable_adapter():
            without = model(input_ids=tokens, use_cache=False).logits
    finally:
        model.train(was_training)
    return bool(torch.equal(with_adapter, without))
