"""The meaning of a cell does not depend on the file format."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from forgetmap.errors import FieldError
from forgetmap.records.validate import check_run
from forgetmap.sources.open import open_run
from table_writers import WRITERS, Row, as_csv, as_jsonl, as_parquet, every_format, found


def texts_of(path: Path, *columns: str) -> list[tuple[Any, ...]]:
    texts = open_run(path).texts
    assert texts is not None
    return sorted(tuple(row) for row in texts.select("item", *columns).collect().iter_rows())


@every_format
def test_an_empty_score_is_unscored(kind: str, tmp_path: Path) -> None:
    rows: list[Row] = [
        {"task": "t", "item": "a", "score": None},
        {"task": "t", "item": "b", "score": 0},
    ]
    (tmp_path / "table").write_bytes(WRITERS[kind](rows))
    assert found(tmp_path / "table", "item", "score") == [("a", None), ("b", 0.0)]


@pytest.mark.parametrize("cell", ["", '""', "  "])
def test_nothing_but_blanks_is_unscored(cell: str, tmp_path: Path) -> None:
    (tmp_path / "table").write_text(f"task,item,score\nt,a,{cell}\n")
    assert found(tmp_path / "table", "score") == [(None,)]


@every_format
def test_true_and_false_are_scores(kind: str, tmp_path: Path) -> None:
    rows = [{"task": "t", "item": "a", "score": True}, {"task": "t", "item": "b", "score": False}]
    (tmp_path / "table").write_bytes(WRITERS[kind](rows))
    assert found(tmp_path / "table", "item", "score") == [("a", 1.0), ("b", 0.0)]


@pytest.mark.parametrize("cell", ["1", "1.0", "+1", "1.", ".5", "1e-1", " 0.5", "0", "-0"])
def test_every_spelling_of_a_number(cell: str, tmp_path: Path) -> None:
    (tmp_path / "csv").write_text(f"task,item,score\nt,a,{cell}\n")
    (tmp_path / "jsonl").write_text(f'{{"task": "t", "item": "a", "score": "{cell}"}}\n')
    for name in ("csv", "jsonl"):
        assert found(tmp_path / name, "score") == [(float(cell),)]


@pytest.mark.parametrize("cell", ["1,0", "50%", "0x1", "1/2", "one", "\u0661", "1 0", "None", "NA"])
def test_what_is_no_number_is_refused_where_it_stands(cell: str, tmp_path: Path) -> None:
    rows = [{"task": "t", "item": n, "score": "1"} for n in range(3)]
    rows[1]["score"] = cell
    (tmp_path / "table").write_bytes(as_csv(rows))
    with pytest.raises(FieldError) as caught:
        check_run(open_run(tmp_path / "table"))
    assert (caught.value.line, caught.value.field) == (3, "score")


@pytest.mark.parametrize("cell", [4, "4", "4.0", 4.0])
def test_every_spelling_of_k(cell: object, tmp_path: Path) -> None:
    rows = [{"task": "t", "item": "a", "score": 1, "k": cell}]
    for kind, write in WRITERS.items():
        (tmp_path / kind).write_bytes(write(rows))
        assert found(tmp_path / kind, "k") == [(4,)]


@pytest.mark.parametrize(("ids", "texts"), [([7, 10], ["10", "7"]), ([0.5, 1.5], ["0.5", "1.5"])])
def test_ids_are_texts(ids: list[float], texts: list[str], tmp_path: Path) -> None:
    rows = [{"task": "t", "item": each, "score": 1} for each in ids]
    for kind, write in WRITERS.items():
        (tmp_path / kind).write_bytes(write(rows))
        assert found(tmp_path / kind, "item") == [(text,) for text in texts]


@pytest.mark.parametrize(
    "text", ["two\nlines", "a\r\nb", 'said "so"', "a,b;c\td|e", " blanks ", "é\u2028", "[1]", "=1"]
)
@every_format
def test_texts_arrive_as_they_are(kind: str, text: str, tmp_path: Path) -> None:
    rows = [{"task": "t", "item": n, "score": 1, "response": f"{text}{n}"} for n in range(3)]
    (tmp_path / "table").write_bytes(WRITERS[kind](rows))
    assert texts_of(tmp_path / "table", "response") == [(str(n), f"{text}{n}") for n in range(3)]


def test_a_response_of_ten_megabytes(tmp_path: Path) -> None:
    rows = [{"task": "t", "item": "a", "score": 1, "response": "word " * 2_000_000}]
    for write in (as_csv, as_jsonl):
        (tmp_path / "table").write_bytes(write(rows))
        ((_, response),) = texts_of(tmp_path / "table", "response")
        assert response == rows[0]["response"]


def test_odd_values_in_columns_of_others_do_no_harm(tmp_path: Path) -> None:
    lines = ['"ppl": NaN', '"ppl": -Infinity', '"score_": [{}]', '"n": 1e999']
    content = "".join(
        f'{{"task": "t", "item": {n}, "score": 1, {line}}}\n' for n, line in enumerate(lines)
    )
    (tmp_path / "table").write_text(content)
    assert found(tmp_path / "table", "item") == [(str(n),) for n in range(len(lines))]


def test_one_task_may_be_named_for_all_rows(tmp_path: Path) -> None:
    (tmp_path / "table").write_text("id,correct\n1,0\n")
    options = {"task": "it's one", "column_map": {"item": "id", "score": "correct"}}
    assert found(tmp_path / "table", **options) == [("it's one", "1", 0.0)]


@pytest.mark.parametrize(
    "kind", [pa.int8(), pa.int64(), pa.uint16(), pa.float32(), pa.bool_(), pa.decimal128(38, 1)]
)
def test_every_kind_of_number_in_parquet(kind: pa.DataType, tmp_path: Path) -> None:
    scores = pa.array([1, 0, None]).cast(kind)
    table = pa.table({"task": ["t"] * 3, "item": ["a", "b", "c"], "score": scores})
    pq.write_table(table, tmp_path / "table")
    assert found(tmp_path / "table", "item", "score") == [("a", 1.0), ("b", 0.0), ("c", None)]


def test_labels_of_repeats_become_numbers_in_their_order(tmp_path: Path) -> None:
    rows = [{"task": "t", "item": "a", "repeat": seed, "score": 1} for seed in (10, 9, 100)]
    for write in (as_csv, as_jsonl, as_parquet):
        (tmp_path / "table").write_bytes(write(rows))
        assert found(tmp_path / "table", "repeat") == [(0,), (1,), (2,)]


def test_options_without_a_question_still_tell_k_and_name_the_choice(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text('task,item,score,options,gold,choice\nt,1,0,"[""red"", ""blue""]",A,b\n')
    (row,) = open_run(path).scores.collect().rows(named=True)
    assert (row["k"], row["gold"], row["choice"]) == (2, "red", "blue")


def test_whole_numbers_that_a_missing_id_made_real_are_the_same_ids(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    table = {"task": ["t"] * 3, "item": [7.0, 0.5, 1e300], "score": [1.0, 0.0, 1.0]}
    pq.write_table(pa.table(table), path)
    assert open_run(path).scores.collect()["item"].to_list() == ["7", "0.5", "1e+300"]
