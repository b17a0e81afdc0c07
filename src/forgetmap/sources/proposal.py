"""Proposed mappings: how a table would be read, with every guess that was made."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from forgetmap.errors import ColumnError, InputError, UnknownFormatError
from forgetmap.records import Run, check_run
from forgetmap.sources.collection import ComparedWith, collections
from forgetmap.sources.column_maps import is_map
from forgetmap.sources.column_words import word_of
from forgetmap.sources.documents import read_document
from forgetmap.sources.inference import Inferred, infer, items_by_name
from forgetmap.sources.logs import recognise
from forgetmap.sources.matrix import TASK, line_of_value
from forgetmap.sources.models import score_columns, selector
from forgetmap.sources.profile import ColumnProfile, profile_columns
from forgetmap.sources.rows import csv_cells
from forgetmap.sources.selection import is_remote, read_selection
from forgetmap.sources.sniff import TableFile, sniff
from forgetmap.sources.table import read_table
from forgetmap.sources.table_map import TableMap
from forgetmap.sources.unknown import explain_path, summary_error, unknown_document

ROWS_LOOKED_AT = 2_000
SHAPES = {"csv": "CSV", "jsonl": "JSON lines", "json": "a JSON list", "parquet": "Parquet"}
MODEL_WORDS = ("model", "modelname", "modelid", "system", "generator", "agent")


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


@dataclass(slots=True)
class _Draft:
    """An unfinished proposal."""

    shape: str
    rows: Sequence[Mapping[str, Any]]
    table_map: TableMap
    models: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


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
        if file.headerless:
            draft = _matrix([cells for _, cells in csv_cells(file)])
        else:
            draft = _draft(file, known)
    except InputError as error:
        raise explain_path(path, error) from None
    profiles = profile_columns(draft.rows)
    proposal = MapProposal(
        path, draft.shape, len(draft.rows), profiles, draft.table_map, draft.models, draft.notes
    )
    if path.is_dir():
        proposal = replace(proposal, example=file.path)
    return _tried(file, _as_log(proposal))


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


def _as_log(proposal: MapProposal) -> MapProposal:
    """Add a note if the file is a log, which needs no map."""
    log = next(iter(recognise(proposal.path)), None)
    if log is None:
        return proposal
    form = log.format or log.adapter
    note = f"this is a log of {form}, which needs no mapping; with a mapping it is read as a table."
    return replace(proposal, log_format=form, notes=(note, *proposal.notes))


def _tried(file: TableFile, proposal: MapProposal) -> MapProposal:
    """Read the table with the proposed map, and add the run or the problem."""
    path, table_map = proposal.path, proposal.table_map
    name = path.name.split(".")[0]
    try:
        if proposal.models:
            run = read_selection(file, proposal.models[0], name=name, table_map=table_map)
        else:
            run = read_table([file], name=name, origin=str(path), table_map=table_map)
        check_run(run, unique=True)
    except InputError as error:
        # Its hint is to propose a mapping, which is what this is.
        is_unmapped = isinstance(error, ColumnError) and error.missing
        return replace(proposal, problem=error.located if is_unmapped else str(error))
    return replace(proposal, run=run, notes=(*proposal.notes, *run.notices))


def _matrix(rows: Sequence[Sequence[Any]]) -> _Draft:
    height, width = len(rows), len(rows[0])
    shape = f"a matrix of {height:,} rows and {width:,} columns without header"
    kind, count = ("row", height) if width > height else ("col", width)
    note = (
        f"{'rows' if kind == 'row' else 'columns'} are treated as models, because there are "
        "fewer of them; #col1 is the first column, #row1 the first row."
    )
    models = [f"{kind}{number}" for number in range(1, count + 1)]
    return _Draft(shape, [], TableMap(), models, [note])


def _draft(file: TableFile, known: TableMap) -> _Draft:
    document = read_document(file) if file.single or file.kind == "json" else None
    if isinstance(document, list) and document and all(isinstance(r, list) for r in document):
        return _matrix(document)
    if isinstance(document, dict) and known.rows is None:
        summary = summary_error(file.path, document)
        if summary is not None:
            raise summary
    drafts = [_of_rows(file, known, one.path, one.rows) for one in collections(file, known.rows)]
    if drafts:
        return max(drafts, key=_completeness)
    names = document if isinstance(document, dict) else {}
    lines = [name for name, value in names.items() if line_of_value(value) is not None]
    if len(lines) > 1 and len(lines) == len(names):
        return _Draft("a JSON document of scores by model", [], known, lines)
    raise unknown_document(file.path, document)


def _completeness(draft: _Draft) -> tuple[bool, bool, int]:
    columns = draft.table_map.columns
    has_score = "score" in columns or bool(draft.models)
    return has_score, "item" in columns or "question" in columns, len(draft.rows)


def _of_rows(
    file: TableFile, known: TableMap, path: str | None, rows: Sequence[Mapping[str, Any]]
) -> _Draft:
    shape = SHAPES[file.kind] if path is None else f"a JSON document, rows in {path}"
    draft = _Draft(shape, rows[:ROWS_LOOKED_AT], replace(known, rows=path or known.rows))
    model = known.model or next((name for name in rows[0] if word_of(name) in MODEL_WORDS), None)
    models = sorted({str(row[model]) for row in rows if row.get(model)}) if model else []
    only = (model, models[0]) if model and len(models) > 1 else None
    inferred = infer(file, draft.table_map, ComparedWith(), only=only, guess=True)
    wide = score_columns(rows) if "score" not in known.columns and inferred is None else []
    if inferred is not None:
        _add(draft, inferred)
    elif len(wide) > 1:
        draft.models = wide
        draft.table_map = items_by_name(draft.table_map, rows)
    else:
        draft.table_map = items_by_name(draft.table_map, rows)
        draft.notes.append("no column looks like a score: name it with --columns score=COLUMN.")
    if only is not None:
        draft.models = models
        draft.table_map = replace(
            draft.table_map, model=None if model in ("model", "model_name") else model
        )
    if "task" not in draft.table_map.columns and draft.table_map.task is None:
        draft.table_map = replace(draft.table_map, task=TASK)
        draft.notes.append(f"no column contains task names: all rows belong to the task {TASK!r}.")
    return draft


def _add(draft: _Draft, inferred: Inferred) -> None:
    draft.table_map = inferred.table_map
    draft.notes += [inferred.said, *inferred.guesses]
