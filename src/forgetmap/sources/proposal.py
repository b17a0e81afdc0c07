"""Proposed mappings: what is in a table, how it would be read, and every guess that was made."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from forgetmap.errors import ColumnError, InputError, UnknownFormatError
from forgetmap.records import Run, check_run
from forgetmap.sources.cells import EVERY, scalar_paths
from forgetmap.sources.column_words import as_number, word_of
from forgetmap.sources.documents import Collection, read_document
from forgetmap.sources.inference import infer, items_by_name
from forgetmap.sources.logs import recognise
from forgetmap.sources.maps import ComparedWith, TableMap, is_map, is_remote, selector
from forgetmap.sources.models import find_model, lines_by_model, read_found
from forgetmap.sources.rows import collections, csv_cells
from forgetmap.sources.score_choice import score_columns
from forgetmap.sources.sniff import TableFile, sniff
from forgetmap.sources.table import MODELS, TASK, read_table
from forgetmap.sources.unknown import SHAPES, explain_path, summary_error, unknown_document

ROWS_LOOKED_AT = 2_000
EXAMPLES, EXAMPLE_LENGTH, MAX_DEPTH = 3, 40, 4
MODEL_WORDS = ("model", "modelname", "modelid", "system", "generator", "agent")
NUMBERS = {"truth value", "whole number", "number"}


@dataclass(frozen=True, slots=True)
class ColumnProfile:
    """A column, or the values at a path inside one.

    Attributes:
        path: name or path; `*` stands for every element of a list.
        kind: type of the values: truth value, whole number, number, text, list, mixed or empty.
        filled: number of rows with a value.
        different: number of distinct values.
        low: the smallest number; None if the values are not numbers.
        high: the largest number.
        examples: the first distinct values, as text.
    """

    path: str
    kind: str
    filled: int
    different: int
    low: float | None
    high: float | None
    examples: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MapProposal:
    """A proposed map for a table.

    Attributes:
        path: the table, or folder of tables.
        shape: kind of file, in words.
        rows: number of rows examined.
        columns: profiles of the columns.
        table_map: the proposed map.
        models: names to choose from after `#`, if the table has several models.
        notes: guesses, and decisions left to the user.
        run: the table, or its first model, read with the map; None if that fails.
        problem: why the table cannot be read with the map.
        origin: the URL of a remote table.
        log_format: format of the log, if the file is a log and needs no map.
        example: the file examined, if `path` is a folder.
    """

    path: Path
    shape: str
    rows: int
    columns: Sequence[ColumnProfile]
    table_map: TableMap
    models: Sequence[str] = ()
    notes: Sequence[str] = ()
    run: Run | None = None
    problem: str = ""
    origin: str = ""
    log_format: str = ""
    example: Path | None = None

    @property
    def sources(self) -> list[str]:
        """Command-line arguments for the table, or for the first two of its models."""
        table = self.origin or (self.example if self.example and self.models else self.path)
        return [selector(table, name) for name in self.models[:2]] or [shlex.quote(str(table))]


def propose_map(source: str | Path, known: TableMap | None = None) -> MapProposal:
    """Examine a table and propose a map for it.

    Args:
        source: path or URL of a table or JSON document.
        known: map to complete; its entries are kept.
    """
    if not is_remote(source):
        return _propose(Path(source), known or TableMap())
    from forgetmap.sources.remote import fetch  # fsspec is large

    remote_copy = fetch(str(source))
    with remote_copy.errors_about_original():
        proposal = _propose(remote_copy.path, known or TableMap())
    problem = remote_copy.original_path(proposal.problem)
    return replace(proposal, origin=remote_copy.name, problem=problem)


def _propose(path: Path, known: TableMap) -> MapProposal:
    try:
        file = _first_table(path) if path.is_dir() else sniff(path)
        draft = _draft(path, file, known)
    except InputError as error:
        raise explain_path(path, error) from None
    draft = replace(draft, example=file.path if path.is_dir() else None)
    log = next(iter(recognise(path)), None)
    if log is not None:
        form = log.format or log.adapter
        note = f"this is a log of {form}, which needs no mapping; with one it is read as a table."
        draft = replace(draft, log_format=form, notes=(note, *draft.notes))
    try:
        run = _read(file, draft)
        check_run(run, unique=True)
    except InputError as error:
        # Its hint is to propose a mapping, which is what this is.
        is_unmapped = isinstance(error, ColumnError) and error.missing
        return replace(draft, problem=error.located if is_unmapped else str(error))
    return replace(draft, run=run, notes=(*draft.notes, *run.notices))


def _read(file: TableFile, draft: MapProposal) -> Run:
    """Read the table, or its first model, with the proposed map."""
    name, origin = draft.path.name.split(".")[0], str(draft.path)
    if not draft.models:
        return read_table([file], name=name, origin=origin, table_map=draft.table_map)
    found = find_model(file, draft.models[0], draft.table_map)
    return read_found(file, found, draft.models[0], name=name, origin=origin, known=draft.table_map)


def _first_table(folder: Path) -> TableFile:
    """Return the first table of a folder.

    Raises:
        UnknownFormatError: the folder contains no table.
    """
    for child in sorted(folder.iterdir()):
        if child.is_file() and not child.name.startswith((".", "_")) and not is_map(child):
            with suppress(InputError):
                return sniff(child)
    raise UnknownFormatError(
        "this folder contains no table, so there is nothing to map",
        file=str(folder),
        hint=f"`forgetmap records show {shlex.quote(str(folder))}` lists its contents.",
    )


def _draft(path: Path, file: TableFile, known: TableMap) -> MapProposal:
    if file.headerless:
        return _matrix(path, [cells for _, cells in csv_cells(file)])
    document = read_document(file) if file.single or file.kind == "json" else None
    if isinstance(document, list) and document and all(isinstance(r, list) for r in document):
        return _matrix(path, document)
    if isinstance(document, dict) and known.rows is None:
        summary = summary_error(file.path, document)
        if summary is not None:
            raise summary
    tables = [one for one in collections(file, known.rows) if one.rows]
    best = None
    with suppress(ColumnError):  # several lists that look alike are shown
        best = infer(file, known, ComparedWith(), guess=True) if len(tables) > 1 else None
    if best is not None:
        tables = [one for one in tables if one.path == best.table_map.rows] or tables
    drafts = [_of_rows(path, file, known, one) for one in tables]
    if drafts:
        return max(drafts, key=_completeness)
    models = lines_by_model(document)
    if models:
        return MapProposal(path, "a JSON document of scores by model", 0, (), known, models)
    raise unknown_document(file.path, document)


def _matrix(path: Path, rows: Sequence[Sequence[Any]]) -> MapProposal:
    height, width = len(rows), len(rows[0])
    shape = f"a matrix of {height:,} rows and {width:,} columns without header"
    kind, count = ("row", height) if width > height else ("col", width)
    note = (
        f"{'rows' if kind == 'row' else 'columns'} are treated as models, because there are "
        "fewer of them; #col1 is the first column, #row1 the first row."
    )
    models = [f"{kind}{number}" for number in range(1, count + 1)]
    return MapProposal(path, shape, 0, (), TableMap(), models, (note,))


def _completeness(draft: MapProposal) -> tuple[bool, bool, int]:
    has_score = "score" in draft.table_map.columns or bool(draft.models)
    return has_score, draft.table_map.names_item, draft.rows


def _of_rows(path: Path, file: TableFile, known: TableMap, table: Collection) -> MapProposal:
    shape = SHAPES[file.kind] if table.path is None else f"a JSON document, rows in {table.path}"
    known = replace(known, rows=table.path or known.rows)
    model = known.model or next((n for n in table.columns if word_of(n) in MODEL_WORDS), None)
    models = sorted({str(value) for value in table.values(model) if value}) if model else []
    only = (model, models[0]) if model and len(models) > 1 else None
    inferred = infer(file, known, ComparedWith(), only=only, guess=True)
    notes: list[str] = []
    if inferred is not None:
        known, notes = inferred.table_map, [inferred.said, *inferred.guesses]
    else:
        known = items_by_name(known, table.rows)
        wide = score_columns(table) if "score" not in known.columns else []
        if len(wide) > 1 and only is None:
            models = wide
        elif "score" not in known.columns:
            notes.append("no column looks like a score: name it with --columns score=COLUMN.")
    if only is not None:
        known = replace(known, model=None if model in MODELS else model)
    elif inferred is not None:
        models = []
    if "task" not in known.columns and known.task is None:
        known = replace(known, task=TASK)
        notes.append(f"no column contains task names: all rows belong to the task {TASK!r}.")
    looked_at = table.rows[:ROWS_LOOKED_AT]
    columns = profile_columns(looked_at)
    return MapProposal(path, shape, len(looked_at), columns, known, models, notes)


def profile_columns(rows: Sequence[Mapping[str, Any]]) -> list[ColumnProfile]:
    """Profile the columns of these rows and the values nested in them, in order of appearance."""
    values: dict[str, list[Any]] = {}
    for row in rows:
        for path, value in scalar_paths(row, depth=MAX_DEPTH):
            cells = values.setdefault(path, [])
            if value not in (None, "", [], {}):
                cells.append(value)
    profiles = []
    for path, cells in values.items():
        profiles.append(_profile(path, cells))
        if profiles[-1].kind == "list":
            inner: dict[str, list[Any]] = {}
            for element in (element for one in cells for element in one):
                for name, value in scalar_paths(element, f"{path}.{EVERY}", MAX_DEPTH):
                    inner.setdefault(name, []).append(value)
            of_elements = (_profile(*one) for one in inner.items())
            profiles += [profile for profile in of_elements if profile.kind in NUMBERS]
    return profiles


def _profile(path: str, cells: Sequence[Any]) -> ColumnProfile:
    kinds = {_kind(cell) for cell in cells}
    if kinds == {"whole number", "number"}:
        kinds = {"number"}
    kind = next(iter(kinds)) if len(kinds) == 1 else "mixed" if kinds else "empty"
    texts = list(dict.fromkeys(map(_as_text, cells)))
    numbers = [n for n in map(as_number, cells) if n is not None] if kind in NUMBERS else []
    words = [" ".join(text.split()) for text in texts[:EXAMPLES]]
    examples = (w if len(w) <= EXAMPLE_LENGTH else f"{w[: EXAMPLE_LENGTH - 3]}..." for w in words)
    return ColumnProfile(
        path, kind, len(cells), len(texts),
        min(numbers, default=None), max(numbers, default=None), tuple(examples),
    )  # fmt: skip


def _kind(cell: Any) -> str:
    if isinstance(cell, list):
        return "list"
    if isinstance(cell, bool) or str(cell).strip().lower() in {"true", "false"}:
        return "truth value"
    value = as_number(cell)
    if value is None:
        return "text"
    return "whole number" if value.is_integer() else "number"


def _as_text(cell: Any) -> str:
    try:
        return cell if isinstance(cell, str) else json.dumps(cell, ensure_ascii=False, default=str)
    except RecursionError:
        return "..."
