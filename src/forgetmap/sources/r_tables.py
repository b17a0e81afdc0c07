"""Tables written by R's `write.table`, converted to usual CSV.

Row names come before the first column and have no name in the header; cells are separated by spaces
by default; missing values are NA.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO

from forgetmap._cache import temporary_path
from forgetmap.records import MORE_SYNONYMS, SYNONYMS

SEPARATORS = (" ", "\t", ",", ";")
ITEM, ROW_NAME = "item", "row_name"
MISSING = "NA"
LINES_LOOKED_AT = 200
_TRUTH = {"TRUE", "FALSE"}
_FIELDS = frozenset(
    name
    for synonyms in (SYNONYMS, MORE_SYNONYMS)
    for field, names in synonyms.items()
    for name in (field, *names)
)


def rewrite_r_table(
    head: bytes, *, is_whole: bool, open_text: Callable[[], IO[str]]
) -> Path | None:
    """Write a table of R as CSV to a temporary file; return None if R did not write it.

    Args:
        head: the first bytes of the file.
        is_whole: whether `head` is the whole file.
        open_text: opens the file as text.
    """
    lines = head.decode("utf-8", "replace").split("\n")
    lines = [line for line in (lines if is_whole else lines[:-1]) if line.strip()]
    lines = lines[:LINES_LOOKED_AT]
    separator = next((mark for mark in SEPARATORS if _is_written_by_r(lines, mark)), None)
    if separator is None:
        return None
    target = temporary_path(".csv")
    with open_text() as stream, target.open("w", encoding="utf-8", newline="") as out:
        try:
            csv.writer(out).writerows(_rows(_cells(stream, separator)))
        except (csv.Error, UnicodeDecodeError):
            return None  # reading it as a table will report the error
    return target


def _is_written_by_r(lines: Sequence[str], separator: str) -> bool:
    """Whether every row has one more cell than the header, and the first cells are unique.

    The extra cell may also be an error in the table, so texts must be quoted, as R does, or all
    other cells must be numbers and no column may have the name of a field.
    """
    try:
        rows = list(_cells(lines, separator))
    except csv.Error:
        return False
    if len(rows) < 2:
        return False
    header, body = rows[0], rows[1:]
    extra = {len(row) - len(header) for row in body}
    is_quoted = all(line.startswith('"') for line in lines)
    is_quoted = is_quoted and lines[0].count('"') == 2 * len(header)
    if extra == {0}:
        return separator == " " and is_quoted and len(header) > 1
    names = [row[0] for row in body]
    return (
        extra == {1} and len({*names}) == len(names) and (is_quoted or _is_plain(rows, separator))
    )


def _is_plain(rows: Sequence[Sequence[str]], separator: str) -> bool:
    other_marks = {mark for mark in SEPARATORS if mark != separator}
    is_blank = not separator.strip() and not any(
        mark in name for mark in other_marks for name in rows[0]
    )
    is_unnamed = _FIELDS.isdisjoint(name.lower() for name in rows[0])
    return is_blank and is_unnamed and all(_is_value(cell) for row in rows[1:] for cell in row[1:])


def _is_value(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return cell == MISSING or cell in _TRUTH
    return True


def _cells(lines: Iterable[str], separator: str) -> Iterator[list[str]]:
    """Iterate over the cells of non-empty lines."""
    return (row for row in csv.reader(lines, delimiter=separator) if row)


def _rows(rows: Iterator[list[str]]) -> Iterator[list[str]]:
    """Name the column of row names, and empty the cells with NA."""
    header, first = next(rows, []), next(rows, [])
    has_names = len(first) > len(header)
    yield [_row_name(header), *header] if has_names else header
    for row in (first, *rows):
        yield [cell if not index or cell != MISSING else "" for index, cell in enumerate(row)]


def _row_name(header: Sequence[str]) -> str:
    """Return the name for the column of row names: `item`, unless another column is the item."""
    known = {ITEM, *SYNONYMS[ITEM], *MORE_SYNONYMS[ITEM]}
    return ITEM if known.isdisjoint(name.lower() for name in header) else ROW_NAME
