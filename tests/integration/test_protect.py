"""Mitigations in real trainers: transformers and TRL, LoRA, one and two processes."""

from __future__ import annotations

import copy
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from datasets import Dataset
from transformers import AutoModelForCausalLM

import forgetmap as fm
from forgetmap.errors import UsageError
from forgetmap.train import (
    OAPL,
    SDFT,
    GradientProjection,
    GRPOWithKL,
    KLToStart,
    LoRA,
    MarginPenalty,
    OnPolicyReplay,
    Replay,
    SyntheticReplay,
    TTTDiscover,
)
from protected_training import fresh_model, make_trainer, padding_tokenizer, pairs, prompts
from protected_worker import train_protected

pytestmark = [
    pytest.mark.needs_torch,
    pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]
ROOT = Path(__file__).parent.parent.parent
KL = KLToStart(prompts(8), max_tokens=3, batch_size=8)


@pytest.fixture(scope="module", autouse=True)
def offline() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        for name in ("CI", "HF_HUB_OFFLINE", "TRL_EXPERIMENTAL_SILENCE"):
            patch.setenv(name, "1")
        yield


@pytest.fixture(scope="module")
def load(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Any]:
    """The start model from a folder, from where TRL loads what it compares with."""
    folder = tmp_path_factory.mktemp("start")
    fresh_model().save_pretrained(folder)
    padding_tokenizer().save_pretrained(folder)
    return lambda: AutoModelForCausalLM.from_pretrained(folder)


def options(folder: Path, **more: Any) -> dict[str, Any]:
    return {
        "output_dir": str(folder), "max_steps": 2, "per_device_train_batch_size": 4,
        "report_to": [], "save_strategy": "no", "logging_steps": 1, "use_cpu": True,
        "disable_tqdm": True, "dataloader_pin_memory": False, "bf16": False,
        "gradient_checkpointing": False, "learning_rate": 1e-3,
    } | more  # fmt: skip


def check(trainer: Any, names: set[str]) -> Any:
    """It trains, logs all penalties at each step, and the weights move."""
    before = copy.deepcopy(trainer.model.state_dict())
    trainer.train()
    lines = [line for line in trainer.state.log_history if "loss" in line]
    assert len(lines) == 2
    for line in lines:
        assert names <= {key.removeprefix("protect/") for key in line}
    after = trainer.model.state_dict()
    assert any(not torch.equal(before[name], after[name]) for name in before)
    return lines


def sft(load: Callable[[], Any], folder: Path, **more: Any) -> Any:
    from trl import SFTConfig, SFTTrainer

    rows = Dataset.from_list(pairs(16))
    return SFTTrainer(
        load(), args=SFTConfig(**options(folder)), train_dataset=rows,
        processing_class=padding_tokenizer(), **more,
    )  # fmt: skip


def dpo(load: Callable[[], Any], folder: Path, **more: Any) -> Any:
    from trl import DPOConfig, DPOTrainer

    rows = Dataset.from_list(
        [{"prompt": r["prompt"], "chosen": r["completion"], "rejected": "cat"} for r in pairs(16)]
    )
    return DPOTrainer(
        load(), args=DPOConfig(**options(folder)), train_dataset=rows,
        processing_class=padding_tokenizer(), **more,
    )  # fmt: skip


def grpo(load: Callable[[], Any], folder: Path, **more: Any) -> Any:
    from trl import GRPOConfig, GRPOTrainer

    def reward(completions: list[str], **_: Any) -> list[float]:
        return [float(len(text) % 5) for text in completions]

    config = {"num_generations": 4, "max_completion_length": 4, **more.pop("config", {})}
    args = more.pop("args", None) or GRPOConfig(**options(folder), **config)
    return GRPOTrainer(
        load(), reward, args=args, train_dataset=Dataset.from_list(prompts(16)),
        processing_class=padding_tokenizer(), **more,
    )  # fmt: skip


@pytest.mark.parametrize("build", [sft, dpo, grpo])
@pytest.mark.parametrize("lora", [False, True])
def test_two_mitigations_in_trainers_of_trl(
    load: Callable[[], Any], tmp_path: Path, build: Any, lora: bool
) -> None:
    more = {"peft_config": LoRA(rank=2).peft_config()} if lora else {}
    trainer = build(load, tmp_path, **more)
    run = fm.protect(trainer, KL, Replay(pairs(8, seed=4)))
    names = {"kl_to_start"} | (set() if build is sft else {"replay"})
    lines = check(trainer, names)
    assert lines[0]["protect/kl_to_start"] == pytest.approx(0.0, abs=1e-5)
    assert lines[1]["protect/kl_to_start"] > 1e-7
    assert (len(trainer.train_dataset) == 16 + 5) == (build is sft)
    assert len(run.penalties) == len(names)


def test_everything_at_once_in_sft(load: Callable[[], Any], tmp_path: Path) -> None:
    trainer = sft(load, tmp_path, peft_config=LoRA(rank=2).peft_config())
    fm.protect(
        trainer,
        KL,
        MarginPenalty(prompts(8), max_tokens=3, kl=0.5, bound=0.1),
        OnPolicyReplay(prompts(8), max_tokens=3, batch_size=4, refresh=2),
        GradientProjection(prompts(8), max_tokens=3),
        SyntheticReplay(rows=6, max_tokens=6),
    )
    names = {"kl_to_start", "margin_penalty", "on_policy_replay", "gradient_projection/cosine"}
    check(trainer, names)


@pytest.mark.parametrize("iterations", [1, 2])
@pytest.mark.parametrize("objective", [OAPL(t2=0.5), TTTDiscover(strength=0.2)])
def test_objectives_over_groups(
    load: Callable[[], Any], tmp_path: Path, objective: Any, iterations: int
) -> None:
    trainer = grpo(load, tmp_path, config={"num_iterations": iterations})
    fm.protect(trainer, objective, KL)
    lines = check(trainer, {"kl_to_start"})
    assert f"protect/{objective.kind}/{'log_ratio' if objective.kind == 'oapl' else 'eta'}" in {
        key for line in lines for key in line
    }


def test_the_loss_of_oapl_is_its_formula(load: Callable[[], Any], tmp_path: Path) -> None:
    trainer = grpo(load, tmp_path)
    fm.protect(trainer, OAPL(t1=2.0))
    seen: list[torch.Tensor] = []
    rewards = trainer._calculate_rewards

    def keep(*given: Any) -> torch.Tensor:
        seen.append(rewards(*given))
        return seen[-1]

    trainer._calculate_rewards = keep
    trainer.train()
    losses = [line["loss"] for line in trainer.state.log_history if "loss" in line]
    for loss, reward in zip(losses, seen, strict=True):
        value = reward.flatten().double()
        soft = 2.0 * (value / 2.0).exp().mean().log()
        assert loss == pytest.approx(float(((value - soft) ** 2).mean()), rel=1e-4)


def test_grpo_with_kl(load: Callable[[], Any], tmp_path: Path) -> None:
    args = GRPOWithKL(0.3).config(num_generations=4, max_completion_length=4, **options(tmp_path))
    trainer = grpo(load, tmp_path, args=args)
    fm.protect(trainer, GRPOWithKL(0.3), KL)
    check(trainer, {"kl_to_start", "kl"})
    with pytest.raises(UsageError, match=r"has beta 0, not 0\.3"):
        fm.protect(grpo(load, tmp_path), GRPOWithKL(0.3))


def test_sdft(load: Callable[[], Any], tmp_path: Path) -> None:
    config = SDFT(max_tokens=4)
    out = options(tmp_path)
    trainer = config.make_trainer(load(), pairs(16), padding_tokenizer(), **out)
    fm.protect(trainer, config, KL)
    check(trainer, {"kl_to_start"})


def test_lora_is_left_to_trainers_of_trl(load: Callable[[], Any], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="peft_config=LoRA"):
        fm.protect(sft(load, tmp_path), LoRA(rank=4))


def test_a_resumed_training_goes_on_as_if_it_had_not_stopped(tmp_path: Path) -> None:
    mitigations = (KL, MarginPenalty(prompts(8), max_tokens=3), Replay(pairs(8, seed=4)))
    saved = {"max_steps": 4, "save_strategy": "steps", "save_steps": 2}
    whole = make_trainer(tmp_path, **saved)
    fm.protect(whole, *mitigations)
    whole.train()
    again = make_trainer(tmp_path, **saved)
    fm.protect(again, *mitigations)
    again.train(resume_from_checkpoint=str(tmp_path / "checkpoint-2"))
    for one, other in zip(whole.model.parameters(), again.model.parameters(), strict=True):
        assert torch.allclose(one, other, atol=1e-7)


def test_two_processes_train_as_one_with_twice_the_batch(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    started = [
        start_worker(tmp_path, 2, RANK=rank, LOCAL_RANK=rank, WORLD_SIZE=2, MASTER_PORT=port)
        for rank in range(2)
    ]
    train_protected(tmp_path, 4)
    try:
        for process in started:
            _, problems = process.communicate(timeout=240)
            assert process.returncode == 0, problems[-3000:]
    finally:
        for process in started:
            process.kill()
    one, two = (torch.load(tmp_path / f"weights-{count}.pt") for count in (1, 2))
    for name, weight in one.items():
        assert torch.allclose(weight, two[name], atol=2e-6), name


def start_worker(folder: Path, batch: int, **place: int) -> subprocess.Popen[str]:
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT / "tests" / "support")]),
        "OMP_NUM_THREADS": "1",
        "MASTER_ADDR": "127.0.0.1",
        **{name: str(value) for name, value in place.items()},
    }
    worker = ROOT / "tests" / "support" / "protected_worker.py"
    return subprocess.Popen(
        [sys.executable, worker, folder, str(batch)], env=environment, text=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    )  # fmt: skip
