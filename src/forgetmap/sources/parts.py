"""Large logs in parts for several processes: log by log, and long files of lines in ranges.

Ranges of one file are about the same tasks, so they are only combined if no two of them contain the
same result. Otherwise, and after any error, the logs are read again, row by row.
"""

from __future__ import annotations

import shutil
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, cast

from forgetmap._workers import WorkerPool, count_cores
from forgetmap.errors import ForgetmapError
from forgetmap.sources.adapter import Log, Problems, Verdicts
from forgetmap.sources.files import LogFile
from forgetmap.sources.gather import LogPart, RunWriter, WriterSummary, read_part
from forgetmap.sources.overlaps import are_apart
from forgetmap.sources.registry import adapter

if TYPE_CHECKING:
    from forgetmap.records import RunInfo

MIN_BYTES_FOR_PROCESSES = 256 << 20
"""Minimum size in bytes for which further processes are started."""
MIN_BYTES_OF_RANGE = 32 << 20
"""Minimum size of a range in bytes, because each has its own files."""
PARTS_PER_PROCESS = 4
"""Number of parts per process, so that all processes finish at about the same time.

The length of a range is this share of the remaining bytes: long ranges first, because they cost
less per byte, and short ones at the end, so that no process waits long for the last.
"""
MAX_BYTES_OF_RANGE = 256 << 20
"""Maximum size of a range in bytes; progress is shown after each range."""
BYTES_PER_ROW = 14 << 10
"""Number of bytes that take as long to skip as one row takes to process."""
# Ranges are read without `info`: importing pydantic takes a third of the start of a worker.
_NO_INFO = cast("RunInfo", None)


@dataclass(frozen=True, slots=True)
class PartOptions:
    """Options shared by all parts.

    Attributes:
        folder: parent of the folders of the parts.
        texts: whether questions, prompts and responses are kept.
        scores: whose verdicts are used; None for those of the log where it stores any.
    """

    folder: Path
    texts: bool
    scores: Verdicts | None


def whole(logs: Sequence[Log], options: PartOptions) -> LogPart:
    """Return all logs as one part."""
    return _part(options, 0, logs)


def share_out(logs: Sequence[Log], options: PartOptions, processes: int | None) -> list[LogPart]:
    """Return parts that can be read independently; empty if there is only one or logs are small.

    Args:
        logs: the logs to read.
        options: shared by all parts.
        processes: number of processes; None is one per core for large logs and one for others.
    """
    size = sum(file.size for log in logs for file in log.files)
    is_small = processes is None and size < MIN_BYTES_FOR_PROCESSES
    processes = processes or count_cores()
    if processes == 1 or is_small or not _are_independent(logs):
        return []
    count = PARTS_PER_PROCESS * processes
    ranges: dict[int, list[Log]] = {}
    for place, log in enumerate(logs):
        ranges[place] = _ranges(log, size, count)
        size -= sum(file.size for file in log.files)
    others = [log for place, log in enumerate(logs) if not ranges[place]]
    parts = [
        _part(options, place, [log], is_range=True)
        for place, of_log in ranges.items()
        for log in of_log
    ]
    groups = _balance(others, count) if others else []
    parts += [_part(options, logs.index(group[0]), group) for group in groups]
    if len(parts) < 2:  # nothing to read in parallel
        return []
    return [
        replace(part, folder=options.folder / f"part-{number}") for number, part in enumerate(parts)
    ]


def read_parts(
    parts: Sequence[LogPart],
    writer: RunWriter,
    problems: Problems,
    processes: int | None,
    show: Callable[[int], object],
) -> bool:
    """Read all parts in several processes, including this one.

    Args:
        parts: the parts to read.
        writer: receives the results in the order of logs and ranges.
        problems: receives the problems of all parts.
        processes: number of processes; None is one per core.
        show: called with the number of samples read so far.

    Returns:
        False, with nothing written, if the logs must be read row by row.
    """
    ordered = sorted(parts, key=attrgetter("place"))
    waiting = deque(part.folder for part in ordered)
    finished: dict[Path, tuple[WriterSummary, Problems]] = {}

    def take(result: tuple[WriterSummary, Problems]) -> None:
        finished[result[0].folder] = result
        show(sum(summary.samples for summary, _ in finished.values()))
        # Written while other processes still read; at the end only this one would be busy.
        while waiting and waiting[0] in finished:
            writer.append(finished[waiting.popleft()][0])

    splits = any(part.is_range for part in parts)
    try:
        with WorkerPool(processes) as pool:
            pool.share(read_part, parts, take)
        is_complete = not splits or are_apart([summary.digests for summary, _ in finished.values()])
    except ForgetmapError:
        if not splits:
            raise
        is_complete = False
    if not is_complete:
        for part in parts:
            shutil.rmtree(part.folder, ignore_errors=True)
        writer.start_over()
        return False
    for part in ordered:
        _, others = finished[part.folder]
        if others.kept and part.is_range:
            _shift_lines(others, part.logs[0][1].files[0])
        problems.extend(others)
    return True


def _shift_lines(problems: Problems, file: LogFile) -> None:
    """Make line numbers relative to the file instead of the range."""
    before = file.lines_before()
    problems.kept = [
        replace(problem, line=problem.line + before)
        if problem.line is not None and problem.file == file.name
        else problem
        for problem in problems.kept
    ]


def _part(
    options: PartOptions, place: int, logs: Sequence[Log], *, is_range: bool = False
) -> LogPart:
    # Each log carries its adapter, so that a worker imports only that one.
    readers = [(adapter(log.adapter), log) for log in logs]
    return LogPart(options.folder / "part", readers, options.texts, options.scores, place, is_range)


def _ranges(log: Log, size: int, count: int) -> list[Log]:
    """Split a log into ranges of its lines.

    Args:
        log: the log.
        size: size of this log and all logs after it, in bytes.
        count: number of parts into which these bytes are divided.

    Returns:
        One copy of the log per range; empty if it is short or its rows depend on each other.
    """
    split_files = getattr(adapter(log.adapter), "split_files", None)
    files: Sequence[LogFile] = split_files(log) if split_files is not None else ()
    if not any(file.is_seekable and file.size >= 2 * MIN_BYTES_OF_RANGE for file in files):
        return []
    companions = [file for file in log.files if file not in files]
    group_of = getattr(adapter(log.adapter), "group_of", None)
    parts: list[LogFile] = []
    for file in files:
        if file.is_seekable:
            parts += _file_ranges(file, _bounds(file.size, size, count), group_of)
        else:
            parts.append(file)
        size -= file.size
    return [replace(log, files=(part, *companions), info=_NO_INFO) for part in parts]


def _bounds(length: int, size: int, count: int) -> list[int]:
    """Return the offsets at which the ranges of a file begin.

    Args:
        length: size of the file in bytes.
        size: size of this file and all files after it.
        count: see `_ranges`.
    """
    bounds, at = [], 0
    while at < length:
        bounds.append(at)
        share = (size - at) // count
        at += max(MIN_BYTES_OF_RANGE, min(share, MAX_BYTES_OF_RANGE), 1)
    if len(bounds) > 1 and length - bounds[-1] < MIN_BYTES_OF_RANGE:
        bounds.pop()  # shorter than the minimum
    return bounds


def _file_ranges(
    file: LogFile, bounds: Sequence[int], group_of: Callable[[bytes], object] | None
) -> Iterator[LogFile]:
    """Yield the ranges that begin at these offsets; adjacent lines of a group stay together."""
    if group_of is not None:
        bounds = [0, *(_group_end(file, bound, group_of) for bound in bounds[1:])]
    for start, end in pairwise([*dict.fromkeys(bounds), None]):
        if start != file.size:
            yield file.range(start or 0, end)


def _group_end(file: LogFile, start: int, group_of: Callable[[bytes], object]) -> int:
    """Return where the group of the first line after this offset ends."""
    first: object = None
    for block in file.range(start, None).blocks():
        for at, end in block.lines():
            group = group_of(block.data[at:end])
            if first not in (None, group):
                return (block.offset or 0) + at
            first = group
    return file.size


def _are_independent(logs: Sequence[Log]) -> bool:
    """Whether no two sets of tasks overlap, and no two logs share an archive."""
    task_sets = {log.tasks for log in logs}
    tasks = {task for tasks in task_sets for task in tasks}
    archives = [{file.path for file in log.files if file.archive is not None} for log in logs]
    own_archives = len(set().union(*archives)) == sum(map(len, archives))
    return () not in task_sets and len(tasks) == sum(map(len, task_sets)) and own_archives


def _balance(logs: Sequence[Log], count: int) -> list[list[Log]]:
    """Group logs by equal amounts of work, largest first; each task is in one group."""
    by_tasks: dict[tuple[str, ...], list[Log]] = defaultdict(list)
    for log in logs:
        by_tasks[log.tasks].append(log)
    works = [(sum(map(_work, same)), same) for same in by_tasks.values()]
    groups: list[tuple[float, list[Log]]] = [(0.0, [])] * min(count, len(works))
    # Longest first, each to the group with the least work.
    for work, same in sorted(works, key=itemgetter(0), reverse=True):
        least = min(range(len(groups)), key=lambda index: (groups[index][0], len(groups[index][1])))
        groups[least] = (groups[least][0] + work, groups[least][1] + same)
    return [group for _, group in sorted(groups, key=itemgetter(0), reverse=True)]


def _work(log: Log) -> float:
    """Estimate the work for a log, in bytes to skip: short rows take longer per byte."""
    return sum(
        file.size * (1 + BYTES_PER_ROW * (file.head.count(b"\n") or 1) / max(len(file.head), 1))
        for file in log.files
    )
