"""Checks of evaluation conditions: some differences are refused, others are warned about."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pydantic import BaseModel

from forgetmap.errors import MetricError, PairingError, TaskVersionError
from forgetmap.pairing.metric import Measure
from forgetmap.records import Run, RunInfo
from forgetmap.results import Notice
from forgetmap.text import listed


def check_versions(before: Run, after: Run) -> None:
    """Refuse two versions of a task; only within a harness, since each numbers them differently.

    Raises:
        TaskVersionError: a task has different versions.
    """
    if before.info.harness.name != after.info.harness.name:
        return
    for task in sorted(before.info.tasks.keys() & after.info.tasks.keys()):
        versions = [run.info.tasks[task].version for run in (before, after)]
        if None not in versions and versions[0] != versions[1]:
            raise TaskVersionError(
                f"task {task!r} is version {versions[0]} in {before.name} and version "
                f"{versions[1]} in {after.name}",
                hint="evaluate both models with the same version of the task.",
            )


def check_positions(before: Run, after: Run, pair_by: str) -> None:
    """Refuse positions in two files as ids: the items at equal positions may differ.

    Raises:
        PairingError: items are identified only by their positions in two files.
    """
    if before.positions_of != after.positions_of and pair_by != "id":
        raise PairingError(
            f"{before.origin} and {after.origin} have no item ids, so equal positions may not be "
            "the same item",
            hint="add a column of ids, or use --pair-by id if both are in the same order.",
        )


def check_directions(run: Run, measures: Mapping[str, Measure]) -> None:
    """Refuse a metric of which less is better: right means a score above a minimum.

    Raises:
        MetricError: a task has such a metric.
    """
    for task, measure in sorted(measures.items()):
        info = run.info.metrics.get(measure.metric)
        if info is not None and not info.higher_is_better:
            raise MetricError(
                f"{run.origin}: in task {task!r} a lower {measure.metric} is better, so there is "
                "no minimum score that counts as right",
                hint="choose another metric with --metric, or record the score with the "
                "opposite sign.",
            )


def compare_conditions(
    before: RunInfo, after: RunInfo, measures: tuple[Mapping[str, Measure], Mapping[str, Measure]]
) -> list[Notice]:
    """Return a notice for each difference in the evaluation of the two models."""
    return [
        *_fields(before, after),
        *_decoding(before, after),
        *_shots(before, after),
        *_measures(*measures),
        *_sampling(before, after),
    ]


def _fields(before: RunInfo, after: RunInfo) -> Iterable[Notice]:
    reasons = {
        "template_hash": ("template", "chat templates differ: the format alone can change scores"),
        "system_prompt_hash": (
            "system_prompt",
            "system prompts differ: this alone can change scores",
        ),
        "protocol": ("protocol", "protocols differ: this alone can change scores"),
        "harness": ("harness", "harness or its version differs: extraction may differ"),
    }
    for field, (code, reason) in reasons.items():
        first, second = _parts(getattr(before, field)), _parts(getattr(after, field))
        if any(first[part] != second[part] for part in first.keys() & second.keys()):
            yield Notice(
                code,
                f"{reason} ({_join_parts(first)} before, {_join_parts(second)} after).",
            )


def _decoding(before: RunInfo, after: RunInfo) -> Iterable[Notice]:
    for name in sorted(before.decoding.keys() & after.decoding.keys()):
        first, second = before.decoding[name], after.decoding[name]
        if first != second:
            yield Notice(
                "decoding",
                f"{name} is {first} before and {second} after: part of the change may be decoding, "
                "not the model.",
            )


def _shots(before: RunInfo, after: RunInfo) -> Iterable[Notice]:
    differing = [
        f"{task} ({before.tasks[task].n_shot} before, {after.tasks[task].n_shot} after)"
        for task in sorted(before.tasks.keys() & after.tasks.keys())
        if None not in (before.tasks[task].n_shot, after.tasks[task].n_shot)
        and before.tasks[task].n_shot != after.tasks[task].n_shot
    ]
    if differing:
        yield Notice(
            "n_shot",
            f"few-shot examples differ in {listed(differing, 'tasks')}: this alone can change "
            "scores.",
        )


def _measures(before: Mapping[str, Measure], after: Mapping[str, Measure]) -> Iterable[Notice]:
    differing = [
        f"{task} ({before[task]} before, {after[task]} after)"
        for task in sorted(before.keys() & after.keys())
        if before[task] != after[task]
    ]
    if differing:
        yield Notice(
            "metric",
            f"the metric differs in {listed(differing, 'tasks')}: the scores are not comparable.",
        )


def _sampling(before: RunInfo, after: RunInfo) -> Iterable[Notice]:
    if before.is_sampled or after.is_sampled:
        yield Notice(
            "sampled",
            "answers were sampled: they vary between runs, so some of the flips are chance.",
        )


def _parts(value: object) -> dict[str, object]:
    """Return the recorded parts of a condition; only recorded ones can differ."""
    parts = value.model_dump() if isinstance(value, BaseModel) else {"": value}
    return {name: part for name, part in parts.items() if part is not None}


def _join_parts(parts: Mapping[str, object]) -> str:
    return " ".join(str(part)[:40] for part in parts.values())
