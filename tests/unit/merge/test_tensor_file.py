"""Headers of safetensors files with impossible values."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from forgetmap.errors import UnreadableError
from forgetmap.merge.tensor_file import TensorFile


def file_of(header: bytes, length: int | None = None) -> bytes:
    return (len(header) if length is None else length).to_bytes(8, "little") + header + bytes(8)


def tensor(shape: Any, stop: int = 8) -> bytes:
    entry = {"dtype": "F32", "shape": shape, "data_offsets": [0, stop]}
    return file_of(json.dumps({"w": entry}).encode())


ABSURD = {
    "length": (file_of(b"{}", 1 << 60), "header claims 1,152,921,504,606,846,976"),
    "depth": (file_of(b'{"w": ' + b"[" * 200_000 + b"]" * 200_000 + b"}"), "not JSON"),
    "digits": (tensor([1]).replace(b"[1]", b"[" + b"9" * 5_000 + b"]"), "header"),
    "size": (tensor([1 << 70]), "invalid shape"),
    "shape": (tensor([1 << 40, 1 << 40]), "instead of 4,835,703,278,458,516,698,824,704"),
    "dimensions": (tensor([2] * 100_000), "invalid shape"),
    "no sizes": (tensor(["x" * 1_000_000]), "invalid shape"),
    "offset": (tensor([2], 1 << 60), "has 1,152,921,504,606,846,976 bytes"),
}


@pytest.mark.parametrize("name", ABSURD)
def test_an_absurd_header_is_refused_without_making_room_for_it(name: str, tmp_path: Path) -> None:
    content, fact = ABSURD[name]
    path = tmp_path / "model.safetensors"
    path.write_bytes(content)
    tracemalloc.start()
    try:
        with pytest.raises(UnreadableError) as caught:
            TensorFile.open(path)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert fact in caught.value.message
    assert len(caught.value.message) < 1_000
    assert most < 30 << 20
