"""Repeated evaluation of the same prompts on a model that changes slightly, as during training.

The previous greedy response is checked in one pass: if each of its tokens is still the most likely
one, the model would generate it again, and decoding is skipped. Only changed responses are decoded
again. This is speculative decoding with the previous response as the draft: the result is the same,
up to rounding, as with batching.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from forgetmap.evaluation.backends.base import Decoding, Failure, FinishReason
from forgetmap.evaluation.backends.transformers.backend import TransformersBackend
from forgetmap.evaluation.backends.transformers.decode import DecodeRow
from forgetmap.evaluation.backends.transformers.prefixes import TokenPath, Tokens
from forgetmap.evaluation.backends.transformers.score import are_greedy, score_paths

ResponseKey = tuple[Tokens, int, tuple[str, ...]]
"""Prompt, maximum length of the response, and stop texts."""


@dataclass(frozen=True, slots=True)
class LastResponse:
    """The previous response to a prompt."""

    tokens: Tokens
    finish: FinishReason | None


class RepeatingBackend(TransformersBackend):
    """A `TransformersBackend` that answers the same prompts faster when they are repeated."""

    def __init__(self, model: Any, tokenizer: Any) -> None:
        # Before super().__init__, which already encodes texts.
        self._encoded: dict[str, Tokens] = {}
        self._drafts: dict[ResponseKey, LastResponse] = {}
        super().__init__(model, tokenizer)

    def encode(self, texts: Sequence[str]) -> list[Tokens]:
        """Return the tokens of each text; each text is encoded once."""
        known = self._encoded
        new = [text for text in dict.fromkeys(texts) if text not in known]
        known.update(zip(new, super().encode(new), strict=True))
        return [known[text] for text in texts]

    def _decode(
        self, rows: Sequence[DecodeRow], decoding: Decoding
    ) -> Iterator[tuple[DecodeRow, Failure | None]]:
        if decoding.temperature:
            yield from super()._decode(rows, decoding)
            return
        same = self._unchanged(rows, decoding)
        for row in same:
            yield row, None
        done = {row.index for row in same}
        rest = [row for row in rows if row.index not in done]
        for row, failure in super()._decode(rest, decoding):
            if failure is None:
                draft = LastResponse(tuple(row.out), row.finished)
                self._drafts[_key(row, decoding)] = draft
            yield row, failure

    def _unchanged(self, rows: Sequence[DecodeRow], decoding: Decoding) -> list[DecodeRow]:
        """Return rows whose previous response is unchanged, with that response."""
        drafts = {}
        for number, row in enumerate(rows):
            draft = self._drafts.get(_key(row, decoding))
            if draft is not None and draft.tokens:
                drafts[number] = draft
        paths = [
            [TokenPath(number, 0, (*rows[number].tokens, *draft.tokens), len(rows[number].tokens))]
            for number, draft in drafts.items()
        ]
        same = []
        for path, is_greedy in score_paths(self._network, paths, self._limits, are_greedy):
            if is_greedy and not isinstance(is_greedy, Failure):
                row, draft = rows[path.question], drafts[path.question]
                row.out, row.finished = list(draft.tokens), draft.finish
                same.append(row)
        return same


def _key(row: DecodeRow, decoding: Decoding) -> ResponseKey:
    return row.tokens, row.limit, decoding.stop
