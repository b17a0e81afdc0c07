"""`protect`: weights do not depend on accumulation, penalties add up, misuse is an error."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch

import forgetmap as fm
from forgetmap.errors import ConvergenceError, UsageError
from forgetmap.train import L2SP, KLToStart, Mitigation, Protection, Replay
from protected_training import fresh_model, logged, make_trainer, pairs, prompts, protected

pytestmark = pytest.mark.needs_torch


class Constant(Mitigation):
    """A penalty whose gradient is known: the sum of all weights."""

    kind: ClassVar[str] = "constant"

    def apply(self, run: Protection) -> None:
        def penalty(model: Any) -> torch.Tensor:
            return torch.stack([weight.sum() for weight in model.parameters()]).sum()

        run.add_penalty("constant", penalty, 2.0)


def gradients(folder: Path, batch: int, accumulated: int, *mitigations: Mitigation) -> list[Any]:
    """What reaches the optimizer in the first step, unclipped."""
    trainer = make_trainer(
        folder, fresh_model(double=True), max_steps=1, per_device_train_batch_size=batch,
        gradient_accumulation_steps=accumulated, max_grad_norm=0.0,
    )  # fmt: skip
    run = fm.protect(trainer, *mitigations)
    seen: list[Any] = []
    run.add_gradient_hook(
        lambda model: seen.extend(weight.grad.clone() for weight in model.parameters())
    )
    trainer.train()
    return seen


@pytest.mark.parametrize(("batch", "accumulated"), [(16, 1), (4, 4)])
def test_the_weight_does_not_depend_on_accumulation(
    tmp_path: Path, batch: int, accumulated: int
) -> None:
    plain = gradients(tmp_path, batch, accumulated)
    with_penalty = gradients(tmp_path, batch, accumulated, Constant())
    for one, other in zip(plain, with_penalty, strict=True):
        assert torch.allclose(other - one, torch.full_like(one, 2.0), atol=1e-9)


def test_one_and_four_micro_batches_give_one_gradient(tmp_path: Path) -> None:
    kl = KLToStart(pairs(8), weight=3.0, answers="auto")
    whole = gradients(tmp_path, 16, 1, kl, L2SP(0.1), Constant())
    split = gradients(tmp_path, 4, 4, kl, L2SP(0.1), Constant())
    for one, other in zip(whole, split, strict=True):
        assert torch.allclose(one, other, atol=1e-9)


def test_a_loss_that_is_a_mean_per_micro_batch(tmp_path: Path) -> None:
    def difference(accumulated: int) -> list[Any]:
        found = []
        for mitigations in ((), (Constant(),)):
            trainer = make_trainer(
                tmp_path, fresh_model(double=True), max_steps=1, max_grad_norm=0.0,
                per_device_train_batch_size=16 // accumulated,
                gradient_accumulation_steps=accumulated,
            )  # fmt: skip
            trainer.model_accepts_loss_kwargs = False  # as for models without num_items_in_batch
            run = fm.protect(trainer, *mitigations)
            seen: list[Any] = []

            def look(model: Any, seen: list[Any] = seen) -> None:
                seen.append(model.lm_head.weight.grad.clone())

            run.add_gradient_hook(look)
            trainer.train()
            found.append(seen[0])
        return found

    for accumulated in (1, 4):
        plain, penalised = difference(accumulated)
        assert torch.allclose(penalised - plain, torch.full_like(plain, 2.0), atol=1e-9)


def test_penalties_add_up_and_all_are_logged(tmp_path: Path) -> None:
    run = protected(
        tmp_path, KLToStart(prompts(), max_tokens=3), KLToStart(pairs()), L2SP(), Replay(pairs())
    )
    run.trainer.train()
    for name in ("kl_to_start", "kl_to_start_2", "l2sp"):
        values = logged(run, f"protect/{name}")
        assert len(values) == 4
        assert values[0] == pytest.approx(0.0, abs=1e-5)
        assert values[-1] > values[0]
    assert len(logged(run, "loss")) == 4


def test_a_second_call_adds_to_the_first(tmp_path: Path) -> None:
    trainer = make_trainer(tmp_path)
    first = fm.protect(trainer, L2SP())
    second = fm.protect(trainer, L2SP(0.5))
    assert first is second
    assert [penalty.name for penalty in second.penalties] == ["l2sp", "l2sp_2"]
    assert first.mitigations == [L2SP(), L2SP(0.5)]


def test_without_mitigations_training_is_as_before(tmp_path: Path) -> None:
    plain = make_trainer(tmp_path)
    plain.train()
    run = protected(tmp_path)
    run.trainer.train()
    for one, other in zip(plain.model.parameters(), run.model.parameters(), strict=True):
        assert torch.equal(one, other)


def test_sampling_at_the_start_leaves_the_random_state_alone(tmp_path: Path) -> None:
    trainer = make_trainer(tmp_path)
    before, mode = torch.get_rng_state(), trainer.model.training
    fm.protect(trainer, KLToStart(prompts(), max_tokens=4))
    assert torch.equal(before, torch.get_rng_state())
    assert trainer.model.training == mode


def test_a_penalty_that_is_not_finite_names_itself_and_the_step(tmp_path: Path) -> None:
    run = protected(tmp_path, KLToStart(pairs()))
    with torch.no_grad():
        run.model.lm_head.weight.fill_(float("nan"))
    with pytest.raises(ConvergenceError, match="kl_to_start is nan at step 0"):
        run.trainer.train()


@pytest.mark.parametrize("options", [{"bf16": True}, {"gradient_checkpointing": True}])
def test_mixed_precision_and_checkpoints_of_activations(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    run = protected(tmp_path, KLToStart(pairs(4)), L2SP(), max_steps=2, **options)
    run.trainer.train()
    values = logged(run, "protect/kl_to_start")
    assert values[0] == pytest.approx(0.0, abs=1e-2)
    assert values[1] > 0


def test_misuse(tmp_path: Path) -> None:
    trainer = make_trainer(tmp_path)
    with pytest.raises(UsageError, match="is not a mitigation"):
        fm.protect(trainer, "kl")  # type: ignore[arg-type]
    trainer.is_fsdp_enabled = True
    with pytest.raises(UsageError, match="shards"):
        fm.protect(trainer, L2SP())
    trainer.is_fsdp_enabled, trainer.model_init = False, fresh_model
    with pytest.raises(UsageError, match="model_init"):
        fm.protect(trainer, L2SP())
    trainer.model_init, trainer.is_in_train = None, True
    with pytest.raises(UsageError, match="training has already started"):
        fm.protect(trainer, L2SP())


def test_a_trainer_without_tokenizer_gets_one(tmp_path: Path) -> None:
    trainer = make_trainer(tmp_path)
    tokenizer, trainer.processing_class = trainer.processing_class, None
    with pytest.raises(UsageError, match="need a tokenizer"):
        fm.protect(trainer, KLToStart(pairs()))
    assert fm.protect(trainer, KLToStart(pairs()), tokenizer=tokenizer).penalties
