"""A server whose replies come from a function, optionally over TLS."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tls_servers import HOST, serving

Script = Callable[[str, dict[str, Any], dict[str, str]], tuple[int, Any]]
"""Path, body and headers of a request -> status and content of the reply; bytes must be gzip."""


def usual(path: str, body: dict[str, Any], _: dict[str, str]) -> tuple[int, Any]:
    """Reply as a server whose models always answer yes."""
    if path.endswith("/models"):
        return 200, {"data": [{"id": "yes"}, {"id": "also"}]}
    chats = path.endswith("/chat/completions")
    text = {"message": {"content": " yes"}} if chats else {"text": " yes"}
    usage = {"prompt_tokens": 10, "completion_tokens": 2}
    return 200, {"choices": [{**text, "finish_reason": "stop"}], "usage": usage}


@contextmanager
def scripted_server(script: Script, certificate: Path | None = None) -> Iterator[str]:
    """Run the server; yield its address."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._reply({})

        def do_POST(self) -> None:
            self._reply(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

        def _reply(self, body: dict[str, Any]) -> None:
            status, said = script(self.path, body, dict(self.headers))
            packed = isinstance(said, bytes)
            text = said if isinstance(said, (str, bytes)) else json.dumps(said)
            content = text if isinstance(text, bytes) else text.encode()
            self.send_response(status)
            if packed:
                self.send_header("Content-Encoding", "gzip")
            self.send_header("Content-Length", str(len(content)))
            if status == 302:
                self.send_header("Location", "/elsewhere")
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # named so upstream
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: Any, client_address: Any) -> None:
            """Ignore clients that reject the certificate."""

    with serving(Server((HOST, 0), Handler), certificate) as address:
        yield f"{address}/v1"
