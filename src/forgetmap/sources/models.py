"""One model of a file with several: `TABLE#NAME`.

`scores.csv#tuned` takes the column `tuned` as score, or the rows with this value in a column of few
values, or the row that begins with `tuned`; `log.jsonl#tuned.is_correct` is a path into the rows,
and `log.json#tuned` a part of a document. In matrices without names, columns and rows are counted
from 1: `#col2` is the second column, `#row2` the second row, and `#2` the second column if there
are at least as many rows as columns. Their items are numbered, too.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import pyarrow as pa

from forgetmap.errors import TRUNCATED_HINT, ColumnError, EmptyInputError, FieldError
from forgetmap.records import FileRow, Run, RunInfo, canonical_run, connection, listed
from forgetmap.sources.cells import EVERY, NOTHING, value_at
from forgetmap.sources.column_words import (
    GOLD,
    MAX_LABELS,
    has_lists,
    kind_of,
    right_word,
    word_of,
    words_of,
)
from forgetmap.sources.documents import Collection, as_rows, find_row_lists, read_document
from forgetmap.sources.inference import Inferred, explain_unread, infer
from forgetmap.sources.maps import MARK, ComparedWith, ScoreRange, TableMap, selector
from forgetmap.sources.rows import collections, csv_cells, first_rows, rows_of
from forgetmap.sources.score_choice import ASKED, score_candidates, score_columns
from forgetmap.sources.sniff import TableFile
from forgetmap.sources.table import TASK, distinct_texts, prepare_table, read_table

MODELS = ("model", "model_name", "template", "system")
"""Columns with the model of a row."""
MISSING = frozenset({"", "na", "nan"})
"""Missing values as R and NumPy write them."""
MAX_MEASURES = 4
_TRUTH = {"true": 1.0, "false": 0.0}
Found = tuple[TableMap, tuple[str, str] | None]
"""How a table is read, and which rows: those with this value in this column."""


@dataclass(frozen=True, slots=True)
class ScoreLine:
    """A row or column of scores.

    Attributes:
        cells: the scores as written.
        lines: the line of each score.
        items: names of the items; None if they are known only by position.
    """

    cells: Sequence[Any]
    lines: Sequence[int]
    items: Sequence[str] | None = None


def find_model(
    file: TableFile, model: str, known: TableMap, beside: ComparedWith | None = None
) -> Found | ScoreLine | None:
    """Return where the results of a model are; None if they are nowhere.

    Raises:
        ColumnError: the values of its column are labels of which the right one is not certain.
    """
    if file.headerless:
        return _of_matrix(file, list(csv_cells(file)), model)
    if (file.single or file.kind == "json") and known.rows is None:
        document = read_document(file)
        if isinstance(document, list) and document and all(isinstance(r, list) for r in document):
            return _of_matrix(file, [(1, row) for row in document], model)
        found = _in_document(document, model, known)
        if found is not None:
            return found
    name, _, label = model.partition("=")
    for table in collections(file, known.rows):
        columns = _named_like(name, table.columns)
        whose = [path for path, values in table.columns.items() if _is_whose(values, model)]
        whose = [path for path in whose if path == known.model] or whose
        parts = {tuple(value == model for value in table.columns[path]) for path in whose}
        if len(parts) == 1 and name not in columns:
            return known, (whose[0], model)
        if columns and "score" not in known.columns:
            scores = [one for one in score_candidates(table, known) if one.spec in columns]
            certain = [one.spec for one in scores if one.rank < ASKED]
            firsts = [one.spec for one in scores if one.rank == scores[0].rank]
            if len(columns) > 1 and len(firsts) > 1 and not label:
                raise _unclear_measure(file, model, certain, beside)
            column = columns[0] if len(columns) == 1 else certain[0] if certain else None
            spec = f"{column}={label}" if label else None
            if spec is None and column is not None:
                spec = _score_in(file, table, column, known, beside)
            if spec is not None:
                return known.with_columns(score=spec), None
    if file.single or file.kind == "json":
        return None
    by = [known.model] if known.model else [name for name in MODELS if name in table.columns]
    if len(by) == 1:
        models = distinct_texts(prepare_table(file, replace(known, model=by[0])), by[0])
        if model in models:
            return known, (by[0], model)  # beyond the rows that were looked at
    return _row_of(file, model)


def _in_document(document: Any, model: str, known: TableMap) -> Found | ScoreLine | None:
    """Return the part of a document that has the model's name, or has it in its name."""
    value = value_at(document, model)
    if value is not NOTHING:
        line = _of_value(value)
        if line is not None:
            return line
        if as_rows(value) is not None:
            return replace(known, rows=model), None
    names = _named_like(model, document) if isinstance(document, dict) else []
    lists = find_row_lists(document) if len(names) == 1 else []
    below = [one for one in lists if one.parts[:1] == tuple(names) and one.count > 1]
    if not below:
        return None
    alike = [one for one in below if one.is_list and one.names == below[0].names]
    parts = set(zip(*(one.parts for one in alike), strict=False)) if len(alike) > 1 else set()
    # Several lists below a model are those of its tasks.
    path = [*zip(*(one.parts for one in alike), strict=False)] if parts else []
    if path and all(len(one.parts) == len(path) for one in alike):
        return replace(known, rows=".".join(
            part[0] if len({*part}) == 1 else EVERY for part in path)), None  # fmt: skip
    return replace(known, rows=below[0].path), None


def _of_value(value: Any) -> ScoreLine | None:
    """Return the scores in a list of numbers, or in numbers by name; None if it is neither."""
    cells = (
        value if isinstance(value, list) else [*value.values()] if isinstance(value, dict) else []
    )
    if not cells or not all(cell is None or isinstance(cell, int | float) for cell in cells):
        return None
    return ScoreLine(cells, [1] * len(cells), list(value) if isinstance(value, dict) else None)


def lines_by_model(document: Any) -> list[str]:
    """Return the names of a document that are nothing but scores by model."""
    names = document if isinstance(document, dict) else {}
    is_all = len(names) > 1 and all(_of_value(value) is not None for value in names.values())
    return list(names) if is_all else []


def _of_matrix(file: TableFile, rows: Sequence[tuple[int, list[Any]]], model: str) -> ScoreLine:
    """Return a row or column of a matrix, by its number."""
    height, width = len(rows), len(rows[0][1])
    for line, cells in rows:
        if len(cells) != width:
            raise FieldError(
                f"the line has {len(cells)} numbers, but the first line has {width}",
                file=str(file.path),
                line=line,
                hint="use the same number of columns in every line.",
            )
    kind = next((kind for kind in ("row", "col") if model.startswith(kind)), "")
    digits = model.removeprefix(kind)
    if not digits.isdecimal() or not 1 <= int(digits[:9]) <= (height if kind == "row" else width):
        raise ColumnError(
            f"this table has no header, {height} rows and {width} columns; there is no {model!r}",
            file=str(file.path),
            field=model,
            hint=f"choose a column such as {selector(file.path, 'col1')}, or a row such as "
            f"{selector(file.path, 'row1')}.",
        )
    if not kind and width > height:
        raise ColumnError(
            f"this table has no header and more columns ({width}) than rows ({height}), so it is "
            "unclear whether the rows are items or models",
            file=str(file.path),
            field=model,
            hint=f"use {selector(file.path, f'row{digits}')} if each row is a model, or "
            f"{selector(file.path, f'col{digits}')} if each column is one.",
        )
    index = int(digits[:9]) - 1
    if kind == "row":
        line, cells = rows[index]
        return ScoreLine(cells, [line] * width)
    return ScoreLine([cells[index] for _, cells in rows], [line for line, _ in rows])


def _row_of(file: TableFile, model: str) -> ScoreLine | None:
    """Return the row of a model in a table with a row per model and a column per item."""
    if file.single or file.kind == "json":
        return None
    found = []
    for line, row in rows_of(file):
        column = next((name for name in MODELS if name in row), next(iter(row), ""))
        if str(row.get(column)) == model:
            scores = {name: cell for name, cell in row.items() if name != column}
            found.append(ScoreLine(list(scores.values()), [line] * len(scores), list(scores)))
    return found[0] if len(found) == 1 else None


def column_by_place(file: TableFile, column: str) -> ScoreLine:
    """Return a column of a table without ids, whose items are known by their place."""
    cells = [(line, row.get(column)) for line, row in rows_of(file)]
    return ScoreLine([cell for _, cell in cells], [line for line, _ in cells])


def _is_whose(values: Sequence[Any], model: str) -> bool:
    """Whether a column of few values names the model of each row."""
    if has_lists(values) or model not in values:
        return False
    return len({*map(str, values)}) <= max(MAX_LABELS, len(values) // 5)


def _named_like(model: str, names: Iterable[str]) -> list[str]:
    """Return the name that is the model's, else those that have it as a whole word."""
    names = list(names)
    word = re.compile(rf"(?<![A-Za-z0-9]){re.escape(model)}(?![A-Za-z0-9])")
    return (
        [name for name in names if name == model]
        or [name for name in names if name.rpartition(".")[2] == model]
        or [name for name in names if word.search(name)]
    )


def _unclear_measure(
    file: TableFile, model: str, columns: Sequence[str], beside: ComparedWith | None
) -> ColumnError:
    """Return the error for several measures of a model, with a command for each."""
    typed = beside.sources if beside else ()
    models = [source.rpartition(MARK)[2] for source in typed]
    commands = []
    for column in columns[:MAX_MEASURES]:
        names = [column.replace(model, one) for one in models]
        words = ["compare", *(f"{file.path}{MARK}{name}" for name in names)]
        words = words if typed else ["records", "show", f"{file.path}{MARK}{column}"]
        commands.append(f"`{shlex.join(['forgetmap', *words])}`")
    return ColumnError(
        f"{model!r} has several columns that may be the score: {listed(list(columns))}",
        file=str(file.path),
        field="score",
        hint=f"choose one: {', or '.join(commands)}.",
    )


def _score_in(
    file: TableFile, table: Collection, column: str, known: TableMap, beside: ComparedWith | None
) -> str | None:
    """Return the score in a column of one model: a verdict, a share, or an answer to grade.

    Raises:
        ColumnError: the column has few values, of which it is not clear which one is right.
    """
    values = table.columns[column]
    kind = kind_of(values)
    if kind in {"verdict", "share"} or (kind == "graded" and known.score_range is not None):
        word = right_word(values)
        return column if word is None else f"{column}={word}"
    golds = [
        path for path in table.columns
        if (GOLD.intersection(words_of(path)) or word_of(path) == "answer")
        and kind_of(table.columns[path]) in {"text", "label", "graded"}
    ]  # fmt: skip
    if kind in {"text", "label"} and len(golds) == 1 and golds[0] != column:
        return f"{column}=={golds[0]}"
    labels = sorted({str(value) for value in values if value not in (None, "")})
    if kind not in {"label", "graded"} or not 1 < len(labels) <= MAX_LABELS or has_lists(values):
        return None
    typed = beside.sources if beside else ()
    commands = [
        shlex.join(
            ["forgetmap", "compare", *(f"{source}={label}" for source in typed)]
            if typed else ["forgetmap", "records", "show", f"{file.path}#{column}={label}"]
        )
        for label in labels[:3]
    ]  # fmt: skip
    raise ColumnError(
        f"column {column!r} has the values {listed(labels)}, and which of them counts as right "
        "is not certain",
        file=str(file.path),
        field=column,
        hint="choose one: " + ", or ".join(f"`{command}`" for command in commands) + ".",
    )


def read_found(
    file: TableFile, found: Found | ScoreLine | None, model: str, *, name: str, origin: str,
    known: TableMap, beside: ComparedWith | None = None,
    others: Callable[[], Sequence[Collection]] = tuple,
) -> Run:  # fmt: skip
    """Read the results of one model where they were found.

    Raises:
        ColumnError: they are nowhere, or it is not clear which column is the score.
    """
    if isinstance(found, ScoreLine):
        return read_line(file, found, name=name, origin=origin, table_map=known)
    if found is None:
        raise no_such_model(file, model, known)
    table_map, only = found
    table_map = replace(table_map, fallback_task=table_map.fallback_task or TASK)
    inferred = infer(file, table_map, beside or ComparedWith(), others, only)
    if inferred is not None:
        return read_inferred(file, inferred, table_map, name=name, origin=origin, only=only)
    if only is None and not table_map.names_item and table_map.rows is None:
        line = column_by_place(file, table_map.columns.get("score", model))
        return read_line(file, line, name=name, origin=origin, table_map=known)
    names = {*table_map.columns}
    if not file.single:
        names |= {*next(iter(first_rows(file, table_map.rows, 1)), ())}
    row = _row_of(file, model) if only is not None and "score" not in names else None
    if row is not None:
        return read_line(file, row, name=name, origin=origin, table_map=known)
    error = explain_unread(file, table_map, beside or ComparedWith(), others, only)
    if error is not None and "score" not in names:
        raise error
    return read_table([file], name=name, origin=origin, table_map=table_map, only=only)


def read_inferred(
    file: TableFile, inferred: Inferred, known: TableMap, *, name: str, origin: str,
    only: tuple[str, str] | None = None,
) -> Run:  # fmt: skip
    """Read a table as inferred, with a notice that says how."""
    run = read_table([file], name=name, origin=origin, table_map=inferred.table_map, only=only,
                     is_inferred=True)  # fmt: skip
    # What the user named needs no word.
    said = [] if "score" in known.columns and known.names_item else [inferred.said]
    encoded = [f"not UTF-8: read as {file.encoding}."] if file.encoding else []
    return replace(
        run,
        notices=(*said, *encoded, *run.notices),
        contradictions=(*run.contradictions, *inferred.contradictions),
    )


def no_such_model(file: TableFile, model: str, known: TableMap) -> ColumnError:
    """Return the error for a name that is nowhere in a file, with those that there are."""
    choices: list[str] = []
    for table in collections(file, known.rows):
        by = [known.model] if known.model else [name for name in MODELS if name in table.columns]
        choices = sorted({*map(str, table.values(by[0]))}) if by else score_columns(table)
        if choices:
            break
        first = next(iter(table.columns), "")
        choices = [str(value) for value in table.columns.get(first, ()) if isinstance(value, str)]
    what = f"there is no column or model {model!r}"
    if model in choices:
        what = f"no score was found in the results of {model!r}"
    return ColumnError(
        f"{what}; the choices are {listed(choices)}" if choices else what,
        file=str(file.path),
        field=model,
        hint=f"choose one of them, such as {selector(file.path, choices[0])}."
        if choices and model not in choices
        else "name its columns: add --columns item=COLUMN,score=COLUMN.",
    )


def read_line(
    file: TableFile, line: ScoreLine, *, name: str, origin: str, table_map: TableMap
) -> Run:
    """Make a run of a row or column of scores."""
    if not line.cells:
        raise EmptyInputError("there are no results", file=str(file.path), hint=TRUNCATED_HINT)
    items = line.items or [str(number) for number in range(1, len(line.cells) + 1)]
    scores = [
        _score(file, cell, line_number, item, table_map.score_range)
        for cell, line_number, item in zip(line.cells, line.lines, items, strict=True)
    ]
    tasks = [table_map.task or TASK] * len(scores)
    kinds = [("task", pa.string()), ("item", pa.string()), ("score", pa.float64())]
    table = pa.table([tasks, items, scores], schema=pa.schema(kinds))

    def rows() -> Iterator[tuple[int, Mapping[str, Any]]]:
        for line_number, row in zip(line.lines, table.to_pylist(), strict=True):
            yield line_number, FileRow(row, file=str(file.path))

    frame = nw.from_native(connection().from_arrow(table))
    run = canonical_run(frame, info=RunInfo(), name=name, origin=origin, rows=rows)
    return run if line.items else replace(run, positions_of=str(file.path.resolve()))


def _score(
    file: TableFile, cell: Any, line: int, item: str, scale: ScoreRange | None
) -> float | None:
    text = "" if cell is None else str(cell).strip()
    if text.lower() in MISSING:
        return None
    try:
        score = _TRUTH[text.lower()] if text.lower() in _TRUTH else float(text)
    except ValueError:
        score = None
    if score is not None and (scale is None or scale.holds(score)):
        return score if scale is None else float(scale.share(score))
    if score is None:
        what = f"{text[:60]!r} of {item!r} is not a score"
        hint = "give a number, true or false, or leave the cell empty."
    else:
        what = f"score is {score:g}, outside of --range {scale}"
        hint = "give the worst and the best possible score, such as --range 0:100."
    raise FieldError(what, file=str(file.path), line=line, field="score", hint=hint)
