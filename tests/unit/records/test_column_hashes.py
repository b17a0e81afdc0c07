"""Hashes of columns are those of their texts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from forgetmap.records.column_hashes import HashColumn, options_hashes, text_hashes
from forgetmap.records.identity import options_hash, text_hash

ODD = "ab ~\x7f\t\n\u00a0\u00bd\ufb01\U0001f600\ud800"
TEXTS = st.text(alphabet=st.sampled_from(ODD), max_size=8)


def values_of(column: HashColumn) -> list[int | None]:
    pairs = zip(column.values.tolist(), column.known.tolist(), strict=True)
    return [value if known else None for value, known in pairs]


@given(st.lists(st.none() | TEXTS, min_size=1, max_size=6))
def test_hashes_of_a_column_are_those_of_its_texts(texts: list[str | None]) -> None:
    expected = [text_hash(text) if text and not text.isspace() else None for text in texts]
    assert values_of(text_hashes(texts)) == expected


@given(st.lists(st.none() | st.lists(TEXTS, max_size=5), min_size=1, max_size=5))
def test_hashes_of_options_are_those_of_each_set(options: list[list[str] | None]) -> None:
    expected = [options_hash(each) if each else None for each in options]
    assert values_of(options_hashes(options)) == expected


def test_long_columns_are_hashed_in_parts() -> None:
    texts = [f"text  {number}" for number in range(1_000)]
    assert values_of(text_hashes(texts)) == list(map(text_hash, texts))
