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

Columns = Mapping[str, Sequence[Any]]
_LONG = ("question", "prompt", "response", "material")
"""Texts that may be long, and are the same in all rows of an answer."""


def build_run(columns: Columns, info: RunInfo, name: str) -> Run:
    """A run of canonical columns; content hashes are derived from its texts.

    Several rows of an answer, one per metric, have the same texts: these are kept once.
    """
    places, answers = _answers(columns)
    firsts = _derived(
        {key: [cells[place] for place in places] for key, cells in columns.items()}, name
    )
    rows = _derived({key: cells for key, cells in columns.items() if key not in _LONG}, name)
    for key in SCORE_NAMES:
        if key in firsts.column_names and key not in rows.column_names:
            rows = rows.append_column(key, firsts.column(key).take(answers))
    engine = connection()
    scores = rows.select([key for key in SCORE_NAMES if key in rows.column_names])
    texts = firsts.select([*KEY, *(key for key in TEXT_NAMES if key in firsts.column_names)])
    return Run(
        info=info,
        scores=nw.from_native(engine.from_arrow(scores)),
        texts=nw.from_native(engine.from_arrow(texts)),
        name=name,
        origin=name,
    )


def _answers(columns: Columns) -> tuple[list[int], pa.Array]:
    """Where each answer stands first, and which answer each row is of."""
    places: list[int] = []
    numbers: dict[tuple[Any, ...], int] = {}
    answers = []
    for place, key in enumerate(zip(*(columns[name] for name in KEY), strict=True)):
        if key not in numbers:
            numbers[key] = len(places)
            places.append(place)
        answers.append(numbers[key])
    return places, pa.array(answers, pa.int64())


def _derived(columns: Columns, name: str) -> pa.Table:
    schema = pa.schema([(key, BY_NAME[key].type) for key in columns])
    table = pa.table(dict(columns), schema=schema)
    return ContentDeriver(tuple(columns), origin=name).table(table)
