"""Client of a judge: any server with OpenAI's chat completions, also a local one.

Questions are asked at temperature 0 with a seed, several at a time. After a transient error (too
many requests, a server error, a timeout, a lost connection, an invalid reply) a question is retried
with increasing pauses. A question without a reply in the end gets None and is counted, never a
neutral value. A permanent error (a wrong key, a wrong model, no server), or many questions in a row
without a reply, raises an error.

The key is read from the environment whenever it is needed, and stored nowhere.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

from forgetmap._http import (
    REQUEST_HEADERS,
    RefusedError,
    ReplyBody,
    TransientError,
    backoff_seconds,
    error_for_status,
    load_reply,
    read_key,
    redact_key,
    redact_url,
    server_message,
)
from forgetmap._lazy import check_installed
from forgetmap.errors import NetworkError, UsageError
from forgetmap.scoring.llm_judge.reply_cache import Reply, ReplyCache, key_of
from forgetmap.scoring.scorer import JudgeQuestion

if TYPE_CHECKING:
    import httpx

KEY_VARIABLE = "FORGETMAP_JUDGE_KEY"
"""Environment variable with the key; none is sent if it is not set."""

_MAX_REPLY_TOKENS = 2048

Progress = Callable[[int, int], None]
"""Callback for progress: number of questions done, number of all questions."""


@dataclass(frozen=True, slots=True)
class Patience:
    """Limits on concurrency, timeouts and retries.

    Attributes:
        at_once: number of concurrent questions.
        seconds: timeout of a reply.
        attempts: attempts per question.
        pause: seconds before the second attempt; doubled before each further one.
        waiting: total seconds of pauses between the attempts of a question.
        in_a_row: consecutive questions without a reply after which an error is raised.
    """

    at_once: int = 8
    seconds: float = 120.0
    attempts: int = 6
    pause: float = 0.5
    waiting: float = 180.0
    in_a_row: int = 20


@dataclass(slots=True)
class Tally:
    """Counts of questions so far."""

    cached: int = 0
    answered: int = 0
    retried: int = 0
    failed: int = 0
    failed_in_a_row: int = 0
    last_failure: str = ""


@dataclass(frozen=True, slots=True)
class Judge:
    """A judge model on a server; see `open_judge`."""

    url: str
    model: str
    parameters: Mapping[str, Any]
    cache: Path | None
    key_variable: str
    patience: Patience
    tally: Tally = field(default_factory=Tally, compare=False)

    @property
    def server(self) -> str:
        """Address of the server, without secrets."""
        return redact_url(self.url)

    async def ask_all(
        self,
        questions: Sequence[JudgeQuestion],
        *,
        repeat: int = 0,
        progress: Progress | None = None,
    ) -> list[str | None]:
        """Ask questions and return the replies in order; None for a question without a reply.

        Args:
            questions: questions; equal ones are asked once.
            repeat: number of the reply to the same question; each has a seed of its own.
            progress: called with the number of questions done and of all questions.

        Raises:
            ForbiddenError: the key is wrong.
            ModelError: the server does not have the model.
            NetworkError: there is no server, or it does not reply.
            OutputError: replies cannot be stored.
        """
        parameters = dict(self.parameters)
        if repeat:
            parameters["seed"] = parameters.get("seed", 0) + repeat
        with ReplyCache(self.cache) as cache:
            return await QuestionRound(self, cache, parameters, progress).replies(questions)


def open_judge(
    url: str,
    model: str,
    *,
    cache: Path | None = None,
    seed: int = 0,
    parameters: Mapping[str, Any] | None = None,
    key_variable: str = KEY_VARIABLE,
    patience: Patience | None = None,
) -> Judge:
    """Return a judge on a server; no request is sent.

    Args:
        url: address of the server, such as `http://localhost:8000/v1`.
        model: name of the model on the server.
        cache: file for replies; by default they are not stored.
        seed: seed sent with each question.
        parameters: further fields of the request, such as `max_tokens`; None removes a field.
        key_variable: environment variable with the key.
        patience: limits on concurrency, timeouts and retries.

    Raises:
        UsageError: the address is invalid.
        MissingPackageError: httpx is not installed.
    """
    check_installed("httpx", "Asking a judge", extra="drift")
    usual = {"temperature": 0, "seed": seed, "max_tokens": _MAX_REPLY_TOKENS, **(parameters or {})}
    known = {name: value for name, value in usual.items() if value is not None}
    return Judge(_endpoint(url), model, known, cache, key_variable, patience or Patience())


def _endpoint(url: str) -> str:
    """Return the URL for chat completions."""
    parts = urlsplit(url.strip())
    if parts.username or parts.password:
        raise UsageError(
            "the judge's address contains a password",
            hint=f"put the key into the environment variable {KEY_VARIABLE}.",
        )
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise UsageError(
            f"{parts.scheme}://{parts.netloc}{parts.path} is not a server address",
            hint="use an address such as http://localhost:8000/v1.",
        )
    path = parts.path.rstrip("/") or "/v1"
    if not path.endswith("/chat/completions"):
        path += "/chat/completions"
    return urlunsplit((parts.scheme, parts.netloc.lower(), path, parts.query, ""))


_MAX_PAUSE_S = 60.0


@dataclass(frozen=True, slots=True)
class QuestionRound:
    """A set of questions to a judge."""

    judge: Judge
    cache: ReplyCache
    parameters: Mapping[str, Any]
    progress: Progress | None

    async def replies(self, questions: Sequence[JudgeQuestion]) -> list[str | None]:
        """Return the replies in order; None for a question without a reply."""
        judge = self.judge
        keys = [key_of(ask, judge.server, judge.model, self.parameters) for ask in questions]
        known = {key: self.cache.get(key) for key in dict.fromkeys(keys)}
        open_questions = {
            key: ask for key, ask in zip(keys, questions, strict=True) if known[key] is None
        }
        times = Counter(keys)
        settled = sum(known[key] is not None for key in keys)
        judge.tally.cached += settled

        def settle(key: str, reply: str | None) -> None:
            nonlocal settled
            known[key] = reply
            settled += times[key]
            self._report(settled, len(questions))

        self._report(settled, len(questions))
        if open_questions:
            await self._ask_each(open_questions, settle)
        return [known[key] for key in keys]

    def _report(self, settled: int, of: int) -> None:
        if self.progress is not None:
            self.progress(settled, of)

    async def _ask_each(
        self, questions: Mapping[str, JudgeQuestion], settle: Callable[[str, str | None], None]
    ) -> None:
        """Ask the questions with a few concurrent workers."""
        import httpx  # slow to load

        at_once = self.judge.patience.at_once
        waiting = iter(questions.items())

        async def work(client: httpx.AsyncClient) -> None:
            for key, ask in waiting:
                settle(key, await self._ask_and_keep(client, key, ask))

        limits = httpx.Limits(max_connections=at_once)
        async with httpx.AsyncClient(limits=limits, timeout=None) as client:  # noqa: S113  # `send` has one
            try:
                async with asyncio.TaskGroup() as group:
                    for _ in range(min(at_once, len(questions))):
                        group.create_task(work(client))
            except ExceptionGroup as several:
                raise several.exceptions[0] from None

    async def _ask_and_keep(
        self, client: httpx.AsyncClient, key: str, ask: JudgeQuestion
    ) -> str | None:
        """Ask a question and store the reply; None without a reply, an error after too many."""
        tally = self.judge.tally
        try:
            reply = await self._ask_until_reply(client, key, ask)
        except (TransientError, RefusedError) as error:
            tally.failed += 1
            tally.failed_in_a_row += 1
            tally.last_failure = str(error)
            is_absent = (
                isinstance(error, TransientError) and error.unreachable and not tally.answered
            )
            if is_absent or tally.failed_in_a_row >= self.judge.patience.in_a_row:
                raise self._no_replies_error() from None
            return None
        tally.answered += 1
        tally.failed_in_a_row = 0
        return self.cache.put(key, ask, self.judge.model, self.parameters, reply)

    async def _ask_until_reply(
        self, client: httpx.AsyncClient, key: str, ask: JudgeQuestion
    ) -> Reply:
        """Ask until there is a reply, or the attempts or the waiting time are used up."""
        patience, variable = self.judge.patience, self.judge.key_variable
        body = self._body(ask)
        spread = int(key[:8], 16) / 2**32
        attempt, waited = 1, 0.0
        while True:
            try:
                return await send(client, self.judge.url, body, variable, patience.seconds)
            except TransientError as error:
                wait = error.wait or backoff_seconds(attempt, patience.pause, _MAX_PAUSE_S, spread)
                if attempt >= patience.attempts or waited + wait > patience.waiting:
                    raise
            self.judge.tally.retried += 1
            attempt, waited = attempt + 1, waited + wait
            await asyncio.sleep(wait)

    def _body(self, ask: JudgeQuestion) -> dict[str, Any]:
        messages = [
            {"role": "system", "content": ask.system},
            {"role": "user", "content": ask.user},
        ]
        return {"model": self.judge.model, "messages": messages, **self.parameters}

    def _no_replies_error(self) -> NetworkError:
        tally = self.judge.tally
        return NetworkError(
            f"the judge at {self.judge.server} does not respond: {tally.failed_in_a_row} "
            f"requests in a row failed; the last error: {tally.last_failure}",
            hint="check the server and start again; existing replies are kept.",
        )


async def send(
    client: httpx.AsyncClient, url: str, body: Mapping[str, Any], key_variable: str, seconds: float
) -> Reply:
    """Send one request; the key is read from the environment and stored nowhere.

    Raises:
        TransientError: there is no reply; a retry may help.
        RefusedError: the server refuses to reply to this question.
        ForbiddenError: the key is wrong.
        ModelError: the server does not have the model, or the address is wrong.
        NetworkError: the server redirects the request.
    """
    import httpx  # slow to load

    key = read_key(key_variable)
    headers = REQUEST_HEADERS | ({"Authorization": f"Bearer {key}"} if key else {})
    try:
        async with (
            asyncio.timeout(seconds),
            client.stream("POST", url, json=body, headers=headers) as response,
        ):
            content = ReplyBody(response.headers.get("Content-Encoding"))
            async for part in response.aiter_raw():
                content.add(part)
    except (TimeoutError, httpx.TimeoutException) as error:
        raise TransientError(f"no reply within {seconds:g} seconds") from error
    except httpx.ConnectError as error:
        raise TransientError(f"cannot be reached: {error}", unreachable=True) from error
    except httpx.HTTPError as error:
        raise TransientError(f"the connection was lost: {type(error).__name__}") from error
    text = redact_key(content.content().decode("utf-8", "replace"), key)
    if response.status_code == HTTPStatus.OK:
        return _reply(text)
    raise error_for_status(
        response.status_code, text, response.headers,
        url=url, model=str(body.get("model")), key_variable=key_variable,
    )  # fmt: skip


def _reply(text: str) -> Reply:
    """Return the text of the first choice, with the unchanged response."""
    try:
        choice = load_reply(text)["choices"][0]
        content = choice["message"]["content"]
        reason = choice.get("finish_reason")
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise TransientError(f"not a chat completion: {server_message(text)}") from error
    if reason == "content_filter":
        raise RefusedError("the server's filter withheld the reply")
    if isinstance(content, list):
        content = "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    if not isinstance(content, str) or not content.strip():
        raise TransientError("the reply is empty")
    return Reply(content, text)
