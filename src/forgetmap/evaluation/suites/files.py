"""A suite from a table of items: a local file, or a data set on the hub.

The columns are `question` and `gold`, and optionally `options`, `id`, `task`, `category`,
`cluster`, `tags` and `also_right`; a column map gives their names in the file. `options` may name
several columns, separated by commas. `gold_as` is not a column: it states how to read `gold` (text,
letter, index from 0, index1 from 1) where that is ambiguous.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NoReturn

from forgetmap.errors import ColumnError, DuplicateKeyError, EmptyInputError, FieldError
from forgetmap.evaluation.items import Item, Suite, Task
from forgetmap.evaluation.suites.hub import HubData, HubRow, load_rows
from forgetmap.evaluation.suites.lessons import format_lessons
from forgetmap.evaluation.suites.schemas import LETTERS, fingerprint
from forgetmap.evaluation.suites.tables import table_rows
from forgetmap.scoring import AnswerKind

FIELDS = ("question", "gold", "options", "id", "task", "category", "cluster", "tags", "also_right")
NEEDED = ("question", "gold")
MIN_OPTIONS = 2

Options = tuple[str, ...]
Numbered = tuple[int, HubRow]
Indices = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ItemRow:
    """One row with canonical column names, and its position in the file."""

    values: Mapping[str, Any]
    labels: Options
    file: str
    line: int

    def text(self, field: str) -> str:
        """Return the cell as text; empty if there is none."""
        value = self.values.get(field)
        return "" if value is None else str(value).strip()

    def texts(self, field: str) -> Options:
        """Return the cell as texts: from a list, a list in JSON, or a single text."""
        value = self.values.get(field)
        if isinstance(value, str) and value.lstrip().startswith("["):
            value = _json_list(value)
        if isinstance(value, Mapping):
            value = value.get("text")
        if value is None or value == "":
            return ()
        several = value if isinstance(value, Sequence) and not isinstance(value, str) else [value]
        return tuple(str(part).strip() for part in several)

    def fault(self, message: str, field: str, hint: str) -> FieldError:
        """Return an error that names this row."""
        return FieldError(message, file=self.file, line=self.line, field=field, hint=hint)


def file_suite(path: Path, *, column_map: Mapping[str, str] | None = None) -> Suite:
    """Return a suite from a JSON-lines, JSON, CSV, TSV or Parquet file.

    Args:
        path: the file.
        column_map: canonical column -> column of the file.
    """
    return _suite(path.stem, str(path), table_rows(path), column_map or {})


def hub_suite(
    data: HubData, *, column_map: Mapping[str, str] | None = None, root: Path | None = None
) -> Suite:
    """Return a suite from a data set on the hub.

    Args:
        data: the data set.
        column_map: canonical column -> column of the data set.
        root: a folder with local copies.
    """
    rows = enumerate(load_rows(data, root=root), start=1)
    return _suite(data.dataset.rpartition("/")[2], str(data), rows, column_map or {})


def _suite(name: str, file: str, rows: Iterable[Numbered], column_map: Mapping[str, str]) -> Suite:
    table = list(rows)
    if not table:
        raise EmptyInputError("there are no items", file=file, hint="check the file.")
    columns = list(dict.fromkeys(column for _, row in table for column in row))
    chosen = _columns(columns, column_map, file)
    item_rows = [_item_row(chosen, row, file, line) for line, row in table]
    for item_row in item_rows:
        _check(item_row)
    indices = _gold_indices(item_rows, column_map.get("gold_as"))
    tasks: dict[str, list[tuple[ItemRow, Item]]] = {}
    for item_row, golds in zip(item_rows, indices, strict=True):
        task = item_row.text("task") or name
        tasks.setdefault(task, []).append((item_row, _item(item_row, golds)))
    return Suite(name, tuple(_task(task, rows_of) for task, rows_of in tasks.items()))


def _columns(present: list[str], column_map: Mapping[str, str], file: str) -> dict[str, list[str]]:
    """Return the columns of each field."""
    chosen = {field: [field] for field in FIELDS if field in present}
    for field, names in column_map.items():
        if field == "gold_as":
            continue
        _require(field, FIELDS, f"the column map contains the unknown field {field!r}", file)
        several = [names] if names in present else [name.strip() for name in names.split(",")]
        for column in several:
            _require(column, present, f"there is no column {column!r}", file, field)
        chosen[field] = several
    for field in NEEDED:
        if field not in chosen:
            raise ColumnError(
                f"missing column {field!r}; the columns are {', '.join(present)}",
                file=file,
                field=field,
                hint=f"name it with --columns {field}=COLUMN.",
            )
    return chosen


def _require(
    name: str, known: Sequence[str], message: str, file: str, field: str | None = None
) -> None:
    if name in known:
        return
    near = get_close_matches(name, known, n=3) or known
    raise ColumnError(
        message, file=file, field=field or name, hint=f"choose from: {', '.join(near)}."
    )


def _item_row(chosen: dict[str, list[str]], row: HubRow, file: str, line: int) -> ItemRow:
    values = {field: _joined(names, row) for field, names in chosen.items()}
    options = values.get("options")
    labels = options.get("label", ()) if isinstance(options, Mapping) else ()
    return ItemRow(values, tuple(map(str, labels)), file, line)


def _joined(names: list[str], row: HubRow) -> Any:
    """Return the cell, or the non-empty cells of several columns."""
    if len(names) == 1:
        return row.get(names[0])
    return [row[name] for name in names if row.get(name) not in (None, "")]


def _check(cells: ItemRow) -> None:
    if not cells.text("question"):
        raise cells.fault(
            "the item has no question", "question", "add a question, or remove the item."
        )
    if not cells.texts("gold"):
        raise cells.fault(
            "the item has no right answer", "gold", "add a right answer, or remove the item."
        )
    if len(cells.texts("options")) == 1:
        raise cells.fault(
            "the item has only one option",
            "options",
            f"add options ({MIN_OPTIONS} or more), or use none for an open-ended question.",
        )


def _by_text(gold: str, cells: ItemRow) -> int | None:
    options = cells.texts("options")
    return options.index(gold) if gold in options else None


def _by_letter(gold: str, cells: ItemRow) -> int | None:
    letters = cells.labels or tuple(LETTERS[: len(cells.texts("options"))])
    bare = gold.strip("().")
    return letters.index(bare) if bare in letters else None


def _by_index(gold: str, cells: ItemRow) -> int | None:
    inside = gold.isdecimal() and int(gold) < len(cells.texts("options"))
    return int(gold) if inside else None


def _by_index1(gold: str, cells: ItemRow) -> int | None:
    inside = gold.isdecimal() and 0 < int(gold) <= len(cells.texts("options"))
    return int(gold) - 1 if inside else None


READINGS: dict[str, Callable[[str, ItemRow], int | None]] = {
    "text": _by_text,
    "letter": _by_letter,
    "index": _by_index,
    "index1": _by_index1,
}
UNASKED = ("text", "letter", "index")
"""Readings of `gold` that are tried; counting from 1 is ambiguous and must be given."""


def _gold_indices(rows: Sequence[ItemRow], gold_as: str | None) -> list[Indices]:
    """Return the indices of the right options of each row; all rows are read in the same way."""
    if gold_as is not None:
        _require(gold_as, list(READINGS), f"invalid gold_as={gold_as!r}", rows[0].file)
    chosen = [row for row in rows if row.texts("options")]
    if not chosen:
        return [()] * len(rows)
    read = {way: [_read(way, row) for row in chosen] for way in ([gold_as] if gold_as else UNASKED)}
    fitting = {way: indices for way, indices in read.items() if None not in indices}
    if not fitting:
        _refuse_gold(chosen, list(read.values()))
    for row, *indices in zip(chosen, *fitting.values(), strict=True):
        if len(set(indices)) > 1:
            raise row.fault(
                f"the right answer {row.text('gold')!r} is ambiguous: {' or '.join(fitting)}",
                "gold",
                f"specify its meaning with --columns gold_as={next(iter(fitting))}.",
            )
    way = next(iter(fitting))
    return [(_read(way, row) or ()) if row.texts("options") else () for row in rows]


def _read(way: str, row: ItemRow) -> Indices | None:
    indices = [READINGS[way](gold, row) for gold in row.texts("gold")]
    known = tuple(index for index in indices if index is not None)
    return known if len(known) == len(indices) else None


def _refuse_gold(rows: Sequence[ItemRow], read: Sequence[Sequence[Indices | None]]) -> NoReturn:
    """Raise an error for the first row that does not fit the most common reading."""
    best = min(read, key=lambda indices: indices.count(None))
    row = rows[best.index(None)]
    count = len(row.texts("options"))
    raise row.fault(
        f"the right answer {row.text('gold')!r} is not among the {count} options",
        "gold",
        "use the text of an option, its letter, or its position counted from 0 (from 1 with "
        "--columns gold_as=index1).",
    )


def _item(cells: ItemRow, indices: tuple[int, ...]) -> Item:
    options = cells.texts("options")
    gold = tuple(options[index] for index in indices) or cells.texts("gold")
    question = cells.text("question")
    return Item(
        id=cells.text("id") or fingerprint(question, *sorted(gold), *sorted(options)),
        question=question,
        gold=gold[0],
        options=options,
        also_right=(*gold[1:], *cells.texts("also_right")),
        cluster=cells.text("cluster") or None,
        tags=cells.texts("tags"),
    )


def _task(name: str, rows: Sequence[tuple[ItemRow, Item]]) -> Task:
    items = tuple(item for _, item in _distinct(rows))
    kind = _kind(name, rows)
    most = max(len(item.options) for item in items)
    return Task(
        name=name,
        category=_category(name, rows),
        kind=kind,
        load=lambda: items,
        lessons=format_lessons(kind, options=most),
    )


def _distinct(rows: Sequence[tuple[ItemRow, Item]]) -> Iterator[tuple[ItemRow, Item]]:
    lines: dict[str, int] = {}
    for cells, item in rows:
        if item.id in lines:
            has_id = bool(cells.text("id"))
            raise DuplicateKeyError(
                f"the {'id ' + repr(item.id) if has_id else 'same item'} already occurs in line "
                f"{lines[item.id]}",
                file=cells.file,
                line=cells.line,
                field="id" if has_id else "question",
                hint="give each item of a task a unique id.",
            )
        lines[item.id] = cells.line
        yield cells, item


def _kind(name: str, rows: Sequence[tuple[ItemRow, Item]]) -> AnswerKind:
    with_options = [bool(item.options) for _, item in rows]
    if len(set(with_options)) > 1:
        odd = with_options.index(not with_options[0])
        raise rows[odd][0].fault(
            f"task {name!r} mixes items with and without options",
            "options",
            "move the open-ended items to their own task.",
        )
    if with_options[0]:
        return "option"
    return "number" if all(_is_number(item.gold) for _, item in rows) else "text"


def _category(name: str, rows: Sequence[tuple[ItemRow, Item]]) -> str | None:
    counts = Counter(cells.text("category") for cells, _ in rows)
    usual = counts.most_common(1)[0][0]
    for cells, _ in rows:
        if cells.text("category") != usual:
            raise cells.fault(
                f"task {name!r} has two categories: {usual!r} and {cells.text('category')!r}",
                "category",
                "use one category per task, and tags for additional groups.",
            )
    return usual or None


def _is_number(text: str) -> bool:
    try:
        float(text.replace(",", ""))
    except ValueError:
        return False
    return True


def _json_list(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
