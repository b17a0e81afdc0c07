"""Models behind an OpenAI-compatible server that accepts tokens and returns log-probabilities.

Such servers differ in practice: some ignore `echo`, some shift log-probabilities by one token, some
do not return the tokens they wrote. So a server is probed first: the log-probabilities of its own
completion when written and when read must agree.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Self

from forgetmap._http import (
    REQUEST_HEADERS,
    RefusedError,
    ReplyBody,
    TransientError,
    backoff_seconds,
    error_for_status,
    read_key,
    redact_key,
    server_message,
)
from forgetmap._lazy import require
from forgetmap.errors import ForgetmapError, ModelError, UsageError
from forgetmap.evaluation import KEY, checked_address, split_address
from forgetmap.overlap.models.base import Completion, TokenLogprobs, Tokens

if TYPE_CHECKING:
    import httpx

MAX_CONNECTIONS = 8
TIMEOUT = 120.0
ATTEMPTS = 3
FIRST_WAIT_S, MAX_WAIT_S = 0.5, 60.0
CHECK_TOKENS, CHECKS = 8, 3
"""Number of tokens and completions that are sampled to probe a server."""
AGREE = 0.05
"""Largest difference in nats between two passes over one token: half precision in other batches."""
FULL_DISTRIBUTION = {
    "temperature": 1.0,
    "top_p": 1.0,
    "top_k": -1,
    "min_p": 0.0,
    "repetition_penalty": 1.0,
}
"""Sampling without cuts; sent explicitly, because servers apply the generation settings of a
model."""


class ServerModel:
    """A model behind a server.

    Args:
        address: `http://HOST:PORT/v1`, followed by `#MODEL` if there are several models.

    Raises:
        ModelError: the server cannot be reached, or its log-probabilities are wrong.
    """

    def __init__(self, address: str) -> None:
        self._base, name = split_address(checked_address(address))
        httpx = require("httpx", "A model behind a server")
        self._client = httpx.Client(timeout=TIMEOUT)
        self._http_error = httpx.HTTPError
        self._is_checked = False
        try:
            models = self._ask("GET", "models").get("data") or []
            self._model, self.context = _choose(models, name, self._base)
        except ForgetmapError:
            self.close()
            raise
        self.name = f"{self._base}#{self._model}"
        self.stamp = f"{self.name} {_root(models, self._model)}"
        self.vocabulary: tuple[str, ...] | None = None
        self.template: str | None = None
        self.ends: frozenset[int] = frozenset()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def chat(self, text: str) -> str:
        """Raise an error: a server does not return the rendered chat."""
        raise UsageError(
            f"{self.name} does not provide its chat template, so it cannot be applied to "
            f"{text[:20]!r}",
            hint="pass prompts that already include the template, and remove --chat.",
        )

    def encode(self, texts: Sequence[str]) -> list[Tokens]:
        """Return the tokens of each text; the first call also probes the server."""
        encoded = [tokens for tokens, _ in self._all([partial(self._read, text) for text in texts])]
        if encoded and not self._is_checked:
            self.check(encoded[0])
            self._is_checked = True
        return encoded

    def sample(
        self, prompts: Sequence[tuple[Tokens, int]], limit: int, ends: frozenset[int]
    ) -> Iterator[tuple[int, Completion]]:
        """Continue each (prompt, seed) up to a limit."""
        calls = [partial(self._write, tokens, seed, limit, ends) for tokens, seed in prompts]
        yield from enumerate(self._all(calls))

    def weigh(self, rows: Sequence[tuple[Tokens, Tokens]]) -> Iterator[TokenLogprobs]:
        """Return the log-probabilities of each completion after its prompt, in order."""
        calls = [partial(self._read, [*prompt, *tokens]) for prompt, tokens in rows]
        for (prompt, tokens), (seen, logprobs) in zip(rows, self._all(calls), strict=True):
            if seen != (*prompt, *tokens):
                raise self._distrusted("the server reads other tokens than it was given")
            values = logprobs[len(prompt) :]
            if any(value is None for value in values):
                raise self._distrusted("the server returns no log-probabilities of the prompt")
            yield TokenLogprobs(tuple(value for value in values if value is not None))

    def check(self, prompt: Tokens) -> None:
        """Probe completions, written and read; raise ModelError if the two do not agree."""
        for seed in range(CHECKS):
            self._check_one(prompt, seed)

    def _check_one(self, prompt: Tokens, seed: int) -> None:
        room = (
            CHECK_TOKENS
            if self.context is None
            else max(1, min(CHECK_TOKENS, self.context - len(prompt)))
        )
        completion = self._write(prompt, seed, room, frozenset())
        read = next(self.weigh([(prompt, completion.tokens)])).logprobs
        written = completion.logprobs or ()
        gap = max((abs(a - b) for a, b in zip(written, read, strict=True)), default=0.0)
        if not gap <= AGREE:
            shifted = len(written) > 1 and (_agree(written, read[1:]) or _agree(written[1:], read))
            raise self._distrusted(
                "the log-probabilities of the prompt are shifted by one token"
                if shifted
                else (
                    "the log-probabilities of the same text differ between prompt and "
                    f"completion (by {gap:.2f} nats)"
                )
            )

    def _write(self, prompt: Tokens, seed: int, limit: int, ends: frozenset[int]) -> Completion:
        body: dict[str, Any] = {"max_tokens": limit, "seed": seed % 2**31, **FULL_DISTRIBUTION}
        if ends:
            # The end tokens of both models: a completion must end at the same token for either.
            body["stop_token_ids"] = sorted(ends)
        choice = self._complete(list(prompt), body)
        tokens, logprobs = self._tokens(choice)
        if not tokens or any(value is None for value in logprobs):
            raise self._distrusted("the server returns no log-probabilities of the completion")
        known = tuple(value for value in logprobs if value is not None)
        return Completion(tokens, choice.get("finish_reason") == "stop", known)

    def _read(self, prompt: str | Sequence[int]) -> tuple[Tokens, list[float | None]]:
        content = prompt if isinstance(prompt, str) else list(prompt)
        return self._tokens(self._complete(content, {"max_tokens": 0, "echo": True}))

    def _complete(self, prompt: str | list[int], more: dict[str, Any]) -> dict[str, Any]:
        body = {"model": self._model, "prompt": prompt, "logprobs": 1}
        body |= {"return_tokens_as_token_ids": True, **more}
        choices = self._ask("POST", "completions", body).get("choices")
        if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
            raise self._distrusted("the server returns no completion")
        return choices[0]

    def _tokens(self, choice: dict[str, Any]) -> tuple[Tokens, list[float | None]]:
        logprobs = choice.get("logprobs") or {}
        names, values = logprobs.get("tokens"), logprobs.get("token_logprobs")
        if not names or not values or len(names) != len(values):
            raise self._distrusted("the server returns no log-probabilities")
        numbers = [str(name).removeprefix("token_id:") for name in names]
        if not all(number.isdigit() for number in numbers):
            raise self._distrusted("the server returns no token ids")
        return tuple(map(int, numbers)), list(values)

    def _all(self, calls: Sequence[partial[Any]]) -> list[Any]:
        with ThreadPoolExecutor(MAX_CONNECTIONS) as pool:
            return list(pool.map(lambda call: call(), calls))

    def _ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return self._ask_once(method, path, body)
            except TransientError as error:
                if attempt == ATTEMPTS:
                    raise self._unreachable(error) from error
                wait = backoff_seconds(attempt, FIRST_WAIT_S, MAX_WAIT_S, spread=0.5)
                time.sleep(wait if error.wait is None else min(error.wait, MAX_WAIT_S))
            except RefusedError as error:
                raise self._unreachable(error) from error
        raise AssertionError  # the last attempt returns or raises

    def _ask_once(self, method: str, path: str, body: dict[str, Any] | None) -> dict[str, Any]:
        url, key = f"{self._base}/{path}", read_key(KEY)
        headers = REQUEST_HEADERS | ({"Authorization": f"Bearer {key}"} if key else {})
        try:
            with self._client.stream(method, url, json=body, headers=headers) as answer:
                text = redact_key(_content(answer).decode("utf-8", "replace"), key)
        except self._http_error as error:
            raise TransientError(str(error) or type(error).__name__) from error
        if answer.status_code != HTTPStatus.OK:
            model = getattr(self, "_model", "")
            raise error_for_status(
                answer.status_code, text, answer.headers, url=url, model=model, key_variable=KEY
            )
        try:
            content = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise TransientError(f"the reply is not JSON: {server_message(text)}") from error
        return content if isinstance(content, dict) else {}

    def _unreachable(self, error: Exception) -> ModelError:
        return ModelError(
            f"unexpected reply of {self._base}: {error}",
            hint="check the address (it usually ends in /v1) and that the server is running; "
            f"put an API key into the environment variable {KEY}.",
        )

    def _distrusted(self, why: str) -> ModelError:
        return ModelError(
            f"The log-probabilities of {self.name} are unreliable: {why}.",
            hint="use a server that returns log-probabilities of prompts given as tokens (echo "
            "with logprobs), such as vLLM, or load the model locally.",
        )


def _content(answer: httpx.Response) -> bytes:
    """Return the response of a server, unless it is too large or takes too long."""
    body, end = ReplyBody(answer.headers.get("Content-Encoding")), time.monotonic() + TIMEOUT
    for part in answer.iter_raw():
        body.add(part)
        if time.monotonic() > end:
            raise TransientError(f"the reply was not complete within {TIMEOUT:g} seconds")
    return body.content()


def _choose(models: Sequence[Any], model: str, base: str) -> tuple[str, int | None]:
    known = {str(row["id"]): row for row in models if isinstance(row, dict) and "id" in row}
    name = model or (next(iter(known)) if len(known) == 1 else "")
    if name not in known:
        raise ModelError(
            f"{base} has {'no model ' + model if model else f'{len(known)} models'}: "
            f"{', '.join(known) or 'none'}.",
            hint=f"choose one: {base}#MODEL.",
        )
    context = known[name].get("max_model_len")
    return name, context if isinstance(context, int) else None


def _agree(one: Sequence[float], other: Sequence[float]) -> bool:
    return all(abs(a - b) <= AGREE for a, b in zip(one, other, strict=False))


def _root(models: Sequence[Any], name: str) -> str:
    return next((str(row.get("root", "")) for row in models if row.get("id") == name), "")
