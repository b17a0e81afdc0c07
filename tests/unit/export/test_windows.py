"""Text windows are found at every position, without false matches."""

from __future__ import annotations

import random

import pytest

from forgetmap.export.windows import LONG, SHORT, PieceIndex, piece_keys


@pytest.mark.parametrize("length", [SHORT, LONG])
def test_search_finds_what_a_loop_finds(length: int) -> None:
    dice = random.Random(length)
    texts = [bytes(dice.choices(b"ab", k=dice.randint(0, 60))) for _ in range(30)]
    pieces = [
        (owner, offset, int(key))
        for owner, text in enumerate(texts)
        for offset, key in enumerate(piece_keys(text, length))
    ]
    searched = bytes(dice.choices(b"ab", k=200)) + max(texts, key=len)
    hits = PieceIndex(length, pieces).search(searched)
    found = set(zip(hits.places.tolist(), hits.owners.tolist(), hits.offsets.tolist(), strict=True))
    expected = {
        (place, owner, offset)
        for place in range(len(searched) - length + 1)
        for owner, text in enumerate(texts)
        for offset in range(len(text) - length + 1)
        if searched[place : place + length] == text[offset : offset + length]
    }
    assert found == expected
    assert expected


@pytest.mark.parametrize("text", [b"", b"short", b"exactly8"])
def test_short_texts_have_few_pieces(text: bytes) -> None:
    assert len(piece_keys(text, SHORT)) == max(0, len(text) - SHORT + 1)
    assert len(piece_keys(text, LONG)) == 0


def test_nothing_is_found_among_nothing() -> None:
    assert len(PieceIndex(SHORT, []).search(b"some text to search").places) == 0
