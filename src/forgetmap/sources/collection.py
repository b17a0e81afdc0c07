"""Collections of rows in a file of unknown layout, with their cells by path."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from forgetmap.sources.cells import cell_of
from forgetmap.sources.column_words import IDS_BY_NAME
from forgetmap.sources.documents import TOP, RowList, as_rows, find_row_lists, read_document
from forgetmap.sources.paths import MAX_DEPTH, scalar_paths, value_at
from forgetmap.sources.rows import first_rows
from forgetmap.sources.sniff import TableFile
from forgetmap.sources.table import column_names
from forgetmap.sources.table_map import TableMap

ROWS_READ, ROWS_LOOKED_AT = 50_000, 200


MAX_LISTS = 40


@dataclass(frozen=True, slots=True)
class ComparedWith:
    """The command that a table is read for, so that errors can complete it.

    Attributes:
        sources: what was typed; empty if a single source is read.
        other: path of the other run, whose columns decide between candidates.
    """

    sources: tuple[str, ...] = ()
    other: Path | None = None


@dataclass(frozen=True)
class Collection:
    """Rows of a file, with their cells by path.

    Attributes:
        path: path of the rows in a document; None if the file is a table.
        rows: the first rows.
        stated: numbers beside the rows, by name.
        twins: lists in a document that look alike, this one among them; empty for a table.
    """

    path: str | None
    rows: Sequence[Mapping[str, Any]]
    stated: Mapping[str, float] = field(default_factory=dict)
    twins: tuple[RowList, ...] = ()

    @cached_property
    def columns(self) -> dict[str, list[Any]]:
        """Path -> value in each row; elements of lists are under `PATH.*`."""
        cells = [dict(scalar_paths(row, depth=MAX_DEPTH)) for row in self.rows]
        names = dict.fromkeys(name for row in cells for name in row)
        return {name: [row.get(name) for row in cells] for name in names}

    def values(self, spec: str) -> list[Any]:
        """Return the cells of a column, path or rule."""
        known = self.columns.get(spec)
        return known if known is not None else [cell_of(row, spec) for row in self.rows]


def collections(file: TableFile, rows: str | None) -> list[Collection]:
    """Return the collections of rows in a file, largest first."""
    if not file.single and file.kind != "json":
        return [Collection(None, first_rows(file, None, ROWS_READ))]
    document = read_document(file)
    if rows is not None:
        value = document if rows == TOP else value_at(document, rows)
        return [_collection(document, rows, as_rows(value) or [])]
    if isinstance(document, list):
        found = as_rows(document)
        return [] if found is None else [Collection(None, found[:ROWS_READ])]
    places = find_row_lists(document)
    largest = sorted((one for one in places if one.count > 1), key=lambda one: -one.count)
    return [
        replace(_collection(document, one.path, _rows_at(document, one)), twins=_twins(one, places))
        for one in largest[:MAX_LISTS]
    ]


def _twins(place: RowList, places: Sequence[RowList]) -> tuple[RowList, ...]:
    """Return the lists that look like this one and stand beside it, itself included."""
    parent = place.path.rpartition(".")[0]
    return tuple(
        one for one in places
        if one.is_list == place.is_list and one.names == place.names
        and one.path.rpartition(".")[0] == parent
    )  # fmt: skip


def _rows_at(document: Any, one: RowList) -> list[Any]:
    return as_rows(document if one.path == TOP else value_at(document, one.path)) or []


def _collection(document: Any, path: str, rows: list[Any]) -> Collection:
    parent = path.rpartition(".")[0]
    beside = [document, value_at(document, parent) if parent else None]
    stated = {
        name: float(value)
        for one in beside
        if isinstance(one, dict) and path != TOP
        for name, value in one.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }
    known = [row for row in rows[:ROWS_READ] if isinstance(row, dict)]
    return Collection(path, known, stated)


def is_plain(file: TableFile, known: TableMap) -> bool:
    """Whether a table names its fields itself, or the user did: nothing is inferred then."""
    named = set(known.columns)
    if file.packing and file.kind == "parquet":
        return True
    if file.single and not known.rows:
        return False  # where its rows are has to be found
    if not known.rows and not file.single:
        rows = first_rows(file, None, ROWS_LOOKED_AT) if file.marked else ()
        named |= {name for row in rows for name in row} or {*column_names(file)}
    has_item = not named.isdisjoint({"item", "question"}) or len(named & IDS_BY_NAME) == 1
    return "score" in named and has_item


def collections_of_model(
    file: TableFile, rows: str | None, only: tuple[str, str] | None
) -> list[Collection]:
    """Return the collections of a file with the rows of one model."""
    found = collections(file, rows)
    return [replace(one, rows=rows_of_model(one, only)) for one in found] if only else found


def rows_of_model(table: Collection, only: tuple[str, str]) -> list[Mapping[str, Any]]:
    """Return the rows that have this value."""
    return [row for row in table.rows if str(cell_of(row, only[0])) == only[1]]
