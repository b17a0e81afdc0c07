"""Adaptive repeats: spent on categories with an open verdict until all are decided.

Every stage is a run of its own, over the tasks that are still open, with the seeds that the same
repeats would have in one long run: an interrupted map resumes, and the answers are those of a run
with a fixed number of repeats, only fewer. After each stage the runs so far are compared. The
number of looks is fixed beforehand, and every look has an equal part of the error rate, so the
limits hold at all looks together, whatever the reason to stop.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

from forgetmap.comparison import (
    Comparison,
    Evidence,
    GroupResult,
    Options,
    VerdictSettings,
    compare,
    judge_family,
    verdict_words,
)
from forgetmap.errors import OutputError, UsageError
from forgetmap.evaluation import Settings, Suite, Task, is_complete
from forgetmap.map.models import Models
from forgetmap.records import Run, as_repeats, is_run_folder, read_run, write_run
from forgetmap.stats import OPEN

STAGES_FOLDER = "looks"
"""Folder of the answers of each stage; the name is part of the file format."""
FIRST_LOOK, GROWTH = 2, 1.5
"""Repeats of the first look, and the growth factor from look to look."""
Why = Literal["decided", "hopeless", "used_up"]
"""The limits decide, more repeats would hardly do so, or the repeats are used up."""


@dataclass(frozen=True, slots=True)
class Auto:
    """Limits of adaptive repeats.

    Attributes:
        most: maximum number of repeats of an item.
        budget: maximum number of answers of all models together.
    """

    most: int = 8
    budget: int | None = None

    def __post_init__(self) -> None:
        if self.most < FIRST_LOOK:
            raise UsageError(
                "a single answer per item cannot be separated from noise",
                hint="set --max-repeats to 2 or more.",
            )

    @property
    def schedule(self) -> tuple[int, ...]:
        """Number of repeats at each look."""
        looks = [FIRST_LOOK]
        while looks[-1] < self.most:
            looks.append(min(max(looks[-1] + 1, int(looks[-1] * GROWTH)), self.most))
        return tuple(looks)


@dataclass(frozen=True, slots=True)
class CategorySpending:
    """The verdict on a category of one model after, also in words, and the repeats it took."""

    after: str
    category: str
    verdict: str
    words: str
    why: Why
    repeats: int
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class RepeatSpending:
    """Verdicts, and the answers they took.

    Attributes:
        schedule: number of repeats at each look.
        budget: answers allowed.
        answers: number of answers of all models together.
        full: number of answers with the maximum repeats of everything.
        categories: all categories of all models after.
    """

    schedule: tuple[int, ...]
    budget: int | None
    answers: int
    full: int
    categories: Sequence[CategorySpending]

    def to_json(self) -> str:
        """Return everything as JSON."""
        return json.dumps(asdict(self), indent=2)


@dataclass(slots=True)
class _Stages:
    """Progress of the stages."""

    folders: list[Path] = field(default_factory=list)
    repeats: dict[str, int] = field(default_factory=dict)
    hopeless: set[str] = field(default_factory=set)
    answers: int = 0


def run_in_looks(
    models: Models, suite: Suite, out: Path, settings: Settings, auto: Auto, options: Options
) -> RepeatSpending:
    """Write the runs of all models, with as many repeats as necessary.

    Args:
        models: the models to evaluate.
        suite: the suite.
        out: folder for `looks/` and `runs/`.
        settings: settings of the evaluation; its number of repeats is ignored.
        auto: limits of the repeats.
        options: options of the later comparison, with the number of looks.

    Raises:
        UsageError: the budget is too small for the first stage.
        OutputError: the folder has runs of another evaluation.
    """
    _refuse_other_runs(models, out)
    sizes = _sizes(suite, len(models.models))
    stages = _Stages()
    chosen, asked, compared = set(sizes), 0, list[Comparison]()
    for repeats in auto.schedule:
        cost = {name: sizes[name] * (repeats - asked) for name in chosen}
        chosen = _affordable(cost, stages.answers, auto, compared)
        if not chosen:
            break
        _run_stage(models, _only(suite, chosen), out, settings, stages, (asked, repeats))
        asked = repeats
        stages.answers += sum(cost[name] for name in chosen)
        stages.repeats |= dict.fromkeys(chosen, repeats)
        compared = _compare([_joined(stages, name) for name in models.folders], options)
        chosen &= {
            group.name for one in compared for group in groups_of(one) if group.verdict in OPEN
        }
        stages.hopeless |= chosen - _hopeful(compared, auto.most / asked)
        chosen -= stages.hopeless
    for name in models.folders:
        _write(_joined(stages, name), out / "runs" / name, overwrite=models.overwrite)
    return RepeatSpending(
        auto.schedule,
        auto.budget,
        stages.answers,
        sum(sizes.values()) * auto.most,
        [*_spending(compared, stages)],
    )


def _compare(runs: Sequence[Run], options: Options) -> list[Comparison]:
    before, after, *more = runs
    result: Any = compare(before, after, *more, **options)
    return [result] if isinstance(result, Comparison) else [*result]


def groups_of(comparison: Comparison) -> Iterator[GroupResult]:
    """Return the categories; a task without one is its own category."""
    yield from comparison.result.categories
    labels = {label for label in comparison.grounds.evidence.cells if not label.category}
    alone = {label.task for label in labels}
    yield from (task for task in comparison.result.tasks if task.name in alone)


def _spending(compared: Sequence[Comparison], stages: _Stages) -> Iterator[CategorySpending]:
    for comparison in compared:
        for group in groups_of(comparison):
            why: Why = "hopeless" if group.name in stages.hopeless else "used_up"
            yield CategorySpending(
                after=comparison.after.name,
                category=group.name,
                verdict=group.verdict,
                words=verdict_words(group),
                why=why if group.verdict in OPEN else "decided",
                repeats=stages.repeats[group.name],
                low=group.loss.low,
                high=group.loss.high,
            )


def _hopeful(compared: Sequence[Comparison], times: float) -> set[str]:
    """Return the categories that so many times as many answers could decide for some model."""
    return {
        name
        for comparison in compared
        for level in ("category", "task")
        for name in hopeful(
            comparison.grounds.evidence.by(level), comparison.grounds.settings, times
        )
    }


def hopeful(parts: Mapping[str, Evidence], settings: VerdictSettings, times: float) -> set[str]:
    """Return the groups that would be decided by so many times as many answers like these.

    Answers like these repeat their noise as if it were a change, so this errs on the side of
    asking more.
    """
    more = {
        name: replace(part, kinds=replace(part.kinds, tallies=part.kinds.tallies * times))
        for name, part in parts.items()
    }
    return {
        group.name for group in judge_family(more, settings, "groups") if group.verdict not in OPEN
    }


def group_of(task: Task) -> str:
    """Return the category of a task, or its name."""
    return task.category or task.name


def _sizes(suite: Suite, models: int) -> dict[str, int]:
    """Count the answers of all models to every item of a category, once."""
    sizes: dict[str, int] = {}
    for task in suite.tasks:
        name = group_of(task)
        sizes[name] = sizes.get(name, 0) + models * len(task.load())
    return sizes


def _affordable(
    cost: Mapping[str, int], answers: int, auto: Auto, compared: Sequence[Comparison]
) -> set[str]:
    """Return the categories to continue, those next to a verdict first if the budget is limited."""
    remaining = float("inf") if auto.budget is None else auto.budget - answers
    if sum(cost.values()) <= remaining:
        return set(cost)
    if not answers:
        raise UsageError(
            f"two answers of each model per item are {sum(cost.values()):,} answers, more than "
            f"the budget of {auto.budget:,}",
            hint="raise --budget, or use fewer items with --tasks or --limit.",
        )
    distance: dict[str, float] = dict.fromkeys(cost, 1.0)
    for comparison in compared:
        for group in groups_of(comparison):
            if group.name in cost and group.loss.low is not None and group.loss.high is not None:
                own = min(-group.loss.low, group.loss.high - group.margin)
                distance[group.name] = min(distance[group.name], own)
    chosen = set()
    for name in sorted(cost, key=lambda name: (distance[name], name)):
        if cost[name] <= remaining:
            chosen.add(name)
            remaining -= cost[name]
    return chosen


def _only(suite: Suite, chosen: set[str]) -> Suite:
    """Return the suite with items only in these categories, and in tasks that they follow."""
    kept = [task for task in suite.tasks if group_of(task) in chosen]
    names = {task.name for task in kept} | {task.follows for task in kept}
    return replace(
        suite,
        tasks=tuple(
            task if task.name in names else replace(task, load=tuple) for task in suite.tasks
        ),
    )


def _run_stage(
    models: Models,
    suite: Suite,
    out: Path,
    settings: Settings,
    stages: _Stages,
    repeats: tuple[int, int],
) -> None:
    """Evaluate every model from one number of repeats to another, as in a single run."""
    done, until = repeats
    part = f"answers-{done + 1}-{until}"
    folder = out / STAGES_FOLDER / part
    stage_settings = replace(settings, repeats=until - done, seed=settings.seed + done)
    for index in models.order():
        models.ask(index, suite, folder / models.folders[index], stage_settings, f" {part}")
    stages.folders.append(folder)


def _joined(stages: _Stages, name: str) -> Run:
    """Join all answers of a model so far into one run."""
    runs = [read_run(folder / name) for folder in stages.folders]
    run = as_repeats(runs, origin=str(stages.folders[0].parent / name))
    parts = "".join(part.info.fingerprint or "" for part in runs)
    fingerprint = sha256(parts.encode()).hexdigest()[:16]
    return replace(run, info=run.info.model_copy(update={"fingerprint": fingerprint}))


def _write(run: Run, folder: Path, *, overwrite: bool) -> None:
    if not is_complete(folder, str(run.info.fingerprint), overwrite=overwrite):
        write_run(run, folder, overwrite=overwrite)


def _refuse_other_runs(models: Models, out: Path) -> None:
    """Refuse runs with a fixed number of repeats before the evaluation."""
    there = [name for name in models.folders if is_run_folder(out / "runs" / name)]
    if there and not models.overwrite and not (out / STAGES_FOLDER).is_dir():
        raise OutputError(
            f"{out / 'runs' / there[0]} was evaluated with a fixed number of repeats",
            hint="choose another --out, or add --overwrite.",
        )
