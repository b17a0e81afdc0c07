"""Whether there is a fault, and where: sums over a table and a single row must agree."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import narwhals as nw
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import examples
from forgetmap.errors import FieldError, UnreadableError
from forgetmap.records.engine import connection
from forgetmap.records.manifest import RunInfo
from forgetmap.records.outcome import Outcome
from forgetmap.records.run import Run
from forgetmap.records.tables import survey
from forgetmap.records.validate import check_run, reading
from forgetmap.sources.open import open_run
from run_folders import results, run_of

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


@examples(30)
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


def lazily_broken() -> Run:
    """A run that fails only when it is read: one of its scores is text that is no number."""
    relation = connection().sql(
        "SELECT 't' AS task, i::VARCHAR AS item, "
        "CASE WHEN i < 3 THEN '1' ELSE 'x' END::DOUBLE AS score FROM range(5) AS r(i)"
    )
    return Run(RunInfo(), nw.from_native(relation), None, "broken", "the relation")


def test_what_the_engine_says_late_is_a_typed_error_too() -> None:
    for read in (check_run, survey):
        with pytest.raises(UnreadableError) as caught:
            read(lazily_broken())
        assert caught.value.file == "the relation"


def test_the_one_of_two_runs_that_is_to_blame_is_named() -> None:
    good, bad = run_of(results([1, 0])), run_of(results([1, 7]))
    with pytest.raises(FieldError) as caught, reading(good, bad):
        raise pa.ArrowInvalid("something")
    assert (caught.value.line, caught.value.field) == (2, "score")


def test_where_nobody_is_found_to_blame_both_are_named() -> None:
    good = run_of(results([1, 0]))
    with pytest.raises(UnreadableError) as caught, reading(good, good):
        raise pa.ArrowInvalid("something")
    assert caught.value.file == "dataframe or dataframe"
