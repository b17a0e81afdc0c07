"""The seam between a run and whatever answers: a model in this process, a server, a cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

FinishReason = Literal["stop", "length"]


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a chat."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True)
class Decoding:
    """How text is generated; temperature 0 is greedy.

    Attributes:
        temperature: 0 for greedy.
        top_p: share of probability kept.
        max_new_tokens: limit of the response; also capped at what the context leaves.
        stop: texts that end a response; not part of it.
    """

    temperature: float = 0.0
    top_p: float = 1.0
    max_new_tokens: int = 256
    stop: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Prompt:
    """A text to continue.

    Attributes:
        text: all of it; of a chat as `Backend.chat` wrote it.
        seed: makes a sampled response its own, whatever it is batched with.
        messages: the turns of a chat, for whoever renders chats out of our sight.
    """

    text: str
    seed: int = 0
    messages: tuple[Message, ...] = ()


@dataclass(frozen=True, slots=True)
class Question:
    """A text and what could follow it, to be compared by log-likelihood."""

    text: str
    continuations: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Spent:
    """What one answer of a server took, failed attempts included where it said what they took.

    Attributes:
        requests: sent for it.
        retries: those of them that came after a failed one.
        tokens_in: read.
        tokens_out: written.
    """

    requests: int = 0
    retries: int = 0
    tokens_in: int = 0
    tokens_out: int = 0

    def __add__(self, other: Spent) -> Spent:
        return Spent(
            self.requests + other.requests,
            self.retries + other.retries,
            self.tokens_in + other.tokens_in,
            self.tokens_out + other.tokens_out,
        )


@dataclass(frozen=True, slots=True)
class Response:
    """What was generated, stop text and special tokens left out; counts None where unknown."""

    text: str
    tokens_in: int | None
    tokens_out: int | None
    finish_reason: FinishReason
    spent: Spent | None = None


@dataclass(frozen=True, slots=True)
class Likelihoods:
    """Sum of the log-probabilities of each continuation, and how many tokens it has."""

    logprobs: tuple[float, ...]
    tokens: tuple[int, ...]
    tokens_in: int
    spent: Spent | None = None


class Failure(Exception):  # noqa: N818  # of one request, not of the program
    """One request failed; the others go on. The message is recorded with the item.

    Attributes:
        spent: on it by a server.
        passing: it may be the server's fault and not the item's.
    """

    spent: Spent | None = None
    passing: bool = False


@dataclass(frozen=True, slots=True)
class Service:
    """What is known of a server that answers.

    Attributes:
        address: of the server, with the model's name.
        abilities: what it was tried for, and whether that can be trusted.
        notes: a sentence for each thing that cannot, and what follows from it.
        price_in: of a million tokens read, if known.
        price_out: of a million tokens written, if known.
    """

    address: str
    abilities: dict[str, bool]
    notes: tuple[str, ...]
    price_in: float | None = None
    price_out: float | None = None


@runtime_checkable
class Served(Protocol):
    """A backend behind a server also says what that server can be trusted with."""

    @property
    def service(self) -> Service:
        """What is known of it by now."""


class Backend(Protocol):
    """Answers prompts. Results come back as (place in the request, result), in any order."""

    @property
    def context(self) -> int:
        """Most tokens of prompt and response together."""

    @property
    def has_chat_template(self) -> bool:
        """Whether `chat` works."""

    @property
    def template_hash(self) -> str | None:
        """Tells chat templates apart; None where there is none or nobody knows it."""

    def chat(self, messages: Sequence[Message]) -> str:
        """Messages as the text the model expects, ready for its answer."""

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text."""

    def generate(
        self, prompts: Sequence[Prompt], decoding: Decoding
    ) -> Iterator[tuple[int, Response | Failure]]:
        """Continue each prompt."""

    def loglikelihood(
        self, questions: Sequence[Question]
    ) -> Iterator[tuple[int, Likelihoods | Failure]]:
        """Weigh the continuations of each question."""
