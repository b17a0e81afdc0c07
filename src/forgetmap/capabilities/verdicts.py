"""Verdicts of `compare` on answers that are right or wrong: every metric is a task of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from forgetmap.capabilities.taxonomy import Metric
from forgetmap.capabilities.values import TaskPairs, TaxonomyRun
from forgetmap.comparison import GroupResult, Rule, judge_tasks
from forgetmap.pairing import Measure, prepare
from forgetmap.results import Notice


class Answered(NamedTuple):
    """A metric of right and wrong answers.

    Attributes:
        metric: the metric.
        measures: the source of its values before and after.
    """

    metric: Metric
    measures: tuple[Measure, Measure]


def judge_answers(
    answered: Sequence[Answered],
    sides: tuple[TaxonomyRun, TaxonomyRun],
    pairs: Mapping[str, TaskPairs],
    *,
    selected: bool | None,
) -> tuple[dict[str, GroupResult], tuple[Notice, ...]]:
    """Return the verdict of each metric, and what contradicts the scores.

    Args:
        answered: metrics with values on both sides.
        sides: both models.
        pairs: items of each task that are on both sides.
        selected: whether the model before helped to choose the items; None looks for signs of it.
    """
    own = {one.metric.task: pairs[one.metric.task] for one in answered}
    names = [
        {task: (part.before, part.before) for task, part in own.items()},
        {task: (part.after, part.before) for task, part in own.items()},
    ]
    # The runs have no outputs here, and repeats that are copies are already left out.
    before, after = (
        replace(
            prepare(
                source.answers([(one.metric, one.measures[at]) for one in answered], names[at])
            ),
            copies=(),
        )
        for at, source in enumerate(sides)
    )
    groups, against = judge_tasks(before, after, Rule(pair_by="id", selected=selected))
    unique = {notice.message: notice for notice in against}
    return {group.name: group for group in groups}, tuple(unique.values())
