"""Whatever the user has, as a run: a path, a dataframe, or a run already open."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from forgetmap.errors import MissingInputError, UnknownFormatError, UnreadableError
from forgetmap.records import (
    MANIFEST,
    SCORES,
    TEXTS,
    ColumnMap,
    Run,
    as_repeats,
    is_run_folder,
    read_run,
    run_from_frame,
)
from forgetmap.sources.column_maps import is_map, saved_map
from forgetmap.sources.logs import Reading, open_logs, recognise
from forgetmap.sources.selection import parse_selection, read_selection
from forgetmap.sources.sniff import TableFile, readable_file, sniff
from forgetmap.sources.table import read_table

if TYPE_CHECKING:
    from forgetmap.sources.remote import OnProgress

MAX_FILES = 10_000
MAX_NAMES = 8
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")


def open_run(
    source: Any,
    *,
    name: str | None = None,
    column_map: ColumnMap | None = None,
    task: str | None = None,
    reading: Reading | None = None,
) -> Run:
    """Open results, whatever they are.

    Args:
        source: path of a run folder, of the logs of a harness, of a table, or of a folder of tables
            or of repeats; `TABLE#NAME` for one model of a table of several; a dataframe; a `Run`.
        name: what to call it; by default its run id, or else the name of file or folder.
        column_map: canonical field -> column, for tables that name them otherwise.
        task: name of the task, for tables without such a column.
        reading: how to read the logs of a harness.
    """
    if isinstance(source, Run):
        return source
    if not isinstance(source, str | os.PathLike):
        return run_from_frame(source, name=name or "dataframe", column_map=column_map, task=task)
    if is_remote(source):
        return _open_remote(str(source), name, column_map or {}, task, reading or Reading())
    selection = parse_selection(os.fspath(source))
    with readable_file(selection.path):
        if selection.model is not None:
            return _open_selection(selection.path, selection.model, name, column_map or {}, task)
        return _open_path(selection.path, name, column_map or {}, task, reading or Reading())


def is_remote(source: object) -> bool:
    """Whether this is an address rather than a path."""
    return isinstance(source, str) and _SCHEME.match(source) is not None


def _open_selection(
    path: Path, model: str, name: str | None, column_map: ColumnMap, task: str | None
) -> Run:
    """One model of a table that holds several."""
    saved = saved_map(path)
    return read_selection(
        sniff(path),
        model,
        name=name or model,
        column_map={**saved.columns, **column_map},
        task=task or saved.task,
    )


def _open_remote(
    url: str, name: str | None, column_map: ColumnMap, task: str | None, reading: Reading
) -> Run:
    """Open a copy of what is there; people are told of the original."""
    from forgetmap.sources.remote import fetch  # fsspec is large

    remote_copy = fetch(url, on_progress=_in_words(reading))
    with remote_copy.errors_about_original(), readable_file(remote_copy.path):
        return remote_copy.original_run(
            _open_path(remote_copy.path, name, column_map, task, reading)
        )


def _in_words(reading: Reading) -> OnProgress | None:
    """How far a download is, for whoever wants to know how far the reading is."""
    show = reading.progress
    if show is None:
        return None
    return lambda name, done, total: show(
        f"Fetching {name}: {done / 1e6:,.0f} of {total / 1e6:,.0f} MB"
    )


def _open_path(
    path: Path, name: str | None, column_map: ColumnMap, task: str | None, reading: Reading
) -> Run:
    if not path.exists():
        raise MissingInputError(
            "there is no such file or folder", file=str(path), hint=_nearby(path)
        )
    if is_run_folder(path):
        return _with_name(read_run(path), name)
    runs = _run_folders(path)
    if runs:
        return _with_name(as_repeats([read_run(folder) for folder in runs], origin=str(path)), name)
    saved = saved_map(path)
    column_map, task = {**saved.columns, **column_map}, task or saved.task
    # Whoever names columns has a table.
    logs = [] if column_map else recognise(path)
    if logs:
        return _with_name(open_logs(path, logs, reading), name)
    return read_table(
        _table_files(path),
        name=name or path.name.split(".")[0] or str(path),
        origin=str(path),
        column_map=column_map,
        task=task,
    )


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
            hint="results are read more than once: save what comes out of a pipe to a file first.",
        )
    _refuse_half_a_run(path)
    children = [child for child in sorted(path.iterdir()) if _is_visible_file(child)]
    if len(children) > MAX_FILES:
        raise UnknownFormatError(
            f"this folder holds {len(children):,} files",
            file=str(path),
            hint=f"a table is split into at most {MAX_FILES:,} files; join some of them.",
        )
    return _recognise_tables(path, children)


def _recognise_tables(folder: Path, children: Sequence[Path]) -> list[TableFile]:
    """The tables in a folder. What is named like a table and is none must not go missing."""
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
    raise UnknownFormatError(
        f"this folder is no run and holds no table{first}",
        file=str(folder),
        hint="give a folder with manifest.json and scores.parquet, or with CSV, JSON lines or "
        "Parquet tables.",
    )


def _refuse_half_a_run(path: Path) -> None:
    present = {name for name in (MANIFEST, SCORES, TEXTS) if (path / name).is_file()}
    missing = SCORES if MANIFEST in present else MANIFEST
    if len(present) > 1 or MANIFEST in present:
        raise UnreadableError(
            f"this run folder is not whole: it has {', '.join(sorted(present))} but no {missing}",
            file=str(path),
            hint="copy or write the run again.",
        )


def _is_visible_file(path: Path) -> bool:
    """A file, or a link to one that is gone, which is for the reader to complain about."""
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
    return f"{parent} holds {listing}."
