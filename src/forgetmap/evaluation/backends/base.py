"""Protocol of backends: a model in this process, behind a server, or on a cluster.

To add a backend: write a class with the methods of `Backend` and a function that opens it, and add
that function to `BACKENDS`. A package registers its own by an entry point in the group
`forgetmap.backends`; the name of the entry point is the prefix of a model (`NAME:MODEL`).
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
        """Return the name of the model, as users type it."""
        if self.via not in {"transformers", "server"}:
            return f"{self.via}:{replace(self, via='transformers')}"
        base = self.base if self.gguf is None else str(Path(self.base) / self.gguf)
        revision = f"@{self.revision}" if self.revision else ""
        return f"{base}{revision}+{self.adapter}" if self.adapter else base + revision


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """How a model is loaded or reached; a backend uses the options that concern it.

    Attributes:
        dtype: number format of the weights.
        device: device of a local model.
        trust_remote_code: run Python code that comes with the model.
        rows: maximum number of concurrent responses; None is the default of the backend.
        traffic: request limits of a server.
        tensor_parallel: number of GPUs over which vLLM spreads one model; None is one.
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
    """How text is generated.

    Attributes:
        temperature: 0 for greedy.
        top_p: probability mass of nucleus sampling.
        max_new_tokens: maximum length of the response, also limited by the context length.
        stop: texts that end a response; they are not part of it.
    """

    temperature: float = 0.0
    top_p: float = 1.0
    max_new_tokens: int = 256
    stop: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Prompt:
    """A text to continue.

    Attributes:
        text: the whole prompt; for a chat, the output of `Backend.chat`.
        seed: random seed, so that a sampled response does not depend on its batch.
        messages: the turns of a chat, for servers that apply their own template.
    """

    text: str
    seed: int = 0
    messages: tuple[Message, ...] = ()


@dataclass(frozen=True, slots=True)
class Question:
    """A text and its possible continuations, to be compared by log-likelihood."""

    text: str
    continuations: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Usage:
    """Requests and tokens of one answer of a server; failed attempts included if counted.

    Attributes:
        requests: number of requests.
        retries: number of requests after a failed one.
        tokens_in: tokens of prompts.
        tokens_out: tokens of responses.
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
    """A generated text without stop text and special tokens; unknown counts are None."""

    text: str
    tokens_in: int | None
    tokens_out: int | None
    finish_reason: FinishReason
    usage: Usage | None = None


@dataclass(frozen=True, slots=True)
class Likelihoods:
    """Sum of log-probabilities and number of tokens of each continuation."""

    logprobs: tuple[float, ...]
    tokens: tuple[int, ...]
    tokens_in: int
    usage: Usage | None = None


class Failure(Exception):  # noqa: N818  # of one request, not of the program
    """One request failed, but others may succeed. The message is recorded with the item.

    Attributes:
        usage: requests and tokens used on a server.
        temporary: whether the server may be the cause, and not the item.
    """

    usage: Usage | None = None
    temporary: bool = False


@dataclass(frozen=True, slots=True)
class Service:
    """Description of a server.

    Attributes:
        address: address of the server, with the name of the model.
        abilities: whether each probed ability is reliable.
        notes: a sentence for each unreliable ability, with its consequence.
        price_in: price of a million input tokens, if known.
        price_out: price of a million output tokens, if known.
    """

    address: str
    abilities: dict[str, bool]
    notes: tuple[str, ...]
    price_in: float | None = None
    price_out: float | None = None


@runtime_checkable
class ServerBacked(Protocol):
    """A backend that also describes its server."""

    @property
    def service(self) -> Service:
        """Description of the server."""


class Backend(Protocol):
    """Answers prompts. Results are pairs (index in the request, result), in any order."""

    @property
    def context(self) -> int:
        """Maximum number of tokens of prompt and response together."""

    @property
    def has_chat_template(self) -> bool:
        """Whether `chat` works."""

    @property
    def template_hash(self) -> str | None:
        """Hash of the chat template; None if there is none or it is unknown."""

    def chat(self, messages: Sequence[Message]) -> str:
        """Format messages with the chat template, ready for the answer of the model."""

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Return the number of tokens of each text."""

    def generate(
        self, prompts: Sequence[Prompt], decoding: Decoding
    ) -> Iterator[tuple[int, Response | Failure]]:
        """Generate a response to each prompt."""

    def loglikelihood(
        self, questions: Sequence[Question]
    ) -> Iterator[tuple[int, Likelihoods | Failure]]:
        """Compute the log-likelihoods of the continuations of each question."""


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
"""All backends: built-in ones and those of other packages."""
