"""The way to a judge: any server that speaks OpenAI's chat completions, also one on this machine.

A question is asked at temperature 0 with a seed, several at a time. What may pass (too many
requests, a fault of the server, a time-out, a broken connection, a reply that is no reply) is asked
again after a while, the longer the more often it failed. A question that still has no reply gets
None and is counted; it is never given a neutral value. What cannot pass (a wrong key, a wrong
model, no server), or a row of questions without any reply, ends the whole with an error.

The key is read from the environment whenever it is needed and is kept nowhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from forgetmap.errors import UsageError
from forgetmap.scoring.llm_judge.cache import ReplyCache
from forgetmap.scoring.scorer import Ask

KEY_VARIABLE = "FORGETMAP_JUDGE_KEY"
"""Environment variable with the key; none is sent if it is not set."""

_LONGEST_REPLY = 2048

Progress = Callable[[int, int], None]
"""Told how many of how many questions are settled."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to go on asking.

    Attributes:
        at_once: questions under way at the same time.
        seconds: for one reply.
        attempts: for one question.
        pause: seconds before the second attempt; twice as many before each further one.
        waiting: seconds of waiting between the attempts of one question, all together.
        in_a_row: questions without a reply, one after the other, that end the whole.
    """

    at_once: int = 8
    seconds: float = 120.0
    attempts: int = 6
    pause: float = 0.5
    waiting: float = 180.0
    in_a_row: int = 20


@dataclass(slots=True)
class Tally:
    """What became of the questions so far."""

    cached: int = 0
    answered: int = 0
    retried: int = 0
    failed: int = 0
    failed_in_a_row: int = 0
    last_failure: str = ""


@dataclass(frozen=True, slots=True)
class Judge:
    """A judge that can be asked; made by `judge`."""

    url: str
    model: str
    parameters: Mapping[str, Any]
    cache: Path | None
    key_variable: str
    patience: Patience
    tally: Tally = field(default_factory=Tally, compare=False)

    async def ask_all(
        self, asks: Sequence[Ask], *, repeat: int = 0, progress: Progress | None = None
    ) -> list[str | None]:
        """The replies in order; None for a question that got none.

        Args:
            asks: the same question twice is asked once.
            repeat: which of several replies to the same question; each has a seed of its own.
            progress: told how many are settled.

        Raises:
            ForbiddenError: the key is wrong.
            ModelError: the server does not know the model.
            NetworkError: there is no server, or it gives no replies.
            OutputError: replies cannot be kept.
        """
        parameters = dict(self.parameters)
        if repeat:
            parameters["seed"] = parameters.get("seed", 0) + repeat
        from forgetmap.scoring.llm_judge.rounds import Round  # httpx is slow to load

        with ReplyCache(self.cache) as cache:
            return await Round(self, cache, parameters, progress).replies(asks)


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
    """A judge behind an address.

    Args:
        url: such as `http://localhost:8000/v1`.
        model: as the server calls it.
        cache: file for replies; they are forgotten if there is none.
        seed: sent with each question.
        parameters: further fields of the request, such as `max_tokens`; None takes one out.
        key_variable: environment variable with the key.
        patience: how many at once, how long, how often.

    Raises:
        UsageError: the address is none, or httpx is not installed.
    """
    if find_spec("httpx") is None:
        raise UsageError(
            "asking a judge needs httpx", hint='install it: pip install "forgetmap[drift]".'
        )
    usual = {"temperature": 0, "seed": seed, "max_tokens": _LONGEST_REPLY, **(parameters or {})}
    given = {name: value for name, value in usual.items() if value is not None}
    return Judge(_endpoint(url), model, given, cache, key_variable, patience or Patience())


def _endpoint(url: str) -> str:
    """Where chat completions are asked for."""
    parts = urlsplit(url.strip())
    if parts.username or parts.password:
        raise UsageError(
            "the judge's address holds a password",
            hint=f"put the key into the environment variable {KEY_VARIABLE}.",
        )
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise UsageError(
            f"{parts.scheme}://{parts.netloc}{parts.path} is no address of a judge",
            hint="give one such as http://localhost:8000/v1.",
        )
    path = parts.path.rstrip("/") or "/v1"
    if not path.endswith("/chat/completions"):
        path += "/chat/completions"
    return urlunsplit((parts.scheme, parts.netloc, path, parts.query, ""))
