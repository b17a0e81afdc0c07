"""Every supported trainer of transformers and TRL, on a tiny model and a few sentences."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import torch
from transformers import Trainer, TrainingArguments

from tiny_models import tiny_model, tokenizer

PROMPTS = ["the cat", "a dog", "the bird sat", "a river"] * 4
TEMPLATE = (
    "{% for message in messages %}{{ message['role'] }}: {{ message['content'] }}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant:{% endif %}"
)
IGNORED = ("ignore::UserWarning", "ignore::DeprecationWarning", "ignore::FutureWarning")
"""Warnings of the libraries about each other."""


@cache
def trained_tokenizer() -> Any:
    """Return a tokenizer with padding and a chat template, as trainers need them."""
    own = copy.deepcopy(tokenizer())
    own.pad_token, own.chat_template = "</s>", TEMPLATE
    return own


def save_start(folder: Path, kind: str = "llama") -> Path:
    """Write the start model to a folder, from which trainers load the reference model."""
    model = copy.deepcopy(tiny_model(kind))
    model.config.pad_token_id = model.generation_config.pad_token_id = 1
    model.save_pretrained(folder)
    trained_tokenizer().save_pretrained(folder)
    return folder


def arguments(out: Path, **more: Any) -> dict[str, Any]:
    """Return arguments for all trainers: four steps, logs and checkpoints at steps 2 and 4."""
    return {
        "output_dir": str(out), "max_steps": 4, "per_device_train_batch_size": 4,
        "report_to": [], "logging_steps": 2, "save_steps": 2, "learning_rate": 1e-2,
        "disable_tqdm": True, "use_cpu": True, "bf16": False, "gradient_checkpointing": False,
        "dataloader_pin_memory": False, "seed": 3,
    } | more  # fmt: skip


def plain_trainer(model: Any, out: Path, **more: Any) -> Trainer:
    """Return a `Trainer` on random tokens."""
    generator = torch.Generator().manual_seed(0)
    rows = [{"input_ids": row, "labels": row}
            for row in torch.randint(2, 300, (64, 16), generator=generator)]  # fmt: skip
    return Trainer(
        model, TrainingArguments(**arguments(out, **more)),
        train_dataset=rows, processing_class=trained_tokenizer(),
    )  # fmt: skip


def _reward(completions: list[Any], **_: Any) -> list[float]:
    return [float(len(str(one)) % 5) for one in completions]


def _rows(**columns: list[Any]) -> Any:
    from datasets import Dataset

    return Dataset.from_dict({"prompt": PROMPTS, **columns})


def _pairs() -> Any:
    return _rows(chosen=[" on the mat"] * 16, rejected=[" under a tree"] * 16)


def _sft(model: Any, out: Path, given: dict[str, Any], **more: Any) -> Any:
    from trl import SFTConfig, SFTTrainer

    rows = _rows(completion=[" on the mat"] * 16)
    return SFTTrainer(model, SFTConfig(**arguments(out, **more)), train_dataset=rows, **given)


def _dpo(model: Any, out: Path, given: dict[str, Any], **more: Any) -> Any:
    from trl import DPOConfig, DPOTrainer

    return DPOTrainer(
        model, args=DPOConfig(**arguments(out, **more)), train_dataset=_pairs(), **given
    )


def _sampled(name: str) -> Callable[..., Any]:
    def make(model: Any, out: Path, given: dict[str, Any], **more: Any) -> Any:
        import trl

        options = {"num_generations": 2, "max_completion_length": 6, **more}
        config = getattr(trl, f"{name}Config")(**arguments(out, **options))
        trainer = getattr(trl, f"{name}Trainer")
        return trainer(model, reward_funcs=_reward, args=config, train_dataset=_rows(), **given)

    return make


def _kto(model: Any, out: Path, given: dict[str, Any], **more: Any) -> Any:
    from trl import KTOConfig, KTOTrainer

    rows = _rows(completion=[" on the mat"] * 16, label=[True, False] * 8)
    return KTOTrainer(model, args=KTOConfig(**arguments(out, **more)), train_dataset=rows, **given)


def _cpo(model: Any, out: Path, given: dict[str, Any], **more: Any) -> Any:
    from trl.experimental.cpo import CPOConfig, CPOTrainer

    return CPOTrainer(
        model, args=CPOConfig(**arguments(out, **more)), train_dataset=_pairs(), **given
    )


def _orpo(model: Any, out: Path, given: dict[str, Any], **more: Any) -> Any:
    from trl.experimental.orpo import ORPOConfig, ORPOTrainer

    return ORPOTrainer(
        model, args=ORPOConfig(**arguments(out, **more)), train_dataset=_pairs(), **given
    )


def _online_dpo(model: Any, out: Path, given: dict[str, Any], **more: Any) -> Any:
    from trl.experimental.online_dpo import OnlineDPOConfig, OnlineDPOTrainer

    config = OnlineDPOConfig(**arguments(out, max_new_tokens=6, max_length=64, **more))
    return OnlineDPOTrainer(
        model, args=config, reward_funcs=_reward, train_dataset=_rows(), **given
    )


def _sdft(model: Any, out: Path, given: dict[str, Any], **more: Any) -> Any:
    from datasets import Dataset
    from trl.experimental.sdft import SDFTConfig, SDFTTrainer

    config = SDFTConfig(**arguments(out, max_completion_length=6, num_generations=1, **more))
    turns = [[{"role": "user", "content": prompt}] for prompt in PROMPTS]
    rows = Dataset.from_dict({"prompt": turns, "privileged_context": [" on the mat"] * 16})
    return SDFTTrainer(model, args=config, train_dataset=rows, **given)


TRL_TRAINERS: dict[str, Callable[..., Any]] = {
    "sft": _sft, "dpo": _dpo, "grpo": _sampled("GRPO"), "rloo": _sampled("RLOO"), "kto": _kto,
    "cpo": _cpo, "orpo": _orpo, "online-dpo": _online_dpo, "sdft": _sdft,
}  # fmt: skip


def make_trainer(name: str, start: Path, out: Path, *, lora: bool = False, **more: Any) -> Any:
    """Return a trainer by name, for the model in a folder."""
    from transformers import AutoModelForCausalLM

    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_pretrained(start, dtype=torch.float32)
    if name == "plain":
        return plain_trainer(model, out, **more)
    given: dict[str, Any] = {"processing_class": trained_tokenizer()}
    if lora:
        from peft import LoraConfig

        given["peft_config"] = LoraConfig(
            r=4, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM"
        )
    return TRL_TRAINERS[name](model, out, given, **more)
