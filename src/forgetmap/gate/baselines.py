"""Baselines: named runs that candidates are compared with, verified on every read."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from forgetmap.errors import MissingInputError, UnreadableError, UsageError
from forgetmap.gate.history import (
    HistoryResult,
    find_escaped,
    find_recurring,
    last_status,
    make_release,
    read_history,
)
from forgetmap.gate.store import BaselineStore, is_store_name
from forgetmap.records import write_run
from forgetmap.sources import open_run

PREFIX = "baseline:"
"""Prefix of the name of a baseline, in place of a run."""
POINTER = "current.json"


@dataclass(frozen=True, slots=True)
class Baseline:
    """A run accepted under a name.

    Attributes:
        name: name of the baseline, such as `main`.
        version: folder of the run inside the folder of the name.
        files: name -> SHA-256 of every file of the run.
        accepted: time of acceptance, ISO 8601 in UTC.
        run: name, id and model of the run.
        by: the person who accepted it.
        note: reason of the acceptance.
        gate: status of the last gate on the run, or on a run of the same name if it has no id; None
            if none is recorded.
    """

    name: str
    version: str
    files: dict[str, str]
    accepted: str
    run: dict[str, str | None]
    by: str | None = None
    note: str | None = None
    gate: str | None = None


def accept_run(
    run: Any, name: str, store: str | Path, *, by: str | None = None, note: str | None = None
) -> Baseline:
    """Store a run as a baseline, which later gates can name as `baseline:NAME`.

    Args:
        run: path, dataframe or run.
        name: name of the baseline; an older version of this name is kept as history.
        store: a folder, or an address that fsspec can write.
        by: the person who accepts it.
        note: reason of the acceptance.
    """
    if not is_store_name(name):
        raise UsageError(
            f"{name!r} is not a valid name of a baseline",
            hint="use letters, digits, points, hyphens and underscores, such as main.",
        )
    kept = BaselineStore(str(store))
    opened = open_run(run)
    with tempfile.TemporaryDirectory() as folder:
        path = write_run(opened, Path(folder) / "run")
        files = {
            file.name: hashlib.sha256(file.read_bytes()).hexdigest()
            for file in sorted(path.iterdir())
        }
        accepted = datetime.now(UTC).isoformat(timespec="milliseconds")
        content = hashlib.sha256("".join(files.values()).encode()).hexdigest()
        version = f"{accepted[:19].replace(':', '').replace('-', '')}Z-{content[:8]}"
        baseline = Baseline(
            name,
            version,
            files,
            accepted,
            {"name": opened.name, "run_id": opened.info.run_id, "model": opened.info.model.name},
            by,
            note,
            last_status(kept, opened.info.run_id or opened.name),
        )
        kept.put_folder(path, f"baselines/{name}/{version}")
        kept.write_json(f"baselines/{name}/{version}.json", asdict(baseline))
        kept.write_json(f"baselines/{name}/{POINTER}", asdict(baseline))
    return baseline


def read_baseline(name: str, store: str | Path) -> Baseline:
    """Read the current baseline of this name.

    Raises:
        MissingInputError: there is none of this name.
        ChecksumError: its entry was changed.
    """
    kept = BaselineStore(str(store))
    if not is_store_name(name) or name not in kept.list_names("baselines"):
        known = ", ".join(kept.list_names("baselines")) or "none"
        raise MissingInputError(
            f"there is no baseline {name!r}",
            file=kept.shown,
            hint=f"existing baselines: {known}; create one with `forgetmap gate accept RUN --as "
            f"{name}`.",
        )
    file = f"baselines/{name}/{POINTER}"
    return _make(kept.read_json(file), name, f"{kept.shown}/{file}")


def read_baselines(store: str | Path) -> list[Baseline]:
    """Read every accepted version, the oldest first."""
    kept = BaselineStore(str(store))
    entries = [
        _make(kept.read_json(f"baselines/{name}/{file}"), name, f"{kept.shown}/{name}/{file}")
        for name in kept.list_names("baselines")
        for file in kept.list_names(f"baselines/{name}")
        if file.endswith(".json") and file != POINTER
    ]
    return sorted(entries, key=lambda entry: entry.accepted)


def summarize_history(store: str | Path) -> HistoryResult:
    """Summarize all decisions in a store."""
    results = read_history(store)
    return HistoryResult(
        releases=[make_release(result) for result in results],
        recurring=find_recurring(results),
        escaped=find_escaped(results, _later_versions(read_baselines(store))),
    )


def _later_versions(baselines: list[Baseline]) -> list[tuple[str, str | None]]:
    """Return runs that replaced a baseline, with the status of their gate.

    The first version of a name is left out: there was nothing to compare it with.
    """
    seen: set[str] = set()
    later = []
    for entry in baselines:
        if entry.name in seen:
            release = entry.run["run_id"] or entry.run["name"] or entry.name
            later.append((release, entry.gate))
        seen.add(entry.name)
    return later


def is_baseline(source: Any) -> bool:
    """Return whether a source is `baseline:NAME`."""
    return isinstance(source, str) and source.startswith(PREFIX)


def place_of(baseline: Baseline, store: str | Path) -> str:
    """Return the address of the run folder of a baseline."""
    return f"{BaselineStore(str(store)).shown}/{_folder_of(baseline)}"


def _folder_of(baseline: Baseline) -> str:
    return f"baselines/{baseline.name}/{baseline.version}"


@contextmanager
def opened_baseline(
    before: Any, after: Any, store: str | Path
) -> Iterator[tuple[Any, Any, Baseline | None]]:
    """Open both runs: `baseline:NAME` is copied from the store and verified, others are unchanged.

    A baseline is read from files, so a dataframe after is written to a file as well.
    """
    if not is_baseline(before):
        yield before, after, None
        return
    baseline = read_baseline(before.removeprefix(PREFIX), store)
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / baseline.version
        target.mkdir()
        path = _folder_of(baseline)
        BaselineStore(str(store)).get_folder(path, baseline.files, target)
        if not isinstance(after, str | os.PathLike):
            run = open_run(after, name="after")
            after = write_run(run, Path(folder) / run.name)
        yield str(target), after, baseline


def _make(content: dict[str, Any], name: str, file: str) -> Baseline:
    """Build a baseline from its entry, which must have this name and point to its own files."""
    hint = "accept the run again with this version of forgetmap."
    try:
        baseline = Baseline(**content)
    except TypeError:
        raise UnreadableError("not a baseline", file=file, hint=hint) from None
    paths = [baseline.version, *baseline.files] if isinstance(baseline.files, dict) else [None]
    if not all(isinstance(path, str) and is_store_name(path) for path in paths):
        raise UnreadableError("not a baseline", file=file, hint=hint)
    if baseline.name != name:
        message = f"the entry belongs to the baseline {baseline.name!r}, not to {name!r}"
        raise UnreadableError(message, file=file, hint=hint)
    return baseline
