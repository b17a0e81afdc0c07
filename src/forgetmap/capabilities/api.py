"""The verb: how did what a model can do, will do, and how it does it, drift?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, TypedDict, Unpack

from forgetmap.capabilities.cautions import find_cautions
from forgetmap.capabilities.cells import (
    ModelDrift,
    Resampling,
    capability_cells,
    compare_metrics,
    group_cells,
)
from forgetmap.capabilities.choices import (
    AGGREGATORS,
    BOOTSTRAP_DRAWS,
    BOOTSTRAP_SEED,
    Aggregator,
    Profile,
)
from forgetmap.capabilities.drift_result import DriftResult
from forgetmap.capabilities.effects import Effect, Levels
from forgetmap.capabilities.measure import Measuring, judge_at, measure
from forgetmap.capabilities.published import (
    averages_of,
    drift_of_averages,
    is_metric_file,
    read_metric_file,
)
from forgetmap.capabilities.result import AnyCell, Caution
from forgetmap.capabilities.taxonomy import SUITE_OF_TAXONOMY, Taxonomy, load_taxonomy, with_targets
from forgetmap.capabilities.values import TaxonomyRun, known_tasks, pair_items, task_names
from forgetmap.comparison import make_readings, open_all
from forgetmap.errors import UsageError
from forgetmap.pairing import PairBy
from forgetmap.records import ColumnMap, Run
from forgetmap.sources import Progress
from forgetmap.text import listed


class DriftOptions(TypedDict, total=False):
    """How to measure and compare; see `drift`."""

    taxonomy: str | Path | Taxonomy
    aggregator: Aggregator
    profile: Profile
    judge: tuple[str, str] | None
    judge_repeats: int
    allow_exec: bool
    noise: Any
    target: Sequence[str]
    pair_by: PairBy
    draws: int
    seed: int
    processes: int | None
    cached: bool
    column_map: ColumnMap | None
    task: str | None
    run: str | Sequence[str] | None
    strict: bool
    progress: Progress | None


def drift(before: Any, after: Any, /, *more: Any, **options: Unpack[DriftOptions]) -> DriftResult:
    """How did capabilities drift from the model before to each model after?

    Args:
        before: path, dataframe or run of the model before, or a CapTrack metric file.
        after: the same of the model after.
        more: further models after; each is compared with `before`.
        taxonomy: `captrack`, `knowledge`, `sample`, or the path of a TOML file.
        aggregator: `default` averages bounded effects; `captrack-relative` relative changes, as
            published.
        profile: `full`, or `quick` for rule metrics on 200 items per task.
        judge: URL and model of an OpenAI-compatible server, for metrics that need a judge.
        judge_repeats: how often it judges each response; the mean counts.
        allow_exec: whether code that a model wrote is run, in a sandbox.
        noise: path, dataframe or run of a repeat of the model before.
        target: tasks the model was trained for, shown in the same table.
        pair_by: content where both sides have it, else id (`auto`); or only `content` or `id`.
        draws: of the bootstrap.
        seed: of the bootstrap.
        processes: how many read and score; by default one per core.
        cached: use what was read and scored before.
        column_map: canonical field -> column, for tables that name them otherwise.
        task: name of the task, for tables without such a column.
        run: part of a model, time stamp or file name, where logs hold several runs.
        strict: the first row of a log that cannot be used is an error.
        progress: told now and then, in words, how far it is.

    Example:
        >>> import forgetmap as fm
        >>> fm.drift("runs/base", "runs/tuned", taxonomy="captrack")  # doctest: +SKIP
    """
    return drift_with_runs([before, after, *more], options).result


@dataclass(frozen=True, slots=True)
class DriftWithRuns:
    """A drift with what it was computed from.

    Attributes:
        result: all numbers.
        taxonomy: with the target tasks.
        runs: the measured runs, that before first; none where only averages were given.
        pair_by: what makes two items the same.
    """

    result: DriftResult
    taxonomy: Taxonomy
    runs: tuple[Run, ...]
    pair_by: PairBy


def drift_with_runs(inputs: Sequence[Any], options: DriftOptions) -> DriftWithRuns:
    """What `drift` returns, with the runs behind it, for reports that list their items.

    Args:
        inputs: paths, dataframes or runs, that before first.
        options: those of `drift`.
    """
    aggregator = options.get("aggregator", "default")
    if aggregator not in AGGREGATORS:
        raise UsageError(
            f"there is no aggregator {aggregator!r}", hint=f"choose from {', '.join(AGGREGATORS)}."
        )
    taxonomy = with_targets(
        load_taxonomy(options.get("taxonomy", "captrack")), tuple(options.get("target", ()))
    )
    pair_by = options.get("pair_by", "auto")
    files = [is_metric_file(source, taxonomy) for source in inputs]
    if all(files):
        averages = [read_metric_file(Path(path), taxonomy) for path in inputs]
        result = drift_of_averages(taxonomy, averages, aggregator)
        return DriftWithRuns(result, taxonomy, (), pair_by)
    if any(files):
        raise UsageError(
            "some inputs are CapTrack metric files and some are not",
            hint="averages can only be compared with averages: give one kind.",
        )
    runs = _open_runs(inputs, options)
    _require_shared_tasks(runs, taxonomy)
    how = _measuring(options)
    runs = [measure(run, taxonomy, how) for run in runs]
    if aggregator == "captrack-relative":
        averages = [averages_of(run, taxonomy) for run in runs]
        result = drift_of_averages(taxonomy, averages, aggregator)
    else:
        result = _drift_of_runs(taxonomy, runs, options)
    return DriftWithRuns(result, taxonomy, tuple(runs), pair_by)


def _open_runs(inputs: Sequence[Any], options: DriftOptions) -> list[Run]:
    readings = make_readings(
        {
            "run": options.get("run"),
            "strict": options.get("strict", False),
            "cached": options.get("cached", True),
            "progress": options.get("progress"),
        },
        len(inputs),
    )
    return open_all(
        inputs,
        column_map=options.get("column_map"),
        task=options.get("task"),
        readings=readings,
    )


def _require_shared_tasks(runs: Sequence[Run], taxonomy: Taxonomy) -> None:
    """Stop where no cell could have a value, before anything is scored.

    Raises:
        UsageError: no task of the taxonomy is in the run before and in a run after.
    """
    tasks = [task_names(run) for run in runs]
    shared = [known_tasks(taxonomy, names).keys() for names in tasks]
    if any(shared[0] & later for later in shared[1:]):
        return
    suite = SUITE_OF_TAXONOMY.get(taxonomy.name)
    there = "; ".join(
        f"{run.name} has {listed(sorted(names))}" for run, names in zip(runs, tasks, strict=True)
    )
    raise UsageError(
        f"no task of the taxonomy {taxonomy.name!r} is in the runs before and after: {there}; the "
        f"taxonomy has {listed([task.name for task in taxonomy.tasks])}",
        hint=(
            f"evaluate the models on its tasks (forgetmap run MODEL --suite {suite}), or name "
            if suite
            else "name "
        )
        + "the tasks of your runs exactly in a taxonomy of your own (--taxonomy FILE).",
    )


def _measuring(options: DriftOptions) -> Measuring:
    address, cached = options.get("judge"), options.get("cached", True)
    repeats = options.get("judge_repeats", 1)
    if repeats < 1:
        raise UsageError(
            f"a judge cannot be asked {repeats} times", hint="give judge_repeats 1 or more."
        )
    return Measuring(
        profile=options.get("profile", "full"),
        judge=judge_at(*address, cached=cached, repeats=repeats) if address else None,
        judge_repeats=repeats,
        allow_exec=options.get("allow_exec", False),
        processes=options.get("processes"),
        cached=cached,
        progress=options.get("progress"),
    )


def _drift_of_runs(taxonomy: Taxonomy, runs: Sequence[Run], options: DriftOptions) -> DriftResult:
    how = Resampling(options.get("seed", BOOTSTRAP_SEED), options.get("draws", BOOTSTRAP_DRAWS))
    pair_by = options.get("pair_by", "auto")
    sources = [TaxonomyRun(run, taxonomy) for run in runs]
    first, *later = sources
    floor = _noise(taxonomy, first, options, how)
    drifts: list[tuple[str, ModelDrift]] = []
    notices: list[Caution] = []
    for source in later:
        model = source.run.name
        pairs = pair_items(first, source, pair_by)
        model_drift = compare_metrics(model, taxonomy, (first, source), pairs, how)
        notices += find_cautions(model, first, source, pairs, model_drift.cells)
        drifts.append((model, model_drift))
    groups = [group_cells(model, taxonomy, cells) for model, cells in drifts]
    capabilities = [capability_cells(model, taxonomy, cells) for model, cells in drifts]
    return DriftResult(
        taxonomy=taxonomy.name,
        aggregator="default",
        before=first.run.name,
        models=tuple(model for model, _ in drifts),
        cautions=tuple(notices),
        groups=_with_floor(groups, _limits_of(floor.groups)),
        capabilities=_with_floor(capabilities, _limits_of(floor.capabilities)),
        metrics=_with_floor(
            [model_drift.cells for _, model_drift in drifts], _limits_of(floor.metrics)
        ),
        draws=how.draws,
        seed=how.seed,
    )


def _noise(
    taxonomy: Taxonomy, before: TaxonomyRun, options: DriftOptions, how: Resampling
) -> Levels:
    """The model before against a repeat of itself; nothing where there is none."""
    if options.get("noise") is None:
        return Levels({}, {}, {})
    (run,) = _open_runs([options["noise"]], options)
    source = TaxonomyRun(measure(run, taxonomy, _measuring(options)), taxonomy)
    pairs = pair_items(before, source, options.get("pair_by", "auto"))
    return compare_metrics("noise", taxonomy, (before, source), pairs, how).levels


def _limits_of(effects: Mapping[str, Effect]) -> dict[str, float]:
    """The largest effect, in either direction, that is compatible with what was seen."""
    return {
        name: max(map(abs, limits)) for name, effect in effects.items() if (limits := effect.limits)
    }


def _with_floor(
    by_model: Iterable[Sequence[AnyCell]], floor: Mapping[str, float]
) -> tuple[AnyCell, ...]:
    """All cells, with the noise floor where there is one."""
    cells = []
    for cell in chain.from_iterable(by_model):
        limit = floor.get(cell.id)
        inside = None if limit is None or cell.value is None else abs(cell.value) <= limit
        cells.append(replace(cell, noise=limit, within_noise=inside))
    return tuple(cells)
