"""Bad Parquet files: damaged, cut off, or with other content."""

from __future__ import annotations

import gzip
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import forgetmap as fm
from bad_tables import Bad, Row, as_csv, as_parquet, damaged, good_rows, gzipped, refuse, tree
from command_line import call
from forgetmap.errors import (
    ColumnError,
    EmptyInputError,
    FieldError,
    UnreadableError,
)
from forgetmap.sources.open import open_run

WHOLE = as_parquet(good_rows())
FOOTER = len(WHOLE) - 8 - int.from_bytes(WHOLE[-8:-4], "little")
NO_ROWS = pa.schema([("task", pa.string()), ("item", pa.string()), ("score", pa.float64())])


def doubled_column(path: Path) -> None:
    cells = [pa.array(["t"]), pa.array(["1"]), pa.array([1.0]), pa.array([0.0])]
    pq.write_table(pa.Table.from_arrays(cells, ["task", "item", "score", "score"]), path)


def no_rows(path: Path) -> None:
    pq.write_table(NO_ROWS.empty_table(), path)


def instants(path: Path) -> None:
    table = pa.table({"task": ["t"], "item": ["1"], "score": pa.array([1], pa.timestamp("s"))})
    pq.write_table(table, path)


FILES = [
    Bad("no footer", WHOLE[:-10], UnreadableError),
    Bad("a footer of no length", WHOLE[:-8] + b"\0\0\0\0PAR1", UnreadableError),
    Bad("a damaged footer", WHOLE[:FOOTER] + bytes(30) + WHOLE[FOOTER + 30 :], UnreadableError),
    Bad("only the first bytes", b"PAR1", UnreadableError),
    Bad("gzipped and cut off", gzipped(WHOLE, without=30), UnreadableError),
    Bad("gzipped garbage", gzip.compress(b"PAR1xxxxxxPAR1"), UnreadableError),
    Bad("no rows", no_rows, EmptyInputError),
    Bad("a doubled column", doubled_column, ColumnError, line=1, field="score"),
    Bad("times for scores", instants, FieldError, line=1, field="score"),
    Bad("lists for scores", as_parquet([{"task": "t", "item": "1", "score": [1]}]), FieldError,
        line=1, field="score"),
    Bad("a score per column", as_parquet([{f"c{n}": 1 for n in range(10_001)}]), ColumnError,
        field="score"),
]  # fmt: skip


@pytest.mark.parametrize("case", FILES, ids=lambda case: case.name)
def test_a_bad_parquet_file(case: Bad, tmp_path: Path) -> None:
    refuse(case, tmp_path)


@pytest.mark.parametrize("ends", [[0.0, 1.0], [1.0], [0.0], [0.25, 0.75]])
@pytest.mark.parametrize("statistics", [True, False])
def test_nan_hides_behind_no_statistics(
    ends: list[float], statistics: bool, tmp_path: Path
) -> None:
    """The minimum and maximum in the footer leave NaN out."""
    scores = [*ends, float("nan"), *ends]
    rows: list[Row] = [{"task": "t", "item": f"i{n}", "score": s} for n, s in enumerate(scores)]
    content = as_parquet(rows, write_statistics=statistics)
    refuse(Bad("NaN", content, FieldError, len(ends) + 1, "score"), tmp_path)


@pytest.mark.parametrize("column", ["task", "item", "score"])
def test_a_damaged_page_is_named_with_column_and_rows(column: str, tmp_path: Path) -> None:
    path = tmp_path / "damaged"
    path.write_bytes(damaged(column))
    before = tree(tmp_path)
    for command in (["check", path], ["convert", path, "--out", tmp_path / "out"]):
        done = call("records", *command)
        assert (done.code, done.out, tree(tmp_path)) == (2, "", before)
        assert done.err.startswith(f"Error: {path}, field '{column}': ")
        assert "rows 2,001 to 4,000\nHint: " in done.err


@pytest.mark.parametrize("column", ["item", "score"])
def test_a_damaged_page_stops_a_comparison(column: str, tmp_path: Path) -> None:
    path, good = tmp_path / "damaged", tmp_path / "good.csv"
    path.write_bytes(damaged(column))
    good.write_bytes(as_csv(good_rows()))
    before = tree(tmp_path)
    with pytest.raises(UnreadableError):
        fm.compare(good, path)
    done = call("compare", good, path, "--out", tmp_path / "out")
    assert (done.code, done.out, tree(tmp_path)) == (2, "", before)
    assert str(path) in done.err
    assert "\nHint: " in done.err


@pytest.mark.parametrize("column", ["question", "response"])
def test_a_damaged_text_leaves_no_half_a_run(column: str, tmp_path: Path) -> None:
    """Responses are not read to check scores, so the damage shows only when they are copied."""
    path = tmp_path / "damaged"
    rows = [
        {
            "task": "t",
            "item": f"i{n}",
            "score": 1,
            "question": f"q{n * 7919}",
            "response": f"r{n**3}",
        }
        for n in range(5000)
    ]
    path.write_bytes(damaged(column, rows))
    before = tree(tmp_path)
    for out in ("run", "run.csv"):
        done = call("records", "convert", path, "--out", tmp_path / out)
        assert (done.code, done.out, tree(tmp_path)) == (2, "", before)
        assert done.err.startswith(f"Error: {path}, field '{column}': ")


def test_a_number_too_large_for_its_column_is_left_out_and_named(tmp_path: Path) -> None:
    path = tmp_path / "large"
    rows = [row | {"tokens_in": 5} for row in good_rows()]
    rows[2]["tokens_in"] = 2**40
    path.write_bytes(as_parquet(rows))
    done = call("records", "show", path)
    assert f"tokens_in is {2**40}: left out" in done.out
    assert open_run(path).scores.collect()["tokens_in"].to_list().count(None) == 1
