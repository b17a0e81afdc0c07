"""The real server over sockets: malformed, incomplete and missing requests."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import pytest
import uvicorn
from starlette.requests import Request
from starlette.responses import Response

from forgetmap.serve import app as served_app
from forgetmap.serve.app import Explorer, make_app
from forgetmap.serve.connections import ConnectionLimits, make_server
from forgetmap.serve.runs import find_runs
from forgetmap.serve.security import HEADERS, allowed_hosts
from forgetmap.serve.store import Store
from served_runs import AFTER, BEFORE, results, write_folder

TOKEN = "a-token-nobody-knows"
HOST = "127.0.0.1"
LONG = "x" * 20_000_000
GO, LATE = threading.Event(), threading.Semaphore(0)


class BadDay(Explorer):
    """Answers one question, late or at length if told to, and fails at another."""

    async def runs(self, request: Request) -> Response:
        if "late" in request.query_params:
            LATE.release()
            await asyncio.to_thread(GO.wait, 30)
        return Response(LONG if "long" in request.query_params else "here")

    async def rule(self, request: Request) -> Response:
        raise RuntimeError(f"a defect at {request.url}")


@pytest.fixture(autouse=True)
def small_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """The real page takes seconds to make."""
    monkeypatch.setattr(served_app, "page_html", lambda: ("page", "default-src 'none'"))


@contextmanager
def running(limits: ConnectionLimits, token: str | None = None) -> Iterator[int]:
    """The port of a server in another thread."""
    with running_server(limits, token) as (port, _):
        yield port


@contextmanager
def running_server(
    limits: ConnectionLimits, token: str | None = None, explorer: Explorer | None = None
) -> Iterator[tuple[int, uvicorn.Server]]:
    listener = socket.create_server((HOST, 0))
    port = listener.getsockname()[1]
    explorer = explorer or BadDay([], Store())
    app = make_app(explorer, hosts=allowed_hosts(HOST, port), port=port, token=token)
    server = make_server(app, limits)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield port, server
    finally:
        server.should_exit = True
        thread.join(20)
        explorer.close()


def connect(port: int) -> socket.socket:
    return socket.create_connection((HOST, port), timeout=30)


def request(port: int, path: str = "/api/runs", *lines: str, method: str = "GET") -> bytes:
    head = [f"{method} {path} HTTP/1.1", f"Host: {HOST}:{port}", *lines]
    return "\r\n".join([*head, "", ""]).encode("latin-1")


def talk(port: int, sent: bytes) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and content of the answer."""
    with connect(port) as line:
        line.sendall(sent)
        got = b""
        while b"\r\n\r\n" not in got:
            part = line.recv(65536)
            assert part, got
            got += part
    head, _, content = got.partition(b"\r\n\r\n")
    first, *rest = head.decode("latin-1").split("\r\n")
    headers = dict(each.split(": ", 1) for each in rest)
    return int(first.split()[1]), {name.lower(): text for name, text in headers.items()}, content


def is_closed(line: socket.socket) -> bool:
    """Whether the other side has hung up, or does so soon; what it said before is skipped."""
    try:
        while line.recv(65536):
            pass
    except ConnectionResetError:
        pass
    except TimeoutError:
        return False
    return True


def eventually(is_so: Callable[[], bool], seconds: float = 30) -> bool:
    end = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(served_app, "page_html", lambda: ("page", "default-src 'none'"))
        with running(ConnectionLimits(100)) as found:
            yield found


MANY = "/api/runs?" + "&".join(f"p{number}=1" for number in range(51))


@pytest.mark.parametrize(
    ("status", "make"),
    [
        (200, request),
        (403, lambda port: request(port, "/api/runs", "Origin: http://[::1")),
        (403, lambda port: request(port, "/", "Origin: http://[oops]/")),
        (403, lambda port: request(port, "/", "Origin: \xff")),
        (400, lambda port: request(port, MANY)),
        (400, lambda port: request(port, MANY.replace("/api/runs", "/"))),
        (400, lambda _: b"this is not HTTP\r\n\r\n"),
        (400, lambda port: request(port, "/", f"Long: {'x' * 200_000}")),
        (404, lambda port: request(port, "/nowhere")),
        (405, lambda port: request(port, method="POST")),
        (413, lambda port: request(port, "/api/runs", "Content-Length: 7")),
        (413, lambda port: request(port, "/api/runs", "Transfer-Encoding: chunked")),
        (421, lambda _: b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n"),
        (500, lambda port: request(port, "/api/rule")),
    ],
)
def test_every_answer_has_the_headers(port: int, status: int, make: Callable[[int], bytes]) -> None:
    found, headers, content = talk(port, make(port))
    assert found == status
    assert {name: headers.get(name.lower()) for name in HEADERS} == HEADERS
    assert b"defect" not in content
    assert b"Traceback" not in content


@pytest.mark.parametrize("path", ["/", "/?token=wrong", "/api/runs", "/nowhere", MANY])
def test_nobody_is_answered_without_the_token(path: str) -> None:
    with running(ConnectionLimits(100), TOKEN) as port:
        status, headers, content = talk(port, request(port, path))
        assert status == (400 if path is MANY else 401)
        assert {name: headers.get(name.lower()) for name in HEADERS} == HEADERS
        assert TOKEN.encode() not in content


def test_the_cookies_of_two_servers_go_together() -> None:
    """Browsers send those of all ports of a machine to each of them."""
    with running(ConnectionLimits(9), "one") as one, running(ConnectionLimits(9), "other") as other:
        tokens = {one: "one", other: "other"}
        jar: dict[str, str] = {}
        for port, token in tokens.items():
            status, headers, _ = talk(port, request(port, f"/?token={token}&before=1"))
            assert (status, headers["location"]) == (303, "/?before=1")
            cookie, *flags = headers["set-cookie"].split("; ")
            assert {"HttpOnly", "SameSite=strict"} <= set(flags)
            name, _, value = cookie.partition("=")
            jar[name] = value
        assert len(jar) == 2
        sent = "; ".join(f"{name}={value}" for name, value in jar.items())
        for port in tokens:
            assert talk(port, request(port, "/api/runs", f"Cookie: {sent}"))[0] == 200


HALVES: dict[str, Callable[[int], bytes]] = {
    "nothing": lambda _: b"",
    "half a line": lambda _: b"GET /api/ru",
    "half the headers": lambda port: request(port)[:-2],
    "half the content": lambda port: request(port, "/api/runs", "Content-Length: 7") + b"abc",
    "half of a second": lambda port: request(port) + b"GET /",
}


@pytest.mark.parametrize("half", HALVES)
def test_half_a_request_does_not_stay(half: str) -> None:
    limits = ConnectionLimits(100, request_seconds=0.2, idle_seconds=1)
    with running(limits) as port, connect(port) as line:
        line.sendall(HALVES[half](port))
        assert is_closed(line)


def test_a_request_that_comes_byte_by_byte_has_its_time() -> None:
    with running(ConnectionLimits(100, request_seconds=0.3)) as port, connect(port) as line:
        line.settimeout(0.05)
        start = time.monotonic()
        got = b""
        while time.monotonic() < start + 60:
            try:
                line.sendall(b"G")
                got += line.recv(65536)
            except TimeoutError:
                continue
            except OSError:
                break
            if not got:
                break
        assert time.monotonic() < start + 60
        assert not got or got.startswith((b"HTTP/1.1 408", b"HTTP/1.1 400"))


def test_300_half_open_connections_do_not_stop_others() -> None:
    """Of so many more than there may be, those that wait for longest go."""
    with running(ConnectionLimits(50, request_seconds=600)) as port, ExitStack() as stack:
        lines = [stack.enter_context(connect(port)) for _ in range(300)]
        for line in lines:
            try:
                line.sendall(b"GET /api/runs HTTP/1.1\r\nHost:")
            except OSError:
                continue  # has gone already
        for _ in range(5):
            assert talk(port, request(port))[0] == 200
        assert all(is_closed(line) for line in lines[:240])
        lines[-1].sendall(f" {HOST}:{port}\r\n\r\n".encode())
        assert lines[-1].recv(12) == b"HTTP/1.1 200"


def test_where_all_wait_for_answers_one_more_is_told_to_come_later() -> None:
    GO.clear()
    with running(ConnectionLimits(2)) as port, connect(port) as one, connect(port) as other:
        for line in (one, other):
            line.sendall(request(port, "/api/runs?late=1"))
            assert LATE.acquire(timeout=30)
        status, headers, _ = talk(port, b"")
        assert status == 503
        assert {name: headers.get(name.lower()) for name in HEADERS} == HEADERS
        GO.set()
        for line in (one, other):
            assert line.recv(12) == b"HTTP/1.1 200"
        assert eventually(lambda: talk(port, request(port))[0] == 200)


def test_who_does_not_take_an_answer_is_not_waited_for() -> None:
    limits = ConnectionLimits(100, reading_seconds=0.2)
    with running_server(limits) as (port, server), connect(port) as line:
        line.sendall(request(port, "/api/runs?long=1"))
        assert eventually(lambda: server.server_state.total_requests == 1)
        assert eventually(lambda: not server.server_state.connections)


def test_more_searches_at_once_than_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Results go while others are made: never one that somebody still reads, and none twice."""
    monkeypatch.setattr(served_app, "MAX_SEARCHES", 4)
    monkeypatch.setattr(served_app, "_answer", lambda _: b"{}")  # figures take seconds
    folders = {"before": results(BEFORE), "after": results(AFTER)}
    runs = find_runs([str(write_folder(tmp_path / name, r)) for name, r in folders.items()])
    pair = {"before": runs[0].id, "after": runs[1].id, "limit": "1"}

    def ask(number: int) -> tuple[int, str]:
        params = {**pair, "q": str(number % 40)}
        got = client.get(f"http://{HOST}:{port}/api/items", params=params)
        return got.status_code, got.text

    started = running_server(ConnectionLimits(100), None, Explorer(runs, Store()))
    with started as (port, _), httpx.Client(timeout=60) as client, ThreadPoolExecutor(20) as crowd:
        answers = list(crowd.map(ask, range(80)))
    assert [answer for answer in answers if answer[0] != 200] == []
    assert answers[:40] == answers[40:]
