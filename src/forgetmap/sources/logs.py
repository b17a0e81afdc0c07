"""Runs from files and folders of a harness: recognise, choose, read, cache."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from hashlib import blake2b
from importlib.metadata import version
from pathlib import Path
from typing import Any

from forgetmap._cache import cached_folder, temporary_path
from forgetmap._disk import stamp_of
from forgetmap.errors import EmptyInputError, UnknownFormatError, UsageError
from forgetmap.records import (
    SCORES,
    Problem,
    Run,
    complete_folder,
    describe_folder,
    is_undamaged,
    read_run,
)
from forgetmap.sources.adapter import Log, Problems, Verdicts
from forgetmap.sources.files import LogFile, find_files
from forgetmap.sources.gather import RunWriter, in_batches, samples_of
from forgetmap.sources.maps import ComparedWith, ScoreRange
from forgetmap.sources.registry import adapter, hint_of, sniff_all
from forgetmap.sources.run_info import describe
from forgetmap.sources.sniff import without_collection
from forgetmap.sources.totals import compare_totals, graded_notices, total_notices

FORMAT = 11
"""Increased when the same log is read in a different way, so that cached runs are not used."""
READING = "reading.json"
"""Notices and problems of a cached run."""
MAX_NAMES = 6
DATED = re.compile(r"\d{4}-?\d\d-?\d\d[T_]\d\d")
"""File name of a harness that begins with a time."""
Progress = Callable[[str], None]
"""Callback that receives progress messages."""


@dataclass(frozen=True, slots=True)
class Reading:
    """Options for reading logs.

    Attributes:
        texts: whether questions, prompts and responses are kept.
        strict: whether the first problem in a row is an error.
        run: part of a time stamp, model or file name, to choose one of several runs.
        cached: whether what was read before is used again.
        progress: receives progress messages.
        score_range: the scale of scores that do not lie between 0 and 1.
        mapping: mapping file of a table; None is the one next to the table.
        scores: "log" uses only the scores of the log, "own" grades every answer; None uses the
            scores of the log if it has any and grades answers otherwise.
        spark: the session that reads tables; None is the embedded engine.
        beside: the comparison that a table is read for.
    """

    texts: bool = True
    strict: bool = False
    run: str | None = None
    cached: bool = True
    progress: Progress | None = None
    score_range: ScoreRange | None = None
    mapping: Path | None = None
    scores: Verdicts | None = None
    spark: Any = None
    beside: ComparedWith = field(default_factory=ComparedWith)


def recognise(path: Path) -> list[Log]:
    """Return all logs below a path that an adapter recognises."""
    left = find_files(path)
    _refuse_pickles(path, left)
    known: list[Log] = []
    for logs in sniff_all(left):
        known += logs
        claimed = {file.name for log in logs for file in log.files}
        archives = {file.path for log in logs for file in log.files if file.member is None}
        left[:] = [file for file in left if not _is_taken(file, claimed, archives)]
        if not left:
            break
    return known


def _is_taken(file: LogFile, claimed: set[str], archives: set[Path]) -> bool:
    """Whether a file is claimed by name, or as a member of a claimed archive."""
    return file.name in claimed or (file.member is not None and file.path in archives)


def _refuse_pickles(path: Path, files: Sequence[LogFile]) -> None:
    contents = [file for file in files if file.member is not None or file.archive is None]
    if contents and all(file.kind == "pickle" for file in contents):
        raise UnknownFormatError(
            "there are only Python pickles, which can run any code when they are opened",
            file=str(path),
            hint="save the results as JSON Lines, CSV or Parquet instead.",
        )


def open_logs(path: Path, logs: Sequence[Log], reading: Reading) -> Run:
    """Return the newest run among these logs, from the cache if possible."""
    chosen, notices = choose(path, logs, reading.run)
    files = sorted({file.path for log in chosen for file in log.files})
    folder = temporary_path()
    if reading.cached:
        options = (reading.texts, reading.strict, reading.scores)
        folder = cached_folder(_cache_key(files, chosen, *options))
    if not ((folder / READING).is_file() and is_undamaged(folder)):
        shutil.rmtree(folder, ignore_errors=True)
        _import(path, chosen, folder, reading)
    run = read_run(folder)
    known = json.loads((folder / READING).read_text(encoding="utf-8"))
    return replace(
        run,
        name=run.info.run_id or _name(path, run.info.model.name),
        origin=str(path),
        notices=(*notices, *known["notices"]),
        format=known["format"],
        problems=tuple(Problem(**problem) for problem in known["problems"]),
        problem_count=known["problem_count"],
    )


def _name(path: Path, model: str | None) -> str:
    """Return the name of a run: its file or folder, or the model if that begins with a time."""
    stem = path.name.split(".")[0] or str(path)
    return model if model and DATED.match(stem) else stem


def _cache_key(files: Iterable[Path], logs: Sequence[Log], *options: object) -> str:
    """Return a key that depends on the files, their stamps, the models and the options."""
    parts = [version("forgetmap"), str(FORMAT), repr(options)]
    parts += [f"{path.resolve()}|{stamp_of(path)}" for path in files]
    for log in logs:
        inside = [file.inside for file in log.files]
        notes = sorted((name, value) for name, value in log.notes.items() if _is_plain(value))
        parts.append(repr((log.adapter, log.format, inside, log.tasks, log.stamp, notes)))
        parts.append(log.info.model_dump_json())
    return blake2b("\n".join(parts).encode(), digest_size=16).hexdigest()


def _is_plain(value: object) -> bool:
    """Whether the text of a note is the same in every process."""
    return isinstance(value, str | int | float | bool | None)


def _import(path: Path, logs: Sequence[Log], folder: Path, reading: Reading) -> None:
    problems = Problems(strict=reading.strict)
    with complete_folder(folder) as partial:
        with (
            without_collection(),
            RunWriter(partial, texts=reading.texts, problems=problems) as writer,
        ):
            _read(path, logs, writer, problems, reading)
        if not writer.samples:
            raise _empty_error(path, logs, problems)
        info = describe(logs, writer)
        differences = compare_totals(partial / SCORES, problems.totals, info.metrics)
        notices = total_notices(differences)
        notices += graded_notices(problems.graded if reading.scores is None else ())
        known = {
            "notices": notices,
            "format": ", ".join(sorted({log.format or log.adapter for log in logs})),
            "problem_count": problems.count,
            "problems": [asdict(problem) for problem in problems.kept],
        }
        (partial / READING).write_text(json.dumps(known), encoding="utf-8")
        contradicted = {"contradictions": [*differences, *problems.contradictions]}
        describe_folder(partial, info.model_copy(update=contradicted))


def _read(
    path: Path, logs: Sequence[Log], writer: RunWriter, problems: Problems, reading: Reading
) -> None:
    """Read all samples."""
    count = 0
    for samples in in_batches(
        samples_of(logs, problems, texts=reading.texts, verdicts=reading.scores)
    ):
        writer.add(samples)
        count += len(samples)
        if reading.progress:
            reading.progress(f"Reading {path.name}: {count:,} samples")
    problems.kept.sort(key=lambda problem: (problem.file, problem.line or 0))


def _empty_error(path: Path, logs: Sequence[Log], problems: Problems) -> EmptyInputError:
    first = f"; the first problem: {problems.kept[0]}" if problems.kept else ""
    return EmptyInputError(
        f"it contains no results of single items{first}",
        file=str(path),
        hint=_what_is_missing(logs[0]),
    )


def _what_is_missing(log: Log) -> str:
    """Return a hint how to get results of single items from this harness."""
    path = shlex.quote(str(log.files[0].path))
    return hint_of(log.adapter) or (
        f"let {log.adapter} finish the evaluation; if its rows already contain scores, "
        f"`forgetmap records map {path} --save-map` makes them be read as a table."
    )


def choose(path: Path, logs: Sequence[Log], run: str | None) -> tuple[list[Log], list[str]]:
    """Return the newest log of each task of one model, and notices about the others."""
    left = [log for log in logs if run is None or log.info.model.name == run]
    left = left or [log for log in logs if run is not None and _answers_to(log, run)]
    if not left:
        raise UsageError(
            f"no run in {path} matches {run!r}; the runs are {_list_names(map(label, logs))}",
            hint="give part of a model, time stamp or file name to --run.",
        )
    models = {log.info.model.name for log in left} - {None}
    if len(models) > 1:
        raise UsageError(
            f"{path} contains results of {len(models)} models: "
            f"{_list_names(sorted(map(str, models)))}",
            hint=f"give the folder of one of them, or choose one: --run {min(map(str, models))}.",
        )
    kept, notices = _newest(path, left)
    unknown = [label(log) for log in kept if log.info.model.name is None]
    if models and unknown:
        (model,) = models
        notices.append(
            f"the model of {_list_names(unknown)} is not recorded; assumed to be {model}."
        )
    return kept, notices


def _newest(path: Path, logs: Sequence[Log]) -> tuple[list[Log], list[str]]:
    """Return the newest logs of each set of tasks, preferring finished ones, and notices."""
    by_tasks: dict[tuple[str, ...], list[Log]] = defaultdict(list)
    for log in logs:
        by_tasks[(log.adapter, *log.tasks)].append(log)
    kept, notices = [], []
    for (_, *tasks), group in by_tasks.items():
        newest = max((log.finished, log.stamp or "") for log in group)
        chosen = [log for log in group if (log.finished, log.stamp or "") == newest]
        _require_one_folder(path, tasks, chosen)
        kept += chosen
        if len(chosen) < len(group):
            dropped = sorted({log.stamp or "undated" for log in group} - {newest[1]})
            notices.append(
                f"{', '.join(tasks) or 'a task'} was evaluated {len(dropped) + 1} times; the run "
                f"of {newest[1] or 'unknown date'} is used, not {_list_names(dropped)} (choose "
                "with --run)."
            )
    return kept, notices


def _require_one_folder(path: Path, tasks: Sequence[str], logs: Sequence[Log]) -> None:
    """Refuse undated logs of the same tasks in several folders; parts of a run share a folder."""
    folders = sorted({log.files[0].inside.rpartition("/")[0] for log in logs})
    if len(folders) > 1:
        raise UsageError(
            f"{path}: {', '.join(tasks) or 'a task'} was evaluated in several folders without "
            f"dates: {_list_names(folders)}",
            hint="give one of these folders, or part of its name to --run.",
        )


def recorded_settings(path: Path, run: str | None) -> list[tuple[Log, Mapping[str, Any]]]:
    """Return the logs of one run, each with what its harness recorded about its start.

    Args:
        path: the logs.
        run: part of a time stamp, model or file name, to choose one of several runs.
    """
    chosen, _ = choose(path, recognise(path), run)
    settings = [getattr(adapter(log.adapter), "settings", None) for log in chosen]
    return [(log, read(log) if read else {}) for log, read in zip(chosen, settings, strict=True)]


def label(log: Log) -> str:
    """Return a display name of a log."""
    parts = (log.info.model.name, ", ".join(log.tasks[:2]), log.stamp)
    return " ".join(part for part in parts if part) or log.files[0].name


def _answers_to(log: Log, part: str) -> bool:
    names = (log.stamp, log.info.model.name, log.info.run_id, *(file.inside for file in log.files))
    return any(part in name for name in names if name)


def _list_names(names: Iterable[str]) -> str:
    names = list(names)
    more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
    return ", ".join(names[:MAX_NAMES]) + more
