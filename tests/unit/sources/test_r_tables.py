"""Tables of R's `write.table` are read; other tables with an extra cell are errors."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

import forgetmap as fm
from command_line import call
from forgetmap.errors import InputError
from forgetmap.sources.open import open_run

WIDE = '"base" "tuned"\n"q1" 1 0\n"q 2" 1 1\n"q3" 0 1\n"q4" 0 0\n'


def cells(path: Path) -> tuple[int, ...]:
    total = fm.compare(f"{path}#base", f"{path}#tuned").result.total
    return total.n11, total.n10, total.n01, total.n00


@pytest.mark.parametrize(
    "text",
    [
        WIDE,
        WIDE.replace(" ", "\t").replace("q\t2", "q 2"),
        WIDE.replace(" ", ",").replace("q,2", "q 2"),
        WIDE.replace('"', "").replace("q 2", "q2"),
        WIDE.replace('"', "").replace("q 2", "q2").replace(" ", "\t"),
        WIDE.replace("1", "TRUE").replace("0", "FALSE").replace("qTRUE", "q1"),
    ],
)
def test_a_header_without_a_name_for_the_row_names(text: str, tmp_path: Path) -> None:
    path = tmp_path / "wide.txt"
    path.write_text(text)
    assert cells(path) == (1, 1, 1, 1)
    items = set(open_run(f"{path}#base").scores.collect()["item"].to_list())
    assert items == {"q1", "q 2" if "q 2" in text else "q2", "q3", "q4"}


def test_gzipped_and_what_is_missing(tmp_path: Path) -> None:
    path = tmp_path / "wide.txt.gz"
    path.write_bytes(gzip.compress(WIDE.replace("0 0", "0 NA").encode()))
    scores = open_run(f"{path}#tuned").scores.collect()["score"].to_list()
    assert sorted(scores, key=str) == [0.0, 1.0, 1.0, None]


@pytest.mark.parametrize(
    "text",
    [
        '"item" "score"\n"1" "q1" 1\n"2" "q 2" 0\n',
        '"item"\t"score"\n"1"\t"q1"\t1\n"2"\t"q 2"\t0\n',
        '"item" "score"\n"q1" 1\n"q 2" 0\n',
        '"score"\n"q1" 1\n"q 2" 0\n',
    ],
)
def test_a_long_table_keeps_its_own_items(text: str, tmp_path: Path) -> None:
    """Numbers of rows are no items; without them only the spaces are R's."""
    path = tmp_path / "long.txt"
    path.write_text(text)
    rows = open_run(path, task="t").scores.collect().rows(named=True)
    assert [(row["item"], row["score"]) for row in rows] == [("q1", 1.0), ("q 2", 0.0)]


@pytest.mark.parametrize(
    "text",
    [
        "item,score\na,1,2\nb,1,0\n",
        "item\tscore\na\t1\t0\nb\t1\t0\n",
        "question,score\nHello, you,1\nSo, what,0\n",
        '"item","score"\n"a",1\n"b",0,1\n',
    ],
)
def test_a_cell_too_many_is_still_an_error(text: str, tmp_path: Path) -> None:
    path = tmp_path / "broken.csv"
    path.write_text(text)
    with pytest.raises(InputError, match="cells, but the header has 2"):
        open_run(path, task="t")


@pytest.mark.parametrize(
    "content",
    [
        b'"a" "b"\x0b"q1" 1 0\x0b"q2" 1 1',
        b'"a" "b"\r"q1" 1 0\r"q2" 1 1\r',
        b'"a" "b"\n"q1" 1 0\n"q2" 1 1\n"q\xff" 1 1\n',
        b'"a" "b"\n"q1" 1 0\n"q2" 1 1\n' + b'"q3" 1 1\n' * 300 + b'"q4" 1\n',
        b'"a" "b"\n"q1" 1 0\n"q2 1 1\n',
        b'"a"\n"b" ',
    ],
)
def test_what_is_broken_is_a_typed_error_or_read(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "broken.txt"
    path.write_bytes(content)
    try:
        rows = open_run(f"{path}#a").scores.collect()
    except InputError:
        return
    assert len(rows) <= 2


def test_a_space_before_a_number_separates_nothing(tmp_path: Path) -> None:
    path = tmp_path / "spaced.csv"
    path.write_text("task,item,score\nt,a, 0.5\nt,b, 1\n")
    assert open_run(path).scores.collect()["score"].to_list() == [0.5, 1.0]


def test_the_next_command_works(tmp_path: Path) -> None:
    path = tmp_path / "wide.txt"
    path.write_text(WIDE)
    done = call("records", "map", str(path))
    following = done.out.splitlines()[-1].removeprefix("Next: forgetmap ")
    assert following == f"compare '{path}#base' '{path}#tuned'"
    assert call(*following.replace("'", "").split()).code == 0
