"""Seeded damage to logs: to bytes, to rows, and to the structure of single rows."""

from __future__ import annotations

import copy
import io
import json
import math
import zipfile
from collections.abc import Callable, Iterator, MutableMapping, MutableSequence
from dataclasses import dataclass
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

Files = dict[str, bytes]
"""Path inside the log -> content; members of an archive are `ARCHIVE!MEMBER`."""

VALUES: list[Any] = [
    None, True, False, 0, 1, -1, 0.5, 10**30, -(2**63), 2**31, 1e308, math.nan, math.inf, "", " ",
    "A", "1", "nan", "C", "I", "x" * 5000, "\0", "\ud800", "\u202e", [], {}, [[1]], [None], ["A"],
    {"a": 1}, {"": None}, [{}], "null", "../../x", "2026-01-01", [0.1, 0.2],
]  # fmt: skip


@dataclass(frozen=True)
class Row:
    """One row of one file: the smallest unit that is about one item."""

    file: str
    place: int


def unpacked(files: Files) -> Files:
    """Replace archives by their members."""
    found: Files = {}
    for name, content in files.items():
        if not content.startswith(b"PK\x03\x04"):
            found[name] = content
            continue
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            if any(info.compress_type not in (0, 8) for info in archive.infolist()):
                found[name] = content
                continue
            found |= {f"{name}!{info.filename}": archive.read(info) for info in archive.infolist()}
    return found


def packed(files: Files) -> Files:
    """Put members back into their archives."""
    found: Files = {}
    archives: dict[str, dict[str, bytes]] = {}
    for name, content in files.items():
        archive, bang, member = name.partition("!")
        if bang:
            archives.setdefault(archive, {})[member] = content
        else:
            found[name] = content
    for name, members in archives.items():
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as out:
            for member, content in members.items():
                out.writestr(member, content)
        found[name] = buffer.getvalue()
    return found


@dataclass(frozen=True)
class Named:
    """A row that is the value of a key."""

    name: str
    value: Any


class Table:
    """A file as rows that can be replaced one by one."""

    def __init__(self, rows: list[Any], write: Callable[[list[Any]], bytes]) -> None:
        self.rows, self.write = rows, write


def table_of(content: bytes) -> Table | None:
    """Return the rows of a file; None if it has fewer than two."""
    if content.startswith(b"PAR1"):
        read = pq.read_table(io.BytesIO(content))
        return _enough(Table(read.to_pylist(), lambda rows: _parquet(rows, read.schema)))
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        return None
    try:
        value = json.loads(text)
    except ValueError:
        return _lines(text)
    place = max(_containers(value), key=lambda each: len(each[0]), default=None)
    if place is None:
        return None
    rows, put = place
    return _enough(Table(list(rows), lambda new: _written(value, put, new)))


def _lines(text: str) -> Table | None:
    lines = text.splitlines()
    try:
        rows = [json.loads(line) for line in lines if line.strip()]
    except ValueError:
        return _enough(Table(lines, lambda new: "\n".join(map(str, new)).encode() + b"\n"))
    return _enough(Table(rows, lambda new: b"".join(_json(row) + b"\n" for row in new)))


def _enough(table: Table) -> Table | None:
    return table if len(table.rows) > 1 else None


def _containers(value: Any, depth: int = 4) -> Iterator[tuple[list[Any], Callable[[Any], Any]]]:
    """Yield lists and objects of objects, each with a function that replaces its rows."""
    if isinstance(value, list) and value and all(isinstance(each, dict) for each in value):
        yield value, lambda new: value.__setitem__(slice(None), new)
    if isinstance(value, dict) and len(value) > 1:
        parts = list(value.values())
        if all(isinstance(each, dict) for each in parts):
            named = [Named(name, part) for name, part in value.items()]
            yield named, lambda new: _refill(value, new)
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for each in inner if depth else ():
        yield from _containers(each, depth - 1)


def _refill(value: dict[str, Any], rows: list[Named]) -> None:
    value.clear()
    for row in rows:
        value[row.name if row.name not in value else f"{row.name} again"] = row.value


def _written(value: Any, put: Callable[[Any], Any], rows: list[Any]) -> bytes:
    put(rows)
    return _json(value)


def _json(value: Any) -> bytes:
    """Encode a row as JSON; bytes are returned unchanged."""
    if isinstance(value, bytes):
        return value
    return json.dumps(value, default=str).encode("utf-8", "surrogatepass")


def _parquet(rows: list[Any], schema: pa.Schema) -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), out)
    return out.getvalue()


def mutate_bytes(content: bytes, random: Random) -> bytes:
    """Flip, cut off, cut out, repeat or insert bytes."""
    data = bytearray(content or b" ")
    at = random.randrange(len(data))
    match random.randrange(5):
        case 0:
            for _ in range(random.choice((1, 1, 2, 8))):
                data[random.randrange(len(data))] ^= 1 << random.randrange(8)
        case 1:
            del data[at:]
        case 2:
            del data[at : at + random.randint(1, 30)]
        case 3:
            data[at:at] = data[at : at + random.randint(1, 200)]
        case _:
            data[at:at] = random.choice(
                (b"\0", b"\xff\xfe", b"NaN", b"[" * 2000, b'"', b"\\", b"{", b"\n", b"9" * 5000)
            )
    return bytes(data)


def mutate_value(value: Any, random: Random) -> Any:
    """Return the value with one part changed, removed, wrapped or nested."""
    value = copy.deepcopy(value)
    places = list(_places(value))
    if not places:
        return random.choice(VALUES)
    holder, key = random.choice(places)
    old = holder[key]
    match random.randrange(7):
        case 0 | 1 | 2:
            holder[key] = copy.deepcopy(random.choice(VALUES))
        case 3:
            del holder[key]
        case 4:
            holder[key] = [old]
        case 5:
            holder[key] = {"wrapped": old}
        case _:
            for _ in range(random.choice((5, 60, 300))):
                old = [old]
            holder[key] = old
    return value


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every part of a value, as container and key."""
    if not isinstance(value, MutableMapping | MutableSequence):
        return
    keys = list(value) if isinstance(value, MutableMapping) else range(len(value))
    for key in keys:
        yield value, key
        yield from _places(value[key])


def mutate_cells(row: dict[str, Any], random: Random) -> dict[str, Any]:
    """Return a Parquet row with another value of the same type, or None, in one column."""
    row = dict(row)
    name = random.choice(list(row))
    old = row[name]
    others: dict[type, list[Any]] = {
        str: ["", "x" * 3000, "\0", "nan", "[1, 2", "A", "{}"],
        float: [math.nan, math.inf, -1.0, 1e300],
        int: [-1, 0, 2**31 - 1],
        bool: [True, False],
        list: [[]],
    }
    row[name] = random.choice([None, *others.get(type(old), [])])
    return row
