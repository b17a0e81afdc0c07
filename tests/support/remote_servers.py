"""Servers on this machine for tests of remote paths."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from tls_servers import HOST, serving

USER, PASSWORD, SIGNATURE = "ann", "hunter2secret", "sig-0815-secret"


class Folder(SimpleHTTPRequestHandler):
    """Serves a folder and records the requests.

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
    """Serve a folder; yield the address and the requested paths."""
    got: list[str] = []
    handler = type("Served", (Folder,), {"got": got})
    server = ThreadingHTTPServer((HOST, 0), partial(handler, directory=str(folder)))
    with serving(server, certificate) as address:
        yield address, got


@dataclass
class Hub:
    """A hub of data sets with the requests that clients use: `OWNER/NAME` -> path -> content.

    Attributes:
        files: files of each data set.
        token: token for the data sets in `private` and `gated`.
        asked: kind and path of every request.
        address: address of its server.
        barrier: barrier that is awaited before a file is sent.
        cut_off: byte at which the connection breaks, once, while a file is sent.
        ranges: bytes that were asked for, of every file sent.
    """

    files: dict[str, dict[str, bytes]]
    token: str = "hf_secret"
    private: set[str] = field(default_factory=set)
    gated: set[str] = field(default_factory=set)
    asked: list[tuple[str, str]] = field(default_factory=list)
    address: str = ""
    barrier: threading.Barrier | None = None
    cut_off: int | None = None
    ranges: list[str] = field(default_factory=list)

    def count(self, kind: str) -> int:
        """Return the number of requests of a kind."""
        return sum(asked == kind for asked, _ in self.asked)


class _HubHandler(BaseHTTPRequestHandler):
    """Replies like the hub: information, trees, paths and files of data sets."""

    hub: Hub

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # named so upstream
        pass

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        place = unquote(parts.path).strip("/").split("/")
        is_api = place[0] == "api"
        name = "/".join(place[2:4] if is_api else place[1:3])
        rest = place[4:] if is_api else place[3:]
        kind = rest[0] if rest else "information"
        kind = "information" if kind == "revision" else kind
        self.hub.asked.append((kind, "/".join(rest[2:])))
        if self._is_refused(name):
            return
        files, inside = self.hub.files[name], "/".join(rest[2:])
        if kind == "information":
            self._send_json({"id": name, "sha": "a" * 40, "private": False, "siblings": []})
        elif kind == "tree":
            self._send_tree(files, inside, "true" in str(parse_qs(parts.query)).lower())
        elif kind == "resolve" and inside in files:
            self._send_file(files[inside])
        else:
            self._refuse(404, "EntryNotFound")

    def do_POST(self) -> None:
        length = int(self.headers["Content-Length"])
        body = self.rfile.read(length).decode()
        paths = json.loads(body)["paths"] if body.startswith("{") else parse_qs(body)["paths"]
        place = unquote(urlsplit(self.path).path).strip("/").split("/")
        self.hub.asked.append(("paths", "/".join(paths)))
        name = "/".join(place[2:4])
        if not self._is_refused(name):
            files = self.hub.files[name]
            self._send_json([_described(p, files[p]) for p in paths if p in files])

    def _is_refused(self, name: str) -> bool:
        hub = self.hub
        is_known = self.headers.get("Authorization") == f"Bearer {hub.token}"
        if name not in hub.files or (name in hub.private and not is_known):
            self._refuse(401, "RepoNotFound")
        elif name in hub.gated and not is_known:
            self._refuse(403, "GatedRepo")
        else:
            return False
        return True

    def _send_tree(self, files: dict[str, bytes], inside: str, recursive: bool) -> None:
        base = f"{inside}/" if inside else ""
        below = [path for path in sorted(files) if path.startswith(base)]
        if not below:
            self._refuse(404, "EntryNotFound")
            return
        listed = [p for p in below if recursive or "/" not in p.removeprefix(base)]
        self._send_json([_described(path, files[path]) for path in listed])

    def _send_file(self, content: bytes) -> None:
        if self.hub.barrier is not None:
            self.hub.barrier.wait(60)
        wanted = self.headers.get("Range", "bytes=0-")
        first = int(wanted.removeprefix("bytes=").partition("-")[0])
        self.hub.ranges.append(wanted)
        self.send_response(206 if first else 200)
        self.send_header("Content-Length", str(len(content) - first))
        if first:
            self.send_header("Content-Range", f"bytes {first}-{len(content) - 1}/{len(content)}")
        self.send_header("ETag", f'"{_blob(content)}"')
        self.end_headers()
        self.wfile.write(content[first : self.hub.cut_off])
        self.hub.cut_off = None

    def _send_json(self, value: Any) -> None:
        content = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _refuse(self, status: int, code: str) -> None:
        self.send_response(status)
        self.send_header("X-Error-Code", code)
        self.send_header("X-Error-Message", code)
        self.send_header("Content-Length", "0")
        self.end_headers()


def _described(path: str, content: bytes) -> dict[str, Any]:
    return {"type": "file", "path": path, "size": len(content), "oid": _blob(content)}


def _blob(content: bytes) -> str:
    """Return the Git hash of a file with this content."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


@contextmanager
def served_hub(files: dict[str, dict[str, bytes]]) -> Iterator[Hub]:
    """Run a local hub of data sets."""
    hub = Hub(files)
    server = ThreadingHTTPServer((HOST, 0), type("ServedHub", (_HubHandler,), {"hub": hub}))
    with serving(server) as address:
        hub.address = address
        yield hub
