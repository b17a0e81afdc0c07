"""Where the results of one model are in a file: a part, a column, or the rows that name it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from forgetmap.errors import ColumnError
from forgetmap.records import listed
from forgetmap.sources.collection import Collection, ComparedWith, collections
from forgetmap.sources.column_words import (
    GOLD,
    MAX_LABELS,
    has_lists,
    kind_of,
    right_word,
    word_of,
    words_of,
)
from forgetmap.sources.documents import find_row_lists, read_document
from forgetmap.sources.sniff import TableFile
from forgetmap.sources.table_map import TableMap


def find_model(
    file: TableFile, model: str, known: TableMap, beside: ComparedWith | None = None
) -> tuple[TableMap, tuple[str, str] | None] | None:
    """Return where the results of a model are; None if that is not clear.

    They are a part of a document whose name has the model's in it, a column of scores or answers
    with such a name, or the rows with this value in a column of few values.
    """
    if (file.single or file.kind == "json") and known.rows is None:
        document = read_document(file)
        names = _named_like(model, document) if isinstance(document, dict) else []
        lists = find_row_lists(document) if len(names) == 1 else []
        paths = [one.path for one in lists if _is_below(one.path, names[0]) and one.count > 1]
        if paths:
            return replace(known, rows=paths[0]), None
    name, _, label = model.partition("=")
    for table in collections(file, known.rows):
        columns = _named_like(name, table.columns)
        whose = [path for path, values in table.columns.items() if _is_whose(values, model)]
        whose = [path for path in whose if path == known.model] or whose
        if len(whose) == 1 and name not in columns:
            return known, (whose[0], model)
        if len(columns) == 1 and "score" not in known.columns:
            score = f"{columns[0]}={label}"
            spec = score if label else _score_in(file, table, columns[0], known, beside)
            if spec is not None:
                return known.with_columns(score=spec), None
    return None


def _is_whose(values: Sequence[Any], model: str) -> bool:
    """Whether a column of few values names the model of each row."""
    if has_lists(values) or model not in values:
        return False
    return len({*map(str, values)}) <= max(MAX_LABELS, len(values) // 5)


def _named_like(model: str, names: Iterable[str]) -> list[str]:
    """Return the name that is the model's, else those that have it as a whole word."""
    names = list(names)
    word = re.compile(rf"(?<![A-Za-z0-9]){re.escape(model)}(?![A-Za-z0-9])")
    return [name for name in names if name == model] or [one for one in names if word.search(one)]


def _is_below(path: str, name: str) -> bool:
    return path == name or path.startswith(f"{name}.")


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
        if GOLD.intersection(words_of(path)) or word_of(path) == "answer"
    ]  # fmt: skip
    if kind in {"text", "label"} and len(golds) == 1 and golds[0] != column:
        return f"{column}=={golds[0]}"
    labels = sorted({str(value) for value in values if value not in (None, "")})
    if kind in {"label", "graded"} and 1 < len(labels) <= MAX_LABELS and not has_lists(values):
        typed = beside.sources if beside else ()
        commands = [
            "`" + shlex.join(
                ["forgetmap", "compare", *(f"{source}={label}" for source in typed)]
                if typed else ["forgetmap", "records", "show", f"{file.path}#{column}={label}"]
            ) + "`"
            for label in labels[:3]
        ]  # fmt: skip
        raise ColumnError(
            f"column {column!r} has the values {listed(labels)}, and which of them counts as right "
            "is not certain",
            file=str(file.path),
            field=column,
            hint=f"choose one: {', or '.join(commands)}.",
        )
    return None
