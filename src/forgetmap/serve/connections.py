"""Limits on the number of connections and on slow clients.

Clients that open connections without a request, or send half a request, must not block others: a
request has a time limit, and if there are too many connections, the one that has waited longest for
a request is closed.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from forgetmap.serve.security import HEADERS, error_content

MAX_CONNECTIONS = 512
"""Maximum number of open connections; fewer if the process may open only few files."""


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Limits of connections.

    Attributes:
        connections: maximum number of open connections.
        request_seconds: time limit of a request, from its first byte or from the start of the
            connection.
        reading_seconds: time limit for a client to read what is ready of a response.
        idle_seconds: time limit between two requests. Longer than clients keep a connection, so
            that it is not closed while it is reused.
    """

    connections: int
    request_seconds: float = 10.0
    reading_seconds: float = 120.0
    idle_seconds: int = 75


def make_server(app: ASGIApp, limits: ConnectionLimits | None = None) -> uvicorn.Server:
    """Return a server of this application. It logs no requests: addresses may contain a token."""
    own_limits = limits or ConnectionLimits(most_connections())
    config = uvicorn.Config(
        app,
        # This implementation limits the headers of a request.
        http=partial(BoundedProtocol, own_limits),  # type: ignore[arg-type]  # called as a class is
        ws="none",
        log_level="error",
        access_log=False,
        lifespan="off",
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=own_limits.idle_seconds,
        timeout_graceful_shutdown=2,
    )
    return uvicorn.Server(config)


def most_connections() -> int:
    """Return the number of connections that uses at most half of the files the process may open."""
    try:
        import resource  # missing on some systems
    except ImportError:
        return MAX_CONNECTIONS
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return MAX_CONNECTIONS if files == resource.RLIM_INFINITY else min(MAX_CONNECTIONS, files // 2)


class _Time:
    """A timer that calls a function unless it is stopped in time."""

    def __init__(self, seconds: float, call: Callable[[], None]) -> None:
        self._seconds = seconds
        self._call = call
        self._timer: asyncio.TimerHandle | None = None

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start the timer, unless it is running."""
        if self._timer is None:
            self._timer = loop.call_later(self._seconds, self._end)

    def stop(self) -> None:
        """Stop the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _end(self) -> None:
        self._timer = None
        self._call()


class BoundedProtocol(H11Protocol):
    """One connection with time limits.

    Args:
        limits: limits of connections.
        given: arguments from the server.
    """

    def __init__(self, limits: ConnectionLimits, **given: Any) -> None:
        super().__init__(**given)
        self._limits = limits
        self._waiting_since = self.loop.time()
        self._has_begun = False
        self._request_time = _Time(limits.request_seconds, self._give_up)
        self._reading_time = _Time(limits.reading_seconds, self._hang_up)

    @property
    def is_answering(self) -> bool:
        """Whether a request has no complete response yet."""
        return self.cycle is not None and not self.cycle.response_complete

    @property
    def is_half_sent(self) -> bool:
        """Whether a request was answered before all of it was received."""
        return self.cycle is not None and self.cycle.more_body

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept a connection, and close another one if there are too many."""
        super().connection_made(transport)
        self._request_time.start(self.loop)
        if len(self.connections) > self._limits.connections:
            self._make_room()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timers."""
        self._request_time.stop()
        self._reading_time.stop()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Receive a part of a request, which must be complete in time."""
        super().data_received(data)
        self._has_begun = not self.is_answering
        if self.is_answering or self.transport.is_closing():
            self._request_time.stop()
        else:
            self._request_time.start(self.loop)

    def on_response_complete(self) -> None:
        """Allow the next request, once this one is completely received."""
        self._waiting_since = self.loop.time()
        is_half_sent = self.is_half_sent
        super().on_response_complete()
        if is_half_sent:
            self._request_time.start(self.loop)

    def pause_writing(self) -> None:
        """Start the timer while the client does not read."""
        super().pause_writing()
        self._reading_time.start(self.loop)

    def resume_writing(self) -> None:
        """Stop the timer when the client reads again."""
        self._reading_time.stop()
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:
        """Refuse invalid HTTP, with the headers of every response."""
        del msg  # less specific
        self._refuse(HTTPStatus.BAD_REQUEST, "invalid request")

    def _give_up(self) -> None:
        """Close a connection without a complete request."""
        if self.is_answering:
            return
        # Browsers connect in advance, and report a response without a request as an error.
        if self._has_begun:
            self._refuse(HTTPStatus.REQUEST_TIMEOUT, "the request timed out")
        self.transport.close()

    def _hang_up(self) -> None:
        self.transport.abort()

    def _make_room(self) -> None:
        others = [
            other
            for other in self.connections
            if isinstance(other, BoundedProtocol) and other is not self and not other.is_answering
        ]
        if not others:
            self._refuse(HTTPStatus.SERVICE_UNAVAILABLE, "too many concurrent requests")
            return
        oldest = min(others, key=lambda other: other._waiting_since)  # noqa: SLF001  # of this class
        self.connections.discard(oldest)
        oldest._hang_up()  # noqa: SLF001

    def _refuse(self, status: HTTPStatus, why: str) -> None:
        if not self.is_answering and not self.is_half_sent:
            self.transport.write(_answer(status, why))
        self.transport.close()


def _answer(status: HTTPStatus, why: str) -> bytes:
    """Return a complete response without the application."""
    content = json.dumps(error_content(why)).encode()
    headers = {
        **HEADERS,
        "Content-Type": "application/json",
        "Content-Length": str(len(content)),
        "Connection": "close",
    }
    lines = [f"HTTP/1.1 {status.value} {status.phrase}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode("ascii") + content
