"""All pairs of a study in detail: by category, by task, and as published."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from forgetmap.comparison import Cells, SeedRow, roll_up
from forgetmap.results import Estimate, Presentable, Value
from forgetmap.stats import Reals
from forgetmap.study.answers import IGNORED, OnRun, StudyAnswers
from forgetmap.study.claims import published_findings
from forgetmap.study.compare import PairComparer, compare_with_answers, pair_estimates
from forgetmap.study.declaration import Study, StudyPair
from forgetmap.study.findings import find_effects
from forgetmap.study.pair_table import TOTAL, Effect
from forgetmap.study.published import (
    CEILING,
    PublishedPair,
    published_pairs,
    published_study,
    published_table,
)
from forgetmap.study.result import PairResults, StudyResult
from forgetmap.study.summary import changes_style

AS_PUBLISHED = "as published: clipped at 0 per task and seed"


class PrintedValues(Value):
    """A category as in papers: clipped at 0 per task and seed, with its ceilings."""

    category: str
    forgetting: float | None
    forgetting_sd: float | None = Field(
        description="Standard deviation over seeds; null with a single seed."
    )
    forgetting_max: float | None = Field(description="Maximum that accuracy before allows.")
    backward_transfer: float | None
    backward_transfer_sd: float | None
    backward_transfer_max: float | None


class TaskChange(Value):
    """One task of a pair."""

    task: str
    category: str
    options: float | None = Field(description="Number of options; null for open-ended items.")
    items: int
    answers: int = Field(
        description="Number of answers over all repeats; the sum of the four counts below."
    )
    kept: int
    forgotten: int
    gained: int
    never: int
    acc_before: float
    acc_after: float
    forgetting: float = Field(description="Adjusted for chance, not clipped.")
    backward_transfer: float


class CategoryChange(Value):
    """One category of a pair, or its total; unknown values are null, never 0."""

    category: str
    tasks: int | None
    items: int | None
    forgotten: int | None = Field(description="Number of answers over all repeats.")
    gained: int | None
    acc_before: float | None = Field(description="Mean over tasks; for the total, over categories.")
    acc_after: float | None
    forgetting: Estimate
    backward_transfer: Estimate


class ModelAccuracy(Value):
    """Accuracy of a model in a category, on all items that it answered."""

    category: str
    tasks: int
    items: int
    accuracy: float


class PairDetail(Value):
    """Detailed results of one pair."""

    before: str
    after: str
    label: str
    group: str
    changed_style: bool
    items: int | None
    shared: float | None
    categories: list[CategoryChange] = Field(description="The total first.")
    printed: list[PrintedValues] = Field(description="The total first.")
    tasks: list[TaskChange]

    @property
    def total(self) -> CategoryChange:
        """Total over all categories."""
        return self.categories[0]

    def category(self, name: str) -> CategoryChange | None:
        """Return the category with this name; None if the pair does not have it."""
        return next((one for one in self.categories if one.category == name), None)


@dataclass(frozen=True, slots=True)
class StudyDetail(Presentable):
    """Detailed results of a study, for its report.

    Attributes:
        study: the declaration.
        result: result of `compare_study`.
        pairs: pairs with runs, in the order of the study.
        merges: every merge with each of its references.
        answers: answers of all models with their rows, if there are items.
        source: source of published values; None for measured ones.
    """

    study: Study
    result: StudyResult
    pairs: list[PairDetail]
    merges: list[PairDetail]
    answers: StudyAnswers | None = None
    source: str = ""

    @property
    def categories(self) -> list[str]:
        """All categories of any pair, the total first."""
        every = [one.category for pair in [*self.pairs, *self.merges] for one in pair.categories]
        return list(dict.fromkeys(every))

    @property
    def groups(self) -> list[str]:
        """Groups of all declared pairs, also of those without runs."""
        return list(dict.fromkeys(pair.group for pair in self.study.pairs))


def examine_study(
    study: Study,
    runs: Mapping[str, Sequence[Any]] | None = None,
    *,
    folder: Path | None = None,
    on_run: OnRun | None = None,
) -> StudyDetail:
    """Compare all pairs of a study and keep the answers; each run is read once.

    Args:
        study: the study.
        runs: model -> its runs, as for `compare_study`.
        folder: folder with one run folder per model.
        on_run: called with the id of each model that is read.

    Raises:
        FieldError: two models of a pair have no item in common.
        UsageError: no pair has runs of both models.
    """
    result, comparer = compare_with_answers(
        study, runs, folder=folder, on_run=on_run, keep_rows=True
    )
    known = comparer.answers.right
    merges = [
        pair_estimates(study, pair, comparer)
        for pair in study.merge_pairs
        if pair.before in known and pair.after in known
        if comparer.shared(pair.before, pair.after)[0]
    ]
    return StudyDetail(
        study=study,
        result=result,
        pairs=[_pair_detail(study, pair, comparer) for pair in result.pairs],
        merges=[_pair_detail(study, pair, comparer) for pair in merges],
        answers=comparer.answers,
    )


def model_accuracies(answers: StudyAnswers, model: str) -> list[ModelAccuracy]:
    """Return the accuracy of a model by category, the total first; tasks have equal weight."""
    right, size = answers.right[model], len(answers.tasks)
    known = ~np.isnan(right)
    repeats = known.sum(axis=0)
    has_answer = repeats > 0
    shares = np.where(known, right, 0.0).sum(axis=0) / np.maximum(repeats, 1)
    items = np.bincount(answers.task[has_answer], minlength=size)
    sums = np.bincount(answers.task[has_answer], shares[has_answer], minlength=size)
    groups: dict[str, list[int]] = {}
    for place, category in enumerate(answers.categories):
        if items[place] and category != IGNORED:
            groups.setdefault(category, []).append(place)
    rows = [
        ModelAccuracy(
            category=name,
            tasks=len(places),
            items=int(items[places].sum()),
            accuracy=float(np.mean(sums[places] / items[places])),
        )
        for name, places in groups.items()
    ]
    if not rows:
        return []
    total = ModelAccuracy(
        category=TOTAL,
        tasks=sum(row.tasks for row in rows),
        items=sum(row.items for row in rows),
        accuracy=float(np.mean([row.accuracy for row in rows])),
    )
    return [total, *rows]


def published_detail() -> StudyDetail:
    """Return the pairs of Harmon et al. with their published values; there are no items."""
    study, table = published_study(), published_table()
    values = {(pair.before, pair.after): pair for pair in published_pairs()}
    papers = published_findings(study.level)
    paper = papers.papers[0]
    effects = find_effects(table, study.name, level=study.level, margin=study.margin)
    findings = effects.model_copy(update={"findings": [*paper.findings, *paper.further]})
    pairs = [_printed_detail(study, pair, values[pair.before, pair.after]) for pair in study.pairs]
    merges = [
        _printed_detail(study, pair, values[pair.before, pair.after])
        for pair in study.merge_pairs
        if (pair.before, pair.after) in values
    ]
    result = StudyResult(study=study.name, pairs=[], gaps=[], findings=findings)
    return StudyDetail(study, result, pairs, merges, source=paper.source["paper"])


def _printed_detail(study: Study, pair: StudyPair, values: PublishedPair) -> PairDetail:
    names = list(values.forgetting)
    return PairDetail(
        before=pair.before,
        after=pair.after,
        label=pair.label,
        group=pair.group,
        changed_style=is_style_changed(study, pair),
        items=None,
        shared=None,
        categories=[
            CategoryChange(
                category=name,
                tasks=None,
                items=None,
                forgotten=None,
                gained=None,
                acc_before=None,
                acc_after=None,
                forgetting=Estimate(value=values.forgetting[name], method=AS_PUBLISHED),
                backward_transfer=Estimate(
                    value=values.backward_transfer[name], method=AS_PUBLISHED
                ),
            )
            for name in names
        ],
        printed=[
            PrintedValues(
                category=name,
                forgetting=values.forgetting[name],
                forgetting_sd=values.columns[name][1],
                forgetting_max=values.columns[name][CEILING],
                backward_transfer=values.backward_transfer[name],
                backward_transfer_sd=values.columns[name][4],
                backward_transfer_max=values.columns[name][3 + CEILING],
            )
            for name in names
        ],
        tasks=[],
    )


def is_style_changed(study: Study, pair: StudyPair | PairResults) -> bool:
    """Whether the two models have different prompt styles; merges have that of the later model."""
    models = {model.id for model in study.models}
    if pair.after not in models:
        merge = next(merge for merge in study.merges if merge.id == pair.after)
        later = merge.models[-1] if merge.models else pair.before
        return changes_style(study, StudyPair(before=pair.before, after=later))
    return changes_style(study, StudyPair(before=pair.before, after=pair.after))


@dataclass(frozen=True, slots=True)
class _TaskSums:
    """Counts and means of one pair by task.

    Attributes:
        cells: (repeat, task, state) with states 0 wrong-wrong, 1 gained, 2 forgotten, 3 kept.
        items: number of items that both answered.
        luck: mean of 1 / (k - 1).
        before: accuracy before, each item once.
        after: accuracy after, each item once.
        both: share right before and after.
    """

    cells: NDArray[np.intp]
    items: NDArray[np.intp]
    luck: Reals
    before: Reals
    after: Reals
    both: Reals


def _sum_tasks(answers: StudyAnswers, before: str, after: str) -> _TaskSums:
    first, second = answers.right[before], answers.right[after]
    count, size = min(len(first), len(second)), len(answers.tasks)
    first, second = first[:count], second[:count]
    paired = ~np.isnan(first) & ~np.isnan(second)
    states = np.where(paired, 2 * first + second, 0).astype(np.intp) + 4 * answers.task
    cells = np.stack(
        [np.bincount(states[n][paired[n]], minlength=4 * size) for n in range(count)]
    ).reshape(count, size, 4)
    repeats = paired.sum(axis=0)
    known = repeats > 0
    items = np.bincount(answers.task[known], minlength=size)

    def mean(values: Reals) -> Reals:
        sums = np.bincount(answers.task[known], values[known], minlength=size)
        means: Reals = sums / np.maximum(items, 1)
        return means

    def per_item(values: Reals) -> Reals:
        shares: Reals = np.where(paired, values, 0.0).sum(axis=0) / np.maximum(repeats, 1)
        return shares

    return _TaskSums(
        cells=cells,
        items=items,
        luck=mean(answers.luck),
        before=mean(per_item(first)),
        after=mean(per_item(second)),
        both=mean(per_item(first * second)),
    )


def _pair_detail(study: Study, pair: PairResults, comparer: PairComparer) -> PairDetail:
    sums = _sum_tasks(comparer.answers, pair.before, pair.after)
    tasks = list(_task_changes(comparer.answers, sums))
    return PairDetail(
        before=pair.before,
        after=pair.after,
        label=pair.label,
        group=pair.group,
        changed_style=is_style_changed(study, pair),
        items=pair.items,
        shared=pair.shared,
        categories=_category_changes(pair, tasks),
        printed=_printed_values(comparer.answers, sums, list(pair.forgetting)),
        tasks=tasks,
    )


def _task_changes(answers: StudyAnswers, sums: _TaskSums) -> Iterator[TaskChange]:
    for place, task in enumerate(answers.tasks):
        if not sums.items[place]:
            continue
        never, gained, forgotten, kept = map(int, sums.cells[:, place].sum(axis=0))
        luck, before, after = (float(x[place]) for x in (sums.luck, sums.before, sums.after))
        chance, both = luck * (1 - before) * (1 - after), float(sums.both[place])
        yield TaskChange(
            task=task,
            category=answers.categories[place],
            options=1 + 1 / luck if luck else None,
            items=int(sums.items[place]),
            answers=never + gained + forgotten + kept,
            kept=kept,
            forgotten=forgotten,
            gained=gained,
            never=never,
            acc_before=before,
            acc_after=after,
            forgetting=before - both - chance,
            backward_transfer=after - both - chance,
        )


def _category_changes(pair: PairResults, tasks: Sequence[TaskChange]) -> list[CategoryChange]:
    by_category: dict[str, list[TaskChange]] = {}
    for task in tasks:
        if task.category != IGNORED:
            by_category.setdefault(task.category, []).append(task)
    changes = []
    for name in pair.forgetting:
        if name == TOTAL:
            groups = list(by_category.values())
        else:
            groups = [by_category[name]] if name in by_category else []
        members = [task for group in groups for task in group]
        changes.append(
            CategoryChange(
                category=name,
                tasks=len(members),
                items=sum(task.items for task in members),
                forgotten=sum(task.forgotten for task in members),
                gained=sum(task.gained for task in members),
                acc_before=_mean_of_means([[t.acc_before for t in group] for group in groups]),
                acc_after=_mean_of_means([[t.acc_after for t in group] for group in groups]),
                forgetting=pair.forgetting[name],
                backward_transfer=pair.backward_transfer[name],
            )
        )
    return changes


def _mean_of_means(groups: Sequence[Sequence[float]]) -> float | None:
    return float(np.mean([np.mean(group) for group in groups])) if groups else None


def _as_cells(counts: NDArray[np.intp]) -> Cells:
    n00, n01, n10, n11 = map(int, counts)
    return Cells(n00=n00, n01=n01, n10=n10, n11=n11)


def _printed_values(
    answers: StudyAnswers, sums: _TaskSums, categories: Sequence[str]
) -> list[PrintedValues]:
    """Return the published roll-up, with the number of options per task of the study."""
    rows = [
        SeedRow(
            task=answers.tasks[place],
            seed=seed,
            cells=_as_cells(cells),
            k=1 + 1 / float(sums.luck[place]) if sums.luck[place] else float("inf"),
            category=answers.categories[place],
        )
        for seed, tasks in enumerate(sums.cells)
        for place, cells in enumerate(tasks)
    ]
    *parts, whole = roll_up(rows)
    rolled = {TOTAL: whole, **{part.name: part for part in parts}}
    effects: tuple[Effect, ...] = ("forgetting", "backward_transfer")
    printed = []
    for name in categories:
        one = rolled.get(name)
        values: dict[str, float | None] = {}
        for effect in effects:
            values[effect] = one.mean[effect] if one else None
            values[f"{effect}_sd"] = one.deviation[effect] if one else None
            values[f"{effect}_max"] = one.mean[f"{effect}_max"] if one else None
        printed.append(PrintedValues(category=name, **values))
    return printed
