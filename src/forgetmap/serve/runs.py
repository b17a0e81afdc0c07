"""The runs of the server: discovery, public names and lineage."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path

from forgetmap._cache import temporary_path
from forgetmap._disk import stamp_of
from forgetmap.errors import ChecksumError, ForgetmapError, UnknownFormatError, UsageError
from forgetmap.records import Run, is_run_folder, read_run, write_run
from forgetmap.sources import ComparedWith, Reading, is_remote, open_run, recognise

MAX_RUNS = 1_000


@dataclass(frozen=True, slots=True)
class ServedRun:
    """A run with an id that does not reveal its path.

    Attributes:
        id: opaque, and always the same for the same path.
        run: the run; its origin is its name, so that no path of this machine is shown.
        location: path of the run, only for the log of the server.
        parent: id of the run it was trained from, if that is served too.
        stamp: a text that changes with the files or the way they are read; None if unknown.
    """

    id: str
    run: Run
    location: str
    parent: str | None = None
    stamp: str | None = None


def require_undamaged(run: ServedRun) -> None:
    """Check all files of a run for damage, including texts; too slow to do for all runs at start.

    Raises:
        ChecksumError: a file is damaged; its path is not shown.
    """
    path = Path(run.location)
    if is_remote(run.location) or not is_run_folder(path):
        return
    try:
        read_run(path)
    except ChecksumError as error:
        name = Path(error.file or "").name
        raise ChecksumError(
            f"{name} of {run.run.name} was changed after it was written",
            hint="copy the run folder again.",
        ) from None


def find_runs(sources: Sequence[str], reading: Reading | None = None) -> list[ServedRun]:
    """Find all runs in the given run folders, logs, tables, and folders that contain them."""
    runs: dict[str, ServedRun] = {}
    for source in sources:
        for index, run in _runs_in(source, _beside(reading or Reading(), source, sources)):
            known = _served_run(index, run, reading or Reading())
            runs.setdefault(known.id, known)
    if len(runs) > MAX_RUNS:
        raise UsageError(
            f"these folders contain {len(runs):,} runs",
            hint=f"serve at most {MAX_RUNS:,} at a time.",
        )
    return with_parents(_with_unique_names(runs.values()))


def _beside(reading: Reading, source: object, sources: Sequence[object]) -> Reading:
    """Return the reading of a source beside another one, whose columns are evidence."""
    other = next((str(one) for one in sources if one != source and not is_remote(one)), None)
    return reading if other is None else replace(reading, beside=ComparedWith((), Path(other)))


def with_parents(runs: Iterable[ServedRun]) -> list[ServedRun]:
    """Return the runs with the ids of their parents, if these are served too."""
    runs = list(runs)
    by_name: dict[str, list[str]] = {}
    for run in runs:
        if run.run.info.run_id is not None:
            by_name.setdefault(run.run.info.run_id, []).append(run.id)
    return [replace(run, parent=_parent(run, by_name)) for run in runs]


def describe(run: ServedRun) -> dict[str, str | bool | None]:
    """Return the fields by which a reader chooses a run."""
    info = run.run.info
    return {
        "id": run.id,
        "name": run.run.name,
        "model": info.model.name,
        "stage": info.stage,
        "parent": run.parent,
        "created": info.created,
        "simulated": info.simulated,
    }


def _parent(run: ServedRun, by_name: Mapping[str, Sequence[str]]) -> str | None:
    """Return the parent if exactly one other run has its name."""
    ids = by_name.get(run.run.info.parent or "", ())
    return ids[0] if len(ids) == 1 and ids[0] != run.id else None


def _runs_in(source: str, reading: Reading) -> Iterator[tuple[str, Run]]:
    path = Path(source)
    if is_remote(source) or not path.is_dir() or is_run_folder(path):
        yield source, open_run(source, reading=reading)
        return
    folders = _run_folders(path)
    if folders:
        yield from ((str(folder), read_run(folder, check_texts=False)) for folder in folders)
        return
    try:
        yield source, open_run(source, reading=reading)
    except (UnknownFormatError, UsageError) as error:
        sources = _logs_by_model(path)
        if sources:
            yield from ((name, open_run(name, reading=reading)) for name in sources)
        else:
            yield from _runs_of_children(path, reading, error)


def _logs_by_model(path: Path) -> list[str]:
    """Return one source per model if a folder has logs of several models, the oldest first.

    Inspect writes such folders; a single file is only one task of one model.
    """
    logs = recognise(path)
    if any(file.path.parent != path for log in logs for file in log.files):
        return []
    stamps: dict[str, str] = {}
    for log in logs:
        if log.info.model.name is None:
            return []
        name, stamp = log.info.model.name, log.stamp or ""
        stamps[name] = min(stamp, stamps.get(name, stamp))
    ordered = sorted(stamps, key=lambda name: (stamps[name], name))
    return [f"{path}#{name}" for name in ordered] if len(ordered) > 1 else []


def _run_folders(path: Path) -> list[Path]:
    """Return all run folders below a path; hidden ones are work in progress."""
    folders = []
    for folder, below, _ in os.walk(path):
        below[:] = sorted(name for name in below if not name.startswith("."))
        if is_run_folder(Path(folder)):
            folders.append(Path(folder))
            below.clear()
    return folders


def _runs_of_children(
    path: Path, reading: Reading, error: ForgetmapError
) -> Iterator[tuple[str, Run]]:
    """Yield each run in a folder that is not a single run."""
    opened = 0
    children = [child for child in sorted(path.iterdir()) if not child.name.startswith(".")]
    for child in children:
        try:
            run = open_run(child, reading=_beside(reading, child, children))
        except (UnknownFormatError, UsageError):
            continue
        opened += 1
        yield str(child), run
    if not opened:
        raise error


def _served_run(index: str, run: Run, reading: Reading) -> ServedRun:
    where = index if is_remote(index) else str(Path(index.partition("#")[0]).resolve())
    key = f"{where}#{index.partition('#')[2]}"
    name = blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    own = replace(_as_parquet(run), origin=run.name)
    return ServedRun(name, own, index, stamp=_stamp(index, run, reading))


def _stamp(index: str, run: Run, reading: Reading) -> str | None:
    if is_remote(index):
        return None
    root = Path(index.partition("#")[0]).resolve()
    files = (
        [root] if root.is_file() else (Path(f, n) for f, _, names in os.walk(root) for n in names)
    )
    parts = [index.partition("#")[2], run.name, str(reading.run), str(reading.strict)]
    parts += [reading.scores] if reading.scores else []
    parts += [f"{file}|{stamp_of(file)}" for file in sorted(files)]
    return blake2b("\n".join(parts).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _as_parquet(run: Run) -> Run:
    """Return a run whose texts can be read one by one; tables are first written as a run folder."""
    if run.format or is_run_folder(Path(run.origin)):
        return run
    copy = read_run(write_run(run, temporary_path()))
    recorded = set(run.scores.collect_schema().names())
    # An empty column differs from none: the column shows that items have options.
    names = [name for name in copy.scores.collect_schema().names() if name in recorded]
    return replace(run, scores=copy.scores.select(*names), texts=copy.texts, rows=copy.rows)


def _with_unique_names(runs: Iterable[ServedRun]) -> list[ServedRun]:
    """Number equal names."""
    counts: dict[str, int] = {}
    renamed = []
    for run in runs:
        count = counts[run.run.name] = counts.get(run.run.name, 0) + 1
        name = run.run.name if count == 1 else f"{run.run.name} ({count})"
        renamed.append(replace(run, run=replace(run.run, name=name, origin=name)))
    return renamed
