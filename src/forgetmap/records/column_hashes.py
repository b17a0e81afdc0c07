"""Hashes of whole columns of texts; the same values as `records.identity`, but faster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from xxhash import xxh3_64_intdigest

from forgetmap.records.identity import normalise

Whole = npt.NDArray[np.int64]
_SIGN = np.uint64(1 << 63)
_BLANK, _LAST_PRINTABLE = np.uint8(ord(" ")), np.uint8(ord("~"))


@dataclass(frozen=True, slots=True)
class HashColumn:
    """Hashes of a column of texts; where `known` is False, there is no hash and the value is 0."""

    values: Whole
    known: npt.NDArray[np.bool_]


def text_hashes(texts: Sequence[str | None]) -> HashColumn:
    """Return `text_hash` of each text; blank texts have no hash."""
    every = [text or "" for text in texts]
    return hash_column(normalise_texts(every), every)


def normalise_texts(texts: Sequence[str]) -> list[str]:
    """Return `normalise` of each text.

    Printable ASCII without two blanks in a row only needs stripping; which texts need more is
    computed for all of them at once.
    """
    data = "~".join(texts).encode()
    codes = np.frombuffer(data, np.uint8)
    is_odd = (codes - _BLANK) > (_LAST_PRINTABLE - _BLANK)
    is_blank = codes == _BLANK
    is_odd[1:] |= is_blank[1:] & is_blank[:-1]
    plain = list(map(str.strip, texts))
    positions = np.flatnonzero(is_odd)
    if len(positions):
        lengths = list(map(len, texts))
        if sum(lengths) + len(texts) - 1 != len(data):
            lengths = [len(text.encode()) for text in texts]
        ends = np.cumsum(np.array(lengths) + 1)
        for row in np.unique(np.searchsorted(ends, positions, side="right")).tolist():
            plain[row] = normalise(texts[row])
    return plain


def hash_column(plain: Sequence[str], texts: Sequence[str]) -> HashColumn:
    """Hash normalised texts; blank texts are marked as unknown."""
    values, known = signed_hashes(plain), np.ones(len(plain), bool)
    if "" in plain:
        known = np.array([bool(text) and not text.isspace() for text in texts])
        values[~known] = 0
    return HashColumn(values, known)


def text_digests(texts: Sequence[str]) -> npt.NDArray[np.uint64]:
    """Return an integer hash of each text, the same on every machine."""
    return np.fromiter(map(xxh3_64_intdigest, map(str.encode, texts)), np.uint64, len(texts))


def signed_hashes(texts: Sequence[str]) -> Whole:
    """Return the hash of each normalised text, as in `text_hash`."""
    return (text_digests(texts) ^ _SIGN).view(np.int64)
