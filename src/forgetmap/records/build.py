"""From columns in memory to a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import narwhals as nw
import pyarrow as pa

from forgetmap.records.content import ContentDeriver
from forgetmap.records.engine import connection
from forgetmap.records.manifest import RunInfo
from forgetmap.records.run import Run
from forgetmap.records.schema import BY_NAME, KEY, SCORE_NAMES, TEXT_NAMES


def build_run(columns: Mapping[str, Sequence[Any]], info: RunInfo, name: str) -> Run:
    """A run of canonical columns; content hashes are derived from its texts."""
    schema = pa.schema([(column, BY_NAME[column].type) for column in columns])
    table = pa.table(dict(columns), schema=schema)
    derived = ContentDeriver(tuple(table.column_names), origin=name).table(table)
    names = derived.column_names
    engine = connection()
    scores = derived.select([column for column in names if column in SCORE_NAMES])
    texts = derived.select([*KEY, *(column for column in names if column in TEXT_NAMES)])
    texts = texts.take(_first_places(texts))
    return Run(
        info=info,
        scores=nw.from_native(engine.from_arrow(scores)),
        texts=nw.from_native(engine.from_arrow(texts)),
        name=name,
        origin=name,
    )


def _first_places(texts: pa.Table) -> list[int]:
    """Where each answer stands first: several metrics of it repeat its texts."""
    keys = zip(*(texts.column(name).to_pylist() for name in KEY), strict=True)
    places: dict[tuple[Any, ...], int] = {}
    for place, key in enumerate(keys):
        places.setdefault(key, place)
    return list(places.values())
