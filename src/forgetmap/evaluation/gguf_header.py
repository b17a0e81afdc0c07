"""The header of a GGUF file, validated before a library reads the file.

Libraries create one object per element that a header claims. Here no objects are created: sizes are
added up and compared with the size of the file.
"""

from __future__ import annotations

import mmap
import struct
from pathlib import Path

from forgetmap.errors import ModelError

MAGIC = b"GGUF"
VERSIONS = (2, 3)
MAX_ENTRIES = 1_000_000
"""Maximum number of tensors, or of metadata entries; the largest models have some thousands."""
MAX_ELEMENTS = 20_000_000
"""Maximum number of array elements; the largest vocabularies with merges have a million."""
MAX_DEPTH = 4
"""Maximum depth of nested arrays."""
MAX_DIMENSIONS = 8
MAX_VALUES_PER_BYTE = 8
"""The smallest quantisation uses more than one bit per value."""
_STRING, _ARRAY = 8, 9
_WIDTHS = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
"""Size of a value in bytes, by type."""


def check_gguf(path: Path) -> None:
    """Refuse a file with an impossible header.

    Raises:
        ModelError: the file is truncated, or sizes in its header are absurd.
    """
    with (
        path.open("rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data,
    ):
        _GgufHeader(path, data).check()


class _GgufHeader:
    """Reads a header after its first four bytes, without storing its values."""

    def __init__(self, path: Path, data: mmap.mmap) -> None:
        self._path, self._data, self._size = path, data, len(data)
        self._at = len(MAGIC)
        self._elements = 0

    def check(self) -> None:
        version = self._number("<I")
        if version not in VERSIONS:
            raise self._refusal(f"it has version {version:,}, expected 2 or 3")
        tensors, entries = self._number("<Q"), self._number("<Q")
        for what, count in (("tensors", tensors), ("metadata entries", entries)):
            if count > min(MAX_ENTRIES, self._size):
                raise self._refusal(f"its header declares {count:,} {what}")
        for _ in range(entries):
            self._text("a name")
            self._value(self._number("<I"), 0)
        for _ in range(tensors):
            self._tensor()

    def _tensor(self) -> None:
        self._text("a name")
        dimensions = self._number("<I")
        if dimensions > MAX_DIMENSIONS:
            raise self._refusal(f"a tensor declares {dimensions:,} dimensions")
        values = 1
        for _ in range(dimensions):
            values *= self._number("<Q")
        if values > MAX_VALUES_PER_BYTE * self._size:
            raise self._refusal(f"a tensor declares {values:,} values")
        self._skip(4, "a type")
        if self._number("<Q") > self._size:
            raise self._refusal("a tensor starts after the end of the file")

    def _value(self, kind: int, depth: int) -> None:
        if kind == _STRING:
            self._text("a text")
        elif kind == _ARRAY:
            self._array(depth)
        elif kind in _WIDTHS:
            self._skip(_WIDTHS[kind], "a value")
        else:
            raise self._refusal(f"its header contains a value of the unknown type {kind:,}")

    def _array(self, depth: int) -> None:
        if depth >= MAX_DEPTH:
            raise self._refusal(f"its header contains arrays nested deeper than {MAX_DEPTH}")
        kind, count = self._number("<I"), self._number("<Q")
        self._elements += count
        if self._elements > MAX_ELEMENTS:
            raise self._refusal(f"its header declares an array of {count:,} elements")
        if kind in _WIDTHS:
            self._skip(count * _WIDTHS[kind], f"an array of {count:,} elements")
            return
        for _ in range(count):
            self._value(kind, depth + 1)

    def _text(self, what: str) -> None:
        length = self._number("<Q")
        self._skip(length, f"{what} of {length:,} bytes")

    def _number(self, layout: str) -> int:
        start = self._at
        self._skip(struct.calcsize(layout), "a number")
        number: int = struct.unpack_from(layout, self._data, start)[0]
        return number

    def _skip(self, count: int, what: str) -> None:
        if count > self._size - self._at:
            raise self._refusal(
                f"its header declares {what}, but only {self._size - self._at:,} bytes are left"
            )
        self._at += count

    def _refusal(self, fact: str) -> ModelError:
        return ModelError(
            f"The GGUF file {self._path} is damaged: {fact}.",
            hint="copy or convert it again; it may be truncated.",
        )
