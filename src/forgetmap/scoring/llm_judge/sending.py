"""One question to one server, and what its answer means."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import httpx

from forgetmap._http import (
    PassingError,
    RefusedError,
    fault_of,
    key_from,
    message_in,
    without_key,
)
from forgetmap.scoring.llm_judge.cache import Reply


async def send(
    client: httpx.AsyncClient, url: str, body: Mapping[str, Any], key_variable: str, seconds: float
) -> Reply:
    """Ask once; the key is read from the environment and kept nowhere.

    Raises:
        PassingError: no reply this time.
        RefusedError: no reply to this question.
        ForbiddenError: the key is wrong.
        ModelError: the server does not know the model, or this is not its address.
        NetworkError: the server sends us elsewhere.
    """
    key = key_from(key_variable)
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
    text = without_key(response.text, key)
    if response.status_code == HTTPStatus.OK:
        return _reply(text)
    raise fault_of(
        response.status_code, text, response.headers,
        url=url, model=str(body.get("model")), key_variable=key_variable,
    )  # fmt: skip


def _reply(text: str) -> Reply:
    """The text of the first choice; all else is kept as it came."""
    try:
        choice = json.loads(text)["choices"][0]
        content = choice["message"]["content"]
        reason = choice.get("finish_reason")
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise PassingError(f"no chat completion: {message_in(text)}") from error
    if reason == "content_filter":
        raise RefusedError("the server's filter withheld the reply")
    if isinstance(content, list):
        content = "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    if not isinstance(content, str) or not content.strip():
        raise PassingError("the reply is empty")
    return Reply(content, text)
