"""Hashes of whole columns of texts; the same values as `records.identity`, but faster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, islice

import numpy as np
import numpy.typing as npt
from xxhash import xxh3_64_intdigest

from forgetmap.records.identity import normalise

Whole = npt.NDArray[np.int64]
TEXTS_AT_A_TIME = 256
"""Few enough for the cache of a core."""
_SIGN = np.uint64(1 << 63)
_BLANK, _LAST_PRINTABLE = np.uint8(ord(" ")), np.uint8(ord("~"))


@dataclass(frozen=True, slots=True)
class HashColumn:
    """Hashes of a column of texts; where `known` is False, there is no hash and the value is 0."""

    values: Whole
    known: npt.NDArray[np.bool_]


def text_hashes(texts: Sequence[str | None]) -> HashColumn:
    """Return `text_hash` of each text; blank texts have no hash."""
    if not any(texts):
        return HashColumn(np.zeros(len(texts), np.int64), np.zeros(len(texts), bool))
    every = [text or "" for text in texts]
    plain = normalise_texts(every)
    known = np.ones(len(plain), bool)
    if "" in plain:
        known = np.array([bool(text) and not text.isspace() for text in every])
    return _hashed(plain, known)


def options_hashes(options: Sequence[Sequence[str] | None]) -> HashColumn:
    """Return `options_hash` of each set of options; None and an empty set have no hash."""
    plain = iter(normalise_texts(list(chain.from_iterable(filter(None, options)))))
    sets = ["\x1f".join(sorted(islice(plain, len(each)))) if each else "" for each in options]
    return _hashed(sets, np.array([bool(each) for each in options], bool))


def normalise_texts(texts: Sequence[str]) -> list[str]:
    """Return `normalise` of each text."""
    starts = range(0, len(texts), TEXTS_AT_A_TIME)
    return [text for at in starts for text in _normalised(texts[at : at + TEXTS_AT_A_TIME])]


def _normalised(texts: Sequence[str]) -> list[str]:
    """Return `normalise` of few texts.

    Printable ASCII without two blanks in a row only needs stripping; which texts need more is
    computed for all of them at once.
    """
    data = _encoded("~".join(texts))
    codes = np.frombuffer(data, np.uint8)
    is_odd = (codes - _BLANK) > (_LAST_PRINTABLE - _BLANK)
    is_blank = codes == _BLANK
    is_odd[1:] |= is_blank[1:] & is_blank[:-1]
    plain = list(map(str.strip, texts))
    positions = np.flatnonzero(is_odd)
    if len(positions):
        ends = np.cumsum([len(_encoded(text)) + 1 for text in texts])
        for row in np.unique(np.searchsorted(ends, positions, side="right")).tolist():
            plain[row] = normalise(texts[row])
    return plain


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")  # a lone surrogate is valid in JSON


def _hashed(plain: Sequence[str], known: npt.NDArray[np.bool_]) -> HashColumn:
    try:
        data = list(map(str.encode, plain))
    except UnicodeEncodeError:
        data = list(map(_encoded, plain))
    digests = np.fromiter(map(xxh3_64_intdigest, data), np.uint64, len(data))
    values = (digests ^ _SIGN).view(np.int64)
    values[~known] = 0
    return HashColumn(values, known)
