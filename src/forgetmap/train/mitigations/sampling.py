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
    """Sample an answer to each prompt: tokens, with the end-of-sequence token if it was generated.

    The random state of the training, and the mode and settings of the model, are restored.

    Args:
        model: any causal language model of transformers, also with an adapter.
        prompts: tokens of each prompt; not empty.
        tokenizer: provides the end and padding tokens; None if the config of the model has them.
        max_tokens: maximum length of an answer.
        temperature: sampling temperature; 0 is greedy.
        seed: random seed of all answers together.
        batch_size: number of prompts per batch.
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
    """Use a separate random state, and restore that of the training afterwards."""
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
    """Return the tokens that end a text: those of the model, or else of the tokenizer."""
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
    output = model.generate(
        input_ids=torch.tensor(ids, device=device),
        attention_mask=torch.tensor(mask, device=device),
        generation_config=settings,
    )
    ends = set(settings.eos_token_id or [])
    return [_cut(row, ends) for row in output[:, width:].tolist()]


def _cut(tokens: list[int], ends: set[int]) -> list[int]:
    """Cut after the first end token."""
    for at, token in enumerate(tokens):
        if token in ends:
            return tokens[: at + 1]
    return tokens


def first_token(model: Any, tokenizer: Any) -> int:
    """Return the token that starts an empty text.

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
