"""Text sampled from a model with a separate random state."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from forgetmap.errors import UsageError
from forgetmap.train.mitigations.old_batches import device_of


@torch.no_grad()
def sample_answers(
    model: Any,
    prompts: Sequence[Sequence[int]],
    tokenizer: Any,
    *,
    max_tokens: int,
    temperature: float,
    seed: int,
    batch_size: int = 64,
) -> list[list[int]]:
    """What the model says after each prompt: tokens, with the end-of-sequence token if it came.

    The random state of the training, the model's mode and its settings stay as they were.

    Args:
        model: any causal language model of transformers, also with an adapter.
        prompts: tokens of each; not empty.
        tokenizer: says which tokens end and pad; None if the model's config does.
        max_tokens: of an answer.
        temperature: 0 takes the likeliest token.
        seed: of all answers together.
        batch_size: prompts at once.
    """
    settings = _settings(model, tokenizer, max_tokens, temperature)
    device = device_of(model)
    order = sorted(range(len(prompts)), key=lambda at: len(prompts[at]))
    answers: list[list[int]] = [[] for _ in prompts]
    was_training = model.training
    model.eval()
    try:
        with _random_state(device, seed):
            for first in range(0, len(order), batch_size):
                chosen = order[first : first + batch_size]
                new = _generate(model, [prompts[at] for at in chosen], settings, device)
                for at, answer in zip(chosen, new, strict=True):
                    answers[at] = answer
    finally:
        model.train(was_training)
    return answers


@contextmanager
def _random_state(device: torch.device, seed: int) -> Iterator[None]:
    """A random state of its own, that of the training being put back afterwards."""
    if device.type == "cpu":
        forked = torch.random.fork_rng(devices=[])
    else:
        forked = torch.random.fork_rng(devices=[device], device_type=device.type)
    with forked:
        torch.manual_seed(seed)
        yield


def _settings(model: Any, tokenizer: Any, max_tokens: int, temperature: float) -> Any:
    from transformers import GenerationConfig

    end = _end_of(model, tokenizer)
    pad = getattr(tokenizer, "pad_token_id", None)
    if pad is None:
        pad = end[0] if end else 0
    chance = {"temperature": temperature, "top_k": 0, "top_p": 1.0} if temperature else {}
    return GenerationConfig(
        max_new_tokens=max_tokens,
        do_sample=temperature > 0,
        eos_token_id=end or None,
        pad_token_id=pad,
        repetition_penalty=1.0,
        **chance,
    )


def _end_of(model: Any, tokenizer: Any) -> list[int]:
    """Tokens that end a text: the model's, else the tokenizer's."""
    for end in (
        getattr(getattr(model, "generation_config", None), "eos_token_id", None),
        getattr(tokenizer, "eos_token_id", None),
    ):
        if end is not None:
            return list(end) if isinstance(end, list | tuple) else [end]
    return []


def _generate(
    model: Any, prompts: list[Sequence[int]], settings: Any, device: torch.device
) -> list[list[int]]:
    width = max(len(prompt) for prompt in prompts)
    pad = settings.pad_token_id
    ids = [[pad] * (width - len(prompt)) + list(prompt) for prompt in prompts]
    mask = [[0] * (width - len(prompt)) + [1] * len(prompt) for prompt in prompts]
    made = model.generate(
        input_ids=torch.tensor(ids, device=device),
        attention_mask=torch.tensor(mask, device=device),
        generation_config=settings,
    )
    ends = set(settings.eos_token_id or [])
    return [_cut(row, ends) for row in made[:, width:].tolist()]


def _cut(tokens: list[int], ends: set[int]) -> list[int]:
    """Up to and with the first token that ends."""
    for at, token in enumerate(tokens):
        if token in ends:
            return tokens[: at + 1]
    return tokens


def first_token(model: Any, tokenizer: Any) -> int:
    """What a text begins with when nothing is given.

    Raises:
        UsageError: neither tokenizer nor model has such a token.
    """
    config = model.config.get_text_config()
    for token in (
        getattr(tokenizer, "bos_token_id", None),
        getattr(config, "bos_token_id", None),
        *_end_of(model, tokenizer)[:1],
    ):
        if token is not None:
            return int(token)
    raise UsageError(
        "the model has no token that starts a text",
        hint="pass a prompt to start from: SyntheticReplay(prompt='Question:').",
    )
