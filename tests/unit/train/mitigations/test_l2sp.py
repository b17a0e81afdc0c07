"""L2-SP and EWC: quadratic penalties on weights."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from forgetmap.errors import ModelError
from forgetmap.train import EWC, L2SP
from forgetmap.train.mitigations.ewc import fisher_diagonal
from forgetmap.train.mitigations.l2sp import half_distance, trained_weights
from protected_training import (
    fresh_model,
    nudge,
    padding_tokenizer,
    pairs,
    prompts,
    protected,
    slope_gap,
)

pytestmark = pytest.mark.needs_torch


@pytest.mark.parametrize("scaled", [False, True])
def test_value_and_slope_of_the_distance(scaled: bool) -> None:
    model = fresh_model(double=True)
    start = trained_weights(model)
    scale = {name: torch.rand_like(weight) for name, weight in start.items()} if scaled else None
    nudge(model)
    plain = 0.5 * sum(
        float(
            ((1.0 if scale is None else scale[name]) * (weight.detach() - start[name]) ** 2).sum()
        )
        for name, weight in model.named_parameters()
    )
    assert float(half_distance(model, start, scale).detach()) == pytest.approx(plain, rel=1e-10)
    assert slope_gap(lambda: half_distance(model, start, scale), model) < 1e-6


def test_weights_that_are_not_trained_are_left_out(tmp_path: Path) -> None:
    model = fresh_model()
    model.model.embed_tokens.weight.requires_grad_(False)
    assert "model.embed_tokens.weight" not in trained_weights(model)
    run = protected(tmp_path, L2SP(), model=model)
    run.trainer.train()
    assert run.trainer.state.global_step == 4


def test_a_stiff_spring_holds_the_weights(tmp_path: Path) -> None:
    moved = []
    for weight in (0.0, 100.0):
        run = protected(tmp_path, L2SP(weight), max_steps=8)
        start = trained_weights(run.model)
        run.trainer.train()
        moved.append(float(half_distance(run.model, start).detach()))
    assert moved[1] < 0.6 * moved[0]


def test_importances_are_mean_squared_slopes_of_whole_answers(tmp_path: Path) -> None:
    model = fresh_model(double=True)
    run = protected(tmp_path, model=model)
    examples = run.read(pairs(3))
    found = fisher_diagonal(model, examples, "cpu")
    expected = {name: torch.zeros_like(weight) for name, weight in model.named_parameters()}
    for example in examples:
        model.zero_grad()
        loss = model(torch.tensor([example.ids]), labels=torch.tensor([example.labels])).loss
        (loss * (len(example.ids) - example.begin)).backward()
        for name, weight in model.named_parameters():
            expected[name] += weight.grad**2 / len(examples)
    for name, value in expected.items():
        assert torch.allclose(found[name], value, rtol=1e-4, atol=1e-8)  # its loss is float32


@pytest.mark.parametrize("examples", [None, prompts(4), pairs(4)])
def test_importances_of_given_and_of_own_texts(tmp_path: Path, examples: object) -> None:
    model = fresh_model(double=True)
    config = EWC(examples, rows=4, max_tokens=4, normalise=True)  # type: ignore[arg-type]
    run = protected(tmp_path, config, model=model)
    assert float(run.penalties[0].function(model).detach()) == 0.0  # type: ignore[union-attr]
    nudge(model)
    assert slope_gap(lambda: run.penalties[0].function(model), model) < 1e-6  # type: ignore[arg-type,return-value]


def test_importances_of_damaged_weights(tmp_path: Path) -> None:
    model = fresh_model()
    with torch.no_grad():
        model.lm_head.weight[3] = float("nan")
    with pytest.raises(ModelError, match="not finite"):
        protected(tmp_path, EWC(pairs(2)), model=model)


def test_importances_are_of_texts_drawn_from_all_rows(tmp_path: Path) -> None:
    """Pools are often sorted by category: the first rows are of one of them."""
    asked: list[str] = []
    model = fresh_model()
    model.register_forward_pre_hook(
        lambda _, __, given: asked.extend(padding_tokenizer().batch_decode(given["input_ids"])),
        with_kwargs=True,
    )
    rows = [{"prompt": "the cat", "completion": " sat"}] * 20
    rows += [{"prompt": "the dog", "completion": " ran"}] * 20
    protected(tmp_path, EWC(rows, rows=10, seed=1), model=model)
    assert len(asked) == 10
    assert {text[:7] for text in asked} == {"the cat", "the dog"}
