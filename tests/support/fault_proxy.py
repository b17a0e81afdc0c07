"""A proxy in front of a server that injects faults of networks and servers."""

from __future__ import annotations

import http.client
import itertools
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import SplitResult, urlsplit

FAULTS = ("delay", "drop", "cut", "429", "500", "garbage", "html", "half")
REPLIES = {
    "400": (400, b'{"error": {"message": "no"}}'),
    "429": (429, b'{"error": "too many"}'),
    "500": (500, b'{"error": {"message": "internal"}}'),
    "garbage": (200, b'{"choices": [{"text": '),
    "half": (200, b'{"choices": [{}], "object": "text_completion"}'),
    "html": (200, b"<!doctype html><title>Bad gateway</title>"),
}


@dataclass
class Proxy:
    """Address of the proxy, its faults, and the number of concurrent requests.

    Attributes:
        gone: while set, connections are closed without a reply.
        refuses: while set, every request gets status 400.
        limited: times of replies with status 429.
    """

    url: str
    gone: threading.Event = field(default_factory=threading.Event)
    refuses: threading.Event = field(default_factory=threading.Event)
    limited: list[float] = field(default_factory=list)
    did: Counter[str] = field(default_factory=Counter)
    times: list[float] = field(default_factory=list)
    at_once: int = 0
    most_at_once: int = 0


@contextmanager
def fault_proxy(
    server: str,
    share: float = 0.3,
    faults: Sequence[str] = FAULTS,
    delay: float = 0.05,
    seed: int = 0,
    wait: str = "0",
    again: float = 0.0,
) -> Iterator[Proxy]:
    """Start a proxy that fails a share of requests, in turn with each fault, and delays all.

    The fault `twice` sends a reply once more after `again` seconds; without a pause, both are one
    write.
    """
    with _Server(("127.0.0.1", 0), _Handler) as answering:
        answering.upstream = urlsplit(server)
        answering.draw, answering.coming = random.Random(seed), itertools.cycle(faults)
        answering.share, answering.delay, answering.wait = share, delay, wait
        answering.again = again
        url = f"http://127.0.0.1:{answering.server_port}{answering.upstream.path}"
        answering.proxy = proxy = Proxy(url)
        thread = threading.Thread(target=answering.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield proxy
        finally:
            answering.shutdown()
            thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    upstream: SplitResult
    draw: random.Random
    coming: Iterator[str]
    share: float
    delay: float
    wait: str
    again: float
    proxy: Proxy

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.lock = threading.Lock()

    def next_fault(self) -> str:
        """Choose the fault of a request and count the request as running."""
        proxy = self.proxy
        with self.lock:
            fault = next(self.coming) if self.draw.random() < self.share else "none"
            fault = "drop" if proxy.gone.is_set() else fault
            fault = "400" if proxy.refuses.is_set() else fault
            proxy.did[fault] += 1
            proxy.times.append(time.monotonic())
            if fault == "429":
                proxy.limited.append(proxy.times[-1])
            proxy.at_once += 1
            proxy.most_at_once = max(proxy.most_at_once, proxy.at_once)
        return fault

    def ended(self) -> None:
        with self.lock:
            self.proxy.at_once -= 1

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that time out or are killed."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # a reply is one write
    server: _Server

    def do_GET(self) -> None:
        self._pass("GET", b"")

    def do_HEAD(self) -> None:
        self._pass("GET", b"")

    def do_POST(self) -> None:
        self._pass("POST", self.rfile.read(int(self.headers["Content-Length"])))

    def _pass(self, method: str, body: bytes) -> None:
        fault = self.server.next_fault()
        try:
            self._do(fault, method, body)
        finally:
            self.server.ended()

    def _do(self, fault: str, method: str, body: bytes) -> None:
        if fault == "drop":
            self.close_connection = True
        elif fault in REPLIES:
            self._reply(*REPLIES[fault])
        else:
            time.sleep(self.server.delay * (20 if fault == "delay" else 1))
            answer = self._ask(method, body)
            self._reply(*answer, cut=fault == "cut")
            if fault == "twice":
                if self.server.again:
                    self.wfile.flush()
                    time.sleep(self.server.again)
                self._reply(*answer)

    def _ask(self, method: str, body: bytes) -> tuple[int, bytes, str]:
        upstream = self.server.upstream
        line = http.client.HTTPConnection(upstream.hostname or "", upstream.port)
        passed = {
            name: value
            for name, value in self.headers.items()
            if name in ("Authorization", "Content-Type")
        }
        line.request(method, self.path, body or None, passed)
        answer = line.getresponse()
        content = answer.read()
        line.close()
        return answer.status, content, answer.headers.get("Content-Type", "")

    def _reply(self, status: int, content: bytes, kind: str = "", *, cut: bool = False) -> None:
        self.send_response(status)
        if kind:
            self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        if status == 429:
            self.send_header("Retry-After", self.server.wait)
        self.end_headers()
        self.close_connection = cut
        if self.command != "HEAD":
            self.wfile.write(content[: len(content) // 2] if cut else content)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # named so upstream
        pass
