"""A map may fit one table only, but never none."""

from __future__ import annotations

from pathlib import Path

import pytest

import forgetmap as fm
from forgetmap.errors import ColumnError

PLAIN = "task,item,score\nt,a,1\nt,b,0\n"
NAMED = "task,item,correct\nt,a,0\nt,b,0\n"
BOTH = "task,item,score,correct\nt,a,1,0\nt,b,1,0\n"


def tables(folder: Path, *texts: str) -> list[Path]:
    paths = [folder / f"{place}.csv" for place in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text)
    return paths


@pytest.mark.parametrize("texts", [(PLAIN, NAMED), (NAMED, PLAIN)])
def test_a_table_with_the_field_under_its_own_name_needs_no_map(
    texts: tuple[str, str], tmp_path: Path
) -> None:
    before, after = tables(tmp_path, *texts)
    total = fm.compare(before, after, column_map={"score": "correct"}).result.total
    assert (total.n10 + total.n01, total.n00) == (1, 1)


def test_the_map_wins_over_the_field_of_the_same_name(tmp_path: Path) -> None:
    before, after = tables(tmp_path, PLAIN, BOTH)
    total = fm.compare(before, after, column_map={"score": "correct"}).result.total
    assert (total.n10, total.n00) == (1, 1)


def test_a_map_that_fits_no_table_is_refused(tmp_path: Path) -> None:
    before, after = tables(tmp_path, PLAIN, PLAIN)
    with pytest.raises(ColumnError) as caught:
        fm.compare(before, after, column_map={"score": "correkt"})
    assert caught.value.field == "score"
    assert "correkt" in str(caught.value)
