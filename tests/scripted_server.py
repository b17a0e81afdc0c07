"""A server that completes texts as a function says, and fails as told; over TLS if wanted."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

Script = Callable[[str, dict[str, Any], dict[str, str]], tuple[int, Any]]
"""Path, body and headers of a request; status and content of the reply."""


def usual(path: str, body: dict[str, Any], _: dict[str, str]) -> tuple[int, Any]:
    """One model that says yes to everything."""
    if path.endswith("/models"):
        return 200, {"data": [{"id": "yes"}, {"id": "also"}]}
    chats = path.endswith("/chat/completions")
    text = {"message": {"content": " yes"}} if chats else {"text": " yes"}
    usage = {"prompt_tokens": 10, "completion_tokens": 2}
    return 200, {"choices": [{**text, "finish_reason": "stop"}], "usage": usage}


@contextmanager
def scripted_server(script: Script, certificate: Path | None = None) -> Iterator[str]:
    """The address while it serves."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._reply({})

        def do_POST(self) -> None:
            self._reply(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

        def _reply(self, body: dict[str, Any]) -> None:
            status, said = script(self.path, body, dict(self.headers))
            content = (said if isinstance(said, str) else json.dumps(said)).encode()
            self.send_response(status)
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
            """Clients that do not trust us hang up."""

    with Server(("127.0.0.1", 0), Handler) as server:
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        scheme = "http" if certificate is None else "https"
        try:
            yield f"{scheme}://127.0.0.1:{server.server_port}/v1"
        finally:
            server.shutdown()
            thread.join()


def write_certificate(path: Path) -> Path:
    """A certificate that nobody but itself vouches for, with its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False
        )
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    path.write_bytes(private + certificate.public_bytes(serialization.Encoding.PEM))
    return path
