"""Concurrent requests to one server, with a rate limit and retries."""

from __future__ import annotations

import asyncio
import json
import ssl
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from ipaddress import ip_address
from queue import SimpleQueue
from typing import Any, TypeVar
from urllib.parse import urlsplit

import aiohttp

from forgetmap._http import (
    REDACTED,
    REQUEST_HEADERS,
    RefusedError,
    ReplyBody,
    TransientError,
    backoff_seconds,
    error_for_status,
    is_secret,
    load_reply,
    read_key,
    server_message,
)
from forgetmap.errors import ForgetmapError, NetworkError
from forgetmap.evaluation.backends.base import Failure, Usage
from forgetmap.evaluation.backends.servers.connection import KEY, Traffic, split_address

T = TypeVar("T")
Read = Callable[[dict[str, Any]], T]
"""Extracts a value from a reply; raises TransientError if it is missing."""

RETRIES_PER_REPLY = 0.5
"""Number of retries that each successful reply adds to the budget of the run."""
MAX_PUT_OFF_SECONDS = 1800.0
"""Maximum total seconds that a server may ask one request to wait."""
MIN_PUT_OFF_SECONDS = 10.0
"""Minimum seconds that one request to wait counts for."""
FIRST_ATTEMPTS = 4
"""Attempts before the first success: an early failure is usually a wrong address."""
GOLDEN_RATIO = 0.618033988749895
"""Its multiples modulo 1 are spread evenly."""


@dataclass(slots=True)
class Pace:
    """Schedule of requests.

    Attributes:
        interval: seconds between requests.
        next: time at which the next request is due.
        held: no request is sent before this time, because a busy server asked for it.
    """

    interval: float = 0.0
    next: float = 0.0
    held: float = 0.0

    async def turn(self) -> None:
        """Wait for the next slot, and again if sending was paused in the meantime."""
        start = self._booked()
        while (left := start - time.monotonic()) > 0:
            await asyncio.sleep(left)
            if self.held > start:
                start = self._booked()

    def _booked(self) -> float:
        """Reserve the next slot."""
        start = max(time.monotonic(), self.held, self.next)
        self.next = start + self.interval
        return start

    def hold(self, seconds: float) -> None:
        """Pause all requests for some seconds."""
        self.held = max(self.held, time.monotonic() + seconds)


class Client:
    """Client of one model of a server.

    Args:
        address: `http://HOST/v1#MODEL`.
        traffic: request limits.
    """

    def __init__(self, address: str, traffic: Traffic) -> None:
        self.base, self.model = split_address(address)
        self.traffic = traffic
        rate = traffic.requests_per_minute
        self.pace = Pace(60.0 / rate if rate else 0.0)
        self.spare = float(traffic.spare)
        self.met = False

    def run_all(
        self, works: Sequence[Callable[[Exchange], Awaitable[T]]]
    ) -> Iterator[tuple[int, T | Failure]]:
        """Run all works concurrently; yield (index, result) as they finish.

        An event loop in a separate thread serves the connections, so that this can be called
        anywhere, also inside another event loop.

        Raises:
            ForgetmapError: an error that would also affect the remaining works.
        """
        if not works:
            return
        ended: SimpleQueue[tuple[int, T | Failure] | BaseException | None] = SimpleQueue()
        loop = asyncio.new_event_loop()
        main = loop.create_task(self._serve(works, ended.put))
        thread = threading.Thread(target=_drive, args=(loop, main, ended.put), daemon=True)
        thread.start()
        over = False
        try:
            while not over:
                one = ended.get()
                over = one is None or isinstance(one, BaseException)
                if isinstance(one, BaseException):
                    raise one
                if one is not None:
                    yield one
        finally:
            if not over:
                with suppress(RuntimeError):  # the loop may be closing
                    loop.call_soon_threadsafe(main.cancel)
            thread.join()

    async def _serve(
        self,
        works: Sequence[Callable[[Exchange], Awaitable[T]]],
        put: Callable[[tuple[int, T | Failure]], None],
    ) -> None:
        waiting = iter(enumerate(works))

        async def work(session: aiohttp.ClientSession, key: str) -> None:
            for index, do in waiting:
                exchange = Exchange(self, session, key, index)
                try:
                    result: T | Failure = await do(exchange)
                except Failure as failure:
                    failure.usage = exchange.usage
                    result = failure
                put((index, result))

        key = read_key(KEY)
        async with self._session(key) as session, asyncio.TaskGroup() as group:
            for _ in range(min(self.traffic.concurrency, len(works))):
                group.create_task(work(session, key))

    def _session(self, key: str) -> aiohttp.ClientSession:
        headers = {"Content-Type": "application/json", **REQUEST_HEADERS}
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=self.traffic.concurrency,
                # The header of the request is not enough: aiohttp reuses a connection unless the
                # reply has it too.
                force_close=True,
                # Created here: the default of aiohttp ignores later changes of SSL_CERT_FILE.
                ssl=ssl.create_default_context() if self.base.startswith("https") else True,
            ),
            timeout=aiohttp.ClientTimeout(total=self.traffic.seconds),
            headers=headers | ({"Authorization": f"Bearer {key}"} if key else {}),
            trust_env=not _is_here(self.base),
            auto_decompress=False,
        )


@dataclass(slots=True)
class Exchange:
    """Requests of one work, and their usage."""

    client: Client
    session: aiohttp.ClientSession
    key: str = field(repr=False)
    index: int
    requests: int = 0
    retries: int = 0
    tokens_in: int = 0
    tokens_out: int = 0

    @property
    def usage(self) -> Usage:
        """Usage so far."""
        return Usage(self.requests, self.retries, self.tokens_in, self.tokens_out)

    async def ask(
        self, path: str, body: dict[str, Any] | None, read: Read[T], *, faults: int | None = None
    ) -> T:
        """Send a request until it succeeds or retries are used up.

        Args:
            path: path below the address of the server.
            body: body of a POST; None for a GET.
            read: extracts a value from the reply.
            faults: maximum number of server errors (500 and above); by default limited by retries
                only.

        Raises:
            Failure: this request failed.
            ForgetmapError: the server fails, so further requests are pointless.
        """
        attempt, put_off, server_errors = 1, 0.0, 0
        while True:
            await self.client.pace.turn()
            try:
                result = await self._once(path, body, read)
            except RefusedError as error:
                raise self._failure(str(error)) from error
            except TransientError as error:
                server_errors += (error.status or 0) >= HTTPStatus.INTERNAL_SERVER_ERROR
                if faults is not None and server_errors >= faults:
                    raise self._failure(str(error)) from error
                must_wait = error.wait is not None
                put_off += max(error.wait or 0.0, MIN_PUT_OFF_SECONDS) if must_wait else 0.0
                self._check_patience(error, attempt, put_off)
                await asyncio.sleep(self._pause(error, attempt))
                attempt += not must_wait
                self.retries += 1
            else:
                self.client.spare += RETRIES_PER_REPLY
                self.client.met = True
                return result

    def _check_patience(self, error: TransientError, attempt: int, put_off: float) -> None:
        """Raise if another retry is not allowed; retries use up the budget of the run."""
        traffic = self.client.traffic
        if put_off > MAX_PUT_OFF_SECONDS:
            raise self._no_answer(f"the server keeps asking to retry later: {error}") from error
        if error.wait is not None:
            return
        self.client.spare -= 1
        if attempt >= (
            traffic.attempts if self.client.met else min(FIRST_ATTEMPTS, traffic.attempts)
        ):
            if error.unreachable:
                raise self._no_answer(str(error)) from error
            raise self._failure(f"{error} ({attempt} attempts)", temporary=True) from error
        if self.client.spare < 0:
            raise self._no_answer(f"the server fails too often; the last error: {error}") from error

    def _pause(self, error: TransientError, attempt: int) -> float:
        traffic = self.client.traffic
        spread = (self.index * GOLDEN_RATIO) % 1
        if error.wait is None:
            return backoff_seconds(attempt, traffic.pause, traffic.longest_pause, spread)
        self.client.pace.hold(error.wait)
        return error.wait + traffic.pause * spread

    async def _once(self, path: str, body: dict[str, Any] | None, read: Read[T]) -> T:
        self.requests += 1
        status, raw, headers = await self._send(path, body)
        if status != HTTPStatus.OK:
            raise error_for_status(
                status, raw.decode("utf-8", "replace"), headers,
                url=f"{self.client.base}/{path}", model=self.client.model, key_variable=KEY,
            )  # fmt: skip
        try:
            reply = load_reply(raw.decode("utf-8-sig"))
        except (ValueError, RecursionError) as error:
            raise self._unread(raw) from error
        if not isinstance(reply, dict):
            raise self._unread(raw)
        self._count(reply)
        return read(reply)

    async def _send(
        self, path: str, body: dict[str, Any] | None
    ) -> tuple[int, bytes, dict[str, str]]:
        """Return status, content and headers of the reply; the key is redacted in the content."""
        try:
            async with self.session.request(
                "GET" if body is None else "POST",
                f"{self.client.base}/{path}",
                data=None if body is None else json.dumps(body).encode(),
                allow_redirects=False,
            ) as response:
                headers = {name: response.headers.get(name, "") for name in ("Retry-After", "Date")}
                raw = await _content(response)
                if is_secret(self.key):
                    raw = raw.replace(self.key.encode(), REDACTED.encode())
                return response.status, raw, headers
        except TimeoutError as error:
            seconds = self.client.traffic.seconds
            raise TransientError(f"no reply within {seconds:g} seconds") from error
        except aiohttp.ClientSSLError as error:
            raise self._untrusted(error) from error
        except aiohttp.ClientConnectionError as error:
            absent = isinstance(error, aiohttp.ClientConnectorError)
            why = f"cannot be reached: {error}" if absent else f"the connection was lost: {error}"
            raise TransientError(why, unreachable=absent) from error
        except (aiohttp.ClientError, ValueError) as error:
            raise TransientError(f"the reply ended early: {type(error).__name__}") from error

    def _count(self, reply: dict[str, Any]) -> None:
        """Add the billed tokens, also if the reply is unusable."""
        usage = reply.get("usage")
        if isinstance(usage, dict):
            self.tokens_in += as_count(usage.get("prompt_tokens")) or 0
            self.tokens_out += as_count(usage.get("completion_tokens")) or 0

    def _unread(self, raw: bytes) -> TransientError:
        reply = server_message(raw.decode("utf-8", "replace"))
        return TransientError(f"the reply is not a JSON object: {reply[:80]}")

    def _failure(self, why: str, *, temporary: bool = False) -> Failure:
        failure = Failure(f"{self.client.base}: {why}")
        failure.temporary = temporary
        return failure

    def _no_answer(self, why: str) -> NetworkError:
        return NetworkError(
            f"{self.client.base} does not respond: {why}",
            hint="check the address (it usually ends in /v1) and that the server is running, "
            "then run the same command again; all answers so far are kept.",
        )

    def _untrusted(self, error: aiohttp.ClientSSLError) -> NetworkError:
        return NetworkError(
            f"the certificate of {self.client.base} is not trusted: {error}",
            hint="set the environment variable SSL_CERT_FILE to the certificate file of your "
            "authority, or use http:// if the server has no certificate.",
        )


async def _content(response: aiohttp.ClientResponse) -> bytes:
    """Read the whole reply, up to the size limit."""
    body = ReplyBody(response.headers.get("Content-Encoding"))
    async for part in response.content.iter_any():
        body.add(part)
    return body.content()


def as_count(value: Any) -> int | None:
    """Return a value if it is a count, else None."""
    fine = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    return value if fine else None


def _is_here(base: str) -> bool:
    """Whether the server is on this machine, so that no proxy is used."""
    host = urlsplit(base).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _drive(
    loop: asyncio.AbstractEventLoop,
    main: asyncio.Task[None],
    put: Callable[[BaseException | None], None],
) -> None:
    """Run the loop until the task ends; the last value put is the error, or None."""
    ending: BaseException | None = None
    try:
        loop.run_until_complete(main)
    except BaseExceptionGroup as several:
        ending = _first(several)
    except asyncio.CancelledError:
        pass
    except BaseException as error:  # noqa: BLE001  # raised again by the consumer
        ending = error
    finally:
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()
        put(ending)


def _first(several: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return the error to show: preferably one with a hint."""
    known_errors = several.subgroup(ForgetmapError)
    result: BaseException = known_errors or several
    while isinstance(result, BaseExceptionGroup):
        result = result.exceptions[0]
    return result
