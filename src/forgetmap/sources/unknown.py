"""Errors for paths without readable results, with the next command."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from forgetmap.errors import ColumnError, InputError, UnknownFormatError
from forgetmap.records import listed, missing_columns
from forgetmap.sources.column_words import kind_of
from forgetmap.sources.documents import ROWS_LOOKED_AT
from forgetmap.sources.documents import Collection as Rows
from forgetmap.sources.files import find_files
from forgetmap.sources.maps import selector
from forgetmap.sources.registry import ADAPTERS, known_fields
from forgetmap.sources.rows import first_rows
from forgetmap.sources.sniff import TableFile

SHAPES = {"csv": "CSV", "jsonl": "JSON lines", "json": "a JSON list", "parquet": "Parquet"}
MIN_SHARED = 0.5
MAX_NEAREST = 2
ACCEPTED = (
    "a run folder (manifest.json, scores.parquet), logs of {harnesses}, or tables (CSV, "
    "JSON lines, JSON, Parquet)"
)
LFS_MARK, ANNEX_MARK = b"version https://git-lfs.github.com/spec/", b"/annex/objects/"
MAX_POINTER_BYTES = 1024


def map_command(path: Path) -> str:
    """Return the command that proposes a map for a file."""
    return f"`forgetmap records map {shlex.quote(str(path))}`"


def several_models(path: Path, models: Sequence[str]) -> ColumnError:
    """Return the error for a table with several models of which none is chosen."""
    return _several(path, "model", f"this table contains results of {len(models):,} models", models)


def several_columns(path: Path, names: Sequence[str]) -> ColumnError:
    """Return the error for a table with a column of scores for each model."""
    fact = f"there is no column 'score', but {len(names):,} columns contain scores"
    return _several(path, "score", fact, names)


def several_lists(path: Path, names: Sequence[str]) -> ColumnError:
    """Return the error for a document with several similar lists of results."""
    return _several(path, "rows", f"this document contains {len(names):,} lists of results", names)


def _several(path: Path, field: str, fact: str, names: Sequence[str]) -> ColumnError:
    first = f"choose one: {selector(path, names[0])}"
    hint = f"{first}, {selector(path, names[1])}, ..." if len(names) > 1 else f"{first}."
    return ColumnError(f"{fact}: {listed(list(names))}", file=str(path), field=field, hint=hint)


def empty_path(file: TableFile, field: str, column: str, rows: str | None) -> ColumnError:
    """Return the error for a column or path of a map without any value."""
    table = Rows(None, first_rows(file, rows, ROWS_LOOKED_AT))
    numbers = [path for path, values in table.columns.items()
               if kind_of(values) in {"verdict", "share", "graded"}]  # fmt: skip
    return ColumnError(
        f"--columns {field}={column}: all values are empty",
        file=str(file.path),
        field=field,
        hint=f"columns with numbers are {listed(numbers)}." if numbers else map_command(file.path),
    )


def missing_columns_error(file: TableFile, error: ColumnError, rows: str | None) -> ColumnError:
    """Extend the error for a missing column by the columns that the table has."""
    known = sorted(file.names)
    if error.missing in ((), ("task",)) or not known:
        return error
    facts = f"{missing_columns(error.missing)}; the columns are {listed(known)}"
    if file.source in SHAPES and file.source != "csv":
        shape = SHAPES[file.source] if rows is None else f"a JSON document, rows in {rows}"
        facts = f"unknown format: {shape}; {facts}; {nearest_formats(known)}"
    explained = ColumnError(
        facts,
        file=str(file.path),
        field=error.field,
        hint=f"{map_command(file.path)} shows them with examples; or {error.hint}",
    )
    explained.missing = error.missing
    return explained


def nearest_formats(names: Collection[str]) -> str:
    """Describe the known formats that share most field names with these, and what is missing."""
    formats = known_fields() | {"a table": frozenset({"task", "item", "score"})}
    shares = {
        form: len(fields.intersection(names)) / len(fields) for form, fields in formats.items()
    }
    nearest = sorted(
        (form for form in shares if shares[form] >= MIN_SHARED), key=shares.__getitem__
    )
    if not nearest:
        return f"it is similar to none of the {len(formats)} known formats"
    descriptions = [
        f"{form} (here without {', '.join(sorted(formats[form].difference(names))) or 'nothing'})"
        for form in nearest[::-1][:MAX_NEAREST]
    ]
    return f"nearest: {' and '.join(descriptions)}"


def unknown_document(path: Path, document: Any) -> UnknownFormatError:
    """Return the error for a JSON document without a list of results."""
    members = document if isinstance(document, Mapping) else {}
    shown = [f"{name} ({_what(value)})" for name, value in members.items()]
    return UnknownFormatError(
        f"unknown format: one JSON object with {listed(shown) or 'nothing in it'}, without a "
        f"list of results; {nearest_formats([*members])}",
        file=str(path),
        hint="give the file that has a row for each item; averages cannot be compared item by "
        "item.",
    )


def _what(value: Any) -> str:
    """Return what is in a member of a document, in words."""
    if isinstance(value, list | dict):
        return f"{len(value):,} {'elements' if isinstance(value, list) else 'members'}"
    return f"{value!r:.20}"


def summary_error(path: Path, names: Collection[str]) -> UnknownFormatError | None:
    """Return the error for a file with only averages, judged by its field names; else None."""
    if "results" not in names:
        return None
    folder = shlex.quote(str(path if path.is_dir() else path.parent))
    if {"config_general", "config_tasks"}.intersection(names):
        return _averages(path, "lighteval", "--save-details", folder)
    if "configs" in names:
        return _averages(path, "lm-eval", "--log_samples", folder)
    if {"config", "versions"}.issubset(names):
        return _averages(path, "lm-eval", "--log_samples (in 0.3: --write_out)", folder)
    return None


def _averages(path: Path, harness: str, option: str, folder: str) -> UnknownFormatError:
    return UnknownFormatError(
        f"these results of {harness} contain averages of tasks, but no single items",
        file=str(path),
        hint=f"evaluate again with {option} and the same output folder, then "
        f"`forgetmap records show {folder}`.",
    )


def is_pointer(head: bytes) -> bool:
    """Whether a file is a pointer of Git LFS or git-annex."""
    return head.startswith(LFS_MARK) or (
        len(head) < MAX_POINTER_BYTES and head.lstrip(b"./").startswith(b"git" + ANNEX_MARK)
    )


def find_pointers(path: Path) -> list[Path]:
    """Find the files at or below a path that are pointers of Git LFS or git-annex."""
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    return [file for file in files if file.is_file() and is_pointer(_head(file))]


def pointer_error(path: Path, pointers: list[Path]) -> UnknownFormatError:
    """Return the error for files whose content Git has not fetched yet."""
    first = pointers[0]
    kind = "Git LFS" if _head(first).startswith(LFS_MARK) else "git-annex"
    what = (
        f"this is a pointer of {kind}, not the file itself{_stated_size(first)}"
        if path == first
        else f"{len(pointers):,} files here are pointers of {kind}, not the files themselves"
    )
    return UnknownFormatError(what, file=str(path), hint=_fetching(path, kind))


def _fetching(path: Path, kind: str) -> str:
    """Return a hint with the command that fetches the content of a pointer."""
    root = next((one for one in path.resolve().parents if (one / ".git").exists()), None)
    if root is None:
        return f"this is not a clone: fetch the file again with {kind}, or download it by itself."
    inside = path.resolve().relative_to(root).as_posix() + ("/**" if path.is_dir() else "")
    where, what = shlex.quote(str(root)), shlex.quote(inside)
    if kind == "Git LFS":
        return f"fetch it: `git -C {where} lfs pull --include {what}`."
    return f"fetch it: `git -C {where} annex get {what}`."


def _stated_size(pointer: Path) -> str:
    lines = dict(line.partition(" ")[::2] for line in _head(pointer).decode("latin-1").splitlines())
    size = lines.get("size", "")
    return f" of {int(size):,} bytes" if size.isdecimal() and len(size) < 20 else ""


def _head(file: Path) -> bytes:
    try:
        if file.stat().st_size > MAX_POINTER_BYTES:
            return b""
        return file.read_bytes()
    except OSError:
        return b""


def empty_folder(folder: Path) -> UnknownFormatError:
    """Return the error for an empty folder."""
    return UnknownFormatError(
        "this folder is empty",
        file=str(folder),
        hint=f"put {accepted()} there; then `forgetmap records show {shlex.quote(str(folder))}`.",
    )


def accepted() -> str:
    """Describe all readable inputs."""
    return ACCEPTED.format(harnesses=", ".join(ADAPTERS.names()))


def explain_path(path: Path, error: InputError) -> InputError:
    """Return a more specific error for a path without results, if its files allow one."""
    pointers = find_pointers(path)
    if pointers and (path.is_file() or _nothing_else(path, pointers)):
        return pointer_error(path, pointers)
    if not path.is_dir() or not isinstance(error, UnknownFormatError):
        return error
    peeks = (file.peek for file in find_files(path))
    summaries = (summary_error(path, peek.names) for peek in peeks if peek.shape == "object")
    return next(filter(None, summaries), error)


def _nothing_else(folder: Path, pointers: list[Path]) -> bool:
    """Whether no other file of the folder has the ending of one of the pointers."""
    endings = {pointer.suffix for pointer in pointers}
    other_files = (
        file for file in folder.rglob("*") if file.is_file() and file not in set(pointers)
    )
    return all(file.suffix not in endings for file in other_files)
