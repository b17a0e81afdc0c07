"""Authentication of requests, and security headers of responses.

Requests may only read, only under the names of this server (others indicate DNS rebinding), only
from its own pages, and only with the token: other users of a shared machine can reach its loopback,
too.
"""

from __future__ import annotations

import hmac
import socket
from collections.abc import Collection, Sequence
from ipaddress import ip_address
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MAX_PARAMETERS = 50
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def allowed_hosts(host: str, port: int, more: Collection[str] = ()) -> frozenset[str]:
    """Return the allowed values of the Host header, including the port."""
    names = {*LOOPBACK, _bracket_ipv6(host), *map(_bracket_ipv6, more)}
    if not is_loopback(host):
        names |= {socket.gethostname(), socket.getfqdn()}
    hosts = {f"{name.lower()}:{port}" for name in names}
    return frozenset(hosts | ({name.lower() for name in names} if port in (80, 443) else set()))


def _bracket_ipv6(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


def cookie_name(port: int) -> str:
    """Return the name of the cookie; browsers share cookies between all ports of a machine."""
    return f"forgetmap_token_{port}"


class Guard:
    """Refuses forbidden requests, and adds the headers of every response.

    Args:
        app: the protected application.
        hosts: allowed values of the Host header.
        port: port of the server.
        token: token that clients need; None allows everyone.
    """

    def __init__(self, app: ASGIApp, hosts: Collection[str], port: int, token: str | None) -> None:
        self._app = app
        self._hosts = frozenset(hosts)
        self._cookie_name = cookie_name(port)
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        refusal = self._refusal(scope)
        await (refusal or self._app)(scope, receive, _with_headers(send))

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        if scope["method"] not in ("GET", "HEAD"):
            return refused(405, "only GET requests are allowed")
        if _has_content(headers):
            return refused(413, "a request must have no body")
        if scope["query_string"].count(b"&") >= MAX_PARAMETERS:
            return refused(400, f"more than {MAX_PARAMETERS} parameters")
        if headers.get("host", "").lower() not in self._hosts:
            return refused(421, "unknown host name; start the server with --allow-host NAME")
        if not self._is_own_page(scope, headers):
            return refused(403, "requests from other sites are refused")
        return self._without_token(scope, headers)

    def _is_own_page(self, scope: Scope, headers: Headers) -> bool:
        origin = headers.get("origin")
        if origin is not None and _host_of(origin) not in self._hosts:
            return False
        is_page = scope["path"] == "/"
        site = headers.get("sec-fetch-site", "none")
        return is_page or site in ("same-origin", "none")

    def _without_token(self, scope: Scope, headers: Headers) -> Response | None:
        """Return None if the token is right; a link with the token sets a cookie."""
        if self._token is None or any(map(self._knows, self._cookies(headers))):
            return None
        if self._knows(_bearer(headers)):
            return None
        if scope["path"] == "/":
            parameters = parse_qsl(scope["query_string"].decode("latin-1"))
            if self._knows(dict(parameters).get("token")):
                return self._with_cookie([pair for pair in parameters if pair[0] != "token"])
            # On links from other sites, browsers leave out the cookie. The page itself contains no
            # data of runs; it requests them with the cookie.
            if headers.get("sec-fetch-site") == "cross-site":
                return None
        return refused(401, "token missing or wrong: open the address printed by the server")

    def _with_cookie(self, parameters: Sequence[tuple[str, str]]) -> Response:
        rest = urlencode(parameters)
        answer = RedirectResponse(f"/?{rest}" if rest else "/", status_code=303)
        answer.set_cookie(self._cookie_name, self._token or "", httponly=True, samesite="strict")
        return answer

    def _cookies(self, headers: Headers) -> list[str]:
        """Return the values of our cookie, whatever other programs store beside it.

        The parser of the library stops at the first invalid cookie.
        """
        pairs = [pair.partition("=") for pair in headers.get("cookie", "").split(";")]
        return [value.strip() for name, _, value in pairs if name.strip() == self._cookie_name]

    def _knows(self, token: str | None) -> bool:
        if token is None or self._token is None:
            return False
        return hmac.compare_digest(token.encode("utf-8", "replace"), self._token.encode("utf-8"))


def refused(status: int, why: str, hint: str | None = None) -> JSONResponse:
    """Return an error response: a sentence, no traceback, no path."""
    return JSONResponse(error_content(why, hint), status_code=status)


def error_content(why: str, hint: str | None = None) -> dict[str, str | None]:
    """Return the fields of every error."""
    return {"error": why, "hint": hint}


def _host_of(origin: str) -> str:
    """Return the host of an origin; empty if it is invalid."""
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""


def _has_content(headers: Headers) -> bool:
    return headers.get("content-length", "0") != "0" or "transfer-encoding" in headers


def _bearer(headers: Headers) -> str | None:
    kind, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() if kind.lower() == "bearer" else None


def _with_headers(send: Send) -> Send:
    async def wrapped(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return wrapped
