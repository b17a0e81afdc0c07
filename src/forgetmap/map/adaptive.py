"""Adaptive repeats: spent on categories with an open verdict until all are decided.

A group-sequential design: an interim analysis after each stage decides which categories are
settled. Every stage is a run of its own, over the tasks that are still open, with the seeds that
the same repeats would have in one long run: an interrupted map resumes, and the
answers are those of a run with a fixed number of repeats, only fewer.
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
"""Answers of each stage; the name is part of the file format."""
Group = tuple[str, str]
"""The run after, and the category; a task without one is a category of its own."""


@dataclass(frozen=True, slots=True)
class Auto:
    """How repeats are spent.

    Attributes:
        most: repeats of an item at most.
        budget: answers of all models together at most.
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
    """What was decided, and what it took.

    Attributes:
        rule: when a category counts as decided.
        budget: answers allowed.
        answers: answers asked for, all models together.
        full: answers that the most repeats of everything would take.
        decisions: by run after and category.
    """

    rule: StoppingRule
    budget: int | None
    answers: int
    full: int
    decisions: Mapping[Group, Decision]

    def to_json(self) -> str:
        """All of it."""
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
    """How far it is."""

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
    """Write the runs of all models, with as many repeats as it takes.

    Args:
        models: the models that are asked.
        suite: what they are asked.
        out: folder for `looks/` and `runs/`.
        settings: how; the number of repeats is not among it.
        auto: how much may be spent.
        comparison: how the models will be compared: the margin of the verdicts, and their level.

    Raises:
        UsageError: the budget does not suffice for the first stage.
        OutputError: there are runs of something else.
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
    """What a task is decided with."""
    return task.category or task.name


def _sizes(suite: Suite, models: int) -> dict[str, int]:
    """Answers of all models to every item of a category, once."""
    sizes: dict[str, int] = {}
    for task in suite.tasks:
        name = group_of(task)
        sizes[name] = sizes.get(name, 0) + models * len(task.load())
    return sizes


def _affordable(
    cost: Mapping[str, int], state: _SequentialState, auto: Auto, rule: StoppingRule
) -> set[str]:
    """The categories to go on with, the most promising first where not all can be paid."""
    left = float("inf") if auto.budget is None else auto.budget - state.answers
    if sum(cost.values()) <= left:
        return set(cost)
    if not state.answers:
        raise UsageError(
            f"two answers of each model per item are {sum(cost.values()):,} answers, more than "
            f"the budget of {auto.budget:,}",
            hint="raise --budget, or use fewer items with --tasks or --limit.",
        )
    chosen = set()
    for name in _promising(cost, state, rule):
        if cost[name] <= left:
            chosen.add(name)
            left -= cost[name]
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
    """The suite with nothing left to ask elsewhere; first turns stay where second ones follow."""
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
    """Ask every model so often, as if it had been asked so often at once."""
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
    """All answers of a model so far as one run."""
    runs = [read_run(folder / name) for folder in state.folders]
    run = as_repeats(runs, origin=str(state.folders[0].parent / name))
    parts = "".join(part.info.fingerprint or "" for part in runs)
    fingerprint = sha256(parts.encode()).hexdigest()[:16]
    return replace(run, info=run.info.model_copy(update={"fingerprint": fingerprint}))


def _add_interim_results(
    state: _SequentialState, runs: Sequence[Run], chosen: set[str], comparison: Rule
) -> None:
    """What the models after show in the categories that were asked about."""
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
    """What was answered how often, by category; paired as the models will be compared."""
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
    """Runs with a fixed number of repeats would be in the way at the end: say so now."""
    there = [name for name in models.folders if is_run_folder(out / "runs" / name)]
    if there and not models.overwrite and not (out / STAGES_FOLDER).is_dir():
        raise OutputError(
            f"{out / 'runs' / there[0]} was evaluated with a fixed number of repeats",
            hint="choose another --out, or add --overwrite.",
        )
