"""Tokens of prompts, chats and continuations."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from forgetmap.errors import ModelError
from forgetmap.evaluation.backends.base import Failure, Likelihoods, Message, Question
from forgetmap.evaluation.backends.transformers.prefixes import TokenPath, Tokens


class TokenizerBase:
    """Base of backends with a tokenizer of the transformers library.

    Args:
        tokenizer: tokenizer of the model.
        context: maximum number of tokens of prompt and response together.
    """

    def __init__(self, tokenizer: Any, context: int) -> None:
        self._tokenizer = tokenizer
        self._context = context
        opening = tokenizer("").input_ids
        self._opening: list[int] = opening[:1] if opening[:1] == [tokenizer.bos_token_id] else []

    @property
    def context(self) -> int:
        """Maximum number of tokens of prompt and response together."""
        return self._context

    @property
    def has_chat_template(self) -> bool:
        """Whether `chat` works."""
        return bool(getattr(self._tokenizer, "chat_template", None))

    @property
    def template_hash(self) -> str | None:
        """Hash of the chat template; None if there is none."""
        if not self.has_chat_template:
            return None
        with _template_explained():
            template = self._tokenizer.get_chat_template()
        return hashlib.sha256(template.encode()).hexdigest()[:16]

    def chat(self, messages: Sequence[Message]) -> str:
        """Format messages with the chat template, ready for the answer of the model."""
        if not self.has_chat_template:
            raise ModelError(
                "The model has no chat template.",
                hint="use plain prompts, or a tokenizer with a chat template.",
            )
        turns = [{"role": message.role, "content": message.content} for message in messages]
        with _template_explained():
            return str(
                self._tokenizer.apply_chat_template(
                    turns, tokenize=False, add_generation_prompt=True
                )
            )

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Return the number of tokens of each text."""
        return [len(tokens) for tokens in self.encode(texts)]

    def encode(self, texts: Sequence[str]) -> list[Tokens]:
        """Return the tokens of each text, starting with the opening token."""
        if not texts:
            return []
        opening = self._opening
        bos = self._tokenizer.bos_token if opening else None
        encoded = self._tokenizer(
            list(texts), add_special_tokens=False, return_attention_mask=False, verbose=False
        ).input_ids
        return [
            tuple(tokens) if not bos or text.startswith(bos) else (*opening, *tokens)
            for text, tokens in zip(texts, encoded, strict=True)
        ]

    def paths(self, questions: Sequence[Question]) -> Iterator[list[TokenPath] | Failure]:
        """Return the tokens of each text with continuation, and where the continuation starts."""
        texts = [question.text.rstrip() for question in questions]
        starts = self.count_tokens(texts)
        wholes = iter(
            self.encode(
                [question.text + end for question in questions for end in question.continuations]
            )
        )
        for index, question in enumerate(questions):
            own = [next(wholes) for _ in question.continuations]
            start = starts[index]
            if not texts[index]:
                own = [self._with_opening(tokens) for tokens in own]
                start = 1
            paths = [TokenPath(index, option, tokens, start) for option, tokens in enumerate(own)]
            yield self._fault(question, paths) or paths

    def unfit(self, length: int) -> Failure:
        """Return the failure of a prompt with this many tokens."""
        if not length:
            return Failure("The prompt is empty.")
        return Failure(
            f"The prompt has {length} tokens, more than the context length {self._context} of "
            "the model."
        )

    def _with_opening(self, tokens: Tokens) -> Tokens:
        """Prepend a token, as the first token of a text without context needs a predecessor."""
        first = self._tokenizer.bos_token_id
        if first is None:
            first = self._tokenizer.eos_token_id
        return tokens if tokens[:1] == (first,) else (first, *tokens)

    def _fault(self, question: Question, paths: Sequence[TokenPath]) -> Failure | None:
        if not paths:
            return Failure("The question has no continuations.")
        for text, path in zip(question.continuations, paths, strict=True):
            if not text or len(path.tokens) <= path.start:
                return Failure(f"Continuation {path.option + 1} ({text!r}) adds no token.")
            if len(path.tokens) - 1 > self._context:
                return self.unfit(len(path.tokens) - 1)
        return None


def likelihoods(paths: Sequence[TokenPath], sums: Sequence[float]) -> Likelihoods:
    """Return the log-likelihoods of the continuations of one question."""
    return Likelihoods(
        logprobs=tuple(sums),
        tokens=tuple(len(path.tokens) - path.start for path in paths),
        tokens_in=paths[0].start,
    )


@contextmanager
def _template_explained() -> Iterator[None]:
    try:
        yield
    except Exception as error:  # a template is a program and may raise anything
        raise ModelError(
            f"The chat template of the model does not accept these messages: {error}",
            hint="remove the system prompt, or use plain prompts.",
        ) from error
