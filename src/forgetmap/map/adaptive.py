"""Adaptive repeats: spent on categories with an open verdict until all are decided.

A group-sequential design: an interim analysis after each stage decides which categories are
settled. Every stage is a run of its own, over the tasks that are still open, with the seeds that
the same repeats would have in one long run: an interrupted map resumes, and the answers are those
of a run with a fixed number of repeats, only fewer.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from pathlib import Path

from forgetmap.comparison import ItemSums, Rule, pair_and_count, sum_items
from forgetmap.errors import OutputError, UsageError
from forgetmap.evaluation import Settings, Suite, Task, is_complete
from forgetmap.map.models import Models
from forgetmap.pairing import align, prepare
from forgetmap.records import Run, as_repeats, is_run_folder, read_run, write_run
from forgetmap.stats import (
    Decision,
    Look,
    StoppingRule,
    decide,
    decision_probability,
    give_up,
    look_at,
)

STAGES_FOLDER = "looks"
"""Folder of the answers of each stage; the name is part of the file format."""
Group = tuple[str, str]
"""The run after, and the category; a task without one is its own category."""


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
        if self.most < 2:
            raise UsageError(
                "a single answer per item cannot be separated from noise",
                hint="set --max-repeats to 2 or more.",
            )


@dataclass(frozen=True, slots=True)
class RepeatSpending:
    """Decisions, and the answers they took.

    Attributes:
        rule: rules for stopping.
        budget: answers allowed.
        answers: number of answers of all models together.
        full: number of answers with the maximum repeats of everything.
        decisions: decisions by run after and category.
    """

    rule: StoppingRule
    budget: int | None
    answers: int
    full: int
    decisions: Mapping[Group, Decision]

    def to_json(self) -> str:
        """Return everything as JSON."""
        groups = [
            {"after": after, "category": name, "verdict": decision.verdict, "why": decision.why}
            | {"needed": decision.needed, "low": decision.low, "high": decision.high}
            | asdict(decision.look)
            for (after, name), decision in self.decisions.items()
        ]
        summary = {"rule": asdict(self.rule), "budget": self.budget, "answers": self.answers}
        return json.dumps(summary | {"full": self.full, "categories": groups}, indent=2)


@dataclass(slots=True)
class _SequentialState:
    """Progress of the stages."""

    folders: list[Path] = field(default_factory=list)
    repeats: int = 0
    answers: int = 0
    histories: dict[Group, list[Look]] = field(default_factory=dict)
    decisions: dict[Group, Decision] = field(default_factory=dict)

    def open_groups(self) -> list[Group]:
        return [group for group in self.histories if group not in self.decisions]


def run_group_sequential(
    models: Models, suite: Suite, out: Path, settings: Settings, auto: Auto, comparison: Rule
) -> RepeatSpending:
    """Write the runs of all models, with as many repeats as necessary.

    Args:
        models: the models to evaluate.
        suite: the suite.
        out: folder for `looks/` and `runs/`.
        settings: settings of the evaluation; its number of repeats is ignored.
        auto: limits of the repeats.
        comparison: rule of the later comparison: margin and level of the verdicts.

    Raises:
        UsageError: the budget is too small for the first stage.
        OutputError: the folder has runs of another evaluation.
    """
    _refuse_other_runs(models, out)
    rule = StoppingRule(auto.most, level=round(1 - comparison.level, 12), margin=comparison.margin)
    sizes = _sizes(suite, len(models.models))
    state = _SequentialState()
    chosen = set(sizes)
    for repeats in rule.schedule:
        cost = {name: sizes[name] * (repeats - state.repeats) for name in chosen}
        chosen = _affordable(cost, state, auto, rule)
        if not chosen:
            break
        _run_stage(models, _only(suite, chosen), out, settings, state, repeats)
        state.answers += sum(cost[name] for name in chosen)
        runs = [_joined(state, name) for name in models.folders]
        _add_interim_results(state, runs, chosen, comparison)
        state.decisions = decide(state.histories, state.decisions, rule)
        chosen &= {name for _, name in state.open_groups()}
    for name in models.folders:
        _write(_joined(state, name), out / "runs" / name, overwrite=models.overwrite)
    decisions = give_up(state.histories, state.decisions, rule)
    return RepeatSpending(
        rule, auto.budget, state.answers, sum(sizes.values()) * auto.most, decisions
    )


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
    cost: Mapping[str, int], state: _SequentialState, auto: Auto, rule: StoppingRule
) -> set[str]:
    """Return the categories to continue, the most promising first if the budget is limited."""
    remaining = float("inf") if auto.budget is None else auto.budget - state.answers
    if sum(cost.values()) <= remaining:
        return set(cost)
    if not state.answers:
        raise UsageError(
            f"two answers of each model per item are {sum(cost.values()):,} answers, more than "
            f"the budget of {auto.budget:,}",
            hint="raise --budget, or use fewer items with --tasks or --limit.",
        )
    chosen = set()
    for name in _promising(cost, state, rule):
        if cost[name] <= remaining:
            chosen.add(name)
            remaining -= cost[name]
    return chosen


def _promising(names: Iterable[str], state: _SequentialState, rule: StoppingRule) -> list[str]:
    open_groups = state.open_groups()
    hope: dict[str, float] = dict.fromkeys(names, 0.0)
    chances = decision_probability(state.histories, open_groups, rule)
    for (_, name), chance in zip(open_groups, chances, strict=True):
        if name in hope:
            hope[name] = max(hope[name], float(chance))
    return sorted(hope, key=lambda name: (-hope[name], name))


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
    state: _SequentialState,
    repeats: int,
) -> None:
    """Evaluate every model up to this number of repeats, as in a single run."""
    part = f"answers-{state.repeats + 1}-{repeats}"
    folder = out / STAGES_FOLDER / part
    stage_settings = replace(
        settings, repeats=repeats - state.repeats, seed=settings.seed + state.repeats
    )
    for index in models.order():
        models.ask(index, suite, folder / models.folders[index], stage_settings, f" {part}")
    state.folders.append(folder)
    state.repeats = repeats


def _joined(state: _SequentialState, name: str) -> Run:
    """Join all answers of a model so far into one run."""
    runs = [read_run(folder / name) for folder in state.folders]
    run = as_repeats(runs, origin=str(state.folders[0].parent / name))
    parts = "".join(part.info.fingerprint or "" for part in runs)
    fingerprint = sha256(parts.encode()).hexdigest()[:16]
    return replace(run, info=run.info.model_copy(update={"fingerprint": fingerprint}))


def _add_interim_results(
    state: _SequentialState, runs: Sequence[Run], chosen: set[str], comparison: Rule
) -> None:
    """Add an interim look at the evaluated categories of each model after."""
    before, *afters = runs
    for after in afters:
        for name, items in _items(before, after, comparison).items():
            group = (after.name, name)
            if name not in chosen or group in state.decisions:
                continue
            repeated = items.repeated()
            look = look_at(*repeated.profile, repeated.weight)
            if look is not None:
                state.histories.setdefault(group, []).append(look)


def _items(before: Run, after: Run, comparison: Rule) -> dict[str, ItemSums]:
    """Count answers by category, paired as in the later comparison."""
    sides = align([prepare(run, comparison.metric) for run in (before, after)])
    pairs, _ = pair_and_count(sides[0], sides[1], comparison)
    parts: dict[str, list[ItemSums]] = {}
    for label, items in sum_items(pairs).items():
        parts.setdefault(label.category or label.task, []).append(items)
    return {name: ItemSums.total(sums) for name, sums in sorted(parts.items())}


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
