"""Repeated ids in a table without a column of repeats.

- Every id occurs equally often: these are repeats, numbered in the order of the file.
- Most ids occur several times, but not equally often: the id names a group, such as a question
  asked with several inputs. Its rows are items of their own, `ID#1`, `ID#2`, ..., in one cluster.
- A few ids occur again, or all rows of an id are the same in every column: a mistake, which
  validation refuses.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import narwhals as nw

from forgetmap.records import CONTENT_HASHES, Run, connection, fresh_name, quote
from forgetmap.text import counted

if TYPE_CHECKING:
    import duckdb

MAX_ROWS_OF_ID = 1000
"""Upper limit on the rows of an id that are read as repeats."""
MIN_SHARE = 0.5
"""Share of ids that must occur several times for their rows to be read as items of a group."""
_PLACE = "forgetmap_place"


@dataclass(frozen=True, slots=True)
class RepeatedIds:
    """How often ids occur in a table.

    Attributes:
        ids: number of ids.
        repeated: number of ids that occur several times.
        most: rows of the most frequent id.
        are_repeats: whether all ids occur equally often.
    """

    ids: int
    repeated: int
    most: int
    are_repeats: bool

    @property
    def notice(self) -> str:
        """Notice for the user about how the rows are read."""
        if self.are_repeats:
            return (
                f"every id occurs {self.most} times: read as {counted(self.most, 'repeat')}, in "
                "the order of the file."
            )
        return (
            f"{self.repeated:,} of {counted(self.ids, 'id')} occur several times, but not "
            "equally often: their rows are separate items, numbered in the order of the file, "
            "in one cluster per id."
        )


def find_repeated_ids(run: Run) -> RepeatedIds | None:
    """Count repeated ids; None if no id is repeated, or if so few are that it is a mistake."""
    if "repeat" in run.columns or run.ids_are_occurrences:
        return None
    names = ("task", "item", "metric", "scorer", *CONTENT_HASHES)
    key = ", ".join(quote(name) for name in names if name in run.columns)
    groups = nw.to_native(run.scores).aggregate(f"{key}, count(*) AS n", key)
    (row,) = groups.aggregate("count(*), count(*) FILTER (n > 1), min(n), max(n)").fetchall()
    ids, repeated, least, most = (int(number or 0) for number in row)
    are_repeats = least == most and ids > 1
    are_groups = repeated > MIN_SHARE * ids and ids > 1
    if not repeated or most > MAX_ROWS_OF_ID or not (are_repeats or are_groups):
        return None
    return RepeatedIds(ids, repeated, most, are_repeats)


def number_rows(
    rows: duckdb.DuckDBPyRelation, repeated: RepeatedIds, *, may_be_copies: bool = True
) -> duckdb.DuckDBPyRelation | None:
    """Number the repeats or items of rows; None if the rows of each id are copies."""
    source, numbered = fresh_name(), fresh_name()
    rows.create(source)
    names = ("task", "item", "metric", "scorer", "question", "options", "gold")
    key = ", ".join(quote(name) for name in names if name in rows.columns)
    position = f"row_number() OVER (PARTITION BY {key} ORDER BY rowid) - 1 AS {_PLACE}"
    connection().sql(f"SELECT *, {position} FROM {source} ORDER BY rowid").create(numbered)
    table = connection().table(numbered)
    if not repeated.are_repeats:
        cluster = "" if "cluster" in rows.columns else ", item AS cluster"
        item = f"concat(item, '#', {_PLACE} + 1)"
        return table.project(f"* EXCLUDE {_PLACE} REPLACE ({item} AS item){cluster}")
    if may_be_copies and _are_copies(table, rows.columns, key):
        return None
    return table.project(f"* EXCLUDE {_PLACE}, CAST({_PLACE} AS VARCHAR) AS repeat")


def _are_copies(table: duckdb.DuckDBPyRelation, columns: list[str], key: str) -> bool:
    """Whether the rows of each id are identical in all columns: a file appended to itself."""
    every = ", ".join(quote(name) for name in columns)
    rows = table.project(every).distinct().aggregate("count(*)").fetchall()
    ids = table.project(key).distinct().aggregate("count(*)").fetchall()
    return bool(rows == ids)
