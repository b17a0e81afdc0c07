"""The public function `open_run`: open a path, a dataframe, or an open run."""

from __future__ import annotations

import os
import shlex
import zipfile
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from forgetmap.errors import (
    ColumnError,
    EmptyInputError,
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
from forgetmap.sources.collection import (
    Collection,
    ComparedWith,
    collections_of_model,
    is_plain,
)
from forgetmap.sources.column_maps import is_map, saved_map
from forgetmap.sources.inference import Inferred, infer
from forgetmap.sources.logs import Reading, open_logs, recognise
from forgetmap.sources.matrix import MARK, TASK
from forgetmap.sources.model_choice import find_model
from forgetmap.sources.models import selector
from forgetmap.sources.scale import rescale_frame, rescale_run
from forgetmap.sources.selection import (
    ModelSelection,
    is_remote,
    parse_selection,
    read_selection,
)
from forgetmap.sources.sniff import TableFile, in_utf8, readable_file, sniff
from forgetmap.sources.spark import open_with_spark
from forgetmap.sources.table import read_table
from forgetmap.sources.table_map import TableMap
from forgetmap.sources.unknown import (
    accepted,
    empty_folder,
    explain_path,
    find_pointers,
    pointer_error,
)

if TYPE_CHECKING:
    from forgetmap.sources.remote import OnProgress

MAX_FILES = 10_000
MAX_NAMES = 8
TEXTS_BESIDE = frozenset({".md", ".txt", ".log", ".yaml", ".yml", ".html", ".py", ".sh", ".toml"})
"""Endings of files that are no results."""
UNITS = (("GB", 1e9), ("MB", 1e6), ("kB", 1e3))
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
    selection = parse_selection(os.fspath(source))
    with readable_file(selection.path):
        if selection.model is not None:
            return _open_selection(selection, name, column_map or {}, task, reading)
        return _open_path(selection.path, name, column_map or {}, task, reading)


def _open_selection(
    selection: ModelSelection,
    name: str | None,
    column_map: ColumnMap,
    task: str | None,
    reading: Reading,
) -> Run:
    """Open one model of a table or of logs with several models."""
    path, model = selection.path, str(selection.model)
    logs = [] if column_map or not path.exists() else recognise(path)
    if any(log.info.model.name == model for log in logs) or (logs and path.is_dir()):
        return _with_name(open_logs(path, logs, replace(reading, run=model)), name or model)
    table_map = _table_map(path, column_map, task, reading)
    file = bundle(path) if path.is_dir() or zipfile.is_zipfile(path) else sniff(path)
    if file is None:
        raise UnknownFormatError(
            f"this folder contains no logs of several models, so {MARK}{model} does not exist",
            file=str(path),
            hint=f"give one file of it, such as {_first_file(path, model)}.",
        )
    try:
        return _read_model(file, model, name or model, table_map, reading)
    except _UNREADABLE as error:
        raise explain_path(path, error) from None


def _read_model(
    file: TableFile, model: str, name: str, table_map: TableMap, reading: Reading
) -> Run:
    """Read the results of one model: a part of a document, a column, or rows that name it."""
    found = None if file.headerless else find_model(file, model, table_map, reading.beside)
    inferred = None
    if found is not None:
        known, only = found
        others = partial(_other_collections, reading.beside)
        inferred = infer(file, _with_task(known), reading.beside, others, only)
    if found is None or inferred is None:
        return read_selection(file, model, name=name, table_map=table_map)
    return _as_inferred(file, inferred, found[0], name, f"{file.path}{MARK}{model}", found[1])


def _with_task(table_map: TableMap) -> TableMap:
    return replace(table_map, fallback_task=table_map.fallback_task or TASK)


def _as_inferred(
    file: TableFile, inferred: Inferred, known: TableMap, name: str, origin: str,
    only: tuple[str, str] | None = None,
) -> Run:  # fmt: skip
    """Read a table as inferred, with a notice that says how."""
    run = read_table([file], name=name, origin=origin, table_map=inferred.table_map, only=only)
    # What the user named needs no word.
    is_stated = {"score"} <= known.columns.keys() and not known.columns.keys().isdisjoint(
        {"item", "question"}
    )
    encoded = (f"not UTF-8: read as {file.encoding}.",) if file.encoding else ()
    return replace(
        run,
        notices=(*([] if is_stated else [inferred.said]), *encoded, *run.notices),
        contradictions=(*run.contradictions, *inferred.contradictions),
    )


def _other_collections(beside: ComparedWith) -> Sequence[Collection]:
    """Return the collections of the other run; none if it is a log, or cannot be read."""
    if beside.other is None:
        return ()
    selection = parse_selection(str(beside.other))
    path, model = selection.path, selection.model
    try:
        if not path.exists() or is_run_folder(path):
            return ()
        file = bundle(path) if path.is_dir() or zipfile.is_zipfile(path) else sniff(path)
        if file is None or file.headerless:
            return ()
        found = find_model(file, model, TableMap()) if model else None
        known, only = found or (TableMap(), None)
        return collections_of_model(in_utf8(file), known.rows, only)
    except InputError:
        return ()


def _first_file(folder: Path, model: str) -> str:
    """Return the selector `FILE#MODEL` for the first file of a folder."""
    files = (child for child in sorted(folder.iterdir()) if _is_visible_file(child))
    return selector(next(files, folder / "FILE"), model)


def _table_map(path: Path, column_map: ColumnMap, task: str | None, reading: Reading) -> TableMap:
    return saved_map(path, reading.mapping).merged(column_map, task, reading.score_range)


def _open_remote(
    url: str, name: str | None, column_map: ColumnMap, task: str | None, reading: Reading
) -> Run:
    """Open a local copy; errors and the run name the remote address."""
    from forgetmap.sources.remote import fetch  # fsspec is large

    address, _, model = url.partition(MARK)
    remote_copy = fetch(address, on_progress=_in_words(reading))
    path = remote_copy.path
    with remote_copy.errors_about_original(), readable_file(path):
        run = (
            _open_selection(ModelSelection(path, model), name, column_map, task, reading)
            if model
            else _open_path(path, name, column_map, task, reading)
        )
        return remote_copy.original_run(run)


def _in_words(reading: Reading) -> OnProgress | None:
    """Return a callback that reports a download through the progress callback of `reading`."""
    show = reading.progress
    if show is None:
        return None
    return lambda name, done, total: show(f"Fetching {name}: {_in_bytes(done, total)}")


def _in_bytes(done: int, total: int) -> str:
    """Return "1.2 of 3.4 GB", in a unit chosen by the total."""
    unit, size = next((one for one in UNITS if total >= one[1]), UNITS[-1])
    return f"{done / size:,.1f} of {total / size:,.1f} {unit}"


def _open_path(
    path: Path, name: str | None, column_map: ColumnMap, task: str | None, reading: Reading
) -> Run:
    if not path.exists():
        raise MissingInputError(
            "the file or folder does not exist", file=str(path), hint=_nearby(path)
        )
    known = _known_run(path)
    if known is None:
        own_map = _table_map(path, column_map, task, replace(reading, mapping=None))
        # Named columns, or a map next to the file, mean that it is a table. A map given with
        # --mapping may be meant for the other side of a comparison.
        logs = [] if own_map.names_columns else recognise(path)
        if not logs:
            try:
                table_map = _table_map(path, column_map, task, reading)
                return _open_table(path, name, table_map, reading.beside)
            except UnknownFormatError as error:
                raise _about_columns(path, column_map) or error from None
        known = _without_map(_with_pointers(path, open_logs(path, logs, reading)), reading)
        task, scale = own_map.task, own_map.score_range
    else:
        scale = reading.score_range
    known = known if task is None else name_only_task(known, task)
    return _with_name(known if scale is None else rescale_run(known, scale), name)


def _known_run(path: Path) -> Run | None:
    """Read a run folder, or a folder of run folders as repeats; None if it is neither."""
    if is_run_folder(path):
        return read_run(path)
    runs = _run_folders(path)
    return as_repeats([read_run(folder) for folder in runs], origin=str(path)) if runs else None


def _open_table(path: Path, name: str | None, table_map: TableMap, beside: ComparedWith) -> Run:
    shown = name or path.name.split(".")[0] or str(path)
    try:
        file = _only_table(path)
        if file is not None and not is_plain(file, table_map):
            others = partial(_other_collections, beside)
            file = in_utf8(file)
            inferred = infer(file, _with_task(table_map), beside, others)
            if inferred is not None:
                return _as_inferred(file, inferred, table_map, shown, str(path))
        if file is not None and table_map.columns:
            table_map = _with_task(table_map)
        files = _table_files(path) if file is None else [file]
        return read_table(files, name=shown, origin=str(path), table_map=table_map)
    except _UNREADABLE as error:
        raise explain_path(path, error) from None


def _only_table(path: Path) -> TableFile | None:
    """Return the single table of a path: a file, or the documents of a folder or archive as one."""
    if path.is_file() and not zipfile.is_zipfile(path):
        file = sniff(path)
        return None if file.headerless else file
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
    return replace(run, notices=(*run.notices, f"{error.message}: skipped; {error.hint}"))


def _about_columns(path: Path, column_map: ColumnMap) -> ColumnError | None:
    """Return the error for columns named for a folder of logs; None if that is not the case."""
    logs = recognise(path) if column_map and path.is_dir() else []
    if not logs:
        return None
    first = next(iter(column_map))
    return ColumnError(
        f"this folder contains logs of {logs[0].format or logs[0].adapter}, not a table with "
        "columns",
        file=str(path),
        field=first,
        hint="remove --columns, or give one of its files.",
    )


def _without_map(run: Run, reading: Reading) -> Run:
    """Add a notice that --mapping, which is for tables, was ignored for this log."""
    if reading.mapping is None:
        return run
    notice = (
        f"{run.origin} is a log of {run.format}, so --mapping was ignored (to read it as a "
        "table: --columns item=COLUMN,score=COLUMN)."
    )
    return replace(run, notices=(*run.notices, notice))


def _with_name(run: Run, name: str | None) -> Run:
    return run if name is None else replace(run, name=name)


def _run_folders(path: Path) -> Sequence[Path]:
    if not path.is_dir():
        return ()
    return [child for child in sorted(path.iterdir()) if child.is_dir() and is_run_folder(child)]


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
    parent = path.parent
    if not parent.is_dir():
        return f"the folder {parent} does not exist either; check the path."
    names = sorted(child.name for child in parent.iterdir() if not child.name.startswith("."))
    if not names:
        return f"{parent} is empty; check the path."
    listing = ", ".join(names[:MAX_NAMES]) + (", ..." if len(names) > MAX_NAMES else "")
    return f"{parent} contains {listing}."
