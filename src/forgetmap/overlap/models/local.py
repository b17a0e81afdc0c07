"""Local transformers models, with full next-token distributions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch

from forgetmap.errors import ModelError
from forgetmap.evaluation import (
    PASS_TOKENS,
    ROWS,
    Decoder,
    DecodeRow,
    Decoding,
    LoadedModel,
    Message,
    ModelSource,
    Network,
    Size,
    TransformersBackend,
    cells_that_fit,
    end_tokens,
    find_model,
    load_model,
    weights_stamp,
)
from forgetmap.overlap.models.base import Completion, TokenLogprobs, Tokens

WHOLE = 2**24
"""Maximum number of logits of one pass: 64 MiB."""
MOST_ROWS = 256


class LocalModel:
    """A causal language model in this process."""

    def __init__(self, loaded: LoadedModel, stamp: str = "", rows: int = ROWS) -> None:
        self.name = loaded.name
        self.stamp = stamp
        self._tokenizer = loaded.tokenizer
        self._network = Network(loaded.model)
        self._backend = TransformersBackend(loaded.model, loaded.tokenizer)
        self._size = Size(rows, PASS_TOKENS, cells_that_fit(loaded.model))
        self.context: int | None = self._backend.context
        self.ends = frozenset(end_tokens(loaded.tokenizer, loaded.model))
        self.vocabulary: tuple[str, ...] | None = self._tokens()

    @classmethod
    def open(cls, model: str | ModelSource, **options: Any) -> LocalModel:
        """Load a folder, a hub id, `BASE+ADAPTER` or a GGUF file."""
        source = model if isinstance(model, ModelSource) else find_model(model)
        return cls(load_model(source, **options), f"{source} {weights_stamp(source)}")

    @property
    def template(self) -> str | None:
        """Identifier of the chat template."""
        return self._backend.template_hash

    def chat(self, text: str) -> str:
        """Return the text as a user turn in the chat template of the model."""
        return self._backend.chat([Message("user", text)])

    def encode(self, texts: Sequence[str]) -> list[Tokens]:
        """Return the tokens of each text."""
        return self._backend.encode(texts)

    def sample(
        self, prompts: Sequence[tuple[Tokens, int]], limit: int, ends: frozenset[int]
    ) -> Iterator[tuple[int, Completion]]:
        """Continue each (prompt, seed) up to a limit."""
        rows = [
            DecodeRow(index=index, tokens=tokens, head=0, group=0, limit=limit, seed=seed)
            for index, (tokens, seed) in enumerate(prompts)
        ]
        longest = max((len(tokens) for tokens, _ in prompts), default=0) + limit
        decoding = Decoding(temperature=1.0, max_new_tokens=limit)
        decoder = Decoder(self._network, decoding, lambda out: out[-1] in ends, self._size, longest)
        for row, failure in decoder.run(rows):
            if failure is not None:
                raise ModelError(
                    f"{self.name} cannot continue a prompt of {len(row.tokens)} tokens: {failure}",
                    hint="lower --max-new-tokens, or use a machine with more memory.",
                )
            yield row.index, Completion(tuple(row.out), row.out[-1] in ends)

    def weigh(self, rows: Sequence[tuple[Tokens, Tokens]]) -> Iterator[TokenLogprobs]:
        """Return the log-probabilities of each completion after its prompt, in order."""
        width = max((len(prompt) + len(tokens) for prompt, tokens in rows), default=1)
        size = max(1, min(MOST_ROWS, WHOLE // (width * self._network.vocabulary)))
        for start in range(0, len(rows), size):
            yield from self._weigh_some(rows[start : start + size])

    def _weigh_some(self, rows: Sequence[tuple[Tokens, Tokens]]) -> Iterator[TokenLogprobs]:
        lengths = [len(prompt) + len(tokens) - 1 for prompt, tokens in rows]
        width = max(lengths)
        keep = width - min(len(prompt) for prompt, _ in rows) + 1
        padded = [
            [*prompt, *tokens[:-1], *[0] * (width - length)]
            for (prompt, tokens), length in zip(rows, lengths, strict=True)
        ]
        mask = [[1] * length + [0] * (width - length) for length in lengths]
        device = self._network.device
        with torch.inference_mode():
            logits = self._network.run(
                torch.tensor(padded, device=device),
                keep=keep,
                mask=torch.tensor(mask, device=device),
            )
            all_logprobs = logits.float().log_softmax(-1).cpu().numpy()
        for (prompt, tokens), logprobs in zip(rows, all_logprobs, strict=True):
            start = len(prompt) - 1 - (width - keep)
            own = logprobs[start : start + len(tokens)]
            chosen = own[np.arange(len(tokens)), list(tokens)]
            if np.isnan(chosen).any():
                raise ModelError(
                    f"The logits of {self.name} are not finite.",
                    hint="check its weights, or load it with --dtype float32.",
                )
            yield TokenLogprobs(tuple(chosen.tolist()), own)

    def _tokens(self) -> tuple[str, ...]:
        """Return all tokens by id; ids beyond the tokenizer get no name."""
        names = [""] * self._network.vocabulary
        for token, index in self._tokenizer.get_vocab().items():
            if index < len(names):
                names[index] = token
        return tuple(names)
