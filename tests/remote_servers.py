"""Servers on this machine for tests of remote paths."""

from __future__ import annotations

import base64
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

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
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(handler, directory=str(folder))) as server:
        scheme, host = "http", "127.0.0.1"
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            server.socket = context.wrap_socket(server.socket, server_side=True)
            scheme, host = "https", "localhost"
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield f"{scheme}://{host}:{server.server_port}", got
        finally:
            server.shutdown()
            thread.join()


def write_certificate(path: Path) -> Path:
    """A key and a certificate of localhost, signed by itself."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        + certificate.public_bytes(serialization.Encoding.PEM)
    )
    return path
