"""Signs that a number is unreliable; they are printed before the numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from forgetmap.capabilities.result import Caution, MetricCell
from forgetmap.capabilities.taxonomy import SHARES
from forgetmap.capabilities.values import TaskPairs, TaxonomyRun
from forgetmap.pairing import compare_conditions
from forgetmap.text import counted, listed, percent

CEILING = 0.99
MIN_ITEMS = 100
MAX_FAILURE_GAP = 0.02
MAX_JUDGE_ERRORS = 0.01
"""Maximum share of answers that a judge may fail on; beyond it a cell is withheld."""


def find_cautions(
    model: str,
    before: TaxonomyRun,
    after: TaxonomyRun,
    pairs: Mapping[str, TaskPairs],
    cells: Sequence[MetricCell],
) -> list[Caution]:
    """Return all cautions about one model, the general ones first."""
    conditions = compare_conditions(before.run.info, after.run.info, ({}, {}))
    notices = [Caution(notice.code, notice.message, model) for notice in conditions]
    notices += [Caution(code, message, model) for code, message in _of_runs(before, after, pairs)]
    for cell in cells:
        notices += [Caution(code, message, model, cell.id) for code, message in _of_metric(cell)]
    return notices


def _of_runs(
    before: TaxonomyRun, after: TaxonomyRun, pairs: Mapping[str, TaskPairs]
) -> Iterator[tuple[str, str]]:
    for source in (before, after):
        if source.strangers:
            yield (
                "unknown_tasks",
                (
                    f"{source.run.name}: the taxonomy does not contain "
                    f"{listed(source.strangers)}; task names must match the taxonomy exactly."
                ),
            )
        for notice in source.run.notices:
            yield "reading", notice
        if source.run.problem_count:
            rows = counted(source.run.problem_count, "row")
            yield (
                "problems",
                f"{source.run.name}: {rows} could not be used; `forgetmap records show` lists them",
            )
    for task in sorted(before.tasks.keys() & after.tasks.keys()):
        paired = len(pairs[task]) if task in pairs else 0
        sizes = [source.count(task) for source in (before, after)]
        if paired < max(sizes):
            yield (
                "unpaired",
                (
                    f"{task}: {paired:,} of {sizes[0]:,} items before and {sizes[1]:,} after "
                    "match; only these count."
                ),
            )


def _of_metric(cell: MetricCell) -> Iterator[tuple[str, str]]:
    if cell.before is None or cell.after is None:
        return
    name = f"{cell.name} [{cell.id}]"
    if cell.chance:
        for side, mean in (("before", cell.before), ("after", cell.after)):
            error = (cell.chance * (1 - cell.chance) / max(cell.n, 1)) ** 0.5
            if mean < cell.chance - 2 * error:
                yield (
                    "below_chance",
                    (
                        f"{name} is {percent(mean)} {side}, below the guessing rate of "
                        f"{percent(cell.chance)}: check that right answers and options are read "
                        "correctly."
                    ),
                )
    if _is_zero_on_one_side(cell):
        side = "before" if cell.before == 0 else "after"
        message = f"{name} is exactly 0 for every item {side}: check whether the whole task failed."
        yield "zero", message
    if cell.constant:
        yield "constant", f"{name} has the same value for every item of both models."
    elif cell.scale in SHARES and min(cell.before, cell.after) >= CEILING:
        yield "ceiling", f"{name} is at its ceiling in both models and can hardly show a change."
    if cell.n < MIN_ITEMS:
        yield "few_items", f"{name} is based on only {cell.n:,} items."
    if cell.extreme_before is not None and cell.extreme_before != cell.extreme_after:
        yield (
            "extreme",
            (
                f"{name}: {cell.extreme_before:,} of {cell.n:,} values before and "
                f"{cell.extreme_after:,} after are more than ten times the median; they show in "
                "the mean, not in the drift, which is that of typical values."
            ),
        )
    yield from _of_failures(cell, name)


def _is_zero_on_one_side(cell: MetricCell) -> bool:
    """Return whether a task seems to have failed; few items, or a style, may be 0 by chance."""
    zeros = (cell.before == 0) + (cell.after == 0)
    return zeros == 1 and cell.polarity != "both" and cell.n >= MIN_ITEMS


def _of_failures(cell: MetricCell, name: str) -> Iterator[tuple[str, str]]:
    for code, words, before, after in (
        ("failures", "no answer found", cell.failed_before, cell.failed_after),
        ("errors", "scoring failed", cell.errors_before, cell.errors_after),
    ):
        if before is not None and after is not None and abs(after - before) > MAX_FAILURE_GAP:
            yield (
                code,
                (
                    f"{name}: {words} in {percent(before)} of answers before and "
                    f"{percent(after)} after; part of the change may be due to format."
                ),
            )
    if cell.scorer is not None and cell.scorer[0] != cell.scorer[1]:
        yield "scorers", f"{name} was scored by {cell.scorer[0]} before and {cell.scorer[1]} after."
