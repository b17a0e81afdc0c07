"""Protocol of backends: a model in this process, behind a server, or on a cluster.

To add a backend: write a class with the methods of `Backend` and a function that opens it, and name
that function in `BACKENDS`. A package names its own by an entry point in the group
`forgetmap.backends`; the name of the entry point is what users put before a model (`NAME:MODEL`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, Protocol, cast, runtime_checkable

from forgetmap._plugins import Registry
from forgetmap.evaluation.backends.servers.connection import Traffic
from forgetmap.evaluation.choices import Dtype

FinishReason = Literal["stop", "length"]


@dataclass(frozen=True, slots=True)
class ModelSource:
    """Where a model comes from.

    Attributes:
        base: a folder, a hub id, or the address of a server.
        revision: branch, tag or commit on the hub.
        gguf: name of a GGUF file in the folder `base`.
        adapter: folder or hub id of a LoRA adapter to put on top.
        via: the backend that runs it, by its name in the registry.
    """

    base: str
    revision: str | None = None
    gguf: str | None = None
    adapter: str | None = None
    via: str = "transformers"

    def __str__(self) -> str:
        """What it can be called."""
        if self.via not in {"transformers", "server"}:
            return f"{self.via}:{replace(self, via='transformers')}"
        base = self.base if self.gguf is None else str(Path(self.base) / self.gguf)
        revision = f"@{self.revision}" if self.revision else ""
        return f"{base}{revision}+{self.adapter}" if self.adapter else base + revision


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """How a model is loaded or reached; a backend uses what concerns it.

    Attributes:
        dtype: of the weights.
        device: where a local model runs.
        trust_remote_code: run Python code that comes with the model.
        rows: most responses at work at a time; the backend's own default if None.
        traffic: how much a server is asked at once.
        tensor_parallel: GPUs that vLLM spreads the weights of one model over; None is one.
    """

    dtype: Dtype = "auto"
    device: str = "auto"
    trust_remote_code: bool = False
    rows: int | None = None
    traffic: Traffic = field(default_factory=Traffic)
    tensor_parallel: int | None = None


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
class Usage:
    """Requests and tokens of one answer of a server, failed attempts included where it counts them.

    Attributes:
        requests: sent for it.
        retries: requests after a failed one.
        tokens_in: read.
        tokens_out: written.
    """

    requests: int = 0
    retries: int = 0
    tokens_in: int = 0
    tokens_out: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
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
    usage: Usage | None = None


@dataclass(frozen=True, slots=True)
class Likelihoods:
    """Sum of the log-probabilities of each continuation, and how many tokens it has."""

    logprobs: tuple[float, ...]
    tokens: tuple[int, ...]
    tokens_in: int
    usage: Usage | None = None


class Failure(Exception):  # noqa: N818  # of one request, not of the program
    """One request failed; the others go on. The message is recorded with the item.

    Attributes:
        usage: requests and tokens it took on a server.
        temporary: it may be the fault of the server and not of the item.
    """

    usage: Usage | None = None
    temporary: bool = False


@dataclass(frozen=True, slots=True)
class Service:
    """What is known of a server that answers.

    Attributes:
        address: of the server, with the model's name.
        abilities: whether each ability that was probed can be relied on.
        notes: a sentence for each one that cannot, and what follows from it.
        price_in: of a million tokens read, if known.
        price_out: of a million tokens written, if known.
    """

    address: str
    abilities: dict[str, bool]
    notes: tuple[str, ...]
    price_in: float | None = None
    price_out: float | None = None


@runtime_checkable
class ServerBacked(Protocol):
    """A backend behind a server also describes that server."""

    @property
    def service(self) -> Service:
        """What is known of the server by now."""


class Backend(Protocol):
    """Answers prompts. Results come back as (index in the request, result), in any order."""

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


OpenBackend = Callable[[ModelSource, LoadOptions], Backend]


def _check_opener(entry: object) -> OpenBackend:
    if not callable(entry):
        raise TypeError(
            "a backend must be a function of a model source and options that returns a backend"
        )
    return cast("OpenBackend", entry)


BACKENDS: Registry[OpenBackend] = Registry(
    group="forgetmap.backends",
    kind="backend",
    built_in={
        "transformers": "forgetmap.evaluation.backends.transformers.backend:open_transformers",
        "vllm": "forgetmap.evaluation.backends.vllm:open_vllm",
        "server": "forgetmap.evaluation.backends.servers.backend:open_server",
    },
    check=_check_opener,
)
"""Ours, and those that packages add."""
