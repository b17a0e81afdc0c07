"""Archives and folders with a document for each item, task or model, as one document.

The names of the files are the names of its members: `runs/q1.json`, `runs/q2.json` become
`{"q1": ..., "q2": ...}`. Other files beside them are left out.
"""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from forgetmap._cache import temporary_path
from forgetmap.errors import ForgetmapError
from forgetmap.sources.adapter import Problems
from forgetmap.sources.decode import Malformed, decode, is_lines, rows
from forgetmap.sources.files import LogFile, find_files
from forgetmap.sources.sniff import TableFile

MIN_SHARED = 0.5
"""Share of the fields of most documents that a document of the same kind has."""
MIN_DOCUMENTS = 2
MAX_BYTES = 1 << 30


def bundle(path: Path) -> TableFile | None:
    """Return the documents of an archive or folder as one; None if there are not several."""
    files = [file for file in find_files(path) if file.archive is None or file.member is not None]
    members = {file.inside: value for file in files if (value := _value(file)) is not None}
    alike = _alike(members)
    if len(alike) < MIN_DOCUMENTS:
        return None
    target = temporary_path(".json")
    target.write_text(json.dumps(_named(alike), ensure_ascii=False), encoding="utf-8")
    return TableFile(path, "json", single=True, unpacked=target)


def _value(file: LogFile) -> Any:
    """Return the content of a file; None if it cannot be read as objects."""
    if file.size > MAX_BYTES:
        return None
    try:
        if file.kind != "json":
            return _table(file) if file.inside.endswith((".csv", ".tsv")) else None
        if is_lines(file) and file.peek.shape == "objects":
            return [row for _, row in rows(file, Problems())]
        return decode(file.read())
    except (ForgetmapError, Malformed, UnicodeDecodeError, csv.Error):
        return None


def _table(file: LogFile) -> list[dict[str, str]]:
    text = file.read().decode("utf-8")
    delimiter = "\t" if file.inside.endswith(".tsv") else ","
    return list(csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter))


def _alike(members: dict[str, Any]) -> dict[str, Any]:
    """Return the documents of the most frequent kind."""
    kinds = {name: _fields(value) for name, value in members.items()}
    common = Counter(kinds.values()).most_common(1)
    if not common:
        return {}
    (most, _), *_ = common
    return {
        name: members[name]
        for name, fields in kinds.items()
        if most and len(fields & most) >= MIN_SHARED * len(most)
    }


def _fields(value: Any) -> frozenset[str]:
    first = value[0] if isinstance(value, list) and value else value
    kind = "[]" if isinstance(value, list) else "{}"
    return frozenset({kind, *first}) if isinstance(first, dict) else frozenset()


def _named(members: dict[str, Any]) -> dict[str, Any]:
    """Name documents by their files without ending, with folders where names occur twice."""
    stems = {name: PurePosixPath(name).stem for name in members}
    doubled: Sequence[str] = [stem for stem, count in Counter(stems.values()).items() if count > 1]
    return {
        str(PurePosixPath(name).with_suffix("")) if stems[name] in doubled else stems[name]: value
        for name, value in members.items()
    }
