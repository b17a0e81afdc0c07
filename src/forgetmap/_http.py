"""What a server says, and what that means for whoever asked it."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from time import time
from urllib.parse import urlsplit, urlunsplit

from forgetmap.errors import ForbiddenError, ModelError, NetworkError, UsageError

_MAY_PASS = frozenset({408, 409, 425, 429})
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_SHOWN = 300
HIDDEN = "***"
_SHORTEST_SECRET = 8


class PassingError(Exception):
    """It may work the next time.

    Attributes:
        wait: seconds the server asks to wait for, if it does.
        unreachable: there was no server at all.
        status: of the reply, if there was one.
    """

    def __init__(
        self,
        reason: str,
        *,
        wait: float | None = None,
        unreachable: bool = False,
        status: int | None = None,
    ) -> None:
        super().__init__(reason)
        self.wait = wait
        self.unreachable = unreachable
        self.status = status


class RefusedError(Exception):
    """This question will never be answered."""


def key_from(variable: str) -> str:
    """The key in the environment; nothing if there is none.

    Raises:
        UsageError: it has characters that no key has.
    """
    key = os.environ.get(variable, "").strip()
    if not (key.isascii() and (key.isprintable() or not key)):
        raise UsageError(
            f"the key in {variable} has characters that no key has",
            hint="copy it again, without line breaks.",
        )
    return key


def shown(url: str) -> str:
    """An address without what may be secret in it."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def is_secret(key: str) -> bool:
    """Local servers want any word for a key: that is none."""
    return len(key) >= _SHORTEST_SECRET


def without_key(text: str, key: str) -> str:
    """Servers like to repeat it."""
    return text.replace(key, HIDDEN) if is_secret(key) else text


def fault_of(
    status: int, text: str, headers: Mapping[str, str], *, url: str, model: str, key_variable: str
) -> Exception:
    """What a status other than OK means."""
    said = message_in(text)
    told = f"{shown(url)} answers with status {status}: {said}"
    if status in _MAY_PASS or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        wait = retry_after(headers.get("Retry-After", ""))
        return PassingError(f"status {status}: {said}", wait=wait, status=status)
    if status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
        hint = f"put the right key into the environment variable {key_variable}."
        return ForbiddenError(told, hint=hint)
    if status == HTTPStatus.NOT_FOUND or "model_not_found" in text:
        hint = f"check the address, and whether the server has the model {model!r}."
        return ModelError(told, hint=hint)
    if status in _REDIRECTS:
        return NetworkError(told, hint="give the address it leads to.")
    return RefusedError(f"status {status}: {said}")


def message_in(text: str) -> str:
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


def retry_after(given: str) -> float | None:
    """Seconds to wait, from the header of that name: a number, or a date."""
    try:
        seconds = float(given)
    except ValueError:
        pass
    else:
        return None if math.isnan(seconds) else max(seconds, 0.0)
    try:
        return max(parsedate_to_datetime(given).timestamp() - time(), 0.0)
    except (ValueError, TypeError):
        return None


def pause_before(attempt: int, first: float, longest: float, spread: float) -> float:
    """Seconds: twice as many each time, spread so that not all come back at once.

    Args:
        attempt: the one that failed, counted from 1.
        first: pause of the first.
        longest: pause of any.
        spread: between 0 and 1, another for each question; nothing here is left to chance.
    """
    return min(first * 2.0 ** (attempt - 1) * (0.5 + spread), longest)
