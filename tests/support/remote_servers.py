"""Servers on this machine for tests of remote paths."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tls_servers import HOST, serving

USER, PASSWORD, SIGNATURE = "ann", "hunter2secret", "sig-0815-secret"


class Folder(SimpleHTTPRequestHandler):
    """Serves a folder and notes what was got.

    Below /private/ a password is needed, below /signed/ a signature; /broken/ ends too early,
    /busy/ answers with 503.
    """

    got: list[str]

    def do_GET(self) -> None:
        self.got.append(self.path)
        if self.path.startswith("/broken/"):
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            self.wfile.write(b"half of it")
            self.close_connection = True
        elif self._is_allowed():
            super().do_GET()

    def do_HEAD(self) -> None:
        if self.path.startswith("/broken/"):
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
        elif self._is_allowed():
            super().do_HEAD()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # named so upstream
        pass

    def _is_allowed(self) -> bool:
        wanted = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        refused = {
            "/private/": self.headers.get("Authorization") != wanted,
            "/signed/": f"sig={SIGNATURE}" not in self.path,
        }
        if self.path.startswith("/busy/"):
            self.send_error(503)
            return False
        if any(self.path.startswith(place) and no for place, no in refused.items()):
            self.send_error(401 if self.path.startswith("/private/") else 403)
            return False
        return True


@contextmanager
def served(folder: Path, *, certificate: Path | None = None) -> Iterator[tuple[str, list[str]]]:
    """The address of a server of this folder, and the paths that were got from it."""
    got: list[str] = []
    handler = type("Served", (Folder,), {"got": got})
    server = ThreadingHTTPServer((HOST, 0), partial(handler, directory=str(folder)))
    with serving(server, certificate) as address:
        yield address, got
