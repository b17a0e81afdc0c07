"""A model behind a server as a backend."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from forgetmap._http import TransientError
from forgetmap._lazy import require
from forgetmap.errors import ModelError, NetworkError
from forgetmap.evaluation.backends.base import (
    Decoding,
    Failure,
    FinishReason,
    Likelihoods,
    LoadOptions,
    Message,
    ModelSource,
    Prompt,
    Question,
    Response,
    Service,
    Usage,
)
from forgetmap.evaluation.backends.servers.client import Client, Exchange, as_count
from forgetmap.evaluation.backends.servers.connection import (
    Traffic,
    checked_address,
    split_address,
)
from forgetmap.evaluation.backends.servers.probing import (
    MAX_FAULTS,
    ServerAbilities,
    check_answers,
    probe,
    read_echo,
)
from forgetmap.evaluation.backends.servers.replies import (
    ServerReply,
    Weights,
    read_chat,
    read_completion,
    tokens_of_end,
)

BYTES_PER_TOKEN = 4
"""Average for English text; an exact count needs the server."""
TEMPLATE_TOKENS = 32
"""Approximate number of tokens of a chat template."""
UNSTATED_CONTEXT = 10**9
SEED_RANGE = 2**31
T = TypeVar("T", Response, Likelihoods)
Work = Callable[[Exchange], Coroutine[Any, Any, T]]


def connect_server(address: str, traffic: Traffic) -> ServerBackend:
    """Find the model and probe the abilities of the server.

    Args:
        address: `http://HOST/v1#MODEL`; the name is optional if the server has one model.
        traffic: request limits.

    Raises:
        NetworkError: the server cannot be reached, or its certificate is not trusted.
        ForbiddenError: the key is wrong.
        ModelError: the server does not have the model, or has another interface.
    """
    require("aiohttp", "A model behind a server")
    client = Client(address, traffic)
    context = _choose_model(client)
    return ServerBackend(client, probe(client), context)


def open_server(source: ModelSource, options: LoadOptions) -> ServerBackend:
    """Open the backend of a model with a server address."""
    return connect_server(source.base, options.traffic)


class ServerBackend:
    """Answers prompts by requests to a server.

    Args:
        client: client of the server.
        abilities: results of probing the server.
        context: maximum number of tokens of prompt and response together, if stated.
    """

    counts_exactly = False

    def __init__(
        self, client: Client, abilities: ServerAbilities, context: int | None = None
    ) -> None:
        self._client = client
        self._abilities = abilities
        self._context = context
        self._relied_on = {"counts", "greedy"}

    @property
    def context(self) -> int:
        """Maximum number of tokens of prompt and response; practically unlimited if not stated."""
        return self._context or UNSTATED_CONTEXT

    @property
    def has_chat_template(self) -> bool:
        """Whether the server offers chat."""
        return self._abilities.can("chat")

    @property
    def template_hash(self) -> str | None:
        """None: the server does not reveal its template."""
        return None

    @property
    def service(self) -> Service:
        """Description of the server, with notes on abilities that this run uses."""
        notes = [self._abilities.note(ability) for ability in sorted(self._relied_on)]
        return Service(
            address=f"{self._client.base}#{self._client.model}",
            abilities=self._abilities.abilities,
            notes=tuple(note for note in notes if note),
            price_in=self._client.traffic.price_in,
            price_out=self._client.traffic.price_out,
        )

    def chat(self, messages: Sequence[Message]) -> str:
        """Return messages as JSON: the server applies its template."""
        return json.dumps(_turns(messages), ensure_ascii=False)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Return the approximate number of tokens of each text."""
        return [_approximate_tokens(text) for text in texts]

    def generate(
        self, prompts: Sequence[Prompt], decoding: Decoding
    ) -> Iterator[tuple[int, Response | Failure]]:
        """Generate a response to each prompt."""
        chats = any(prompt.messages for prompt in prompts)
        self._need("chat" if chats else "completions")
        if decoding.temperature:
            self._need("samples")
            self._relied_on = self._relied_on - {"greedy"} | {"whole", "seed"}
        yield from self._answers([partial(self._write, prompt, decoding) for prompt in prompts])

    def loglikelihood(
        self, questions: Sequence[Question]
    ) -> Iterator[tuple[int, Likelihoods | Failure]]:
        """Compute the log-likelihoods of continuations; each is sent together with its text."""
        self._need("echo")
        yield from self._answers([partial(self._weigh, question) for question in questions])

    async def _write(self, prompt: Prompt, decoding: Decoding, exchange: Exchange) -> Response:
        body: dict[str, Any] = {
            "model": self._client.model,
            "temperature": decoding.temperature,
            "top_p": decoding.top_p,
            **self._abilities.more,
        }
        if decoding.stop:
            body["stop"] = list(decoding.stop)
        if decoding.temperature and self._abilities.seeds:
            body["seed"] = prompt.seed % SEED_RANGE
        *longer, shortest = self._limits(prompt.text, decoding)
        for limit in longer:
            try:
                return await self._write_once(prompt, body, limit, exchange)
            except Failure as failure:
                if failure.temporary:
                    raise
        return await self._write_once(prompt, body, shortest, exchange)

    async def _write_once(
        self, prompt: Prompt, body: dict[str, Any], limit: int, exchange: Exchange
    ) -> Response:
        if prompt.messages:
            request = {**body, "messages": _turns(prompt.messages), self._abilities.limit: limit}
            reply = await exchange.ask("chat/completions", request, read_chat)
        else:
            request = {**body, "prompt": prompt.text, "max_tokens": limit}
            reply = await exchange.ask("completions", request, read_completion)
        return self._response(reply, limit, exchange)

    def _limits(self, text: str, decoding: Decoding) -> list[int]:
        """Return token limits to try in turn: servers refuse more than the context allows.

        The limits are estimates, as only the server can count the tokens of the prompt.
        """
        limit = decoding.max_new_tokens
        if self._context is None:
            return [limit]
        tokens = _approximate_tokens(text)
        guesses = (self._context - tokens - TEMPLATE_TOKENS, self._context - 2 * tokens)
        sure = [limit] if limit < self._context else []
        return [*sure, *(guess for guess in guesses if 0 < guess < limit)] or [limit]

    def _response(self, reply: ServerReply, limit: int, exchange: Exchange) -> Response:
        counts = self._abilities.can("counts")
        return Response(
            text=reply.text,
            tokens_in=reply.tokens_in if counts else None,
            tokens_out=reply.tokens_out if counts else None,
            finish_reason=_reason(reply, limit),
            usage=exchange.usage,
        )

    async def _weigh(self, question: Question, exchange: Exchange) -> Likelihoods:
        sums: list[float] = []
        tokens: list[int] = []
        before = 0
        if not question.continuations:
            raise Failure("The question has no continuations.")
        for end in question.continuations:
            weights, before = await _continuation(exchange, question.text, end)
            values = [value for value in weights.logprobs if value is not None]
            if not end or not values or len(values) < len(weights.logprobs):
                raise Failure(f"The continuation {end!r} adds no token.")
            sums.append(sum(values))
            tokens.append(len(values))
        return Likelihoods(tuple(sums), tuple(tokens), before, exchange.usage)

    def _answers(self, works: Sequence[Work[T]]) -> Iterator[tuple[int, T | Failure]]:
        """Yield all results; failures come last, after a second attempt.

        Raises:
            NetworkError: too many requests failed in a row.
        """
        failed: dict[int, Failure] = {}
        in_a_row = 0
        for index, one in self._client.run_all(works):
            if not isinstance(one, Failure):
                in_a_row = 0
                yield index, one
                continue
            failed[index] = one
            in_a_row += 1
            if in_a_row >= self._client.traffic.in_a_row:
                raise NetworkError(
                    f"{in_a_row} requests in a row failed; the last error: {one}",
                    hint="check the server, or exclude the tasks it refuses, and run the same "
                    "command again; all answers so far are kept.",
                )
        yield from self._again(works, failed)

    def _again(
        self, works: Sequence[Work[T]], failed: dict[int, Failure]
    ) -> Iterator[tuple[int, T | Failure]]:
        """Retry failed requests at the end.

        A second failure is attributed to the item only if the server still works.
        """
        indices = list(failed)
        still: list[tuple[int, Failure]] = []
        for number, one in self._client.run_all([works[index] for index in indices]):
            both = (one.usage or Usage()) + (failed[indices[number]].usage or Usage())
            if isinstance(one, Failure):
                one.usage = both
                still.append((indices[number], one))
            else:
                yield indices[number], replace(one, usage=both)
        if still:
            check_answers(self._client, self._abilities)
        yield from still

    def _need(self, ability: str) -> None:
        """Raise an error if an ability is not reliable."""
        if self._abilities.can(ability):
            return
        hint = {
            "echo": (
                "use --scoring generate to generate multiple-choice answers, or a server that "
                "returns prompt log-probabilities (echo with logprobs), such as vLLM."
            ),
            "completions": "use chat prompts: --chat.",
            "samples": "use greedy decoding (no --temperature and --repeats), or another server.",
            "chat": "remove --chat, or start the server with a chat template.",
        }[ability]
        raise ModelError(
            f"{self._client.base} cannot be used with these settings: it "
            f"{self._abilities.faults[ability]}.",
            hint=hint,
        )


async def _continuation(exchange: Exchange, text: str, end: str) -> tuple[Weights, int]:
    """Return the weights of a continuation, and the number of tokens before it."""
    start = text.rstrip()
    read = await _weights(exchange, text + end)
    own = tokens_of_end(read.tokens, (text + end)[len(start) :])
    if own is None:
        # Some servers do not show tokens as their text; then count them without the continuation.
        own = len(read.tokens) - len((await _weights(exchange, start)).tokens)
    before = len(read.tokens) - max(own, 0)
    return read.behind(before), before


async def _weights(exchange: Exchange, text: str) -> Weights:
    read = await read_echo(exchange, text)
    if read is None:
        raise Failure("The server no longer returns prompt log-probabilities.")
    return read


def _reason(reply: ServerReply, limit: int) -> FinishReason:
    """Return the finish reason; if not stated, infer it from the number of tokens."""
    if reply.reason is None:
        return "length" if reply.tokens_out == limit else "stop"
    return "length" if reply.reason == "length" else "stop"


def _turns(messages: Sequence[Message]) -> list[dict[str, str]]:
    return [{"role": message.role, "content": message.content} for message in messages]


def _approximate_tokens(text: str) -> int:
    return len(text.encode("utf-8", "replace")) // BYTES_PER_TOKEN + 1


def _choose_model(client: Client) -> int | None:
    """Check that the server has the model; return its context length, if stated.

    Some servers cannot list their models; then probing shows whether the model exists.
    """
    known = _list_models(client)
    if not client.model and len(known) == 1:
        client.model = next(iter(known))
    if not client.model or (known and client.model not in known):
        name = f"no model {client.model}" if client.model else f"{len(known)} models"
        raise ModelError(
            f"{client.base} has {name}: {', '.join(sorted(known)[:20]) or 'it lists none'}.",
            hint=f"choose one: {client.base}#MODEL.",
        )
    return _context(known.get(client.model, {}))


def served_models(address: str, traffic: Traffic | None = None) -> list[str]:
    """Return the names of the models of a server.

    Args:
        address: `http://HOST/v1`.
        traffic: request limits.

    Raises:
        ModelError: the server cannot be reached, or has another interface.
    """
    base, _ = split_address(checked_address(address))
    return sorted(_list_models(Client(base, traffic or Traffic())))


def _list_models(client: Client) -> dict[str, dict[str, Any]]:
    async def ask(exchange: Exchange) -> list[dict[str, Any]]:
        try:
            return await exchange.ask("models", None, _models, faults=MAX_FAULTS)
        except (Failure, ModelError) as error:
            if getattr(error, "temporary", False) or not client.model:
                raise
            return []

    outcome = next(outcome for _, outcome in client.run_all([ask]))
    if isinstance(outcome, Failure):
        raise ModelError(
            f"{outcome}",
            hint="check the address: it must be an OpenAI-compatible server, and usually ends "
            "in /v1.",
        )
    return {str(model["id"]): model for model in outcome if "id" in model}


def _models(reply: dict[str, Any]) -> list[dict[str, Any]]:
    models = reply.get("data")
    if not isinstance(models, list):
        raise TransientError("the reply contains no models")
    return [model for model in models if isinstance(model, dict)]


def _context(model: dict[str, Any]) -> int | None:
    """Return the context length as vLLM and llama.cpp state it."""
    meta = model.get("meta")
    stated = [model.get("max_model_len"), meta.get("n_ctx") if isinstance(meta, dict) else None]
    return next((size for size in map(as_count, stated) if size), None)
