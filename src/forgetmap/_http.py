"""Replies of servers: temporary errors, retry times, and removal of secrets."""

from __future__ import annotations

import json
import math
import os
import zlib
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from time import time
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from forgetmap.errors import ForbiddenError, ModelError, NetworkError, UsageError

_TRANSIENT_STATUSES = frozenset({408, 409, 425, 429})
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_MAX_MESSAGE = 300
REDACTED = "***"
MAX_REPLY_BYTES = 64 << 20
"""Maximum size of a decompressed reply; log-probabilities of a very long text take about 10 MB."""
MAX_REPLY_VALUES = 4_000_000
"""Maximum number of values in a reply: an empty list takes two bytes as text, and 60 in memory."""
REQUEST_HEADERS = {"Accept-Encoding": "gzip", "Connection": "close"}
"""Headers of every request: the accepted compression, and that its connection serves no other one.

HTTP/1.1 matches replies to requests by their order alone. If a server or proxy sends a reply twice,
or one after it reported an error, the next request on that connection gets it. Only a connection of
its own proves that a reply answers a request: the stray reply may arrive after the next request was
sent, when nothing tells the two apart.
"""
_GZIP_WINDOW = 16 + zlib.MAX_WBITS
_MIN_SECRET_LENGTH = 8


class TransientError(Exception):
    """A request failed and may succeed when it is sent again.

    Attributes:
        wait: seconds that the server asks to wait; None if it names none.
        unreachable: the server could not be reached.
        status: HTTP status of the reply, if there was one.
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
    """The server refuses a request for good: sending it again does not help."""


class OversizedReplyError(RefusedError):
    """A reply exceeds the size limit."""


class ReplyBody:
    """The content of a reply, decompressed in parts as they arrive.

    A few compressed bytes can expand to gigabytes, so the HTTP library must not decompress a reply
    before its size is known.

    Args:
        encoding: the header `Content-Encoding` of the reply.
        limit: maximum number of decompressed bytes.

    Raises:
        RefusedError: the compression was not requested.
    """

    def __init__(self, encoding: str | None, limit: int | None = None) -> None:
        self._limit = MAX_REPLY_BYTES if limit is None else limit
        self._parts: list[bytes] = []
        self._size = 0
        packed = (encoding or "identity").strip().lower()
        if packed not in {"identity", "gzip", "x-gzip"}:
            raise RefusedError(f"the reply has the unexpected content encoding {packed[:40]!r}")
        self._unpacker = None if packed == "identity" else zlib.decompressobj(_GZIP_WINDOW)

    def add(self, part: bytes) -> None:
        """Add a part of the reply.

        Raises:
            OversizedReplyError: the reply is larger than the limit.
            TransientError: it cannot be decompressed.
        """
        if self._unpacker is None:
            self._keep(part)
            return
        while part and not self._unpacker.eof:
            try:
                self._keep(self._unpacker.decompress(part, self._limit + 1 - self._size))
            except zlib.error as error:
                raise TransientError(f"the reply cannot be decompressed: {error}") from error
            part = self._unpacker.unconsumed_tail

    def content(self) -> bytes:
        """Return the complete content.

        Raises:
            OversizedReplyError: it has too many values.
            TransientError: the reply is incomplete.
        """
        if self._unpacker is not None and self._parts and not self._unpacker.eof:
            raise TransientError("the reply ended early")
        if sum(part.count(mark) for part in self._parts for mark in b",[{") > MAX_REPLY_VALUES:
            raise OversizedReplyError(f"the reply has more than {MAX_REPLY_VALUES:,} values")
        return b"".join(self._parts)

    def _keep(self, part: bytes) -> None:
        self._size += len(part)
        if self._size > self._limit:
            self._parts.clear()
            raise OversizedReplyError(f"the reply is larger than {self._limit / 2**20:,.0f} MiB")
        self._parts.append(part)


def read_key(variable: str) -> str:
    """Read a key from the environment; empty if the variable is not set.

    Raises:
        UsageError: the key contains invalid characters.
    """
    key = os.environ.get(variable, "").strip()
    if not (key.isascii() and (key.isprintable() or not key)):
        raise UsageError(
            f"the key in {variable} contains invalid characters",
            hint="copy it again, without line breaks.",
        )
    return key


def redact_url(url: str) -> str:
    """Return an address without user, password and query, which may be secret."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def is_secret(key: str) -> bool:
    """Whether a key is long enough to be a secret; local servers accept any short word."""
    return len(key) >= _MIN_SECRET_LENGTH


def redact_key(text: str, key: str) -> str:
    """Replace the key in a text: servers tend to repeat it."""
    return text.replace(key, REDACTED) if is_secret(key) else text


def error_for_status(
    status: int, text: str, headers: Mapping[str, str], *, url: str, model: str, key_variable: str
) -> Exception:
    """Return the error for an HTTP status other than 200."""
    message = server_message(text)
    sentence = f"{redact_url(url)} answers with status {status}: {message}"
    if status in _TRANSIENT_STATUSES or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        wait = parse_retry_after(headers.get("Retry-After", ""), headers.get("Date", ""))
        return TransientError(f"status {status}: {message}", wait=wait, status=status)
    if status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
        hint = f"set the right key in the environment variable {key_variable}."
        return ForbiddenError(sentence, hint=hint)
    if status == HTTPStatus.NOT_FOUND or "model_not_found" in text:
        hint = f"check the address, and that the server has the model {model!r}."
        return ModelError(sentence, hint=hint)
    if status in _REDIRECTS:
        return NetworkError(sentence, hint="use the address it redirects to.")
    return RefusedError(f"status {status}: {message}")


def load_reply(text: str) -> Any:
    """Parse a reply, and replace halves of surrogate pairs, which no table can store.

    Servers send them if a token limit cuts a character in two.

    Raises:
        ValueError: it is not JSON.
        RecursionError: it is nested too deeply.
    """
    content = json.loads(text)
    if "\\ud" not in text.lower():
        return content
    return json.loads(json.dumps(content, ensure_ascii=False).encode("utf-8", "replace"))


def server_message(text: str) -> str:
    """Return the error message in a reply, shortened."""
    try:
        content = load_reply(text)
    except (ValueError, RecursionError):
        content = text
    if isinstance(content, dict):
        content = content.get("error", content.get("detail", content))
    if isinstance(content, dict):
        content = content.get("message", content)
    return " ".join(str(content).split())[:_MAX_MESSAGE] or "nothing"


def parse_retry_after(value: str, date: str = "") -> float | None:
    """Return the seconds to wait from a `Retry-After` header: a number or a date.

    Args:
        value: value of the header.
        date: `Date` header of the reply, because the local clock may be wrong.
    """
    try:
        seconds = float(value)
    except ValueError:
        pass
    else:
        return None if math.isnan(seconds) else max(seconds, 0.0)
    until, now = _seconds(value), _seconds(date)
    return None if until is None else max(until - (time() if now is None else now), 0.0)


def _seconds(date: str) -> float | None:
    try:
        return parsedate_to_datetime(date).timestamp()
    except (ArithmeticError, TypeError, ValueError):
        return None


def backoff_seconds(attempt: int, first: float, longest: float, spread: float) -> float:
    """Return seconds to wait: doubled each time, and spread so that retries do not coincide.

    Args:
        attempt: number of the failed attempt, from 1.
        first: pause after the first attempt.
        longest: maximum pause.
        spread: a fixed number between 0 and 1 per request, so that pauses are reproducible.
    """
    return min(first * 2.0 ** (attempt - 1) * (0.5 + spread), longest)
