"""Tiny models with random weights, and a tokenizer for them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    PreTrainedTokenizerFast,
)

torch.set_num_threads(1)  # more threads only slow down tiny models

WORDS = [
    "the", "a", "cat", "dog", "bird", "sat", "ran", "flew", "on", "under", "mat", "tree", "house",
    "river", "mountain", "quick", "brown", "lazy", "over", "jumps", "answer", "question", "is",
    "of", "and", "to", "in",
]  # fmt: skip
CONTEXT = 256
WINDOW = 24
VOCABULARY = 400


def sentence(source: random.Random, words: int) -> str:
    return " ".join(source.choice(WORDS) for _ in range(words))


@cache
def tokenizer() -> Any:
    source = random.Random(0)
    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=["<s>", "</s>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    raw.train_from_iterator([sentence(source, 20) + ".\n" for _ in range(200)], trainer)
    return PreTrainedTokenizerFast(tokenizer_object=raw, bos_token="<s>", eos_token="</s>")


@cache
def tiny_model(kind: str) -> Any:
    """Return `llama`, `eager` (other attention), `gpt2` or `window` (attends to 24 tokens)."""
    torch.manual_seed(1)
    ends = {"bos_token_id": 0, "eos_token_id": 1, "pad_token_id": None}
    shape = {
        "vocab_size": VOCABULARY,
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": CONTEXT,
        "initializer_range": 0.3,
    }
    if kind == "gpt2":
        config = GPT2Config(
            vocab_size=VOCABULARY, n_embd=32, n_layer=2, n_head=4, n_positions=CONTEXT,
            initializer_range=0.3, **ends,
        )  # fmt: skip
        return GPT2LMHeadModel(config).eval()
    if kind == "window":
        return MistralForCausalLM(MistralConfig(**shape, **ends, sliding_window=WINDOW)).eval()
    attention = "eager" if kind == "eager" else "sdpa"
    return LlamaForCausalLM(LlamaConfig(**shape, **ends, attn_implementation=attention)).eval()


def save_two(folder: Path) -> None:
    """Write `base` and `tuned`, with other weights of the same shape."""
    model = tiny_model("llama")
    for name, strength in (("base", 0.0), ("tuned", 0.15)):
        noise = torch.Generator().manual_seed(7)
        state = {
            key: tensor + strength * torch.randn(tensor.shape, generator=noise)
            for key, tensor in model.state_dict().items()
        }
        model.save_pretrained(folder / name, state_dict=state)
        tokenizer().save_pretrained(folder / name)


def encode(text: str) -> list[int]:
    return list(tokenizer()(text, add_special_tokens=False).input_ids)


@contextmanager
def watched(model: Any, limit: int | None = None) -> Iterator[list[int]]:
    """Record the sizes of all passes; those above the limit fail as if out of memory."""
    sizes: list[int] = []

    def before(_: Any, __: Any, given: dict[str, Any]) -> None:
        sizes.append(given["input_ids"].numel())
        if limit is not None and sizes[-1] > limit:
            raise torch.OutOfMemoryError("no memory left")

    hook = model.register_forward_pre_hook(before, with_kwargs=True)
    try:
        yield sizes
    finally:
        hook.remove()
