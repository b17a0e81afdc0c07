"""A local server that replies as a judge, or with the faults of servers."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Asked:
    """One request."""

    body: dict[str, Any]
    headers: Mapping[str, str]
    path: str
    time_of_this: int
    """Number of times that this question was sent, including this request."""

    @property
    def user(self) -> str:
        return str(self.body["messages"][-1]["content"])


@dataclass(frozen=True)
class Answer:
    """A reply of the server: `text` as a chat completion, or `raw` as it is."""

    text: str | None = None
    raw: str = ""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0.0
    drop: bool = False


Script = Callable[[Asked], Answer]


@dataclass
class Served:
    """Address of the server, its requests, and the number of concurrent requests."""

    url: str
    asked: list[Asked] = field(default_factory=list)
    most_at_once: int = 0


def best_reply(asked: Asked, letter: str = "B") -> str:
    """Return the reply that gets the best score from any of our scorers; options are unknown."""
    if "SCORE: 6" in asked.user:
        return "It is fine.\nSCORE: 10"
    if "RATING: 6" in asked.user:
        return "It is fine.\nRATING: 10"
    if "VERDICT: EVASION" in asked.user:
        return "It declines.\nVERDICT: STRONG_REFUSAL"
    if "VERDICT: B" in asked.user:
        return f"It says so.\nVERDICT: {letter}"
    if "VERDICT: NO" in asked.user:
        return "The same.\nVERDICT: YES"
    return "\n".join(f"{number}: yes" for number in range(1, listed(asked.user) + 1))


def listed(user: str) -> int:
    """Return the number of statements or points in a question."""
    inside = re.search(r"(?:Statements|Points):\n<<<(\w+)\n(.*?)\n\1>>>", user, re.DOTALL)
    assert inside, user
    return len(re.findall(r"^\d+\. ", inside[2], re.MULTILINE))


@contextmanager
def judge_server(script: Script) -> Iterator[Served]:
    """Run a server that answers every request by the script."""
    lock = threading.Lock()
    times: dict[str, int] = {}
    now = 0

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            nonlocal now
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            question = json.dumps(body, sort_keys=True)
            with lock:
                times[question] = times.get(question, 0) + 1
                asked = Asked(body, dict(self.headers), self.path, times[question])
                served.asked.append(asked)
                now += 1
                served.most_at_once = max(served.most_at_once, now)
            try:
                self._answer(script(asked))
            finally:
                with lock:
                    now -= 1

        def _answer(self, answer: Answer) -> None:
            time.sleep(answer.delay)
            self.close_connection = answer.drop
            if answer.drop:
                return
            content = answer.raw.encode() if answer.text is None else _completion(answer.text)
            self.send_response(answer.status)
            for name, value in {"Content-Length": str(len(content)), **answer.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # named so upstream
            pass

    class Server(ThreadingHTTPServer):
        def handle_error(self, request: Any, client_address: Any) -> None:
            """Ignore clients that time out."""

    with Server(("127.0.0.1", 0), Handler) as server:
        served = Served(f"http://127.0.0.1:{server.server_port}/v1")
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield served
        finally:
            server.shutdown()
            thread.join()


def _completion(text: str) -> bytes:
    choice = {"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    return json.dumps({"model": "scripted", "choices": [choice]}).encode()
