"""Tiny trainers for mitigations, and gradients checked by finite differences."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from transformers import DataCollatorForSeq2Seq, Trainer, TrainingArguments

from forgetmap.train import Mitigation, Protection, protect
from forgetmap.train.examples import read_examples
from tiny_models import sentence, tiny_model, tokenizer

BATCH = {"max_steps": 4, "per_device_train_batch_size": 4, "learning_rate": 1e-3}


def fresh_model(*, double: bool = False) -> Any:
    model = copy.deepcopy(tiny_model("llama"))
    return exact(model) if double else model


def exact(model: Any) -> Any:
    """Convert a model to float64, including the norm, which the library computes in float32."""
    for module in list(model.modules()):
        for name, norm in module.named_children():
            if type(norm).__name__ == "LlamaRMSNorm":
                own = torch.nn.RMSNorm(norm.weight.shape, eps=norm.variance_epsilon)
                own.weight = norm.weight
                setattr(module, name, own)
    return model.double()


def padding_tokenizer() -> Any:
    found = copy.deepcopy(tokenizer())
    found.pad_token = "</s>"
    return found


def prompts(count: int = 12, seed: int = 1) -> list[dict[str, str]]:
    source = random.Random(seed)
    return [{"prompt": sentence(source, source.randint(2, 5)) + " "} for _ in range(count)]


def pairs(count: int = 12, seed: int = 2) -> list[dict[str, str]]:
    source = random.Random(seed)
    return [
        {"prompt": sentence(source, 4) + " ", "completion": sentence(source, source.randint(1, 3))}
        for _ in range(count)
    ]


def token_rows(rows: list[dict[str, str]]) -> list[dict[str, list[int]]]:
    examples = read_examples(rows, padding_tokenizer())
    return [{"input_ids": list(one.ids), "labels": one.labels} for one in examples]


def make_trainer(folder: Path, model: Any = None, **options: Any) -> Any:
    """Return a plain Trainer on 16 new rows."""
    given = {"train_dataset": token_rows(pairs(16)), **options.pop("trainer", {})}
    collator = given.pop("data_collator", DataCollatorForSeq2Seq(padding_tokenizer()))
    arguments = TrainingArguments(
        str(folder),
        **{
            "report_to": [],
            "save_strategy": "no",
            "logging_steps": 1,
            "use_cpu": True,
            "disable_tqdm": True,
            "dataloader_pin_memory": False,
            **BATCH,
            **options,
        },
    )
    return Trainer(
        fresh_model() if model is None else model,
        arguments,
        data_collator=collator,
        processing_class=padding_tokenizer(),
        **given,
    )


def protected(
    folder: Path, *mitigations: Mitigation, model: Any = None, **options: Any
) -> Protection:
    return protect(make_trainer(folder, model, **options), *mitigations)


def logged(run: Protection, key: str) -> list[float]:
    return [line[key] for line in run.trainer.state.log_history if key in line]


def nudge(model: Any, size: float = 0.02, seed: int = 5) -> None:
    """Move all weights a little, as training would."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in model.parameters():
            noise = torch.randn(weight.shape, generator=generator, dtype=torch.float64)
            weight.add_(size * noise.to(weight.dtype))


def slope_gap(value: Callable[[], torch.Tensor], model: Any, step: float = 1e-6) -> float:
    """Return the relative gap between gradient and central differences in a random direction."""
    model.zero_grad()
    torch.autograd.backward(value())
    generator = torch.Generator().manual_seed(9)
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    ways = [torch.randn(one.shape, generator=generator, dtype=torch.float64) for one in weights]
    slope = sum(
        float((one.grad * way).sum()) for one, way in zip(weights, ways, strict=True)
        if one.grad is not None
    )  # fmt: skip
    ends = []
    with torch.no_grad():
        for sign in (1, -2):
            for one, way in zip(weights, ways, strict=True):
                one.add_(sign * step * way)
            ends.append(float(value()))
        for one, way in zip(weights, ways, strict=True):
            one.add_(step * way)
    difference = (ends[0] - ends[1]) / (2 * step)
    return abs(slope - difference) / max(abs(difference), 1e-12)
