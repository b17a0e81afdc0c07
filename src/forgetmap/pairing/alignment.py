"""Matching of tasks with different names: other harnesses, renamed or split files.

Tasks of equal name belong together. The others are matched by simplified names, then by their
questions; a notice lists the matches by questions.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

import narwhals as nw

from forgetmap.errors import PairingError
from forgetmap.pairing.matching import Side
from forgetmap.pairing.metric import MeasuredScores
from forgetmap.records import Frame
from forgetmap.text import listed

MIN_SHARED_QUESTIONS = 0.1
"""Minimum share of the smaller task's questions that occur in the other one. Low, because a task
may be split over several files on both sides."""
SAME_QUESTIONS = 0.5
"""Share of common questions from which two tasks of a run are variants, not parts of one task."""
SAME_TASK = 0.95
"""Share of common questions from which two tasks of equal name are the same."""

Names = Mapping[str, str]
"""Task -> new name."""
_NO_WORD = re.compile(r"[^a-z0-9]+")
_SHOTS = re.compile(r"\|\d+(\|\d+)?$")


def align(sides: Sequence[Side]) -> list[Side]:
    """Rename tasks that are the same, so that all sides use the name of the first side."""
    first, *later = sides
    groups_by_side = [_match_tasks(first, side) for side in later]
    first_names: dict[str, str] = {}
    for groups in groups_by_side:
        first_names |= {task: _name(*group) for group in groups for task in group[0]}
    aligned = [_rename(first, first_names)]
    for side, groups in zip(later, groups_by_side, strict=True):
        names = {task: first_names[task] for task in side.measured.measures if task in first_names}
        names |= {task: _name(*group) for group in groups for task in group[1]}
        aligned.append(_rename(side, names, notice=_notice(groups)))
    return aligned


Groups = list[tuple[tuple[str, ...], tuple[str, ...]]]
"""Groups of tasks of the first side, each with the tasks of the other side that are the same."""


def _match_tasks(first: Side, other: Side) -> Groups:
    same = first.measured.measures.keys() & other.measured.measures.keys()
    scattered = _scattered(first, other, same)
    first_tasks = [task for task in first.measured.measures if task not in same]
    other_tasks = [task for task in other.measured.measures if task not in same]
    groups = _by_name(first_tasks, other_tasks)
    first_tasks = [task for task in first_tasks if all(task not in group[0] for group in groups)]
    other_tasks = [task for task in other_tasks if all(task not in group[1] for group in groups)]
    if (first_tasks and other_tasks) or scattered:
        shared = _shared(first, other, [*first_tasks, *scattered], [*other_tasks, *scattered])
        linked = _group_links(
            [pair for pair, share in shared.items() if share >= MIN_SHARED_QUESTIONS]
        )
        groups += [
            group for group in linked if _are_parts(first, group[0]) and _are_parts(other, group[1])
        ]
    return groups


def _are_parts(side: Side, tasks: Collection[str]) -> bool:
    """Whether tasks of a run can be parts of one task: not if they share most questions."""
    if len(tasks) == 1:
        return True
    questions = _questions(side, tasks)
    sizes = _sizes(questions).values()
    different = questions.select("question_hash").unique().select(nw.len()).collect().item()
    return sum(sizes) - int(different) < SAME_QUESTIONS * min(sizes)


def _scattered(first: Side, other: Side, same: Collection[str]) -> list[str]:
    """Return tasks of equal name whose questions are in several tasks of the other side.

    That happens if tasks are named after files, and the files were split.
    """
    if len(same) < 2 or not (first.run.format and other.run.format):  # at least two parts
        return []
    shared = _shared(first, other, same, same)
    return sorted(
        {
            task
            for pair, share in shared.items()
            if pair[0] != pair[1] and share >= MIN_SHARED_QUESTIONS
            for task in pair
            if shared.get((task, task), 0.0) < SAME_TASK
        }
    )


def _by_name(first_tasks: Iterable[str], other_tasks: Iterable[str]) -> Groups:
    """Match tasks whose names differ only in the collection, shots, case and punctuation."""
    tasks_by_name: dict[str, tuple[list[str], list[str]]] = defaultdict(lambda: ([], []))
    for index, tasks in enumerate((first_tasks, other_tasks)):
        for task in tasks:
            tasks_by_name[_plain(task)][index].append(task)
    return [
        ((one[0],), (two[0],)) for one, two in tasks_by_name.values() if len(one) == len(two) == 1
    ]


def _plain(task: str) -> str:
    """Return `arc_easy` for `leaderboard|arc:easy|25`, `inspect_evals/arc_easy` and `ARC-Easy`."""
    bare = _SHOTS.sub("", task).rpartition("|")[2].rpartition("/")[2]
    return _NO_WORD.sub("_", bare.casefold()).strip("_")


def _shared(
    first: Side, other: Side, first_tasks: Collection[str], other_tasks: Collection[str]
) -> dict[tuple[str, str], float]:
    """Return, for pairs of tasks, the share of the smaller task's questions that both have."""
    sides = (first, other)
    libraries = {side.run.scores.implementation.value for side in sides}
    if len(libraries) > 1 or not all("question_hash" in side.run.columns for side in sides):
        return {}
    questions = _questions(first, first_tasks), _questions(other, other_tasks)
    joined = questions[0].join(questions[1], on="question_hash", suffix="_other")
    counted = joined.group_by("task", "task_other").agg(n=nw.len()).collect().rows(named=True)
    sizes = [_sizes(side) for side in questions]
    return {
        (row["task"], row["task_other"]): row["n"]
        / min(sizes[0][row["task"]], sizes[1][row["task_other"]])
        for row in sorted(counted, key=lambda row: (row["task"], row["task_other"]))
    }


def _questions(side: Side, tasks: Collection[str]) -> Frame:
    scores = side.measured.scores.filter(nw.col("task").is_in(list(tasks)))
    questions = scores.filter(~nw.col("question_hash").is_null())
    return questions.select("task", "question_hash").unique()


def _sizes(questions: Frame) -> dict[str, int]:
    counted = questions.group_by("task").agg(n=nw.len()).collect().rows(named=True)
    return {row["task"]: row["n"] for row in counted}


def _group_links(links: Sequence[tuple[str, str]]) -> Groups:
    """Group linked tasks, so that a task split over several files is one."""
    groups: list[tuple[set[str], set[str]]] = []
    for one, two in links:
        touched = [group for group in groups if one in group[0] or two in group[1]]
        groups = [group for group in groups if group not in touched]
        first_tasks = {one}.union(*(group[0] for group in touched))
        other_tasks = {two}.union(*(group[1] for group in touched))
        groups.append((first_tasks, other_tasks))
    return [(tuple(sorted(group[0])), tuple(sorted(group[1]))) for group in groups]


def _name(first_tasks: Sequence[str], other_tasks: Sequence[str]) -> str:
    return other_tasks[0] if len(first_tasks) > 1 and len(other_tasks) == 1 else first_tasks[0]


def _notice(groups: Groups) -> str | None:
    pairs = [
        f"{' and '.join(one)} is {' and '.join(two)}"
        for one, two in groups
        if len(one) > 1 or len(two) > 1 or _plain(one[0]) != _plain(two[0])
    ]
    if not pairs:
        return None
    return f"tasks with different names were matched by their questions: {listed(pairs)}."


def _rename(side: Side, names: Names, *, notice: str | None = None) -> Side:
    if not names:
        return side
    measured = side.measured
    for task, name in names.items():
        measure, known = measured.measures[task], measured.measures.get(name, None)
        if known is not None and known != measure:
            raise PairingError(
                f"{side.run.name}: {task!r} and {name!r} are the same task, but with the metrics "
                f"{measure} and {known}",
                hint="choose one metric with --metric.",
            )
    run = replace(
        side.run,
        scores=_with_names(side.run.scores, names),
        texts=None if side.run.texts is None else _with_names(side.run.texts, names),
        info=side.run.info.model_copy(
            update={"tasks": {names.get(t, t): i for t, i in side.run.info.tasks.items()}}
        ),
        notices=(*side.run.notices, *([notice] if notice else [])),
        contradictions=tuple(
            replace(one, task=names.get(one.task, one.task)) for one in side.run.contradictions
        ),
    )
    totals = None if side.totals is None else side.totals.renamed(names)
    return replace(side, run=run, measured=_rename_measures(measured, names), totals=totals)


def _rename_measures(measured: MeasuredScores, names: Names) -> MeasuredScores:
    recorded: dict[str, dict[str, int]] = {}
    for task, counts in measured.recorded.items():
        into = recorded.setdefault(names.get(task, task), {})
        for column, count in counts.items():
            into[column] = into.get(column, 0) + count
    return MeasuredScores(
        scores=_with_names(measured.scores, names),
        measures={names.get(task, task): measure for task, measure in measured.measures.items()},
        recorded=recorded,
    )


def _with_names(frame: Frame, names: Names) -> Frame:
    task = nw.col("task")
    for old, new in names.items():
        task = nw.when(nw.col("task") == old).then(nw.lit(new)).otherwise(task)
    return frame.with_columns(task=task)
