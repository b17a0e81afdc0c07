"""How large logs are shared out among processes: log by log, and a long file of lines by ranges.

Ranges of one file are about the same tasks, so they are only put together if no result stands in
two of them; if one does, or anything else is unusual, the logs are read once more, one row after
the other.
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
"""Bytes from which on further processes are worth their start."""
MIN_BYTES_OF_RANGE = 32 << 20
"""Bytes of a range that are worth files of their own."""
PARTS_PER_PROCESS = 4
"""Parts that each process should get, so that all end at about the same time.

A range is that share of what is still to be read: long ones first, which cost less, short ones at
the end, so that no process waits long for the last.
"""
MAX_BYTES_OF_RANGE = 256 << 20
"""Bytes of a range after which progress should be shown."""
BYTES_PER_ROW = 14 << 10
"""Bytes that take as long to pass over as the work on one row."""
# The rows of a range are read without it: pydantic would take a third of the start of a worker.
_NO_INFO = cast("RunInfo", None)


@dataclass(frozen=True, slots=True)
class PartOptions:
    """What all parts have in common.

    Attributes:
        folder: where a folder for each part is made.
        texts: whether questions, prompts and responses are kept.
        scores: whose verdicts are used; None for those of the log where it stores any.
    """

    folder: Path
    texts: bool
    scores: Verdicts | None


def whole(logs: Sequence[Log], options: PartOptions) -> LogPart:
    """All logs as one part."""
    return _part(options, 0, logs)


def share_out(logs: Sequence[Log], options: PartOptions, processes: int | None) -> list[LogPart]:
    """What can be read apart; nothing where that is not worth it or not possible.

    Args:
        logs: what is read.
        options: of all parts.
        processes: how many read; None is one per core for large logs, and one for others.
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
    if len(parts) < 2:  # nobody to share with
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
    """Read all parts in several processes, of which this is one.

    Args:
        parts: what is read.
        writer: takes over what they find, in the order of logs and ranges.
        problems: where problems are reported.
        processes: how many read; None is one per core.
        show: told how many samples there are.

    Returns:
        False, with nothing written, if ranges must be read one after the other.
    """
    ordered = sorted(parts, key=attrgetter("place"))
    waiting = deque(part.folder for part in ordered)
    finished: dict[Path, tuple[WriterSummary, Problems]] = {}

    def take(result: tuple[WriterSummary, Problems]) -> None:
        finished[result[0].folder] = result
        show(sum(summary.samples for summary, _ in finished.values()))
        # Written while others still read: at the end only one process would be busy.
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
    """Count lines from the beginning of the file rather than of the range."""
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
    # With each log its adapter, so that a worker imports no more than it needs.
    readers = [(adapter(log.adapter), log) for log in logs]
    return LogPart(options.folder / "part", readers, options.texts, options.scores, place, is_range)


def _ranges(log: Log, size: int, count: int) -> list[Log]:
    """Split a log into ranges of its lines.

    Args:
        log: the log.
        size: bytes of this log and those after it.
        count: number of parts that so many bytes are divided into.

    Returns:
        The log once per range; nothing if it is short or its rows cannot be read apart.
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
    """Where the ranges of a file begin.

    Args:
        length: bytes of the file.
        size: bytes of the file and all that are read after it.
        count: see `_ranges`.
    """
    bounds, at = [], 0
    while at < length:
        bounds.append(at)
        share = (size - at) // count
        at += max(MIN_BYTES_OF_RANGE, min(share, MAX_BYTES_OF_RANGE), 1)
    if len(bounds) > 1 and length - bounds[-1] < MIN_BYTES_OF_RANGE:
        bounds.pop()  # too short for a range of its own
    return bounds


def _file_ranges(
    file: LogFile, bounds: Sequence[int], group_of: Callable[[bytes], object] | None
) -> Iterator[LogFile]:
    """Ranges that begin there; lines of one group that stand together fall into one."""
    if group_of is not None:
        bounds = [0, *(_group_end(file, bound, group_of) for bound in bounds[1:])]
    for start, end in pairwise([*dict.fromkeys(bounds), None]):
        if start != file.size:
            yield file.range(start or 0, end)


def _group_end(file: LogFile, start: int, group_of: Callable[[bytes], object]) -> int:
    """Where the first line begins that is not of the group of the first line after a byte."""
    first: object = None
    for block in file.range(start, None).blocks():
        for at, end in block.lines():
            group = group_of(block.data[at:end])
            if first not in (None, group):
                return (block.offset or 0) + at
            first = group
    return file.size


def _are_independent(logs: Sequence[Log]) -> bool:
    """Whether logs with other tasks are about other results, and lie in files of their own."""
    task_sets = {log.tasks for log in logs}
    tasks = {task for tasks in task_sets for task in tasks}
    archives = [{file.path for file in log.files if file.archive is not None} for log in logs]
    own_archives = len(set().union(*archives)) == sum(map(len, archives))
    return () not in task_sets and len(tasks) == sum(map(len, task_sets)) and own_archives


def _balance(logs: Sequence[Log], count: int) -> list[list[Log]]:
    """Groups of about the same work, no task in two of them, the largest first."""
    by_tasks: dict[tuple[str, ...], list[Log]] = defaultdict(list)
    for log in logs:
        by_tasks[log.tasks].append(log)
    works = [(sum(map(_work, same)), same) for same in by_tasks.values()]
    groups: list[tuple[float, list[Log]]] = [(0.0, [])] * min(count, len(works))
    # What takes longest goes first, to the group that has least to do.
    for work, same in sorted(works, key=itemgetter(0), reverse=True):
        least = min(range(len(groups)), key=lambda index: (groups[index][0], len(groups[index][1])))
        groups[least] = (groups[least][0] + work, groups[least][1] + same)
    return [group for _, group in sorted(groups, key=itemgetter(0), reverse=True)]


def _work(log: Log) -> float:
    """How long a log takes, in bytes passed over: short rows take longer than long ones."""
    return sum(
        file.size * (1 + BYTES_PER_ROW * (file.head.count(b"\n") or 1) / max(len(file.head), 1))
        for file in log.files
    )
