"""Evaluating a model during its training does not change the training."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import forgetmap as fm
from forgetmap.evaluation.settings import Settings
from small_suites import small_suite
from tiny_models import tiny_model, tokenizer

pytestmark = pytest.mark.needs_torch

SETTINGS = Settings(max_new_tokens=4, temperature=1.0)


def half_frozen_model() -> Any:
    """In train mode, with dropout, but for one block that is not trained."""
    model = tiny_model("gpt2").train()
    model.transformer.h[0].eval()
    model.config.use_cache = False
    return model


def draw_from_torch(_: object) -> None:
    torch.rand(1)


def train_step(model: Any) -> dict[str, torch.Tensor]:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    tokens = torch.arange(2, 12)[None]
    model(input_ids=tokens, labels=tokens).loss.backward()
    optimizer.step()
    return dict(model.state_dict())


def test_a_training_step_after_an_evaluation_is_the_same_bit_for_bit(tmp_path: Path) -> None:
    torch.manual_seed(3)
    undisturbed = half_frozen_model()
    torch.manual_seed(7)
    expected = train_step(undisturbed)
    model = half_frozen_model()
    torch.manual_seed(7)
    fm.evaluate(
        model, small_suite(), tmp_path / "run",
        tokenizer=tokenizer(), settings=SETTINGS, on_progress=draw_from_torch,
    )  # fmt: skip
    assert model.training
    assert model.transformer.h[1].training
    assert not model.transformer.h[0].training
    assert model.config.use_cache is False
    weights = train_step(model)
    assert all(torch.equal(weights[name], value) for name, value in expected.items())


def test_a_model_is_left_as_it_was_when_the_evaluation_fails(tmp_path: Path) -> None:
    model = half_frozen_model()

    def stop(_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fm.evaluate(
            model, small_suite(), tmp_path / "run",
            tokenizer=tokenizer(), settings=SETTINGS, on_progress=stop,
        )  # fmt: skip
    assert model.training
