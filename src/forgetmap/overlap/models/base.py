"""Protocol of models that sample completions and compute log-probabilities of given ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from forgetmap.errors import EmptyInputError, PairingError
from forgetmap.overlap.prompts import SamplingPrompt
from forgetmap.text import counted

Tokens = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Completion:
    """A sampled completion, including the end token.

    Attributes:
        tokens: at least one token.
        ended: the last token is an end token.
        logprobs: log-probability of each token under the writer, if available.
    """

    tokens: Tokens
    ended: bool
    logprobs: tuple[float, ...] | None = None


@dataclass(frozen=True, slots=True)
class TokenLogprobs:
    """Log-probabilities of a completion under a model.

    Attributes:
        logprobs: log-probability of each token.
        whole: log-probabilities of the whole vocabulary at each position (token, vocabulary), if
            known.
    """

    logprobs: tuple[float, ...]
    whole: NDArray[np.float32] | None = None


class LanguageModel(Protocol):
    """Samples at temperature 1 from the whole distribution, and computes log-probabilities."""

    @property
    def name(self) -> str:
        """Name of the model."""

    @property
    def stamp(self) -> str:
        """Identifier that changes with the weights, as far as that can be detected."""

    @property
    def context(self) -> int | None:
        """Maximum number of tokens of prompt and completion, if known."""

    @property
    def vocabulary(self) -> tuple[str, ...] | None:
        """All tokens, if known."""

    @property
    def template(self) -> str | None:
        """Identifier of the chat template; None without one."""

    @property
    def ends(self) -> frozenset[int]:
        """Tokens that end a completion, as far as known."""

    def chat(self, text: str) -> str:
        """Return the text as a user turn in the chat template of the model."""

    def encode(self, texts: Sequence[str]) -> list[Tokens]:
        """Return the tokens of each text."""

    def sample(
        self, prompts: Sequence[tuple[Tokens, int]], limit: int, ends: frozenset[int]
    ) -> Iterator[tuple[int, Completion]]:
        """Continue each (prompt, seed) up to a limit; return (index, completion) in any order."""

    def weigh(self, rows: Sequence[tuple[Tokens, Tokens]]) -> Iterator[TokenLogprobs]:
        """Return the log-probabilities of each completion after its prompt, in order."""


def encode_alike(
    before: LanguageModel,
    after: LanguageModel,
    prompts: Sequence[SamplingPrompt],
    *,
    chat: bool,
    limit: int,
) -> list[Tokens]:
    """Return the tokens of every prompt, which must be the same for both models.

    Raises:
        PairingError: tokenizers, vocabularies or chat templates differ, or a prompt is too long.
    """
    if not prompts:
        raise EmptyInputError("There are no prompts.", hint="add at least one prompt.")
    _check_vocabularies(before, after)
    texts = [prompt.text for prompt in prompts]
    if chat:
        if before.template != after.template:
            raise PairingError(
                f"{before.name} and {after.name} have different chat templates.",
                hint="use the same template for both, or plain prompts without --chat.",
            )
        texts = [before.chat(text) for text in texts]
    ids_before, ids_after = before.encode(texts), after.encode(texts)
    for prompt, tokens, other_tokens in zip(prompts, ids_before, ids_after, strict=True):
        if tokens != other_tokens:
            raise PairingError(
                f"Prompt {prompt.id!r} is tokenized differently: {counted(len(tokens), 'token')} "
                f"in {before.name}, {counted(len(other_tokens), 'token')} in {after.name}.",
                hint="compare models with the same tokenizer.",
            )
        _check_length(prompt, tokens, (before, after), limit)
    return ids_before


def _check_vocabularies(before: LanguageModel, after: LanguageModel) -> None:
    if before.vocabulary is None or after.vocabulary is None:
        return
    if before.vocabulary == after.vocabulary:
        return
    pairs = enumerate(zip_longest(before.vocabulary, after.vocabulary))
    index, tokens = next((at, pair) for at, pair in pairs if pair[0] != pair[1])
    raise PairingError(
        f"The vocabularies differ: {len(before.vocabulary):,} tokens in {before.name} and "
        f"{len(after.vocabulary):,} in {after.name}; token {index} is "
        f"{tokens[0]!r} and {tokens[1]!r}.",
        hint="use models with the same tokenizer; log-probabilities of different tokens cannot "
        "be compared.",
    )


def _check_length(
    prompt: SamplingPrompt, tokens: Tokens, models: Sequence[LanguageModel], limit: int
) -> None:
    if not tokens:
        raise EmptyInputError(f"Prompt {prompt.id!r} has no tokens.", hint="add text to continue.")
    for model in models:
        if model.context is not None and len(tokens) + limit > model.context:
            raise PairingError(
                f"Prompt {prompt.id!r} has {counted(len(tokens), 'token')}; with "
                f"{counted(limit, 'new token')} it exceeds the context length {model.context:,} of "
                f"{model.name}.",
                hint="shorten the prompt, or lower --max-new-tokens.",
            )
