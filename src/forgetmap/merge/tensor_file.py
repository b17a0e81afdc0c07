"""Safetensors files: the header is validated as a whole, tensors are read one at a time."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from forgetmap.errors import TRUNCATED_HINT, MissingInputError, UnreadableError

if TYPE_CHECKING:
    import torch

DTYPES = {
    "F64": ("float64", 8),
    "F32": ("float32", 4),
    "F16": ("float16", 2),
    "BF16": ("bfloat16", 2),
    "F8_E4M3": ("float8_e4m3fn", 1),
    "F8_E5M2": ("float8_e5m2", 1),
    "I64": ("int64", 8),
    "I32": ("int32", 4),
    "I16": ("int16", 2),
    "I8": ("int8", 1),
    "U8": ("uint8", 1),
    "BOOL": ("bool", 1),
}
"""dtype of safetensors -> torch dtype and bytes of one value."""
CODES = {name: code for code, (name, _) in DTYPES.items()}
WIDTHS = dict(DTYPES.values())
LENGTH_BYTES = 8
MAX_HEADER_BYTES = 100_000_000
"""Limit of the format."""
MAX_DIMENSIONS = 64
"""Maximum number of dimensions of a tensor in torch."""
MAX_SIZE = 2**63 - 1


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """Shape and dtype of a tensor."""

    shape: tuple[int, ...]
    dtype: str
    """torch dtype, such as `bfloat16`."""

    @property
    def nbytes(self) -> int:
        """Size of its values in bytes."""
        return prod(self.shape) * WIDTHS[self.dtype]


@dataclass(frozen=True, slots=True)
class TensorFile:
    """A safetensors file with a valid header."""

    path: Path
    tensors: dict[str, TensorInfo]
    header: bytes
    _starts: dict[str, int] = field(repr=False)

    @classmethod
    def open(cls, path: Path) -> TensorFile:
        """Read and check the header.

        Raises:
            MissingInputError: there is no such file.
            UnreadableError: it is truncated, or its header does not describe its content.
        """
        if not path.is_file():
            raise MissingInputError(
                "The weight file does not exist.", file=str(path), hint="check the path."
            )
        header, first = _header(path)
        entries = _entries(path, header)
        infos, starts, end = {}, {}, 0
        for name, entry in sorted(entries.items(), key=lambda item: _offset(item[1])):
            info, start, stop = _describe(path, name, entry)
            if start != end:
                raise _broken(
                    path, f"Tensor '{name}' does not start at the end of the previous one"
                )
            infos[name], starts[name], end = info, first + start, stop
        _check_size(path, first + end)
        return cls(path, {name: infos[name] for name in entries}, header, starts)

    def read(self, name: str) -> torch.Tensor:
        """Read the values of one tensor into new memory; thread-safe."""
        import torch  # heavy

        info = self.tensors[name]
        values = torch.empty(info.shape, dtype=getattr(torch, info.dtype))
        self.read_into(values.view(-1), name, 0)
        return values

    def read_into(self, values: torch.Tensor, name: str, start: int) -> None:
        """Fill a row with values of a tensor, beginning with the one at `start`."""
        import torch  # heavy

        if values.numel():
            offset = self._starts[name] + start * WIDTHS[self.tensors[name].dtype]
            self._fill(values.view(torch.uint8).numpy().data, offset)

    def _fill(self, view: memoryview, start: int) -> None:
        handle = os.open(self.path, os.O_RDONLY)
        try:
            while view:
                count = os.preadv(handle, [view], start)
                if not count:
                    raise _broken(self.path, "The file was truncated while it was read")
                view, start = view[count:], start + count
        except OSError as error:
            raise _broken(self.path, f"The file cannot be read: {error.strerror}") from error
        finally:
            os.close(handle)


def _broken(path: Path, facts: str) -> UnreadableError:
    return UnreadableError(f"{facts}.", file=str(path), hint=TRUNCATED_HINT)


def _header(path: Path) -> tuple[bytes, int]:
    """Return the header and the position of the values."""
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        length = int.from_bytes(file.read(LENGTH_BYTES), "little")
        if size < LENGTH_BYTES or length > min(MAX_HEADER_BYTES, size - LENGTH_BYTES):
            raise _broken(
                path,
                f"The header claims {length:,} bytes; the file has {size:,}, and at most "
                f"{MAX_HEADER_BYTES:,} are allowed",
            )
        return file.read(length), LENGTH_BYTES + length


def _entries(path: Path, header: bytes) -> dict[str, Any]:
    try:
        entries = json.loads(header)
    except (ValueError, RecursionError) as error:
        raise _broken(path, f"The header is not JSON ({error})") from error
    if not isinstance(entries, dict):
        raise _broken(path, "The header is not an object")
    entries.pop("__metadata__", None)
    return entries


def _offset(entry: Any) -> tuple[int, int]:
    """Return the position of a tensor, for sorting; `_describe` reports invalid ones."""
    match entry:
        case {"data_offsets": [int(start), int(stop)]}:
            return start, stop
    return 0, 0


def _describe(path: Path, name: str, entry: Any) -> tuple[TensorInfo, int, int]:
    match entry:
        case {"dtype": str(code), "shape": list(shape), "data_offsets": [int(start), int(stop)]}:
            pass
        case _:
            raise _broken(path, f"The header entry of tensor '{name}' is invalid")
    if code not in DTYPES:
        raise UnreadableError(
            f"Tensor '{name}' has the dtype {code}, which cannot be merged.",
            file=str(path),
            hint=f"convert the weights to one of {', '.join(DTYPES)}.",
        )
    if len(shape) > MAX_DIMENSIONS or not all(
        isinstance(size, int) and 0 <= size <= MAX_SIZE for size in shape
    ):
        raise _broken(path, f"Tensor '{name}' has the invalid shape {str(shape)[:100]}")
    info = TensorInfo(tuple(shape), DTYPES[code][0])
    if stop - start != info.nbytes:
        raise _broken(
            path, f"Tensor '{name}' has {stop - start:,} bytes instead of {info.nbytes:,}"
        )
    return info, start, stop


def _check_size(path: Path, expected: int) -> None:
    size = path.stat().st_size
    if size != expected:
        kind = "cut off: it" if size < expected else "too long: it"
        raise _broken(path, f"The file is {kind} has {size:,} bytes, its header says {expected:,}")
