"""A proxy before a server that does to some requests what networks and servers do on bad days."""

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
from urllib.parse import urlsplit

FAULTS = ("delay", "drop", "cut", "429", "500", "garbage", "html", "half")
HTML = b"<!doctype html><title>Bad gateway</title>"


@dataclass
class Proxy:
    """Where it is, what it did, and how many requests it had at once.

    Attributes:
        gone: while set, connections are closed without a word.
        refuses: while set, nothing is taken.
        limited: when too many requests were complained about.
    """

    url: str
    gone: threading.Event = field(default_factory=threading.Event)
    refuses: threading.Event = field(default_factory=threading.Event)
    limited: list[float] = field(default_factory=list)
    did: Counter[str] = field(default_factory=Counter)
    headers: list[dict[str, str]] = field(default_factory=list)
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
) -> Iterator[Proxy]:
    """A share of all requests meets with a fault, one kind after the other; all wait a little."""
    upstream = urlsplit(server)
    draw, coming, lock = random.Random(seed), itertools.cycle(faults), threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._pass("GET", b"")

        def do_POST(self) -> None:
            self._pass("POST", self.rfile.read(int(self.headers["Content-Length"])))

        def _pass(self, method: str, body: bytes) -> None:
            with lock:
                fault = next(coming) if draw.random() < share else "none"
                fault = "drop" if proxy.gone.is_set() else fault
                fault = "400" if proxy.refuses.is_set() else fault
                proxy.did[fault] += 1
                proxy.headers.append(dict(self.headers))
                proxy.times.append(time.monotonic())
                proxy.at_once += 1
                proxy.most_at_once = max(proxy.most_at_once, proxy.at_once)
            try:
                self._do(fault, method, body)
            finally:
                with lock:
                    proxy.at_once -= 1

        def _do(self, fault: str, method: str, body: bytes) -> None:
            if fault == "drop":
                self.close_connection = True
            elif fault == "400":
                self._reply(400, b'{"error": {"message": "no"}}')
            elif fault == "429":
                proxy.limited.append(time.monotonic())
                self._reply(429, b'{"error": "too many"}', {"Retry-After": wait})
            elif fault == "500":
                self._reply(500, b'{"error": {"message": "internal"}}')
            elif fault == "garbage":
                self._reply(200, b'{"choices": [{"text": ')
            elif fault == "half":
                self._reply(200, b'{"choices": [{}], "object": "text_completion"}')
            elif fault == "html":
                self._reply(200, HTML)
            else:
                time.sleep(delay * (20 if fault == "delay" else 1))
                status, content = self._ask(method, body)
                self._reply(status, content, cut=fault == "cut")

        def _ask(self, method: str, body: bytes) -> tuple[int, bytes]:
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
            return answer.status, content

        def _reply(
            self, status: int, content: bytes, headers: Any = None, *, cut: bool = False
        ) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            self.end_headers()
            self.close_connection = cut
            self.wfile.write(content[: len(content) // 2] if cut else content)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # named so upstream
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 128

        def handle_error(self, request: Any, client_address: Any) -> None:
            """Clients that give up waiting, or are killed, are part of the game."""

    with Server(("127.0.0.1", 0), Handler) as answering:
        proxy = Proxy(f"http://127.0.0.1:{answering.server_port}{upstream.path}")
        thread = threading.Thread(target=answering.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield proxy
        finally:
            answering.shutdown()
            thread.join()
