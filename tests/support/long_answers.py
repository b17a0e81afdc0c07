"""A backend for long prompts, and a Ray actor for it with little memory."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

from forgetmap import __version__
from forgetmap.evaluation.backends.base import (
    Decoding,
    LoadOptions,
    Message,
    ModelSource,
    Prompt,
    Question,
    Response,
)
from forgetmap.evaluation.backends.ray import ModelActor, ModelProfile
from forgetmap.evaluation.items import Item, Suite, Task


class DigestBackend:
    """Backend that answers with a digest of the prompt, so that a wrong prompt is noticed."""

    context = 10**9
    has_chat_template = False
    template_hash = None

    def chat(self, messages: Sequence[Message]) -> str:
        raise NotImplementedError

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [len(text) for text in texts]

    def generate(
        self, prompts: Sequence[Prompt], decoding: Decoding
    ) -> Iterator[tuple[int, Response]]:
        del decoding
        for index, prompt in enumerate(prompts):
            digest = blake2b(prompt.text.encode(), digest_size=8).hexdigest()
            yield index, Response(digest, len(prompt.text), len(digest), "stop")

    def loglikelihood(self, questions: Sequence[Question]) -> Iterator[Any]:
        raise NotImplementedError


def own_memory() -> int:
    """Return the private memory of this process in bytes."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(status.partition("RssAnon:")[2].split()[0]) << 10


class SmallActor(ModelActor):
    """Actor that fails above its memory limit; slow enough to lose its machine during a call."""

    def __init__(self, spare: int, seconds: float) -> None:
        self._backend = DigestBackend()
        self._seconds = seconds
        self._most = own_memory() + spare

    def load(self, source: ModelSource, options: LoadOptions) -> ModelProfile:
        del source, options
        return ModelProfile(__version__, DigestBackend.context, False, None)

    def answer(self, method: str, requests: Sequence[Any], *args: Any) -> list[Any]:
        time.sleep(self._seconds)
        if own_memory() > self._most:
            raise MemoryError(f"{own_memory():,} bytes in memory, {self._most:,} are allowed")
        return super().answer(method, requests, *args)


def long_suite(items: int, letters: int) -> Suite:
    """Return a suite of open questions with this number of letters each."""

    def make() -> tuple[Item, ...]:
        return tuple(Item(str(i), f"{i:>8}" * (letters // 8), "?") for i in range(items))

    return Suite("long", (Task("long", "open", "text", make),))
