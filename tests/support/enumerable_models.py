"""Tiny language models of four tokens whose every completion can be enumerated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer, models
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from forgetmap.overlap.samples import SampleTable, table_of_arrays

torch.set_num_threads(1)

LETTERS = "abc"
END = 3
LONGEST = 4
CONTEXT = 16
Floats = NDArray[np.float64]


@cache
def letters() -> Any:
    """Return a tokenizer with the tokens a, b, c and the end token."""
    vocabulary = {letter: prompt_index for prompt_index, letter in enumerate([*LETTERS, "</s>"])}
    merges: list[tuple[str, str]] = []
    raw = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    return PreTrainedTokenizerFast(tokenizer_object=raw, eos_token="</s>")


def lettered_model(
    seed: int, *, near: int | None = None, step: float = 0.0, scale: float = 0.2, wide: int = 16
) -> Any:
    """Return random weights; with `near`, those of that seed moved towards these by `step`."""
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=4, hidden_size=wide, intermediate_size=32, num_hidden_layers=1,
        num_attention_heads=2, num_key_value_heads=2, max_position_embeddings=CONTEXT,
        initializer_range=scale, bos_token_id=None, eos_token_id=END, pad_token_id=None,
    )  # fmt: skip
    model = LlamaForCausalLM(config).eval()
    if near is not None:
        start = lettered_model(near, scale=scale, wide=wide)
        with torch.no_grad():
            for mine, base in zip(model.parameters(), start.parameters(), strict=True):
                mine.copy_(base + step * (mine - base))
    return model


def saved(model: Any, folder: Path) -> Path:
    """Write a model folder."""
    model.save_pretrained(folder)
    letters().save_pretrained(folder)
    return folder


def all_completions(longest: int = LONGEST) -> list[tuple[int, ...]]:
    """Return every completion that ends, and every one that is cut at the limit."""
    ending = [(*body, END) for size in range(longest) for body in product(range(END), repeat=size)]
    return [*ending, *product(range(END), repeat=longest)]


@dataclass(frozen=True)
class Exact:
    """Exact probabilities of two models on one prompt.

    Attributes:
        before: probability of every completion under the model before.
        after: the same under the model after.
        forward: at every completion, KL(before||after) summed along its tokens.
        reverse: the same for KL(after||before).
    """

    before: Floats
    after: Floats
    forward: Floats
    reverse: Floats

    @property
    def overlap(self) -> float:
        return float(np.sqrt(self.before * self.after).sum())

    @property
    def forward_kl(self) -> float:
        return float((self.before * np.log(self.before / self.after)).sum())

    @property
    def reverse_kl(self) -> float:
        return float((self.after * np.log(self.after / self.before)).sum())

    @property
    def total_variation(self) -> float:
        return float(np.abs(self.before - self.after).sum() / 2)

    @property
    def misassigned(self) -> float:
        """Mean posterior of the wrong model at even odds; the same from either side."""
        return float((self.before * self.after / (self.before + self.after)).sum())


def next_tokens(model: Any, texts: Sequence[Sequence[int]]) -> Floats:
    """Return log-probabilities of the token after each text; all texts have the same length."""
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([list(text) for text in texts])).logits[:, -1]
    found: Floats = logits.double().log_softmax(-1).numpy()
    return found


def enumerate_exactly(before: Any, after: Any, prompt: str, longest: int = LONGEST) -> Exact:
    """Return the exact probabilities of every completion of a prompt."""
    start = tuple(LETTERS.index(letter) for letter in prompt)
    tables: list[dict[tuple[int, ...], Floats]] = [{}, {}]
    for size in range(longest):
        bodies = list(product(range(END), repeat=size))
        for table, model in zip(tables, (before, after), strict=True):
            found = next_tokens(model, [(*start, *body) for body in bodies])
            table |= dict(zip(bodies, found, strict=True))
    logs = np.array(
        [
            [
                sum(table[body[:prompt_index]][token] for prompt_index, token in enumerate(body))
                for table in tables
            ]
            for body in all_completions(longest)
        ]
    )
    both = [
        [
            sum(
                _kl(one[body[:prompt_index]], other[body[:prompt_index]])
                for prompt_index in range(len(body))
            )
            for body in all_completions(longest)
        ]
        for one, other in (tables, tables[::-1])
    ]
    return Exact(np.exp(logs[:, 0]), np.exp(logs[:, 1]), np.array(both[0]), np.array(both[1]))


def all_prompts(longest: int = 3) -> list[str]:
    """Return every text of up to this number of letters."""
    return ["".join(body) for size in range(longest) for body in product(LETTERS, repeat=size + 1)]


def drawn(
    exact: Sequence[Exact], samples: int, random: np.random.Generator, *, whole: bool = True
) -> SampleTable:
    """Draw samples of both models on each prompt, from their exact distributions."""
    columns: list[list[Floats]] = [[], [], [], [], []]
    for prompt_index, each in enumerate(exact):
        for wrote, chances, along in (
            (1.0, each.before, each.forward),
            (0.0, each.after, each.reverse),
        ):
            chosen = random.choice(len(chances), samples, p=chances / chances.sum())
            here = (np.full(samples, prompt_index), np.full(samples, wrote))
            found = (*here, each.before[chosen], each.after[chosen], along[chosen])
            for column, values in zip(columns, found, strict=True):
                column.append(values)
    prompt, side, before, after, kl = (np.concatenate(column) for column in columns)
    return table_of_arrays(
        prompt, side > 0, np.log(before), np.log(after), kl=kl if whole else None
    )


def drawn_mixture(
    exact: Sequence[Exact], mass: float, samples: int, random: np.random.Generator
) -> SampleTable:
    """Draw samples of a mixture of both models; the mixture takes the place of the model after."""
    mixed = [mass * each.before + (1 - mass) * each.after for each in exact]
    chosen = [random.choice(len(one), samples, p=one / one.sum()) for one in mixed]
    before, after, both = (
        np.log(np.concatenate([one[rows] for one, rows in zip(given, chosen, strict=True)]))
        for given in ([e.before for e in exact], [e.after for e in exact], mixed)
    )
    prompt = np.repeat(np.arange(len(exact)), samples)
    table = table_of_arrays(prompt, np.zeros(prompt.size, bool), before, both)
    return replace(table, expert=before - after)


def _kl(one: Floats, other: Floats) -> float:
    return float((np.exp(one) * (one - other)).sum())
