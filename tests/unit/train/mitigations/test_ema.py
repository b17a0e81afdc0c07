"""Averages of weights and low-rank adapters."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import TrainerCallback

from forgetmap.errors import UsageError
from forgetmap.train import EMAWeights, KLToStart, LoRA, WiSEFT, as_finished
from forgetmap.train.mitigations.l2sp import trained_weights
from forgetmap.train.mitigations.start import StartModel, starts_without_adapter
from protected_training import fresh_model, make_trainer, nudge, prompts, protected

pytestmark = pytest.mark.needs_torch
TOKENS = torch.tensor([[5, 9, 3, 7]])


def logits(model: Any) -> torch.Tensor:
    with torch.no_grad():
        return model.eval()(TOKENS).logits  # type: ignore[no-any-return]


@pytest.mark.parametrize("alpha", [0.0, 0.3, 1.0])
def test_the_end_lies_between_start_and_trained(tmp_path: Path, alpha: float) -> None:
    start = dict(fresh_model().named_parameters())
    plain = make_trainer(tmp_path)
    plain.train()
    run = protected(tmp_path, WiSEFT(alpha))
    run.trainer.train()
    trained = dict(plain.model.named_parameters())
    for name, weight in run.model.named_parameters():
        expected = start[name] + alpha * (trained[name] - start[name])
        assert torch.allclose(weight, expected, atol=1e-6)


def test_between_for_an_adapter_scales_its_change(tmp_path: Path) -> None:
    def trained(*more: Any) -> Any:
        torch.manual_seed(0)
        run = protected(tmp_path, LoRA(rank=4), *more, max_steps=6, learning_rate=1e-2)
        run.trainer.train()
        return run.model.merge_and_unload()

    start, end, half = fresh_model(), trained(), trained(WiSEFT(0.5))
    for name, weight in half.named_parameters():
        first, last = start.get_parameter(name), end.get_parameter(name)
        assert torch.allclose(weight, (first + last) / 2, atol=1e-6)


def test_the_average_lags_behind(tmp_path: Path) -> None:
    seen: list[dict[str, torch.Tensor]] = []
    run = protected(tmp_path, EMAWeights(0.5), max_steps=3)
    average = trained_weights(run.model)
    run.add_gradient_hook(lambda model: seen.append(trained_weights(model)))
    trainer = make_trainer(tmp_path, max_steps=3)
    trainer.train()
    run.trainer.train()
    weights = [*seen[1:], trained_weights(trainer.model)]
    for step, now in enumerate(weights, start=1):
        kept = min(0.5, (1 + step) / (10 + step))
        average = {name: kept * average[name] + (1 - kept) * now[name] for name in average}
    for name, weight in run.model.named_parameters():
        assert torch.allclose(weight, average[name], atol=1e-6)


@pytest.mark.parametrize("mitigations", [(EMAWeights(0.5),), (WiSEFT(0.3), EMAWeights(0.9))])
def test_the_end_can_be_seen_before_it(tmp_path: Path, mitigations: Any) -> None:
    run = protected(tmp_path, *mitigations)
    ends: list[dict[str, torch.Tensor]] = []

    class Looking(TrainerCallback):  # type: ignore[misc]
        def on_step_end(self, *_: Any, **__: Any) -> None:
            before = trained_weights(run.model)
            with as_finished(run.trainer) as model:
                ends.append(trained_weights(model))
            after = trained_weights(run.model)
            assert all(torch.equal(before[name], after[name]) for name in before)
            assert not all(torch.equal(before[name], ends[-1][name]) for name in before)

    run.trainer.add_callback(Looking())
    run.trainer.train()
    for name, weight in run.model.named_parameters():
        assert torch.equal(weight, ends[-1][name])


def test_without_such_a_mitigation_the_end_is_what_is_trained(tmp_path: Path) -> None:
    trainer = make_trainer(tmp_path)
    with as_finished(trainer) as model:
        assert model is trainer.model


def test_a_resumed_average_begins_at_the_checkpoint(tmp_path: Path) -> None:
    saving = {"max_steps": 6, "save_strategy": "steps", "save_steps": 4}
    protected(tmp_path, EMAWeights(0.5), **saving).trainer.train()
    seen: list[dict[str, torch.Tensor]] = []
    run = protected(tmp_path, EMAWeights(0.5), **saving)
    run.add_gradient_hook(lambda model: seen.append(trained_weights(model)))
    run.trainer.add_callback(_Weights(seen))
    run.trainer.train(resume_from_checkpoint=str(tmp_path / "checkpoint-4"))
    average, *weights = seen[0], seen[1], seen[2]
    for step, now in enumerate(weights, start=5):
        kept = min(0.5, (1 + step) / (10 + step))
        average = {name: kept * average[name] + (1 - kept) * now[name] for name in average}
    for name, weight in run.model.named_parameters():
        assert torch.allclose(weight, average[name], atol=1e-6)


class _Weights(TrainerCallback):  # type: ignore[misc]
    """Keeps the weights of the last step, before the average is put in."""

    def __init__(self, seen: list[dict[str, torch.Tensor]]) -> None:
        self.seen = seen

    def on_step_end(self, _: Any, state: Any, __: Any, *, model: Any, **___: Any) -> None:
        if state.global_step == state.max_steps:
            self.seen.append(trained_weights(model))


def test_an_adapter_for_a_plain_trainer(tmp_path: Path) -> None:
    run = protected(
        tmp_path, LoRA(rank=2, targets=("q_proj",)), KLToStart(prompts(6), max_tokens=3)
    )
    run.trainer.train()
    trained = [name for name, weight in run.model.named_parameters() if weight.requires_grad]
    assert trained
    assert all("lora" in name and "q_proj" in name for name in trained)
    with run.model.disable_adapter():
        assert torch.allclose(logits(run.model), logits(fresh_model()), atol=1e-6)


def test_an_adapter_that_comes_too_late(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="must be the first"):
        protected(tmp_path, WiSEFT(), LoRA())
    with pytest.raises(UsageError, match="already has an adapter"):
        protected(tmp_path, LoRA(), model=LoRA().wrap(fresh_model()))
    trainer = make_trainer(tmp_path)
    trainer.create_optimizer()
    import forgetmap as fm

    with pytest.raises(UsageError, match="the optimizer was created"):
        fm.protect(trainer, LoRA())


def test_the_start_model_is_a_copy_or_the_adapter_switched_off() -> None:
    full = fresh_model()
    before = logits(full)
    start = StartModel(full)
    adapted = LoRA(rank=2).wrap(fresh_model())
    cheap = StartModel(adapted)
    assert (start.is_copy, cheap.is_copy) == (True, False)
    nudge(full)
    nudge_adapter(adapted)
    for one in (start, cheap):
        with one.use() as model:
            assert torch.allclose(model(TOKENS).logits, before, atol=1e-6)
    assert not torch.allclose(logits(adapted), before, atol=1e-3)


def test_an_adapter_that_is_trained_already_is_copied() -> None:
    adapted = LoRA(rank=2).wrap(fresh_model())
    nudge_adapter(adapted)
    assert not starts_without_adapter(adapted)
    before = logits(adapted)
    start = StartModel(adapted)
    assert start.is_copy
    nudge_adapter(adapted)
    with start.use() as model:
        assert torch.allclose(model(TOKENS).logits, before, atol=1e-6)


def test_a_copy_does_not_ask_the_model_that_is_trained() -> None:
    from trl.trainer.utils import add_fused_lm_head

    model = fresh_model()
    before = logits(model)
    add_fused_lm_head(model)
    naive, start = copy.deepcopy(model), StartModel(model)
    nudge(model)
    with start.use() as kept:
        assert torch.allclose(kept(TOKENS).logits, before, atol=1e-6)
    assert not torch.allclose(logits(naive), before, atol=1e-3)  # why `frozen_copy` is there


def nudge_adapter(model: Any) -> None:
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "lora_B" in name:
                weight.add_(0.3)


@pytest.mark.parametrize("config", [EMAWeights, WiSEFT, LoRA])
def test_options_that_make_no_sense(config: Any) -> None:
    with pytest.raises(UsageError):
        config(-1)
