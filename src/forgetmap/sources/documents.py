"""Collections of results inside a JSON document: `{"performances": [...]}`.

Rows are a list of objects; objects by name, whose names are the items; lists of objects by name,
whose names are the items or, if the rows have ids of their own, the tasks; such objects or lists by
model below each item; truth values by name; or lists of ids, of which one says which were right.
Numbers by name are a table of averages, never rows. Lists that look alike beside each other may be
those of tasks, which are united by a path with `*`, or those of models.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection as Values
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from typing import Any

from forgetmap.errors import TRUNCATED_HINT, ColumnError, UnreadableError
from forgetmap.sources.cells import EVERY, cell_of, every_cell, scalar_paths, split_every, value_at
from forgetmap.sources.decode import Malformed, decode
from forgetmap.sources.sniff import UTF8_MARK, TableFile, readable_file, whole_number

TOP = "."
"""The path of the document itself."""
MAX_DEPTH, MAX_MODELS, MAX_LISTS = 4, 20, 40
ROWS_READ, ROWS_LOOKED_AT = 50_000, 200
"""Rows by which columns are judged, and rows that show which columns there are."""
MIN_ALIKE = 0.8
"""Share of objects by name that must have most fields of the fullest one to be rows."""
MIN_VERDICTS = 2
"""Truth values by name from which on they are verdicts of items, not settings."""
IDS = ("id", "item", "item_id", "question_id", "task_id", "sample_id", "doc_id", "idx", "index")
"""Fields that tell the rows of a list apart."""
RIGHT = frozenset({"resolved", "solved", "passed", "correct", "succeeded", "successful"})
WRONG = frozenset({"unresolved", "unsolved", "failed", "incorrect", "wrong"})
ALL = frozenset({"submitted", "all", "attempted", "total"})
"""Words in the names of lists of ids."""
_WORDS = re.compile(r"[a-z]+")
Row = Mapping[str, Any]
_DECODER = json.JSONDecoder(parse_int=whole_number)
_BLANKS = " \t\r\n"


@dataclass(frozen=True, slots=True)
class RowList:
    """Rows inside a document.

    Attributes:
        parts: names that lead to the rows; none if the document is the rows.
        count: number of rows.
        names: columns of the first rows.
        is_list: whether the rows are a list; objects by name may also be averages.
    """

    parts: tuple[str, ...]
    count: int
    names: tuple[str, ...]
    is_list: bool

    @property
    def path(self) -> str:
        """Dotted path of the rows."""
        return ".".join(self.parts) or TOP


@dataclass(frozen=True)
class Collection:
    """Rows of a file, with their cells by path.

    Attributes:
        path: path of the rows in a document; None if the file is a table.
        rows: the first rows.
        stated: numbers beside the rows, by name.
        is_list: whether the rows are a list, not objects by name.
        twins: paths of the lists that look alike, this one among them; empty for a table.
        every: path with `*` of these lists.
    """

    path: str | None
    rows: Sequence[Row]
    stated: Mapping[str, float] = field(default_factory=dict)
    is_list: bool = True
    twins: tuple[str, ...] = ()
    every: str = ""

    @cached_property
    def columns(self) -> dict[str, list[Any]]:
        """Path -> value in each row; a list is one value."""
        cells = [dict(scalar_paths(row)) for row in self.rows]
        names = dict.fromkeys(name for row in cells for name in row)
        return {name: [row.get(name) for row in cells] for name in names}

    def values(self, spec: str) -> list[Any]:
        """Return the cells of a column, path or rule."""
        if spec in self.columns:
            return self.columns[spec]
        split = split_every(spec)
        if split is None:
            return [cell_of(row, spec) for row in self.rows]
        return [tuple(one[spec] for one in every_cell(row, {spec: split})) for row in self.rows]

    def of_model(self, only: tuple[str, str] | None) -> Collection:
        """Return the rows that have this value in this column."""
        if only is None:
            return self
        return replace(self, rows=[r for r in self.rows if str(cell_of(r, only[0])) == only[1]])


def read_document(file: TableFile) -> Any:
    """Return the JSON value of a file.

    Raises:
        UnreadableError: the file is not JSON.
    """
    with readable_file(file.path), file.open() as stream:
        data = stream.read().removeprefix(UTF8_MARK)
    try:
        return decode(data)
    except Malformed as error:
        line = 1 if file.kind == "jsonl" else None
        try:
            json.loads(data)
        except json.JSONDecodeError as where:
            line = where.lineno
        except (ValueError, RecursionError):
            pass
        fact = str(error)
        raise UnreadableError(fact, file=str(file.path), line=line, hint=TRUNCATED_HINT) from None


def collections_of(document: Any, rows: str | None) -> list[Collection]:
    """Return the collections of rows in a document, largest first, or only that at a path."""
    if rows is not None:
        found = rows_at(document, rows)
        return [] if found is None else [_collection(document, rows, found)]
    places = find_row_lists(document)
    known = [one for one in places if one.count > 1 or not one.parts]
    largest = sorted(known, key=lambda one: -one.count)
    return [
        replace(
            _collection(document, one.path, rows_at(document, one.path) or []),
            path=one.path if one.parts or isinstance(document, dict) else None,
            is_list=one.is_list, twins=tuple(twin.path for twin in twins), every=every,
        )
        for one in largest[:MAX_LISTS] for every, twins in [_twins(one, places)]
    ]  # fmt: skip


def _twins(place: RowList, places: Sequence[RowList]) -> tuple[str, list[RowList]]:
    """Return the lists that look like this one at other names of one part, and their path."""
    best: tuple[str, list[RowList]] = (place.path, [place])
    for index in range(len(place.parts)):
        alike = [
            one for one in places
            if one.is_list == place.is_list and len(one.parts) == len(place.parts)
            and all(a == b or n == index
                    for n, (a, b) in enumerate(zip(one.parts, place.parts, strict=True)))
            and 2 * len({*one.names} & {*place.names}) > len({*one.names, *place.names})
        ]  # fmt: skip
        if len(alike) > len(best[1]):
            parts = [*place.parts[:index], EVERY, *place.parts[index + 1 :]]
            best = ".".join(parts), alike
    return best


def _collection(document: Any, path: str | None, rows: list[Any]) -> Collection:
    parent = (path or TOP).rpartition(".")[0]
    beside = [document, value_at(document, parent) if parent else None]
    stated = {
        name: float(value)
        for one in beside
        if isinstance(one, dict) and path != TOP and EVERY not in (path or TOP).split(".")
        for name, value in one.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }
    return Collection(path, [row for row in rows[:ROWS_READ] if isinstance(row, dict)], stated)


def find_row_lists(document: Any) -> list[RowList]:
    """Find all row lists in a document: lists before objects by name, longest first."""
    lists = sorted(_row_lists(document, (), MAX_DEPTH), key=lambda one: -one.count)
    return sorted(lists, key=lambda one: not one.is_list)


def _row_lists(value: Any, parts: tuple[str, ...], depth: int) -> Iterator[RowList]:
    rows = as_rows(value)
    if rows is not None and len(rows) > 1 - isinstance(value, list):
        looked_at = [row for row in islice(rows, ROWS_LOOKED_AT) if isinstance(row, dict)]
        names = dict.fromkeys(name for row in looked_at for name in row)
        yield RowList(parts, len(rows), tuple(names), isinstance(value, list))
    if isinstance(value, list) and rows and depth:
        yield from _lists_in_rows(value, parts)
    if isinstance(value, dict) and depth:
        for name, part in value.items():
            if isinstance(part, dict | list):
                yield from _row_lists(part, (*parts, name), depth - 1)


def _lists_in_rows(rows: list[Any], parts: tuple[str, ...]) -> Iterator[RowList]:
    """Iterate over the lists of objects that most rows of a list have."""
    known = [row for row in rows if isinstance(row, dict)]
    for name in dict.fromkeys(name for row in known[:ROWS_LOOKED_AT] for name in row):
        lists = [row[name] for row in known if isinstance(row.get(name), list)]
        inner = [as_rows(one) or [] for one in lists]
        if 2 * sum(map(bool, inner)) >= len(known):
            first: list[Any] = next(filter(None, inner))
            yield RowList(
                (*parts, EVERY, name), sum(map(len, inner)), tuple(first[0]), is_list=True
            )


def rows_at(document: Any, path: str) -> list[Any] | None:
    """Return the rows at a path; None if there are none.

    What `*` stands for is the task, if it has a name; texts beside inner rows are columns of them.
    """
    split = split_every(path)
    if split is None:
        return as_rows(document if path == TOP else value_at(document, path))
    parent, found = value_at(document, split[0]), []
    members = parent.items() if isinstance(parent, dict) else enumerate(
        parent if isinstance(parent, list) else ())  # fmt: skip
    for name, member in members:
        outer: dict[str, Any] = {"task": name} if isinstance(parent, dict) else {}
        if split[1] and isinstance(member, dict):
            outer |= {key: text for key, text in member.items()
                      if isinstance(text, str) or key in IDS}  # fmt: skip
        label = split[0].rpartition(".")[2] or "outer"
        for row in rows_at(member, split[1] or TOP) or ():
            doubled = {f"{label}.{key}": outer[key] for key in outer.keys() & row.keys()}
            found.append({**outer, **doubled, **row})
    return found or None


def as_rows(value: Any) -> list[Any] | None:
    """Return the rows in a value; None if it has none. A null stands for a result that failed."""
    if isinstance(value, list):
        first = next((row for row in value if row is not None), None)
        return [row or {} for row in value] if isinstance(first, dict) else None
    if not isinstance(value, dict) or not value:
        return None
    members = value.values()
    if all(isinstance(member, dict) for member in members):
        if not any(map(_has_cells, members)):
            return _rows_by_model(value)
        fullest = max(members, key=len)
        if sum(_is_alike(member, fullest) for member in members) < MIN_ALIKE * len(members):
            return None
        return [{"item": name, **member} for name, member in value.items()]
    if all(isinstance(member, list) for member in members):
        return _rows_by_name(value) or _rows_of_samples(value) or _rows_of_ids(value)
    if len(value) >= MIN_VERDICTS and _are_verdicts(members):
        return [{"item": name, "score": member} for name, member in value.items()]
    return _rows_of_ids(value)


def _has_cells(member: Row) -> bool:
    """Whether an object has a plain value, so that it is a row, not objects by name itself."""
    return any(not isinstance(part, dict | list) for part in member.values())


def _are_verdicts(values: Values[Any], *, both: bool = True) -> bool:
    """Whether these are truth values, or the numbers 0 and 1, both of them."""
    if all(isinstance(value, bool) for value in values):
        return True
    are_whole = all(isinstance(value, int) for value in values)
    return are_whole and ({*values} == {0, 1} if both else {*values} <= {0, 1})


def _rows_by_name(lists: Mapping[str, list[Any]]) -> list[Any] | None:
    """Return the rows of lists by name; the name is the task if the rows have ids, else the item.

    Lists with the same ids may be those of models as well as of tasks: that is not for us to say.
    """
    rows = {name: as_rows(one) or [{} for _ in one] for name, one in lists.items()}
    filled = [one for one in rows.values() if one]
    first: list[Row] = max(filled, key=lambda one: len(one[0]), default=[{}])
    if not first[0] or not all(_is_alike(row, first[0]) for one in rows.values()
                               for row in one[:1] if row):  # fmt: skip
        return None
    known = next((name for name in IDS if name in first[0]), None)
    ids = [[str(row.get(known)) for row in one] for one in rows.values() if one and any(one)]
    have_ids = known is not None and all(len({*one}) == len(one) for one in ids)
    if have_ids and max(map(len, ids)) > 1:
        if len({name for one in ids for name in one}) < sum(map(len, ids)):
            return None
        return [{"task": name, **row} for name, one in rows.items() for row in one]
    return _numbered([({"item": name}, one) for name, one in rows.items()])


def _rows_of_samples(value: Mapping[str, list[Any]]) -> list[Any] | None:
    """Return a row for each verdict in lists by item: `{"q1": [true, false], "q2": [...]}`."""
    lengths = {len(one) for one in value.values()}
    # Few long lists are models, whose items are known by their place.
    if len(lengths) != 1 or not 0 < max(lengths) < len(value):
        return None
    if not all(_are_verdicts(one, both=False) for one in value.values()):
        return None
    return _numbered([
        ({"item": name}, [{"score": score} for score in one]) for name, one in value.items()
    ])  # fmt: skip


def _is_alike(row: Row, other: Row) -> bool:
    return 2 * len(row.keys() & other.keys()) >= len(other)


def _numbered(answers: Sequence[tuple[Mapping[str, str], list[Any]]]) -> list[Any]:
    """Return the answers to each item, numbered if an item has several."""
    if all(len(rows) == 1 for _, rows in answers):
        return [{**about, **row} for about, rows in answers for row in rows]
    return [
        {**about, "repeat": number, **row}
        for about, rows in answers
        for number, row in enumerate(rows)
    ]


def _rows_by_model(value: Mapping[str, Row]) -> list[Any] | None:
    """Return the rows below each item and model: `{ITEM: {MODEL: [ROW, ...]}}`."""
    answers: list[tuple[Mapping[str, str], list[Any]]] = []
    names = {model for models in value.values() for model in models}
    if not 0 < len(names) <= min(MAX_MODELS, len(value) - 1):
        return None
    for item, models in value.items():
        for model, below in models.items():
            one = as_rows(below) if isinstance(below, list) else [below]
            if one is None or not all(isinstance(row, dict) and _has_cells(row) for row in one):
                return None
            answers.append(({"item": item, "model": model}, one))
    return _numbered(answers) or None


def _rows_of_ids(value: Row) -> list[Any] | None:
    """Return a row for each id in the lists of a report: `{"submitted": [], "resolved": []}`."""
    lists = {
        name: one for name, one in value.items()
        if isinstance(one, list) and all(isinstance(part, str) for part in one)
    }  # fmt: skip
    words = {name: set(_WORDS.findall(name.lower())) for name in lists}
    right, wrong, everything = (
        [name for name in lists if words[name] & some] for some in (RIGHT, WRONG, ALL)
    )
    if len(right) != 1:
        return None
    passed = set(lists[right[0]])
    if not everything:  # stages, each of which fewer items pass
        stages = [name for name, one in lists.items() if passed < {*one}]
        everything = sorted(stages, key=lambda name: -len(lists[name]))[:1]
    if not everything and not wrong:
        return None
    ids = everything[:1] or [right[0], *wrong]
    every = dict.fromkeys(name for one in ids for name in lists[one])
    if not passed or not passed <= every.keys():
        return None
    return [{"item": name, "score": name in passed} for name in every]


def document_rows(file: TableFile, path: str) -> list[Row]:
    """Return the rows at a path of a document.

    Raises:
        ColumnError: there are no rows at this path.
        UnreadableError: the document is a list of something else.
    """
    document = read_document(file)
    rows = rows_at(document, path)
    if rows is not None and all(isinstance(row, dict) for row in rows):
        return rows
    if isinstance(document, list) and document:
        odd = next(n for n, row in enumerate(document) if row is not None and type(row) is not dict)
        raise UnreadableError(
            "this list contains something else than objects",
            file=str(file.path),
            line=next(islice(row_lines(file, TOP), odd, None), None),
            hint="write one object per result, in a list or one per line.",
        )
    if document == []:
        return []
    known = ", ".join(one.path for one in find_row_lists(document)[:6])
    raise ColumnError(
        f"there is no list of objects at {path!r}" + (f"; the lists are {known}" if known else ""),
        file=str(file.path),
        field="rows",
        hint=f"name the list with --columns rows={known.split(', ')[0] or 'PATH'}.",
    )


def row_lines(file: TableFile, path: str) -> Iterator[int]:
    """Iterate over the lines in which the rows at a path begin."""
    with readable_file(file.path), file.open() as stream:
        text = stream.read().decode("utf-8-sig", "replace")
    line, before = 1, 0
    top = next((offset for offset, char in enumerate(text) if char not in _BLANKS), 0)
    for offset in _row_starts(text, top, [] if path == TOP else path.split(".")):
        line += text.count("\n", before, offset)
        before = offset
        yield line


def _row_starts(text: str, at: int, parts: list[str]) -> Iterator[int]:
    """Iterate over the offsets of the rows of a list, or of lists by name, at a path."""
    if EVERY in parts:
        index = parts.index(EVERY)
        above = _located(text, at, parts[:index])
        for _, start in [] if above is None else _parts(text, above):
            yield from _row_starts(text, start, parts[index + 1 :])
        return
    found = _located(text, at, parts)
    if found is None:
        return
    for _, start in _parts(text, found):
        if text[found] == "{" and text[start] == "[":
            yield from (inner for _, inner in _parts(text, start))
        else:
            yield start


def _located(text: str, at: int, parts: list[str]) -> int | None:
    """Return the offset of the value at a path; None if there is no such path."""
    if not parts:
        return at
    for name, start in _parts(text, at):
        for count in range(len(parts), 0, -1):
            if name == ".".join(parts[:count]):
                inner = _located(text, start, parts[count:])
                if inner is not None:
                    return inner
    return None


def _parts(text: str, at: int) -> Iterator[tuple[str, int]]:
    """Iterate over name or index and offset of each part of the object or list at an offset."""
    is_object = text[at : at + 1] == "{"
    if text[at : at + 1] not in {"{", "["}:
        return
    index, at = 0, _skip(text, at + 1, _BLANKS)
    while text[at : at + 1] not in {"", "]", "}"}:
        name = str(index)
        if is_object:
            name, at = _DECODER.raw_decode(text, at)
            at = _skip(text, at, _BLANKS + ":")
        yield name, at
        _, at = _DECODER.raw_decode(text, at)
        index, at = index + 1, _skip(text, at, _BLANKS + ",")


def _skip(text: str, at: int, characters: str) -> int:
    while text[at : at + 1] and text[at] in characters:
        at += 1
    return at
