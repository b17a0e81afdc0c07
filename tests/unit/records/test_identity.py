"""Identity of items."""

from __future__ import annotations

import unicodedata
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from xxhash import xxh3_64

from forgetmap.records.identity import (
    normalise,
    option_text,
    options_hash,
    parse_options,
    text_hash,
)


def digest(text: str) -> int:
    return int.from_bytes(xxh3_64(text.encode()).digest(), "big") - 2**63


@pytest.mark.parametrize(
    ("text", "pinned"),
    [
        ("What is 2 + 2?", 2042840255585403366),
        ("Paris", -6350034887223517690),
    ],
)
def test_hashes_never_change(text: str, pinned: int) -> None:
    assert text_hash(text) == pinned == digest(text)


def test_the_hash_of_options_never_changes() -> None:
    assert options_hash(["Rome", "Paris"]) == -2302883454750326082 == digest("Paris\x1fRome")


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("  a  b\t\nc ", "a b c"),
        ("a\u00a0b\u2003c", "a b c"),
        ("\ufb01ne", "fine"),
        ("e\u0301", "\u00e9"),
        ("\uff21\uff11", "A1"),
        ("x\u00b2", "x2"),
    ],
)
def test_unicode_form_and_white_space_do_not_count(text: str, same: str) -> None:
    assert normalise(text) == same
    assert text_hash(text) == text_hash(same)


@pytest.mark.parametrize(("one", "other"), [("us", "US"), ("a b", "ab"), ("-1", "1"), ("", ".")])
def test_everything_else_counts(one: str, other: str) -> None:
    assert text_hash(one) != text_hash(other)


@given(st.text())
def test_normalising_follows_its_definition(text: str) -> None:
    assert normalise(text) == " ".join(unicodedata.normalize("NFKC", text).split())


@given(st.lists(st.text()), st.randoms())
def test_the_order_of_options_does_not_count(options: list[str], random: Random) -> None:
    shuffled = list(options)
    random.shuffle(shuffled)
    assert options_hash(shuffled) == options_hash(options)


def test_how_often_an_option_stands_there_counts() -> None:
    assert options_hash(["a", "a", "b"]) != options_hash(["a", "b"])
    assert options_hash(["a b"]) != options_hash(["a", "b"])


OPTIONS = ["Paris", "Rome", "A", "two  words"]


@pytest.mark.parametrize(
    ("value", "chosen"),
    [
        ("Rome", "Rome"),
        (" rome", " rome"),
        ("B", "Rome"),
        ("b", "Rome"),
        ("(B)", "Rome"),
        ("b.", "Rome"),
        ("B:", "Rome"),
        ("A", "A"),
        ("two words", "two  words"),
        ("E", "E"),
        ("1", "1"),
        ("Oslo", "Oslo"),
        ("", ""),
        ("\u00c4", "\u00c4"),
    ],
)
def test_a_letter_is_the_text_of_its_option(value: str, chosen: str) -> None:
    """The text of an option comes first, and numbers are never taken for places."""
    assert option_text(value, OPTIONS) == chosen


@pytest.mark.parametrize(
    ("cell", "options"),
    [
        (["a", "b"], ["a", "b"]),
        (("a", "b"), ["a", "b"]),
        ('["a", "b"]', ["a", "b"]),
        ("['a', 'b']", ["a", "b"]),
        ("('a', 'b')", ["a", "b"]),
        ("[1, 2.5, true, null]", ["1", "2.5", "true", "null"]),
        ("[True, None]", ["true", "null"]),
        ([1, 2], ["1", "2"]),
        ("[]", []),
        (None, None),
        ("", None),
        ("  ", None),
    ],
)
def test_options_are_lists_however_written(cell: object, options: list[str] | None) -> None:
    assert parse_options(cell) == options


@pytest.mark.parametrize(
    "cell", ["a", "5", '{"A": "x"}', '"ab"', "['a'", "[" * 10**5, "__import__('os')", 5, {"A": "x"}]
)
def test_anything_else_is_no_list_of_options(cell: object) -> None:
    with pytest.raises(ValueError):
        parse_options(cell)


def test_hashes_are_the_same_in_every_version() -> None:
    """The value of the empty text that the specification of XXH3 gives, as a signed number."""
    assert text_hash("") == 0x2D06800538D394C2 - 2**63
