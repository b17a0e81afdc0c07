"""Search for short pieces of many texts inside other texts, in large blocks.

A piece of 8 or 24 bytes is a number, made of words of 8 bytes at every position of a text. The
numbers of all pieces are in a sorted array, and a table of bits excludes most positions without a
lookup.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Keys = npt.NDArray[np.uint64]
Places = npt.NDArray[np.int64]

SHORT, LONG = 8, 24
"""Lengths of pieces, in bytes."""
_MIXERS = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9], dtype=np.uint64)
_MIN_BITS, _MAX_BITS = 10, 26
_SPARSE = 5
"""log2 of the bits of the table per piece; large enough for few lookups without a match."""


def piece_keys(letters: bytes, length: int) -> Keys:
    """Return the number of the piece at each position; none beyond the last whole piece."""
    count = len(letters) - length + 1
    if count <= 0:
        return np.empty(0, dtype=np.uint64)
    words = np.empty(len(letters) - SHORT + 1, dtype=np.uint64)
    for shift in range(min(SHORT, len(words))):
        number = (len(letters) - shift) // SHORT
        words[shift::SHORT] = np.frombuffer(letters, "<u8", count=number, offset=shift)
    if length == SHORT:
        return words
    parts = (words[SHORT * n : SHORT * n + count] * mixer for n, mixer in enumerate(_MIXERS))
    first, second, third = parts
    keys: Keys = first + second + third
    return keys


@dataclass(frozen=True, slots=True)
class Hits:
    """Positions at which pieces were found.

    Attributes:
        places: positions in the searched text.
        owners: index of the text that the piece belongs to.
        offsets: position of the piece in that text.
    """

    places: Places
    owners: Places
    offsets: Places


class PieceIndex:
    """Index of the pieces of many texts, all of one length.

    Args:
        length: length of a piece.
        pieces: index of a text, position of a piece in it, and key of the piece.
    """

    def __init__(self, length: int, pieces: Iterable[tuple[int, int, int]]) -> None:
        rows = np.array([*pieces], dtype=np.uint64).reshape(-1, 3)
        rows = rows[np.argsort(rows[:, 2], kind="stable")]
        self.length = length
        self._owners = rows[:, 0].astype(np.int64)
        self._offsets = rows[:, 1].astype(np.int64)
        self._keys, self._starts = np.unique(rows[:, 2], return_index=True)
        self._stops = np.append(self._starts[1:], len(rows))
        bits = min(max(len(self._keys).bit_length() + _SPARSE, _MIN_BITS), _MAX_BITS)
        self._shift = np.uint64(64 - bits)
        self._table = np.zeros(1 << bits, dtype=bool)
        self._table[self._slots(self._keys)] = True

    def __len__(self) -> int:
        return len(self._keys)

    def _slots(self, keys: Keys) -> Keys:
        slots: Keys = (keys * _MIXERS[0]) >> self._shift
        return slots

    def search(self, letters: bytes) -> Hits:
        """Find every position of a text at which a piece begins, with all its owners."""
        return self.look_up(piece_keys(letters, self.length) if len(self) else self._keys)

    def look_up(self, keys: Keys) -> Hits:
        """Find the same for given keys."""
        if not len(self):
            keys = self._keys
        places = np.flatnonzero(self._table[self._slots(keys)])
        indices = np.searchsorted(self._keys, keys[places])
        indices[indices == len(self._keys)] = 0
        is_same = self._keys[indices] == keys[places] if len(self) else np.zeros(0, dtype=bool)
        places, indices = places[is_same], indices[is_same]
        counts = self._stops[indices] - self._starts[indices]
        ends = np.cumsum(counts)
        within = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - counts, counts)
        rows = np.repeat(self._starts[indices], counts) + within
        return Hits(np.repeat(places, counts), self._owners[rows], self._offsets[rows])
