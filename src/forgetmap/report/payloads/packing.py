"""Encoding of the payload in the file: item by item, then gzip, then base64.

A text that occurs twice in an item (usually its prompt, before and after) is stored once. Partial
repetitions (the question in the prompt, one response in the other, the common examples of prompts
of a task) are stored side by side, within the 32 kB window of gzip.
"""

from __future__ import annotations

import base64
import gzip
import zlib

from pydantic_core import to_json

from forgetmap.report.payloads.schema import Cell, Items, Payload

LEVEL = 6
"""Compression level of gzip; 9 saves half a percent and takes twice as long."""


def packed(text: str) -> str:
    """Return text as base64 of gzip; the result is deterministic."""
    return base64.b64encode(gzip.compress(text.encode("utf-8"), LEVEL, mtime=0)).decode("ascii")


def as_json(payload: Payload) -> str:
    """Return the payload without columns of items, followed by the items as rows."""
    bare = [item.model_copy(update={"columns": {}}) for item in payload.items]
    head = payload.model_copy(update={"items": bare}).model_dump_json()
    rows = ",".join(_rows(item).decode() for item in payload.items)
    return f'{{"payload":{head},"items":[{rows}]}}'


def packed_size(items: Items) -> int:
    """Return the size of these items in gzip."""
    return len(zlib.compress(_rows(items), LEVEL))


def _rows(items: Items) -> bytes:
    rows = [_once(row) for row in zip(*items.columns.values(), strict=True)]
    return to_json({"names": list(items.columns), "rows": rows}, inf_nan_mode="null")


def _once(row: tuple[Cell, ...]) -> list[Cell | list[int]]:
    """Replace a repeated text by the index of its first column: `[index]`."""
    first: dict[str, int] = {}
    cells: list[Cell | list[int]] = []
    for index, cell in enumerate(row):
        first_index = first.setdefault(cell, index) if isinstance(cell, str) else index
        cells.append(cell if first_index == index else [first_index])
    return cells
