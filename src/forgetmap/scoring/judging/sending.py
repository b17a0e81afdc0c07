"""One question to one server, and what its answer means."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from time import time
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import httpx

from forgetmap.errors import ForbiddenError, ModelError, NetworkError
from forgetmap.scoring.judging.cache import Reply

_MAY_PASS = frozenset({408, 409, 425, 429})
_SHOWN = 300
_SHORTEST_SECRET = 8


class PassingError(Exception):
    """It may work the next time.

    Attributes:
        wait: seconds the server asks to wait for, if it does.
        unreachable: there was no server at all.
    """

    def __init__(
        self, reason: str, *, wait: float | None = None, unreachable: bool = False
    ) -> None:
        super().__init__(reason)
        self.wait = wait
        self.unreachable = unreachable


class RefusedError(Exception):
    """This question will never be answered."""


async def send(
    client: httpx.AsyncClient, url: str, body: Mapping[str, Any], key: str, seconds: float
) -> Reply:
    """Ask once.

    Raises:
        PassingError: no reply this time.
        RefusedError: no reply to this question.
        ForbiddenError: the key is wrong.
        ModelError: the server does not know the model, or this is not its address.
        NetworkError: the server sends us elsewhere.
    """
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    try:
        async with asyncio.timeout(seconds):
            response = await client.post(url, json=body, headers=headers)
    except (TimeoutError, httpx.TimeoutException) as error:
        raise PassingError(f"no reply within {seconds:g} seconds") from error
    except httpx.ConnectError as error:
        raise PassingError(f"cannot be reached: {error}", unreachable=True) from error
    except httpx.HTTPError as error:
        raise PassingError(f"the connection broke: {type(error).__name__}") from error
    text = _without_key(response.text, key)
    if response.status_code == HTTPStatus.OK:
        return _reply(text)
    raise _fault(response, text, url, str(body.get("model")))


def shown(url: str) -> str:
    """An address without what may be secret in it."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def _without_key(text: str, key: str) -> str:
    """Servers like to repeat it. Local ones want any word for a key: that is no secret."""
    return text.replace(key, "***") if len(key) >= _SHORTEST_SECRET else text


def _fault(response: httpx.Response, text: str, url: str, model: str) -> Exception:
    """What a status other than OK means."""
    status, said = response.status_code, _message(text)
    told = f"{shown(url)} answers with status {status}: {said}"
    if status in _MAY_PASS or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return PassingError(f"status {status}: {said}", wait=_wait(response))
    if status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
        return ForbiddenError(told, hint="set the environment variable with the judge's key.")
    if status == HTTPStatus.NOT_FOUND or "model_not_found" in text:
        hint = f"check the address, and whether the server has the model {model!r}."
        return ModelError(told, hint=hint)
    if response.is_redirect:
        return NetworkError(told, hint="give the address it leads to.")
    return RefusedError(f"status {status}: {said}")


def _reply(text: str) -> Reply:
    """The text of the first choice; all else is kept as it came."""
    try:
        choice = json.loads(text)["choices"][0]
        content = choice["message"]["content"]
        reason = choice.get("finish_reason")
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise PassingError(f"no chat completion: {_message(text)}") from error
    if reason == "content_filter":
        raise RefusedError("the server's filter withheld the reply")
    if isinstance(content, list):
        content = "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    if not isinstance(content, str) or not content.strip():
        raise PassingError("the reply is empty")
    return Reply(content, text)


def _message(text: str) -> str:
    """What a server says in its own format, shortened."""
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        said = text
    if isinstance(said, dict):
        said = said.get("error", said.get("detail", said))
    if isinstance(said, dict):
        said = said.get("message", said)
    return " ".join(str(said).split())[:_SHOWN] or "nothing"


def _wait(response: httpx.Response) -> float | None:
    """`Retry-After`: seconds, or a date."""
    given = response.headers.get("Retry-After", "").strip()
    try:
        return max(float(given), 0.0)
    except ValueError:
        pass
    try:
        return max(parsedate_to_datetime(given).timestamp() - time(), 0.0)
    except (ValueError, TypeError):
        return None
