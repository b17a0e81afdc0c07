"""Mappings stored next to their tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from forgetmap.errors import ColumnError, OutputError
from forgetmap.sources.maps import TableMap, map_file, save_map, saved_map
from forgetmap.sources.open import open_run

TABLE = "q,ok,other\na,1,0\nb,0,0\n"
COLUMNS = {"item": "q", "score": "ok"}


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "base.csv"
    path.write_text(TABLE)
    return path


def scores(path: Path, **options: object) -> list[tuple[str, float]]:
    run = open_run(path, **options)  # type: ignore[arg-type]
    return sorted(run.scores.select("item", "score").collect().rows())


def test_saved_map_is_used_the_next_time(table: Path) -> None:
    with pytest.raises(ColumnError):
        open_run(table)
    assert save_map(table, TableMap(COLUMNS, task="t")) == table.with_name("base.csv.map.toml")
    assert scores(table) == [("a", 1.0), ("b", 0.0)]


def test_folder_has_one_map_for_all_its_tables(table: Path) -> None:
    save_map(table.parent, TableMap(COLUMNS, task="t"))
    assert (table.parent / "forgetmap.toml").is_file()
    assert scores(table) == scores(table.parent) == [("a", 1.0), ("b", 0.0)]


def test_what_is_said_now_wins(table: Path) -> None:
    save_map(table, TableMap(COLUMNS, task="t"))
    assert scores(table, column_map={"score": "other"}) == [("a", 0.0), ("b", 0.0)]


def test_a_column_of_tasks_wins_over_the_one_task_of_the_map(table: Path) -> None:
    save_map(table, TableMap(COLUMNS, task="all"))
    run = open_run(table, column_map={"task": "other"})
    assert run.scores.select("task").unique().collect()["task"].to_list() == ["0"]


def test_map_of_the_table_wins_over_that_of_the_folder(table: Path) -> None:
    save_map(table.parent, TableMap({"item": "q", "score": "other"}, task="t"))
    save_map(table, TableMap(COLUMNS, task="t"))
    assert scores(table) == [("a", 1.0), ("b", 0.0)]


@pytest.mark.parametrize("name", ['a "b"', "back\\slash", "tab\t", "é\x7f", "a.b = [c]", "#1"])
def test_any_name_survives(name: str, table: Path) -> None:
    save_map(table, TableMap({"item": name}, task=name))
    found, _ = saved_map(table)
    assert (found.columns, found.task) == ({"item": name}, name)


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("columns = 3", "columns"),
        ("task = 3", "task"),
        ("[columns]\nscor = 'x'", "scor"),
        ("[columns]\nscore = 3", "score"),
        ("[column]\nscore = 'x'", "column"),
        ("[columns", None),
        ("\xff", None),
    ],
)
def test_wrong_map_is_a_typed_error(text: str, field: str | None, table: Path) -> None:
    map_file(table).write_bytes(text.encode("latin-1"))
    with pytest.raises(ColumnError) as caught:
        open_run(table)
    assert (caught.value.file, caught.value.field) == (str(map_file(table)), field)
    assert "delete it" in caught.value.hint


def test_map_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="cannot be written"):
        save_map(tmp_path / "gone" / "base.csv", TableMap(COLUMNS))
