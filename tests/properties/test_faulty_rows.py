"""Faults and their positions: every file format agrees with plain Python."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import examples
from forgetmap.errors import FieldError
from forgetmap.records.outcome import Outcome
from forgetmap.records.validate import check_run
from forgetmap.sources.open import open_run

Cells = tuple[str, str, str, str, str]

COLUMNS = ("task", "item", "score", "k", "outcome")

rows = st.tuples(
    st.sampled_from(["t", "t", "t", ""]),
    st.sampled_from(["a", "b", "7", " ", ""]),
    st.sampled_from(["1", "0", " 0.5 ", "", "  ", "true", "FALSE", "2", "-1", "nan", "inf", "x"]),
    st.sampled_from(["", "2", "4.0", " 3", "1", "0", "2.5", "nan", "-inf", "x", "99999999999"]),
    st.sampled_from(["", "correct", "refused", "error", "unscored", "great", "CORRECT"]),
)


def number(text: str) -> float | None:
    """The number that is written, or None for blanks."""
    word = text.strip().lower()
    if word in {"", "true", "false"}:
        return {"true": 1.0, "false": 0.0}.get(word)
    return float(word)


def is_faulty(cells: Cells) -> bool:
    """What the documentation says, in plain words."""
    task, item, score, k, outcome = cells
    try:
        value, options = number(score), number(k)
    except ValueError:
        return True
    return (
        not task
        or not item
        or (value is not None and not 0 <= value <= 1)
        or (options is not None and not (2 <= options < 2**31 and options == math.floor(options)))
        or (bool(outcome) and outcome not in list(Outcome))
        or (outcome in {"error", "unscored"} and value is not None)
        or (outcome in {"no_answer", "refused", "truncated", "degenerate"} and bool(value))
    )


def as_csv(table: Sequence[Cells]) -> bytes:
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerows([COLUMNS, *table])
    return stream.getvalue().encode()


def as_jsonl(table: Sequence[Cells]) -> bytes:
    records = (dict(zip(COLUMNS, cells, strict=True)) for cells in table)
    return "".join(json.dumps(record) + "\n" for record in records).encode()


def as_parquet(table: Sequence[Cells]) -> bytes:
    columns = dict(zip(COLUMNS, map(list, zip(*table, strict=True)), strict=True))
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(columns), sink)
    return bytes(sink.getvalue())


@examples(15, long=300)
@given(st.lists(rows, min_size=1, max_size=6))
def test_the_first_faulty_row_is_found_or_there_is_none(table: list[Cells]) -> None:
    faulty = [place for place, cells in enumerate(table) if is_faulty(cells)]
    with TemporaryDirectory() as folder:
        for write, first_line in ((as_csv, 2), (as_jsonl, 1), (as_parquet, 1)):
            path = Path(folder) / write.__name__
            path.write_bytes(write(table))
            if not faulty:
                assert check_run(open_run(path)) == len(table)
                continue
            with pytest.raises(FieldError) as caught:
                check_run(open_run(path))
            assert caught.value.line == first_line + faulty[0]
