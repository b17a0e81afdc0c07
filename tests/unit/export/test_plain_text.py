"""Normalised texts, equal for all copies."""

from __future__ import annotations

import pytest

from forgetmap.export.plain_text import plain_letters, plain_words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("  What,   IS\tit?\n", "what is it"),
        ("don't, don\N{RIGHT SINGLE QUOTATION MARK}t and DONT", "dont dont and dont"),
        ("Ｗｈａｔ　ｉｓ", "what is"),  # noqa: RUF001  # wide letters are the point
        ("\N{LATIN SMALL LIGATURE FI}sh x²", "fish x2"),
        ("Gro\u00dfe Stra\u00dfe", "grosse strasse"),
        ("cafe\u0301 and caf\u00e9", "cafe and cafe"),
        ("zero\u200bwidth so\u00adft", "zerowidth soft"),
        ("snake_case-and/slash", "snake case and slash"),
        ("\u957f\u6c5f 2", "\u957f \u6c5f 2"),
        ("\ud55c\uad6d", "\ud55c \uad6d"),
        ("\uff76\uff9e \u30ac \u30ab\u3099", "\u30ab \u30ab \u30ab"),  # one syllable, three forms
        ("\u1112\u1161\u11ab", "\ud55c"),
        ("?!", ""),
        ("", ""),
    ],
)
def test_words_are_what_copies_share(text: str, words: str) -> None:
    assert plain_words(text).decode() == words
    assert plain_letters(plain_words(text)).decode() == words.replace(" ", "")


def test_text_in_ascii_and_beside_other_letters_is_read_alike() -> None:
    text = "A 'quoted' word_with `marks`, 12.5% of it"
    assert plain_words(f"{text} \u00e9") == plain_words(text) + b" e"


def test_half_of_a_letter_is_no_fault() -> None:
    assert plain_words("a \ud800 b")
