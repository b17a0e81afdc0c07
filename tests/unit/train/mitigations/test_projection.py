"""Gradients that conflict with old ones are projected."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from forgetmap.errors import ConvergenceError
from forgetmap.train import GradientProjection
from forgetmap.train.mitigations.old_batches import collate, predict
from forgetmap.train.mitigations.projection import project
from protected_training import fresh_model, logged, pairs, prompts, protected

pytestmark = pytest.mark.needs_torch


def test_a_gradient_that_disagrees_becomes_orthogonal_and_shorter() -> None:
    new, old = [torch.tensor([1.0, -2.0]), torch.tensor([3.0])], [
        torch.tensor([0.0, 4.0]), torch.tensor([1.0]),
    ]  # fmt: skip
    length = sum(float(one.square().sum()) for one in new)
    cosine = project(new, old)
    assert float(cosine) == pytest.approx(-5 / (14 * 17) ** 0.5)
    assert sum(float((a * b).sum()) for a, b in zip(new, old, strict=True)) == pytest.approx(
        0, abs=1e-5
    )
    assert sum(float(one.square().sum()) for one in new) < length


def test_a_gradient_that_agrees_stays() -> None:
    new = [torch.tensor([1.0, 2.0])]
    assert float(project(new, [torch.tensor([0.0, 4.0])])) > 0
    assert new[0].tolist() == [1.0, 2.0]


def test_the_direction_does_not_depend_on_clipping() -> None:
    old = [torch.tensor([0.3, 4.0, -1.0])]
    whole, clipped = [torch.tensor([1.0, -2.0, 5.0])], [0.1 * torch.tensor([1.0, -2.0, 5.0])]
    project(whole, old)
    project(clipped, [7 * old[0]])
    assert torch.allclose(0.1 * whole[0], clipped[0])


def test_what_reaches_the_optimizer_does_not_raise_the_old_loss(tmp_path: Path) -> None:
    model = fresh_model(double=True)
    rows = pairs(6, seed=8)
    run = protected(
        tmp_path, GradientProjection(rows, batch_size=6), model=model, max_steps=3,
        gradient_accumulation_steps=2,
    )  # fmt: skip
    dots: list[float] = []

    def look(_: object) -> None:
        batch = collate(run.read(rows))
        loss = torch.nn.functional.cross_entropy(predict(model, batch), batch.targets)
        weights = list(model.parameters())
        old = torch.autograd.grad(loss, weights)
        dots.append(sum(float((a.grad * b).sum()) for a, b in zip(weights, old, strict=True)))

    run.add_gradient_hook(look)
    run.trainer.train()
    assert len(dots) == 3
    assert min(dots) > -1e-9
    assert len(logged(run, "protect/gradient_projection/conflict")) == 3


def test_gradients_that_are_not_finite(tmp_path: Path) -> None:
    run = protected(tmp_path, GradientProjection(prompts(4), max_tokens=3))
    with torch.no_grad():
        run.model.lm_head.weight.fill_(float("nan"))
    with pytest.raises(ConvergenceError, match="step 0"):
        run.trainer.train()
