"""Headers of GGUF files: valid ones, and ones with impossible values."""

from __future__ import annotations

import struct
import tracemalloc
from pathlib import Path

import pytest

from forgetmap.errors import ModelError
from forgetmap.evaluation.models import find_model

UINT8, UINT32, STRING, ARRAY = 0, 4, 8, 9


def text(value: str, length: int | None = None) -> bytes:
    return struct.pack("<Q", len(value) if length is None else length) + value.encode()


def array(kind: int, count: int, content: bytes = b"") -> bytes:
    return struct.pack("<IQ", kind, count) + content


def entry(kind: int, value: bytes, name: str = "general.name") -> bytes:
    return text(name) + struct.pack("<I", kind) + value


def tensor(sizes: tuple[int, ...], offset: int = 0, dimensions: int | None = None) -> bytes:
    count = len(sizes) if dimensions is None else dimensions
    packed = struct.pack(f"<I{len(sizes)}Q", count, *sizes)
    return text("w") + packed + struct.pack("<IQ", 0, offset)


def gguf(*parts: bytes, tensors: int = 0, entries: int = 1, version: int = 3) -> bytes:
    return b"GGUF" + struct.pack("<IQQ", version, tensors, entries) + b"".join(parts) + bytes(64)


NESTED = array(ARRAY, 1, array(ARRAY, 1, array(ARRAY, 1, array(ARRAY, 1, array(ARRAY, 1)))))
ABSURD = {
    "version": (gguf(version=1 << 24), "version 16,777,216"),
    "tensors": (gguf(tensors=1 << 40, entries=0), "1,099,511,627,776 tensors"),
    "entries": (gguf(entries=1 << 40), "1,099,511,627,776 metadata entries"),
    "name": (gguf(text("n", 1 << 60)), "a name of 1,152,921,504,606,846,976 bytes"),
    "text": (gguf(entry(STRING, text("x", 1 << 60))), "a text of 1,152,921,504,606,846,976 bytes"),
    "array": (gguf(entry(ARRAY, array(UINT8, 1 << 60))), "an array of 1,152,921,504"),
    "texts": (gguf(entry(ARRAY, array(STRING, 1 << 40))), "an array of 1,099,511,627,776"),
    "longer than the file": (
        gguf(entry(ARRAY, array(UINT32, 1_000))),
        "1,000 elements, but only 64 bytes",
    ),
    "nested": (gguf(entry(ARRAY, NESTED)), "deeper than 4"),
    "type": (gguf(entry(77, b"")), "unknown type 77"),
    "dimensions": (gguf(tensor((), dimensions=1 << 30), tensors=1, entries=0), "dimensions"),
    "shape": (gguf(tensor((1 << 40, 1 << 40)), tensors=1, entries=0), "values"),
    "offset": (gguf(tensor((1,), 1 << 60), tensors=1, entries=0), "after the end"),
    "cut off": (gguf()[:20], "a number, but only 4 bytes are left"),
    "nothing else": (b"GGUF", "a number, but only 0 bytes are left"),
}


@pytest.mark.parametrize("name", ABSURD)
def test_an_absurd_header_is_refused_without_making_room_for_it(name: str, tmp_path: Path) -> None:
    content, fact = ABSURD[name]
    path = tmp_path / "model.gguf"
    path.write_bytes(content)
    tracemalloc.start()
    try:
        with pytest.raises(ModelError, match="is damaged") as caught:
            find_model(str(path))
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert fact in caught.value.message
    assert most < 10 << 20


def test_a_sound_header_is_accepted(tmp_path: Path) -> None:
    words = array(STRING, 2, text("a") + text("b"))
    numbers = array(ARRAY, 1, array(UINT8, 3, b"abc"))
    path = tmp_path / "model.gguf"
    content = [entry(ARRAY, words), entry(UINT32, bytes(4)), entry(ARRAY, numbers), tensor((2, 4))]
    path.write_bytes(gguf(*content, entries=3, tensors=1))
    assert find_model(str(path)).gguf == "model.gguf"
