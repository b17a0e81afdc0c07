"""Limits on the number of connections and on slow clients.

Whoever opens connections and asks nothing, or sends half a request and no more, must not keep
others from being served: a request has its time, and where there are too many connections, the one
that has been waiting for a request for longest goes.
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
"""Open at the same time; fewer where the system allows this process only few files."""


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """What clients may take up.

    Attributes:
        connections: open at the same time.
        request_seconds: from the first byte of a request, or from the start of a connection, to
            the last.
        reading_seconds: for a client to take what is ready of an answer.
        idle_seconds: between two requests. Longer than clients keep a connection, or one closes
            while it is used again.
    """

    connections: int
    request_seconds: float = 10.0
    reading_seconds: float = 120.0
    idle_seconds: int = 75


def make_server(app: ASGIApp, limits: ConnectionLimits | None = None) -> uvicorn.Server:
    """A server of this application. It logs no requests: addresses may hold a token."""
    given = limits or ConnectionLimits(most_connections())
    config = uvicorn.Config(
        app,
        # This implementation bounds the headers of a request.
        http=partial(BoundedProtocol, given),  # type: ignore[arg-type]  # called as a class is
        ws="none",
        log_level="error",
        access_log=False,
        lifespan="off",
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=given.idle_seconds,
        timeout_graceful_shutdown=2,
    )
    return uvicorn.Server(config)


def most_connections() -> int:
    """As many as leave half of the files that this process may open to everything else."""
    try:
        import resource  # not on every system
    except ImportError:
        return MAX_CONNECTIONS
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return MAX_CONNECTIONS if files == resource.RLIM_INFINITY else min(MAX_CONNECTIONS, files // 2)


class _Time:
    """A while in which something must happen, or else this is called."""

    def __init__(self, seconds: float, call: Callable[[], None]) -> None:
        self._seconds = seconds
        self._call = call
        self._timer: asyncio.TimerHandle | None = None

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """The while begins, unless it has begun before."""
        if self._timer is None:
            self._timer = loop.call_later(self._seconds, self._end)

    def stop(self) -> None:
        """It has happened."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _end(self) -> None:
        self._timer = None
        self._call()


class BoundedProtocol(H11Protocol):
    """One connection, which has its time.

    Args:
        limits: what clients may take up.
        given: as the server calls it.
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
        """Whether there is a question without a whole answer."""
        return self.cycle is not None and not self.cycle.response_complete

    @property
    def is_half_sent(self) -> bool:
        """Whether a question was answered before all of it was there."""
        return self.cycle is not None and self.cycle.more_body

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a connection, if need be in the place of another."""
        super().connection_made(transport)
        self._request_time.start(self.loop)
        if len(self.connections) > self._limits.connections:
            self._make_room()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is waited for any more."""
        self._request_time.stop()
        self._reading_time.stop()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Part of a request: whoever begins one must end it in time."""
        super().data_received(data)
        self._has_begun = not self.is_answering
        if self.is_answering or self.transport.is_closing():
            self._request_time.stop()
        else:
            self._request_time.start(self.loop)

    def on_response_complete(self) -> None:
        """The next request may come, once this one is all there."""
        self._waiting_since = self.loop.time()
        is_half_sent = self.is_half_sent
        super().on_response_complete()
        if is_half_sent:
            self._request_time.start(self.loop)

    def pause_writing(self) -> None:
        """The client takes nothing for now."""
        super().pause_writing()
        self._reading_time.start(self.loop)

    def resume_writing(self) -> None:
        """The client takes what waits for it."""
        self._reading_time.stop()
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP, with the headers that every answer has."""
        del msg  # says less
        self._refuse(HTTPStatus.BAD_REQUEST, "invalid request")

    def _give_up(self) -> None:
        """End a connection whose request did not come."""
        if self.is_answering:
            return
        # Browsers connect before they have anything to ask, and take an answer to nothing amiss.
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
    """A whole answer, for where no application is asked."""
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
