"""A mapping need not fit every table, but must fit at least one."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

import forgetmap as fm
from command_line import call
from forgetmap.errors import ColumnError
from forgetmap.sources import Reading

PLAIN = "task,item,score\nt,a,1\nt,b,0\n"
NAMED = "task,item,correct\nt,a,0\nt,b,0\n"
BOTH = "task,item,score,correct\nt,a,1,0\nt,b,1,0\n"

LOG = Path(__file__).parents[1] / "fixtures" / "logs" / "lm-eval" / "0.4.13" / "log"
SAMPLES = next(LOG.rglob("samples_tiny_choices_*.jsonl"))


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


def a_table_of_the_log(folder: Path) -> Path:
    """The same items as in a log, all wrong, under other names."""
    items = fm.open_run(SAMPLES).scores.collect()["item"].unique().to_list()
    table = folder / "table.csv"
    rows = "".join(f"tiny_choices,{item},0\n" for item in items)
    table.write_text(f"task,qid,ok\n{rows}")
    (folder / "map.toml").write_text('[columns]\nitem = "qid"\nscore = "ok"\n')
    return table


def test_a_map_beside_a_log_is_for_the_table_alone(tmp_path: Path) -> None:
    """The log is read as the log it is, which is said, and the table by the map."""
    table = a_table_of_the_log(tmp_path)
    comparison = fm.compare(SAMPLES, table, mapping=tmp_path / "map.toml")
    total = comparison.result.total
    assert total.n01 + total.n11 == 0
    assert total.n10 + total.n00 == len(table.read_text().splitlines()) - 1
    notices = " ".join(fm.open_run(SAMPLES, reading=mapped(tmp_path)).notices)
    assert f"{SAMPLES} is a log of lm-eval" in notices
    assert "--mapping was ignored" in notices


def mapped(folder: Path) -> Reading:
    return Reading(mapping=folder / "map.toml")


def test_columns_read_a_log_as_a_table_as_the_notice_says(tmp_path: Path) -> None:
    run = fm.open_run(SAMPLES, column_map={"item": "doc_id", "score": "acc"}, task="choices")
    assert not run.format
    assert not any("--mapping" in notice for notice in run.notices)


def test_columns_beside_a_folder_of_logs(tmp_path: Path) -> None:
    """They are for the table; a folder of logs alone has no use for them, and that is said."""
    table = a_table_of_the_log(tmp_path)
    columns = {"item": "qid", "score": "ok"}
    result = fm.compare(SAMPLES.parent, table, column_map=columns, min_paired=0.3).result
    assert result.total.n10 + result.total.n00 == len(table.read_text().splitlines()) - 1
    with pytest.raises(ColumnError, match="contains logs of lm-eval") as caught:
        fm.open_run(SAMPLES.parent, column_map=columns)
    assert "remove --columns" in caught.value.hint


def test_the_map_of_a_log_leads_to_a_command_that_reads_it(tmp_path: Path) -> None:
    """`records map` of a known log says what it is, and what it proposes works all the same."""
    done = call("records", "map", str(SAMPLES), "--out", str(tmp_path / "log.toml"))
    assert done.code == 0
    assert "this is a log of lm-eval" in done.out.replace("\n", " ")
    following = shlex.split(done.out.splitlines()[-1].removeprefix("Next: "))
    assert "--columns" in following
    assert call(*following[1:]).code == 0


def test_the_map_of_one_table_reads_the_other_as_its_last_lines_say(tmp_path: Path) -> None:
    """Two tables with odd columns: one map is enough, and the command says how."""
    before, after = tables(tmp_path, *(f"Nr.;richtig?\nq1;TRUE\nq2;{end}\n" for end in ("1", "0")))
    done = call("records", "map", str(before), "--columns", "item=Nr.,score=richtig?", "--save-map")
    options = done.out.splitlines()[-2].removeprefix("For other tables with these columns: ")
    assert call("compare", str(before), str(after), *shlex.split(options)).code == 0


def test_a_table_without_score_and_item_says_so(tmp_path: Path) -> None:
    (table,) = tables(tmp_path, "a,b\n1,2\n")
    with pytest.raises(ColumnError, match="no column tells the rows apart"):
        fm.open_run(table)
