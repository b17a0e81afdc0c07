"""Flat tables from nested rows: columns, and values at paths inside them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from forgetmap._cache import temporary_path
from forgetmap.sources.cells import OF, is_rule
from forgetmap.sources.fields import replace_surrogates
from forgetmap.sources.paths import split_every
from forgetmap.sources.rows import flat_rows, require_text
from forgetmap.sources.sniff import Flattening, TableFile

ROWS_PER_BATCH = 20_000


def flatten(file: TableFile, columns: Sequence[str], *, rows: str | None = None) -> TableFile:
    """Write these columns and paths of a file to a Parquet file, all of them as texts.

    Args:
        file: any table, or a JSON document.
        columns: names of columns, and paths into them.
        rows: path of the list with the rows of a document.
    """
    if file.kind != "parquet":
        require_text(file)
    once = tuple(dict.fromkeys(columns))
    flattening = Flattening(file, rows, once)
    names = list(once)
    is_counted = any(is_rule(name) and OF in name for name in names)
    if "repeat" not in names and (is_counted or any(map(split_every, names))):
        names.append("repeat")
    target = temporary_path(".parquet")
    schema = pa.schema([(name, pa.string()) for name in names])
    with pq.ParquetWriter(target, schema) as writer:
        for batch in _batches(flattening, schema):
            writer.write_batch(batch)
    return TableFile(file.path, "parquet", unpacked=target, flattening=flattening)


def _batches(flattening: Flattening, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    rows = (row for _, row in flat_rows(flattening, with_lines=False))
    while some := list(islice(rows, ROWS_PER_BATCH)):
        columns = [_texts(some, name) for name in schema.names]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _texts(rows: Sequence[Mapping[str, Any]], name: str) -> pa.Array:
    return pa.array([_as_text(row.get(name)) for row in rows], pa.string())


def _as_text(value: Any) -> str | None:
    """Return a value as text: a text as it is, anything else as JSON."""
    if value is None:
        return None
    if isinstance(value, str):
        return replace_surrogates(value)
    try:
        return replace_surrogates(json.dumps(value, ensure_ascii=False, default=str))
    except RecursionError:
        return None  # nested too deeply to be a field of a result
