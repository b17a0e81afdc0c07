"""Tables are recognised by their content, not by their names."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from forgetmap.errors import InputError, UnreadableError
from forgetmap.sources.open import open_run
from forgetmap.sources.sniff import open_unpacked
from table_writers import (
    ROWS,
    WRITERS,
    Row,
    as_csv,
    as_json,
    as_jsonl,
    as_parquet,
    every_format,
    found,
    wanted,
)


def zstandard(content: bytes) -> bytes:
    """One frame."""
    packed = pa.BufferOutputStream()
    with pa.CompressedOutputStream(packed, "zstd") as stream:
        stream.write(content)
    return bytes(packed.getvalue().to_pybytes())


PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "plain": bytes,
    "gzip": gzip.compress,
    "zstd": zstandard,
}


@every_format
@pytest.mark.parametrize("pack", PACKERS)
@pytest.mark.parametrize("name", ["results", "results.csv", "a.jsonl", "b.parquet", "c.csv.gz"])
def test_the_name_of_a_file_says_nothing(name: str, pack: str, kind: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(PACKERS[pack](WRITERS[kind](ROWS)))
    assert found(path) == wanted(ROWS)


def test_a_file_of_zstandard_is_read_some_bytes_at_a_time(tmp_path: Path) -> None:
    content = b"".join(b'{"task": "t", "item": "%d", "score": 1}\n' % n for n in range(50_000))
    path = tmp_path / "many.zst"
    path.write_bytes(zstandard(content[:1_000]) + zstandard(content[1_000:]))
    with open_unpacked(path) as stream:
        assert stream.read(1_500) == content[:1_500]
        assert stream.read() == content[1_500:]
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(UnreadableError, match="copy it again"):
        found(path)


@every_format
@pytest.mark.parametrize(
    "name", ["a[1]", "*", "**", "q?", "{a,b}", "it's", "a b", "task=x", "item=7/score=0/f", "100%"]
)
def test_a_name_is_no_pattern_and_a_folder_no_column(name: str, kind: str, tmp_path: Path) -> None:
    others = [row | {"item": "other"} for row in ROWS]
    (tmp_path / "a1").write_bytes(WRITERS[kind](others))
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(WRITERS[kind](ROWS))
    assert found(path) == wanted(ROWS)


@every_format
def test_one_row_is_enough(kind: str, tmp_path: Path) -> None:
    (tmp_path / "one").write_bytes(WRITERS[kind](ROWS[:1]))
    assert found(tmp_path / "one") == wanted(ROWS[:1])


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_every_delimiter(delimiter: str, tmp_path: Path) -> None:
    rows = [row | {"answer": f"x{delimiter}y"} for row in ROWS]
    (tmp_path / "table").write_bytes(as_csv(rows, delimiter))
    assert found(tmp_path / "table", *rows[0]) == wanted(rows)


def test_delimiters_inside_quoted_names_do_not_count(tmp_path: Path) -> None:
    header = b'task,item,score,"notes; with; many; more; semicolons"\n'
    (tmp_path / "table").write_bytes(header + b"t,a,1,\n")
    assert found(tmp_path / "table") == [("t", "a", 1.0)]


@pytest.mark.parametrize("kind", ["csv", "jsonl", "json", "pretty json"])
@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzipped"])
def test_a_byte_order_mark_is_no_content(packed: bool, kind: str, tmp_path: Path) -> None:
    content = b"\xef\xbb\xbf" + WRITERS[kind](ROWS)
    (tmp_path / "table").write_bytes(gzip.compress(content) if packed else content)
    assert found(tmp_path / "table") == wanted(ROWS)


def test_a_table_may_be_split_over_formats(tmp_path: Path) -> None:
    parts = [row | {"item": f"{row['item']} of {n}"} for n in range(5) for row in ROWS]
    for place, write in enumerate([as_csv, as_jsonl, as_json, as_parquet]):
        (tmp_path / f"part-{place}").write_bytes(write(parts[3 * place : 3 * place + 3]))
    (tmp_path / "part-4.csv.gz").write_bytes(gzip.compress(as_csv(parts[12:])))
    assert found(tmp_path) == wanted(parts)


def test_other_files_beside_the_parts_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "part.csv").write_bytes(as_csv(ROWS))
    (tmp_path / ".part.csv.crc").write_bytes(b"crc\0")
    (tmp_path / "_SUCCESS").touch()
    (tmp_path / "plot.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0")
    (tmp_path / "notes.md").write_text("# Notes\n")
    (tmp_path / "folder").mkdir()
    assert found(tmp_path) == wanted(ROWS)


def test_parts_may_have_columns_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(as_csv([ROWS[0] | {"k": 4}]))
    (tmp_path / "b.csv").write_bytes(as_csv([ROWS[1] | {"category": "c"}]))
    assert found(tmp_path, "item", "k", "category") == [("a", 4, None), ("b", None, "c")]


@pytest.mark.parametrize("kind", ["jsonl", "json"])
def test_a_column_may_begin_late(kind: str, tmp_path: Path) -> None:
    rows: list[Row] = [{"task": "t", "item": n, "score": 1} for n in range(3000)]
    rows[2999]["k"] = 5
    (tmp_path / "late").write_bytes(WRITERS[kind](rows))
    assert [k for (k,) in found(tmp_path / "late", "k") if k is not None] == [5]


def test_names_that_differ_in_case_are_different_columns(tmp_path: Path) -> None:
    rows = [{"Item": "no", "task": "t", "item": "yes", "Score": 0.5, "score": 1.0}]
    for kind, write in WRITERS.items():
        (tmp_path / kind).write_bytes(write(rows))
        assert found(tmp_path / kind) == [("t", "yes", 1.0)]
        assert found(tmp_path / kind, column_map={"score": "Score"}) == [("t", "yes", 0.5)]


def test_columns_without_a_name_are_left_alone(tmp_path: Path) -> None:
    """A data frame writes its index in front, a spreadsheet empty columns behind."""
    (tmp_path / "table").write_bytes(b",task,item,score,,\n0,t,a,1,,\n1,t,b,0,x,y\n")
    assert found(tmp_path / "table") == [("t", "a", 1.0), ("t", "b", 0.0)]


def test_a_run_is_called_like_its_file(tmp_path: Path) -> None:
    (tmp_path / "base.model.csv").write_bytes(as_csv(ROWS))
    assert open_run(tmp_path / "base.model.csv").name == "base"
    assert open_run(tmp_path / "base.model.csv", name="mine").name == "mine"


@pytest.mark.parametrize("kind", sorted(WRITERS))
def test_digests_of_other_tools_are_not_taken_for_our_hashes(kind: str, tmp_path: Path) -> None:
    rows = [{"task": "t", "item": "a", "score": 1, "prompt_hash": "e1bf2091a42d"}]
    (tmp_path / "table").write_bytes(WRITERS[kind](rows))
    assert "prompt_hash" not in open_run(tmp_path / "table").columns
    (tmp_path / "ours").write_bytes(WRITERS[kind]([rows[0] | {"prompt_hash": -42}]))
    assert open_run(tmp_path / "ours").scores.collect()["prompt_hash"].to_list() == [-42]


@pytest.mark.parametrize(
    "text",
    [
        "item,score\na,1,2\nb,1,0\n",
        "item\tscore\na\t1\t0\nb\t1\t0\n",
        "question,score\nHello, you,1\nSo, what,0\n",
        '"item","score"\n"a",1\n"b",0,1\n',
    ],
)
def test_a_cell_too_many_is_an_error(text: str, tmp_path: Path) -> None:
    (tmp_path / "table").write_text(text)
    with pytest.raises(InputError, match="cells, but the header has 2"):
        open_run(tmp_path / "table", task="t")


def test_a_space_before_a_number_separates_nothing(tmp_path: Path) -> None:
    (tmp_path / "table").write_text("task,item,score\nt,a, 0.5\nt,b, 1\n")
    assert found(tmp_path / "table") == [("t", "a", 0.5), ("t", "b", 1.0)]
