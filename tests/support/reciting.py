"""A backend that answers by a function."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from forgetmap.evaluation import ModelIdentity, run_model
from forgetmap.evaluation.backends.base import (
    Decoding,
    Failure,
    Likelihoods,
    Message,
    Prompt,
    Question,
)
from forgetmap.evaluation.backends.base import Response as Said
from forgetmap.evaluation.items import Suite
from forgetmap.evaluation.settings import Settings


class Reciting:
    """Backend that answers a prompt by a function."""

    has_chat_template = True
    template_hash = "recited"
    context = 100_000

    def __init__(self, answer: Callable[[str], str]) -> None:
        self._answer = answer

    def chat(self, messages: Sequence[Message]) -> str:
        return "\n".join(f"[{message.role}] {message.content}" for message in messages)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [len(text.split()) for text in texts]

    def generate(
        self,
        prompts: Sequence[Prompt],
        decoding: Decoding,  # noqa: ARG002
    ) -> Iterator[tuple[int, Said | Failure]]:
        for place, prompt in enumerate(prompts):
            text = self._answer(prompt.text)
            yield place, Said(text, len(prompt.text.split()), len(text.split()), "stop")

    def loglikelihood(
        self, questions: Sequence[Question]
    ) -> Iterator[tuple[int, Likelihoods | Failure]]:
        raise NotImplementedError


def recite(suite: Suite, out: Path, answer: Callable[[str], str]) -> Path:
    """Write the run of a model that answers by this function."""
    return run_model(Reciting(answer), suite, out, ModelIdentity(out.name), Settings(chat=True))


def said_in_turn(*turns: str) -> str:
    """Return the prompt of a conversation: user, assistant, user, ..."""
    roles = ("user", "assistant")
    return "\n".join(f"[{roles[place % 2]}] {turn}" for place, turn in enumerate(turns))
