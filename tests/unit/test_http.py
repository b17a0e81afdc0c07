"""Replies are decompressed as a stream, up to a limit."""

from __future__ import annotations

import gzip
import random
import tracemalloc
import zlib
from collections.abc import Iterable

import pytest

from forgetmap import _http
from forgetmap._http import (
    OversizedReplyError,
    RefusedError,
    ReplyBody,
    TransientError,
    load_reply,
    parse_retry_after,
    server_message,
)

MIB = 1 << 20
TEXT = bytes(random.Random(3).choices(b"abcdefgh", k=3 * MIB // 10))


def taken(parts: Iterable[bytes], encoding: str | None = None, limit: int = MIB) -> bytes:
    body = ReplyBody(encoding, limit)
    for part in parts:
        body.add(part)
    return body.content()


def pieces(content: bytes, size: int) -> list[bytes]:
    return [content[start : start + size] for start in range(0, len(content), size)]


@pytest.mark.parametrize("size", [1_000, 65_536, 10 * MIB])
def test_a_reply_is_the_same_however_it_comes(size: int) -> None:
    for encoding in (None, "", "identity"):
        assert taken(pieces(TEXT, size), encoding) == TEXT
    for encoding in ("gzip", "GZIP ", "x-gzip"):
        assert taken(pieces(gzip.compress(TEXT), size), encoding) == TEXT


def test_a_reply_of_exactly_the_limit_is_taken() -> None:
    for content in (TEXT, b"", b"a"):
        assert taken([content], limit=len(content)) == content
        assert taken([gzip.compress(content)], "gzip", limit=len(content)) == content
    for packed, encoding in ((TEXT, None), (gzip.compress(TEXT), "gzip")):
        with pytest.raises(OversizedReplyError, match="larger than"):
            taken([packed], encoding, limit=len(TEXT) - 1)


def test_a_reply_that_unpacks_to_much_takes_little_memory() -> None:
    packer = zlib.compressobj(1, zlib.DEFLATED, 31)
    packed = b"".join(packer.compress(bytes(MIB)) for _ in range(200)) + packer.flush()
    tracemalloc.start()
    try:
        with pytest.raises(OversizedReplyError, match="larger than 1 MiB"):
            taken([packed], "gzip")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8 * MIB


def test_few_bytes_that_are_many_values_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_http, "MAX_REPLY_VALUES", 1000)
    assert taken([b"[" + b"[]," * 400 + b"[]]"])
    for many in (b"[" + b"[]," * 600 + b"[]]", b"[" + b"1," * 1200 + b"1]", b"[" * 1001):
        with pytest.raises(OversizedReplyError, match="more than 1,000 values"):
            taken(pieces(many, 100))


@pytest.mark.parametrize("encoding", ["br", "zstd", "deflate", "gzip, gzip", "x" * 100])
def test_a_reply_packed_as_nobody_asked_is_refused(encoding: str) -> None:
    with pytest.raises(RefusedError, match="unexpected content encoding"):
        ReplyBody(encoding)


def test_a_broken_reply_may_come_whole_the_next_time() -> None:
    for broken in (gzip.compress(TEXT)[:-100], b"\x1f\x8bnonsense", b"no gzip at all"):
        with pytest.raises(TransientError, match=r"ended early|cannot be decompressed"):
            taken([broken], "gzip")
    assert taken([], "gzip") == b""


def test_halves_of_characters_do_not_come_in() -> None:
    """A limit of tokens may cut a character in two; whole ones, and what looks like one, stay."""
    text = r'{"a": ["half \ud83d", "whole \ud83d\ude00", "\\ud83d", 1.5, null], "\uDE00": true}'
    assert load_reply(text) == {"a": ["half ?", "whole 😀", r"\ud83d", 1.5, None], "?": True}
    assert server_message(r'{"error": {"message": "bad \ud800"}}') == "bad ?"


@pytest.mark.parametrize("second", ["9" * 20, "99", "x"])
def test_a_date_that_is_none_asks_for_no_wait(second: str) -> None:
    assert parse_retry_after(f"Mon, 01 Jan 2020 00:00:{second} GMT") is None


def test_a_date_to_wait_for_is_read_by_the_clock_of_the_server(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_http, "time", lambda: 0.0)  # set back to 1970
    until, now = ("Mon, 06 Jan 2025 10:00:30 GMT", "Mon, 06 Jan 2025 10:00:10 GMT")
    assert parse_retry_after(until, now) == 20.0
    assert parse_retry_after(now, until) == 0.0
