"""The public function `open_run`: open a path, a dataframe, or an open run."""

from __future__ import annotations

import os
import shlex
import zipfile
from collections.abc import Sequence
from dataclasses import replace
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any

from forgetmap.errors import (
    ColumnError,
    EmptyInputError,
    FieldError,
    InputError,
    MissingInputError,
    UnknownFormatError,
    UnreadableError,
    UsageError,
)
from forgetmap.records import (
    MANIFEST,
    SCORES,
    TEXTS,
    ColumnMap,
    Run,
    as_repeats,
    is_run_folder,
    name_only_task,
    read_run,
    run_from_frame,
)
from forgetmap.sources.bundles import bundle
from forgetmap.sources.documents import ROWS_LOOKED_AT, Collection, find_row_lists, read_document
from forgetmap.sources.inference import explain_unread, infer
from forgetmap.sources.logs import Reading, open_logs, recognise
from forgetmap.sources.maps import (
    MARK,
    ComparedWith,
    TableMap,
    is_map,
    is_remote,
    rescale_frame,
    rescale_run,
    saved_map,
    selector,
    split_selection,
)
from forgetmap.sources.models import find_model, read_found, read_inferred
from forgetmap.sources.rows import collections, first_rows, require_few_columns
from forgetmap.sources.sniff import TableFile, in_utf8, readable_file, sniff
from forgetmap.sources.spark import open_with_spark
from forgetmap.sources.table import TASK, column_names, read_table
from forgetmap.sources.unknown import (
    accepted,
    empty_folder,
    explain_path,
    find_pointers,
    pointer_error,
    summary_error,
    unknown_document,
)

MAX_FILES = 10_000
MAX_NAMES = 8
UNITS = (("GB", 1e9), ("MB", 1e6), ("kB", 1e3))
TEXTS_BESIDE = frozenset({".md", ".txt", ".log", ".yaml", ".yml", ".html", ".py", ".sh", ".toml"})
"""Endings of files that are no results."""
_UNREADABLE = (ColumnError, EmptyInputError, UnknownFormatError, UnreadableError)


def open_run(
    source: Any,
    *,
    name: str | None = None,
    column_map: ColumnMap | None = None,
    task: str | None = None,
    reading: Reading | None = None,
) -> Run:
    """Open results of any supported format.

    Args:
        source: path of a run folder, of the logs of a harness, of a table, or of a folder of tables
            or of repeats; `TABLE#NAME` for one model of a table with several; a dataframe; a `Run`.
        name: display name; by default the run id, else the name of the file or folder.
        column_map: canonical field -> column, for tables with other column names.
        task: name of the task, for logs or tables with a single task.
        reading: options for reading logs, and the scale of scores.
    """
    reading = reading or Reading()
    if isinstance(source, Run):
        return source
    if not isinstance(source, str | os.PathLike):
        run = run_from_frame(source, name=name or "dataframe", column_map=column_map, task=task)
        return rescale_frame(run, reading.score_range)
    if reading.spark is not None:
        return open_with_spark(
            source,
            reading.spark,
            name=name,
            column_map=column_map,
            task=task,
            score_range=reading.score_range,
        )
    if not os.fspath(source):  # as a path, this would be the current folder
        raise UsageError(
            "the path of a run is empty", hint="check the variable or argument that should name it."
        )
    if is_remote(source):
        return _open_remote(str(source), name, column_map or {}, task, reading)
    path, model = split_selection(os.fspath(source))
    return _open_local(path, model, name, column_map or {}, task, reading)


def _open_local(
    path: Path, model: str | None, name: str | None, columns: ColumnMap, task: str | None,
    reading: Reading,
) -> Run:  # fmt: skip
    with readable_file(path):
        if not path.exists():
            raise MissingInputError(
                "the file or folder does not exist", file=str(path), hint=_nearby(path)
            )
        run = _known_run(path) if model is None else None
        scale = reading.score_range
        if run is None:
            own_map = saved_map(path)[0].merged(columns, task, scale)
            # Named columns, or a map next to the file, mean that it is a table. A map given with
            # --mapping may be meant for the other side of a comparison.
            logs = [] if own_map.names_columns else recognise(path)
            of_model = [log for log in logs if log.info.model.name == model]
            if not logs or (model is not None and not of_model and path.is_file()):
                return _open_table(path, model, name, columns, task, reading)
            run = open_logs(path, logs, replace(reading, run=model or reading.run))
            run = _with_pointers(path, run)
            if reading.mapping is not None:
                run = _noticing(run, f"{run.origin} is a log of {run.format}, so --mapping was "
                                "ignored (to read it as a table: --columns "
                                "item=COLUMN,score=COLUMN).")  # fmt: skip
            task, scale, name = own_map.task, own_map.score_range, name or model
        run = run if task is None else name_only_task(run, task)
        run = run if scale is None else rescale_run(run, scale)
        return run if name is None else replace(run, name=name)


def _noticing(run: Run, notice: str) -> Run:
    return replace(run, notices=(*run.notices, notice))


def _open_table(
    path: Path, model: str | None, name: str | None, columns: ColumnMap, task: str | None,
    reading: Reading,
) -> Run:  # fmt: skip
    """Open a table, or one model of it."""
    saved, saved_in = saved_map(path, reading.mapping)
    known = saved.merged(columns, task, reading.score_range)
    beside = reading.beside
    others = partial(_other_collections, beside)
    try:
        file = _only_table(path)
        if model is not None:
            if file is None:
                raise _no_model_in(path, model)
            file, origin = in_utf8(file), f"{path}{MARK}{model}"
            found = find_model(file, model, known, beside)
            run = read_found(file, found, model, name=name or model, origin=origin,
                             known=known, beside=beside, others=others)  # fmt: skip
        else:
            run = _whole_table(path, file, name or path.name.split(".")[0], known, beside)
    except _UNREADABLE as error:
        logs = recognise(path) if columns and path.is_dir() else []
        if logs:
            raise ColumnError(
                f"this folder contains logs of {logs[0].format or logs[0].adapter}, not a table "
                "with columns",
                file=str(path),
                field=next(iter(columns)),
                hint="remove --columns, or give one of its files.",
            ) from None
        raise explain_path(path, error) from None
    first = next(iter(run.problems), None)
    if reading.strict and first is not None:
        raise FieldError(
            first.message, file=first.file, line=first.line, field=first.field,
            hint="fix this row, or remove --strict to leave the value out.",
        )  # fmt: skip
    return run if saved_in is None else _noticing(run, f"read with the mapping {saved_in}.")


def _whole_table(
    path: Path, file: TableFile | None, name: str, known: TableMap, beside: ComparedWith
) -> Run:
    """Open a table, by its own names of fields or as inferred."""
    files = [file] if file is not None else _table_files(path)
    first = in_utf8(files[0])
    table_map = replace(known, fallback_task=TASK) if known.columns else known
    if not first.headerless and not _is_plain(first, known):
        others = partial(_other_collections, beside)
        tables = _parts_of_table(files) if len(files) > 1 and known.rows is None else None
        guessed = replace(known, fallback_task=TASK)
        inferred = infer(first, guessed, beside, others, tables=tables)
        if inferred is not None and len(files) == 1:
            return read_inferred(first, inferred, known, name=name, origin=str(path))
        table_map = inferred.table_map if inferred else replace(known, fallback_task=TASK)
        if inferred is None and first.single and known.rows is None:
            table_map = replace(table_map, rows=_rows_without_score(first))
        error = None if inferred else explain_unread(first, known, beside, others)
        if error is not None:
            raise error
    is_inferred = table_map.left_out != () or table_map.columns.keys() > known.columns.keys()
    return read_table(
        files, name=name, origin=str(path), table_map=table_map, is_inferred=is_inferred
    )


def _parts_of_table(files: Sequence[TableFile]) -> list[Collection]:
    """Return the rows of files with the same columns as one collection, the largest first."""
    parts: dict[frozenset[str], list[Any]] = {}
    for file in files:
        if not file.headerless and not file.single:
            rows = collections(in_utf8(file), None)[0].rows
            parts.setdefault(frozenset(rows[0] if rows else ()), []).extend(rows)
    return [Collection(None, rows) for rows in sorted(parts.values(), key=len, reverse=True)]


def _rows_without_score(file: TableFile) -> str | None:
    """Return the path of the largest list in a document; None if it is one result itself.

    Raises:
        UnknownFormatError: there is no list of results, or the file has only averages.
    """
    document = read_document(file)
    require_few_columns(file, len(document))
    if "score" in document and file.kind == "jsonl":
        return None
    summary, lists = summary_error(file.path, document), find_row_lists(document)
    if summary is not None or not lists or not lists[0].is_list:
        raise summary or unknown_document(file.path, document)
    return lists[0].path


def _is_plain(file: TableFile, known: TableMap) -> bool:
    """Whether a table names its fields itself, or the user did: nothing is inferred then."""
    names = {*known.columns}
    if file.kind == "parquet":
        names |= {*column_names(file)}
    elif known.rows is None:
        if file.single or (file.kind == "json" and isinstance(read_document(file), dict)):
            return False  # where its rows are has to be found
        names |= {name for row in first_rows(file, None, ROWS_LOOKED_AT) for name in row}
    return "score" in names and not names.isdisjoint({"item", "question"})


def _other_collections(beside: ComparedWith) -> Sequence[Collection]:
    """Return the collections of the other run; none if it is a log, or cannot be read."""
    if beside.other is None:
        return ()
    path, model = split_selection(str(beside.other))
    try:
        if not path.exists() or is_run_folder(path):
            return ()
        if path.is_dir() and _has_tables(path):
            return _parts_of_table(_table_files(path))
        file = bundle(path) if path.is_dir() or zipfile.is_zipfile(path) else sniff(path)
        if file is None or file.headerless:
            return ()
        file = in_utf8(file)
        found = find_model(file, model, TableMap()) if model else (TableMap(), None)
        if not isinstance(found, tuple):
            return ()
        known, only = found
        return [one.of_model(only) for one in collections(file, known.rows)]
    except InputError:
        return ()


def _no_model_in(folder: Path, model: str) -> UnknownFormatError:
    files = (child for child in sorted(folder.iterdir()) if _is_visible_file(child))
    return UnknownFormatError(
        f"this folder contains no logs of several models, so {MARK}{model} does not exist",
        file=str(folder),
        hint=f"give one file of it, such as {selector(next(files, folder / 'FILE'), model)}.",
    )


def _open_remote(
    url: str, name: str | None, columns: ColumnMap, task: str | None, reading: Reading
) -> Run:
    """Open a local copy; errors and the run name the remote address."""
    from forgetmap.sources.remote import fetch  # fsspec is large

    def show(file: str, done: int, total: int) -> None:
        if reading.progress is not None:
            unit, size = next((one for one in UNITS if total >= one[1]), UNITS[-1])
            reading.progress(f"Fetching {file}: {done / size:,.1f} of {total / size:,.1f} {unit}")

    address, _, model = url.partition(MARK)
    remote_copy = fetch(address, on_progress=show if reading.progress else None)
    with remote_copy.errors_about_original():
        run = _open_local(remote_copy.path, model or None, name, columns, task, reading)
        return remote_copy.original_run(run)


def _known_run(path: Path) -> Run | None:
    """Read a run folder, or a folder of run folders as repeats; None if it is neither."""
    if is_run_folder(path):
        return read_run(path)
    children = sorted(path.iterdir()) if path.is_dir() else []
    runs = [child for child in children if child.is_dir() and is_run_folder(child)]
    return as_repeats([read_run(folder) for folder in runs], origin=str(path)) if runs else None


def _only_table(path: Path) -> TableFile | None:
    """Return the single table of a path: a file, or the documents of a folder or archive as one."""
    if path.is_file() and not zipfile.is_zipfile(path):
        return sniff(path)
    if path.is_dir():
        _refuse_half_a_run(path)
    return None if path.is_dir() and _has_tables(path) else bundle(path)


def _has_tables(folder: Path) -> bool:
    """Whether most files of a folder are tables with many rows, so that they are one table."""
    single: list[bool] = []
    for child in sorted(folder.iterdir()):
        if _is_visible_file(child) and child.suffix not in TEXTS_BESIDE:
            try:
                single.append(sniff(child).single)
            except InputError:
                continue
    return bool(single) and 2 * sum(single) <= len(single)


def _with_pointers(path: Path, run: Run) -> Run:
    """Add a notice that names the files Git has not fetched."""
    pointers = find_pointers(path) if path.is_dir() else []
    if not pointers:
        return run
    error = pointer_error(path, pointers)
    return _noticing(run, f"{error.message}: skipped; {error.hint}")


def _table_files(path: Path) -> list[TableFile]:
    if path.is_file():
        return [sniff(path)]
    if not path.is_dir():
        raise UnknownFormatError(
            "this is neither a file nor a folder",
            file=str(path),
            hint="save the output of a pipe to a file first; results are read more than once.",
        )
    _refuse_half_a_run(path)
    if not any(path.iterdir()):
        raise empty_folder(path)
    children = [child for child in sorted(path.iterdir()) if _is_visible_file(child)]
    if len(children) > MAX_FILES:
        raise UnknownFormatError(
            f"this folder contains {len(children):,} files",
            file=str(path),
            hint=f"join some of them; a table may have at most {MAX_FILES:,} files.",
        )
    return _recognise_tables(path, children)


def _recognise_tables(folder: Path, children: Sequence[Path]) -> list[TableFile]:
    """Return the tables of a folder.

    A file with the ending of the tables that is not a table is an error, not skipped.
    """
    tables: list[TableFile] = []
    failures: list[UnknownFormatError] = []
    for child in children:
        try:
            tables.append(sniff(child))
        except UnknownFormatError as error:
            failures.append(error)
    endings = {file.path.suffix for file in tables}
    for failure in failures:
        if Path(failure.file or "").suffix in endings:
            raise failure
    if tables:
        return tables
    first = f" ({Path(failures[0].file or '').name}: {failures[0].message})" if failures else ""
    below = next((child for child in sorted(folder.iterdir()) if child.is_dir()), None)
    shown = f"`forgetmap records show {shlex.quote(str(below))}` shows one of its folders; "
    raise UnknownFormatError(
        f"this folder is not a run and contains no table{first}",
        file=str(folder),
        hint=f"{shown if below else ''}give {accepted()}.",
    )


def _refuse_half_a_run(path: Path) -> None:
    present = {name for name in (MANIFEST, SCORES, TEXTS) if (path / name).is_file()}
    missing = SCORES if MANIFEST in present else MANIFEST
    if len(present) > 1 or MANIFEST in present:
        raise UnreadableError(
            f"this run folder is incomplete: it has {', '.join(sorted(present))} but no {missing}",
            file=str(path),
            hint="copy or create the run again.",
        )


def _is_visible_file(path: Path) -> bool:
    """Whether this is a visible file and not a map; dangling links count, so that they fail."""
    is_dangling = path.is_symlink() and not path.exists()
    is_hidden = path.name.startswith((".", "_"))
    return (path.is_file() or is_dangling) and not is_hidden and not is_map(path)


def _nearby(path: Path) -> str:
    """Return what to type instead of a path that does not exist."""
    parent = path.parent
    if not parent.is_dir():
        return f"the folder {parent} does not exist either; check the path."
    names = sorted(child.name for child in parent.iterdir() if not child.name.startswith("."))
    if not names:
        return f"{parent} is empty; check the path."
    alike = get_close_matches(path.name, names, n=1)
    if alike:
        return f"did you mean {parent / alike[0]}?"
    return f"{parent} contains {', '.join(names[:MAX_NAMES])}{', ...' * (len(names) > MAX_NAMES)}."
