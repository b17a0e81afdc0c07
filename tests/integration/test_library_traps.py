"""How a library treats missing values, numbers and names does not change results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import forgetmap as fm
from backends import LIBRARIES, as_frame, rows_of
from forgetmap.errors import BackendError, ColumnError, FieldError
from oracle import Row

FRAMES = [library for library in LIBRARIES if library != "parquet"]
BEFORE = [1.0, 1.0, 0.0, 0.0, None]
AFTER = [1.0, 0.0, 1.0, 0.0, 1.0]


def table(scores: Any = BEFORE, **columns: Any) -> dict[str, Any]:
    return {"task": ["t"] * 5, "item": list("abcde"), "score": scores} | columns


def native(columns: dict[str, Any], library: str) -> Any:
    """Columns in one library, by its own constructor."""
    build: dict[str, Any] = {
        "pandas": pd.DataFrame,
        "pandas-arrow": lambda data: pa.table(data).to_pandas(types_mapper=pd.ArrowDtype),
        "polars": lambda data: pl.DataFrame(data, strict=False),
        "polars-lazy": lambda data: pl.LazyFrame(data, strict=False),
        "pyarrow": pa.table,
        "duckdb": lambda data: duckdb.from_arrow(pa.table(data)),
    }
    return build[library](columns)


def cells(before: Any, after: Any, **options: Any) -> tuple[int, ...]:
    """n11, n10, n01, n00 and the unscored pairs."""
    result = fm.compare(before, after, **options, min_paired=0.5).result
    total = result.total
    return total.n11, total.n10, total.n01, total.n00, result.pairing.unscored


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA])
@pytest.mark.parametrize("dtype", [None, "object", "Float64", "float64[pyarrow]"])
def test_pandas_knows_three_kinds_of_nothing(missing: Any, dtype: Any) -> None:
    if dtype is None and missing is pd.NA:
        dtype = "object"
    scores = pd.Series([1.0, 1.0, 0.0, 0.0, missing], dtype=dtype)
    assert cells(pd.DataFrame(table(scores)), pd.DataFrame(table(AFTER))) == (1, 1, 1, 1, 1)


@pytest.mark.parametrize("library", FRAMES)
def test_truth_values_and_whole_numbers_are_scores(library: str) -> None:
    truths = native(table([True, True, False, False, None]), library)
    numbers = native(table([1, 0, 1, 0, 1]), library)
    assert cells(truths, numbers) == (1, 1, 1, 1, 1)


def test_pandas_truth_values_beside_nothing_are_objects() -> None:
    frame = pd.DataFrame(table([True, True, False, False, None]))
    assert frame["score"].dtype == object
    assert cells(frame, pd.DataFrame(table(AFTER))) == (1, 1, 1, 1, 1)


@pytest.mark.parametrize("library", FRAMES)
@pytest.mark.parametrize("ids", [[7, 8, 9, 10, 11], [7.0, 8.0, 9.0, 10.0, 11.0]])
def test_numbers_pair_with_the_same_numbers_written_as_text(library: str, ids: Any) -> None:
    """As from a CSV; pandas also writes 7 as 7.0 once another id of the column was missing."""
    numbers = native(table(item=ids), library)
    texts = native(table(AFTER, item=["7", "8", "9", "10", "11"]), library)
    assert cells(numbers, texts) == (1, 1, 1, 1, 1)
    assert [row["item"] for row in rows_of(fm.compare(numbers, texts).flips())] == ["8"]


@pytest.mark.parametrize("library", FRAMES)
def test_fractions_as_ids_stay_what_they_are(library: str) -> None:
    ids = [0.5, 1.5, 2.0, 1e15, -3.0]
    frame = native(table(item=ids), library)
    comparison = fm.compare(frame, frame)
    found = {row["item"] for kind in ("kept", "never") for row in rows_of(comparison.flips(kind))}
    assert found == {"0.5", "1.5", "2", "1000000000000000"}


@pytest.mark.parametrize("library", FRAMES)
def test_k_beside_nothing_is_still_a_whole_number(library: str) -> None:
    frame = native(table(k=[4, None, 2, None, 5], tokens_in=[10, None, 2, 3, 4]), library)
    flips = rows_of(fm.compare(frame, native(table(AFTER), library)).flips("kept"))
    assert [repr(row["k"]) for row in flips] == ["4"]


@pytest.mark.parametrize("library", FRAMES)
@pytest.mark.parametrize("wrong", [2.5, 1.0, -4.0, 1e12])
def test_k_that_is_no_number_of_options_is_refused(library: str, wrong: float) -> None:
    frame = native(table(k=[4.0, None, wrong, None, 2.0]), library)
    with pytest.raises(FieldError) as caught:
        fm.compare(frame, frame)
    assert caught.value.field == "k"


@pytest.mark.parametrize("library", FRAMES)
@pytest.mark.parametrize("name", ["score", "k", "category", "outcome", "choice"])
def test_a_column_of_nothing_is_as_good_as_none(library: str, name: str) -> None:
    empty = native(table(**{name: [None] * 5}), library)
    result = fm.compare(empty, native(table(AFTER), library)).result
    assert result.total.n == (0 if name == "score" else 4)
    assert result.categories == []


@pytest.mark.parametrize("library", ["polars", "polars-lazy", "pyarrow", "duckdb"])
def test_nan_is_no_score_where_null_exists(library: str) -> None:
    frame = native(table([1.0, 1.0, float("nan"), 0.0, None]), library)
    with pytest.raises(FieldError) as caught:
        fm.compare(frame, frame)
    assert caught.value.field == "score"
    assert caught.value.line == (3 if library in ("polars", "pyarrow") else None)


@pytest.mark.parametrize("library", ["pandas", "pandas-arrow", "polars", "pyarrow"])
def test_a_missing_id_is_refused_with_its_row(library: str) -> None:
    frame = native(table(item=["a", None, "c", "d", "e"]), library)
    with pytest.raises(FieldError) as caught:
        fm.compare(frame, frame)
    assert (caught.value.field, caught.value.line) == ("item", 2)


@pytest.mark.parametrize("library", FRAMES)
def test_a_missing_repeat_is_refused(library: str) -> None:
    frame = native(table(repeat=[1, None, 2, 1, 1]), library)
    with pytest.raises(FieldError) as caught:
        fm.compare(frame, frame)
    assert caught.value.field == "repeat"


@pytest.mark.parametrize("library", FRAMES)
def test_texts_where_scores_should_be_are_refused(library: str) -> None:
    frame = native(table(["good", "bad", "good", "bad", None]), library)
    with pytest.raises(ColumnError) as caught:
        fm.compare(frame, frame)
    assert caught.value.field == "score"


@pytest.mark.parametrize("library", FRAMES)
def test_truth_values_as_gold_are_the_same_text_everywhere(library: str, tmp_path: Path) -> None:
    """BoolQ says True and False; a Parquet file of the same rows must say the same."""
    columns = table(question=["q"] * 5, gold=[True, True, False, False, True])
    frame = native(columns, library)
    flips = rows_of(fm.compare(frame, frame).flips("kept"))
    assert {row["gold"] for row in flips} == {"true"}


@pytest.mark.parametrize("index", [[9, 9, 9, 9, 9], [4, 2, 0, 1, 3], list("vwxyz")])
def test_the_index_of_pandas_says_nothing(index: Any) -> None:
    before = pd.DataFrame(table(category=["x", "y", "x", "y", "x"]), index=index)
    comparison = fm.compare(before, pd.DataFrame(table(AFTER), index=index[::-1]))
    assert comparison.result.total.n10 == 1
    assert list(comparison.flips().index) == [0]


def test_pandas_categories_objects_and_mixed_ids() -> None:
    before = pd.DataFrame(table(item=[1, "b", 2.5, None, "e"]))[lambda frame: frame.item.notna()]
    before["task"] = pd.Categorical(["t"] * 4)
    before["category"] = pd.Categorical(["x", None, "x", "y"])
    after = pd.DataFrame({"task": ["t"] * 4, "item": ["1", "b", "2.5", "e"], "score": AFTER[:4]})
    assert cells(before, after) == (1, 1, 1, 0, 1)


def test_pandas_options_read_from_parquet_are_numpy_arrays(tmp_path: Path) -> None:
    rows: list[Row] = [
        {"task": "t", "item": str(n), "score": 1.0, "question": "q", "options": ["yes", f"{n}"]}
        for n in range(4)
    ]
    path = as_frame(rows, "parquet", tmp_path / "rows.parquet")
    read = pd.read_parquet(path)
    assert isinstance(read["options"][0], np.ndarray)
    result = fm.compare(read, pd.DataFrame(rows[::-1])).result
    assert (result.total.n11, result.pairing.duplicates) == (4, 0)


@pytest.mark.parametrize("kind", [pa.large_string(), pa.string_view()])
def test_all_texts_of_arrow_are_alike(kind: pa.DataType) -> None:
    before = pa.table(table(question=list("abcde"), gold=list("abcde")))
    schema = pa.schema([(f.name, kind if f.type == pa.string() else f.type) for f in before.schema])
    after = pa.table(table(AFTER, question=list("abcde"), gold=list("abcde"))).cast(schema)
    assert cells(before, after) == (1, 1, 1, 1, 1)
    assert cells(after, before) == (1, 1, 1, 1, 1)


def test_polars_categories_are_texts() -> None:
    before = pl.DataFrame(table()).with_columns(pl.col("task", "item").cast(pl.Categorical))
    after = pl.DataFrame(table(AFTER)).with_columns(pl.col("task").cast(pl.Enum(["t", "u"])))
    assert cells(before, after) == (1, 1, 1, 1, 1)


@pytest.mark.parametrize(
    "doubled",
    [
        pd.concat([pd.DataFrame(table()), pd.DataFrame(table())[["score"]]], axis=1),
        pa.Table.from_arrays([pa.array([1.0])] * 2, names=["score", "score"]),
    ],
    ids=["pandas", "pyarrow"],
)
def test_two_columns_of_one_name_are_refused(doubled: Any) -> None:
    with pytest.raises(ColumnError, match="score"):
        fm.compare(doubled, doubled)


def test_columns_without_names_are_listed() -> None:
    with pytest.raises(ColumnError, match="the columns are 0, 1"):
        fm.compare(pd.DataFrame([[1, 2]]), pd.DataFrame([[1, 2]]))


@pytest.mark.parametrize("library", FRAMES)
def test_hundreds_of_repeats(library: str) -> None:
    """More in DuckDB, which refuses an expression of a thousand branches."""
    count = 900 if library == "duckdb" else 300
    labels = [f"seed {number}" for number in range(count)]
    rows = {"task": ["t"] * count, "item": ["a"] * count, "score": [1.0] * count, "repeat": labels}
    rows["response"] = [f"answer to {label}" for label in labels]  # drawn anew
    frame = native(rows, library)
    total = fm.compare(frame, frame).result.total
    assert (total.n11, total.items) == (count, 1)


@pytest.mark.parametrize("library", FRAMES)
def test_items_without_ids_are_found_by_their_content(library: str) -> None:
    columns = table(question=["p", "q", "q", "r", "s"])
    del columns["item"]
    comparison = fm.compare(native(columns, library), native(columns, library))
    assert (comparison.result.total.n11, comparison.result.total.n00) == (2, 2)
    assert comparison.result.pairing.duplicates == 2
    ids = {row["item"] for row in rows_of(comparison.flips("kept"))}
    assert ids == {row["item"] for row in rows_of(comparison.flips("kept", texts=True))}
    assert {item.rpartition("#")[2] for item in ids} == {"0"}


@pytest.mark.parametrize("library", FRAMES)
def test_options_that_are_no_list_are_refused(library: str) -> None:
    options = ['["a", "b"]', "a or b", None, None, None]
    frame = native(table(question=list("abcde"), options=options), library)
    with pytest.raises(FieldError) as caught:
        fm.compare(frame, frame)
    assert caught.value.field == "options"
    assert caught.value.line == 2


def test_relations_of_the_callers_own_connection_stay_together() -> None:
    own = duckdb.connect()
    texts = {"question": list("abcde"), "response": ["text"] * 5}
    comparison = fm.compare(
        own.from_arrow(pa.table(table(**texts))), own.from_arrow(pa.table(table(AFTER)))
    )
    flips, tasks = comparison.flips(texts=True), comparison.tasks
    joined = flips.set_alias("flips").join(tasks.set_alias("tasks"), "flips.task = tasks.name")
    assert joined.project("item, question, n").fetchall() == [("b", "b", 4)]
    assert own.sql("SELECT table_name FROM duckdb_tables()").fetchall() == []


def test_sides_that_cannot_be_joined_are_refused(tmp_path: Path) -> None:
    pandas, polars = pd.DataFrame(table()), pl.DataFrame(table())
    path = tmp_path / "rows.parquet"
    polars.write_parquet(path)
    one, other = (duckdb.connect().from_arrow(pa.table(table())) for _ in range(2))
    for sides in ((pandas, polars), (path, pandas), (one, other), (path, one)):
        with pytest.raises(BackendError):
            fm.compare(*sides)


def test_more_texts_than_fit_in_one_batch(tmp_path: Path) -> None:
    """DuckDB refuses a second query while the first still streams."""
    number = 120_000
    rows = pl.DataFrame({"item": range(number)}).with_columns(
        task=pl.lit("t"), score=pl.lit(1.0), question=pl.col("item").cast(pl.String)
    )
    path = tmp_path / "rows.parquet"
    rows.write_parquet(path)
    rows.write_parquet(tmp_path / "others.parquet")
    assert fm.compare(path, tmp_path / "others.parquet").result.total.n11 == number
