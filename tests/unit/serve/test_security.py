"""Refused requests, and security headers of every reply."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from forgetmap.serve.security import Guard, allowed_hosts, is_loopback

TOKEN = "a-token-nobody-knows"


async def answer(request: Request) -> PlainTextResponse:
    return PlainTextResponse("in")


def ask(
    path: str = "/api/x", *, token: str | None = None, method: str = "GET", **headers: str
) -> httpx.Response:
    """One request to a guarded application that goes by 127.0.0.1:80."""
    guard = Middleware(Guard, hosts=allowed_hosts("127.0.0.1", 80), port=80, token=token)
    routes = [Route("/", answer), Route("/api/x", answer)]
    app: Any = Starlette(routes=routes, middleware=[guard])
    given = {"Host": "127.0.0.1", **{name.replace("_", "-"): v for name, v in headers.items()}}

    async def call() -> httpx.Response:
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            return await client.request(method, path, headers=given)

    return asyncio.run(call())


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LOCALHOST:80", "[::1]:80"])
def test_own_names_are_answered(host: str) -> None:
    assert ask(Host=host).text == "in"


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "localhost:81", ""])
def test_foreign_names_are_refused(host: str) -> None:
    assert ask(Host=host).status_code == 421


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_nothing_but_reading(method: str) -> None:
    assert ask(method=method).status_code == 405


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": "http://localhost"}, 200),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://[::1"}, 403),
        ({"Origin": "http://[oops]"}, 403),
        ({"Sec_Fetch_Site": "same-origin"}, 200),
        ({"Sec_Fetch_Site": "cross-site"}, 403),
        ({"Sec_Fetch_Site": "same-site"}, 403),
    ],
)
def test_only_own_pages_may_ask(headers: dict[str, str], status: int) -> None:
    assert ask(**headers).status_code == status


def test_a_link_from_elsewhere_opens_the_page() -> None:
    assert ask("/", Sec_Fetch_Site="cross-site").status_code == 200


def test_every_answer_has_the_headers() -> None:
    for got in (ask(), ask(Host="evil.example"), ask("/nowhere")):
        assert got.headers["x-content-type-options"] == "nosniff"
        assert got.headers["x-frame-options"] == "DENY"
        assert got.headers["referrer-policy"] == "no-referrer"
        assert got.headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"Authorization": f"Bearer {TOKEN}"}, 200),
        ({"Authorization": f"Bearer {TOKEN}x"}, 401),
        ({"Authorization": "Bearer "}, 401),
        ({"Authorization": TOKEN}, 401),
        ({"Cookie": f"other=1; forgetmap_token_80={TOKEN}"}, 200),
        ({"Cookie": "forgetmap_token_80=wrong"}, 401),
        ({"Cookie": f"forgetmap_token_81={TOKEN}"}, 401),
        ({"Sec_Fetch_Site": "none"}, 401),
    ],
)
def test_the_token_is_asked_for(headers: dict[str, str], status: int) -> None:
    got = ask(token=TOKEN, **headers)
    assert got.status_code == status
    assert TOKEN not in got.text


@pytest.mark.parametrize(
    "before",
    ['prefs={"a": "b, c"}', "flag", "a[b]=1", "path=/", "forgetmap_token_80=of-before", "=", ""],
)
def test_cookies_of_other_programs_lock_nobody_out(before: str) -> None:
    assert ask(token=TOKEN, Cookie=f"{before}; forgetmap_token_80={TOKEN}").text == "in"
    assert ask(token=TOKEN, Cookie=f"{before}; forgetmap_token_80={TOKEN}x").status_code == 401


def test_the_printed_link_becomes_a_cookie() -> None:
    got = ask(f"/?token={TOKEN}&before=1", token=TOKEN)
    assert (got.status_code, got.headers["location"]) == (303, "/?before=1")
    cookie = got.headers["set-cookie"].lower()
    assert cookie.startswith(f"forgetmap_token_80={TOKEN}")
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert ask("/?token=wrong", token=TOKEN).status_code == 401
    assert ask(f"/api/x?token={TOKEN}", token=TOKEN).status_code == 401


def test_only_the_page_is_shown_where_browsers_leave_the_cookie_out() -> None:
    """A link from another site leads to it; what it asks for then needs the cookie."""
    assert ask("/", token=TOKEN).status_code == 401
    assert ask("/", token=TOKEN, Sec_Fetch_Site="same-site").status_code == 401
    assert ask("/", token=TOKEN, Sec_Fetch_Site="cross-site").status_code == 200
    assert ask("/api/x", token=TOKEN, Sec_Fetch_Site="cross-site").status_code == 403


@pytest.mark.parametrize("token", [None, TOKEN])
@pytest.mark.parametrize("path", ["/", "/api/x"])
def test_there_are_not_more_parameters_than_anybody_needs(path: str, token: str | None) -> None:
    own = {"Authorization": f"Bearer {TOKEN}"}
    for number, status in ((50, 200), (51, 400), (5000, 400)):
        got = ask(f"{path}?{'&'.join(['a=b'] * number)}", token=token, **own)
        assert got.status_code == status
        assert got.headers["x-frame-options"] == "DENY"


@pytest.mark.parametrize(
    ("host", "here"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("10.0.0.7", False),
        ("example.org", False),
    ],
)
def test_what_counts_as_this_machine(host: str, *, here: bool) -> None:
    assert is_loopback(host) is here
