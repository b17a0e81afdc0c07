"""Assignment of tensors to files, before the first one is written."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from forgetmap.merge.tensor_file import CODES, LENGTH_BYTES, WIDTHS, TensorInfo

SHARD_BYTES = 5_000_000_000
ALIGNMENT = 8


@dataclass(frozen=True, slots=True)
class Shard:
    """A file to be written.

    Attributes:
        name: name of the file.
        head: its first bytes, up to the values.
        starts: position of each tensor in the file.
        size: size of the whole file.
    """

    name: str
    head: bytes
    starts: dict[str, int]
    size: int


@dataclass(frozen=True, slots=True)
class WeightLayout:
    """All weight files of a model."""

    shards: tuple[Shard, ...]

    @property
    def size(self) -> int:
        """Size of all files in bytes."""
        return sum(shard.size for shard in self.shards)

    def index(self) -> dict[str, Any] | None:
        """Return the content of model.safetensors.index.json; None for a single file."""
        if len(self.shards) == 1:
            return None
        files = {name: shard.name for shard in self.shards for name in shard.starts}
        values = sum(shard.size - len(shard.head) for shard in self.shards)
        return {"metadata": {"total_size": values}, "weight_map": files}


def lay_out(tensors: Mapping[str, TensorInfo], shard_bytes: int = SHARD_BYTES) -> WeightLayout:
    """Distribute tensors over files of at most this many bytes of values, in their order.

    A larger tensor has its own file.
    """
    groups = list(_groups(tensors, shard_bytes))
    shards = []
    for number, names in enumerate(groups, start=1):
        name = "model.safetensors"
        if len(groups) > 1:
            name = f"model-{number:05}-of-{len(groups):05}.safetensors"
        shards.append(_shard(name, {tensor: tensors[tensor] for tensor in names}))
    return WeightLayout(tuple(shards))


def _groups(tensors: Mapping[str, TensorInfo], most: int) -> Iterator[list[str]]:
    group: list[str] = []
    size = 0
    for name, info in tensors.items():
        if group and size + info.nbytes > most:
            yield group
            group, size = [], 0
        group.append(name)
        size += info.nbytes
    yield group


def _shard(name: str, tensors: dict[str, TensorInfo]) -> Shard:
    """Build a file; wide values come first, so that the following ones are aligned."""
    entries: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    starts, end = {}, 0
    for tensor, info in sorted(tensors.items(), key=lambda item: -WIDTHS[item[1].dtype]):
        starts[tensor], stop = end, end + info.nbytes
        entries[tensor] = {
            "dtype": CODES[info.dtype],
            "shape": list(info.shape),
            "data_offsets": [end, stop],
        }
        end = stop
    header = json.dumps(entries, separators=(",", ":")).encode()
    header += b" " * (-len(header) % ALIGNMENT)
    head = len(header).to_bytes(LENGTH_BYTES, "little") + header
    return Shard(name, head, {n: len(head) + at for n, at in starts.items()}, len(head) + end)
