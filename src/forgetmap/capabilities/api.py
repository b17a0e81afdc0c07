"""The public function `drift`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, NoReturn, TypedDict, Unpack

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
from forgetmap.capabilities.inputs import (
    Compared,
    DriftPlan,
    LabelledInput,
    base_name,
    column_names,
    plan_drift,
    read_label,
)
from forgetmap.capabilities.measure import Measuring, judge_at, measure
from forgetmap.capabilities.published import (
    averages_of,
    drift_of_averages,
    is_metric_file,
    read_metric_file,
)
from forgetmap.capabilities.ranking import find_recoveries, rank_drifts
from forgetmap.capabilities.result import AnyCell, Caution, MetricCell
from forgetmap.capabilities.taxonomy import (
    SUITE_OF_TAXONOMY,
    Taxonomy,
    load_taxonomy,
    only_deep_dive,
    with_deep_dive,
    with_targets,
)
from forgetmap.capabilities.values import TaxonomyRun, known_tasks, pair_items, task_names
from forgetmap.comparison import distinct_repeats, make_readings, open_all, refuse_other_model
from forgetmap.errors import UsageError
from forgetmap.pairing import PairBy
from forgetmap.records import ColumnMap, Run
from forgetmap.sources import Progress
from forgetmap.text import listed


class DriftOptions(TypedDict, total=False):
    """Options of `drift`, which documents them."""

    taxonomy: str | Path | Taxonomy
    aggregator: Aggregator
    profile: Profile
    judge: tuple[str, str] | None
    judge_repeats: int
    allow_exec: bool
    noise: Any
    selected: bool | None
    target: Sequence[str]
    pair_by: PairBy
    draws: int
    seed: int
    pairs: Sequence[tuple[Any, Any]]
    chain: bool
    deep_dive: bool
    processes: int | None
    cached: bool
    column_map: ColumnMap | None
    task: str | None
    run: str | Sequence[str] | None
    strict: bool
    progress: Progress | None
    score_range: tuple[float, float] | None
    mapping: str | Path | None
    engine: Any
    master: str | None


def drift(before: Any, after: Any, /, *more: Any, **options: Unpack[DriftOptions]) -> DriftResult:
    """Measure how capabilities drifted from the model before to each model after.

    Args:
        before: path, dataframe or run of the model before, or a CapTrack metric file. To name a
            model, pass NAME=PATH or a pair of a name and any of these.
        after: the same for the model after.
        more: further models after; each is compared with `before`.
        taxonomy: `captrack`, `knowledge`, `sample`, or the path of a TOML file.
        aggregator: `default` averages bounded effects; `captrack-relative` averages relative
            changes, as published.
        profile: `full`, or `quick` for rule-based metrics on 200 items per task.
        judge: URL and model of an OpenAI-compatible server, for metrics that need an LLM judge.
        judge_repeats: number of times the judge grades each response; the mean is used.
        allow_exec: run model-written code in a sandbox.
        noise: path, dataframe or run of another run of the model before.
        selected: whether answers of the model before helped to choose the items; by default, looks
            for signs of it.
        target: tasks the model was trained for, shown in the same table.
        pair_by: `auto` pairs by content if both sides have it, else by id; or `content` or `id`.
        draws: number of bootstrap samples.
        seed: random seed of the bootstrap.
        pairs: further pairs of a model before and a model after, in the same table.
        chain: each model after was trained from the one before it: shows every step, and how much
            of the earlier drift it undid.
        deep_dive: also measure the metrics that explain capabilities.
        processes: number of processes that score answers; by default one per core.
        cached: use cached results of reading and scoring.
        column_map: canonical field -> column, for tables with other column names.
        task: name of the task, for tables without such a column.
        run: part of a model name, time stamp or file name, for logs with several runs.
        strict: raise an error at the first unusable row of a log.
        progress: called with progress messages.
        engine: `duckdb`, or `spark` or a Spark session to read with; responses are scored locally.
        master: address of the Spark cluster.

    Example:
        >>> import forgetmap as fm
        >>> fm.drift("runs/base", "runs/tuned", taxonomy="captrack")  # doctest: +SKIP
    """
    return drift_with_runs([before, after, *more], options).result


def drift_pairs(
    pairs: Sequence[tuple[Any, Any]], /, **options: Unpack[DriftOptions]
) -> DriftResult:
    """Measure how capabilities drifted within each pair of a model before and its model after.

    Args:
        pairs: pairs of sources, as for `drift`.
        options: options of `drift`.

    Example:
        >>> from forgetmap.capabilities import drift_pairs
        >>> drift_pairs(  # doctest: +SKIP
        ...     [("qwen=runs/qwen", "qwen-sft=runs/qwen-sft"), ("runs/llama", "runs/llama-sft")]
        ... )
    """
    return drift_with_runs([], {**options, "pairs": [*options.get("pairs", ()), *pairs]}).result


@dataclass(frozen=True, slots=True)
class DriftWithRuns:
    """A drift result with its runs.

    Attributes:
        result: all numbers.
        taxonomy: the taxonomy with the target tasks.
        runs: the measured runs; none if only averages were given.
        pair_by: how items are paired.
        comparisons: for each model after, the indices of its run before and its own.
    """

    result: DriftResult
    taxonomy: Taxonomy
    runs: tuple[Run, ...]
    pair_by: PairBy
    comparisons: tuple[Compared, ...] = ()


def drift_with_runs(inputs: Sequence[Any], options: DriftOptions) -> DriftWithRuns:
    """Return the result of `drift` with its runs, for reports that list items.

    Args:
        inputs: paths, dataframes or runs; the model before is the first.
        options: options of `drift`.
    """
    aggregator = options.get("aggregator", "default")
    if aggregator not in AGGREGATORS:
        raise UsageError(
            f"there is no aggregator {aggregator!r}", hint=f"choose from {', '.join(AGGREGATORS)}."
        )
    taxonomy = with_targets(
        load_taxonomy(options.get("taxonomy", "captrack")), tuple(options.get("target", ()))
    )
    if not options.get("deep_dive", False):
        taxonomy = replace(taxonomy, deep_dive=())
    plan = plan_drift(inputs, options.get("pairs", ()), chain=options.get("chain", False))
    _require_one_base(plan, options)
    files = [is_metric_file(entry.source, taxonomy) for entry in plan.inputs]
    if all(files):
        result = _drift_of_files(taxonomy, plan, options)
        return DriftWithRuns(result, taxonomy, (), options.get("pair_by", "auto"))
    if any(files):
        _refuse_mixture(plan, files, options)
    return _drift_of_runs(taxonomy, plan, options)


def _refuse_mixture(plan: DriftPlan, files: Sequence[bool], options: DriftOptions) -> NoReturn:
    """Report an input that cannot be read, or else a mixture of averages and items."""
    others = [entry for entry, is_file in zip(plan.inputs, files, strict=True) if not is_file]
    (first, *_) = _open_runs(others, options)
    averages = plan.inputs[files.index(True)]
    raise UsageError(
        f"{averages.label or averages.source} is a CapTrack file of averages, and {first.name} "
        "is not",
        hint="compare averages with averages, or items with items.",
    )


def _refuse_unused(options: DriftOptions, why: str, *names: str) -> None:
    """Raise an error if an option has no effect."""
    for name in names:
        if options.get(name) not in (None, False, "full"):
            raise UsageError(f"--{name.replace('_', '-')} has no effect: {why}", hint="remove it.")


def _require_one_base(plan: DriftPlan, options: DriftOptions) -> None:
    if options.get("noise") is not None and len(plan.bases) > 1 and not plan.chain:
        raise UsageError(
            "--noise belongs to one model before, but there are several",
            hint="remove --noise, or compare with a single model before.",
        )


def _drift_of_files(taxonomy: Taxonomy, plan: DriftPlan, options: DriftOptions) -> DriftResult:
    why = "averages contain no items and no responses"
    _refuse_unused(options, why, "noise", "selected", "judge", "allow_exec", "profile")
    averages = [read_metric_file(Path(entry.source), taxonomy) for entry in plan.inputs]
    averages = [
        replace(own, name=entry.label or own.name)
        for entry, own in zip(plan.inputs, averages, strict=True)
    ]
    return drift_of_averages(
        taxonomy, plan, averages, options.get("aggregator", "default"), _resampling(options)
    )


def _resampling(options: DriftOptions) -> Resampling:
    return Resampling(options.get("seed", BOOTSTRAP_SEED), options.get("draws", BOOTSTRAP_DRAWS))


def _drift_of_runs(taxonomy: Taxonomy, plan: DriftPlan, options: DriftOptions) -> DriftWithRuns:
    if options.get("aggregator") == "captrack-relative":
        _refuse_unused(options, "the published method does not account for noise", "noise")
        _refuse_unused(options, "the published method has no verdicts", "selected")
    runs = _open_runs(plan.inputs, options)
    every = with_deep_dive(taxonomy)
    _require_shared_tasks(runs, plan, every)
    how = _measuring(options)
    distinct = [distinct_repeats(run) for run in runs]
    copied = [said for _, said in distinct]
    runs = [measure(run, every, how) for run, _ in distinct]
    if options.get("aggregator") == "captrack-relative":
        averages = [averages_of(run, every) for run in runs]
        result = drift_of_averages(
            taxonomy, plan, averages, "captrack-relative", _resampling(options)
        )
    else:
        result = _compare_runs(taxonomy, plan, runs, copied, options)
    return DriftWithRuns(
        result, taxonomy, tuple(runs), options.get("pair_by", "auto"), plan.comparisons
    )


def _open_runs(inputs: Sequence[LabelledInput], options: DriftOptions) -> list[Run]:
    readings = make_readings(
        {
            "run": options.get("run"),
            "strict": options.get("strict", False),
            "cached": options.get("cached", True),
            "progress": options.get("progress"),
            "score_range": options.get("score_range"),
            "mapping": options.get("mapping"),
            "engine": options.get("engine"),
            "master": options.get("master"),
        },
        len(inputs),
    )
    return open_all(
        [entry.source for entry in inputs],
        column_map=options.get("column_map"),
        task=options.get("task"),
        readings=readings,
        labels=[entry.label for entry in inputs],
    )


def _require_shared_tasks(runs: Sequence[Run], plan: DriftPlan, taxonomy: Taxonomy) -> None:
    """Check that some cell can have a value, before anything is scored.

    Raises:
        UsageError: no task of the taxonomy is in the run before and in a run after.
    """
    tasks = [task_names(run) for run in runs]
    shared = [known_tasks(taxonomy, names).keys() for names in tasks]
    if any(shared[before] & shared[after] for before, after in plan.comparisons):
        return
    suite = SUITE_OF_TAXONOMY.get(taxonomy.name)
    there = "; ".join(
        f"{run.name} has {listed(sorted(names))}" for run, names in zip(runs, tasks, strict=True)
    )
    raise UsageError(
        f"no task of the taxonomy {taxonomy.name!r} is in both runs: {there}; the taxonomy has "
        f"{listed([task.name for task in taxonomy.tasks])}",
        hint=(
            f"evaluate the models on its tasks (forgetmap run MODEL --suite {suite}), or list "
            if suite
            else "name "
        )
        + "the exact task names of your runs in your own taxonomy (--taxonomy FILE).",
    )


def _measuring(options: DriftOptions) -> Measuring:
    address, cached = options.get("judge"), options.get("cached", True)
    repeats = options.get("judge_repeats", 1)
    if repeats < 1:
        raise UsageError(f"judge_repeats is {repeats}", hint="use 1 or more.")
    return Measuring(
        profile=options.get("profile", "full"),
        judge=judge_at(*address, cached=cached, repeats=repeats) if address else None,
        judge_repeats=repeats,
        allow_exec=options.get("allow_exec", False),
        processes=options.get("processes"),
        cached=cached,
        progress=options.get("progress"),
    )


def _compare_runs(
    taxonomy: Taxonomy,
    plan: DriftPlan,
    runs: Sequence[Run],
    copied: Sequence[str | None],
    options: DriftOptions,
) -> DriftResult:
    how = _resampling(options)
    sources = [TaxonomyRun(run, with_deep_dive(taxonomy)) for run in runs]
    names = column_names(plan, [run.name for run in runs])
    first, explaining = plan.comparisons[0].before, only_deep_dive(taxonomy)
    floor = _noise(taxonomy, sources[first], options, how)
    deep_floor = _noise(explaining, sources[first], options, how)
    drifts: list[ModelDrift] = []
    deep: list[MetricCell] = []
    notices: list[Caution] = []
    for model, (before, after) in zip(names, plan.comparisons, strict=True):
        sides = sources[before], sources[after]
        pairs = pair_items(*sides, options.get("pair_by", "auto"))
        selected = options.get("selected")
        drifts.append(compare_metrics(model, taxonomy, sides, pairs, how, selected=selected))
        against = drifts[-1].contradictions
        notices += [Caution(one.code, one.message, model) for one in against]
        said = filter(None, (copied[before], copied[after]))
        notices += [Caution("copies", message, model) for message in said]
        notices += find_cautions(model, *sides, pairs, drifts[-1].cells)
        cells = compare_metrics(model, explaining, sides, pairs, how, selected=selected).cells
        deep += _with_floor(cells, deep_floor.metrics if before == first else {})
    own = [floor if before == first else Levels({}, {}, {}) for before, _ in plan.comparisons]
    groups = [
        _with_floor(group_cells(model, taxonomy, drifted), limit.groups)
        for model, drifted, limit in zip(names, drifts, own, strict=True)
    ]
    capabilities = [
        _with_floor(capability_cells(model, taxonomy, drifted), limit.capabilities)
        for model, drifted, limit in zip(names, drifts, own, strict=True)
    ]
    metrics = [
        _with_floor(drifted.cells, limit.metrics)
        for drifted, limit in zip(drifts, own, strict=True)
    ]
    levels = [drifted.levels for drifted in drifts]
    return DriftResult(
        taxonomy=taxonomy.name,
        aggregator="default",
        before=base_name(plan, [run.name for run in runs]),
        models=tuple(names),
        cautions=tuple(notices),
        groups=tuple(chain.from_iterable(groups)),
        capabilities=tuple(chain.from_iterable(capabilities)),
        metrics=tuple(chain.from_iterable(metrics)),
        draws=how.draws,
        seed=how.seed,
        bases=tuple(runs[before].name for before, _ in plan.comparisons),
        deep_dive=tuple(deep),
        ranking=rank_drifts(taxonomy, plan, names, levels),
        recoveries=tuple(find_recoveries(taxonomy, plan, names, levels)),
    )


def _noise(
    taxonomy: Taxonomy, before: TaxonomyRun, options: DriftOptions, how: Resampling
) -> Levels:
    """Compare the model before with a repeat of itself; empty without a repeat."""
    if options.get("noise") is None or not taxonomy.metrics:
        return Levels({}, {}, {})
    (run,) = _open_runs([read_label(options["noise"])], options)
    refuse_other_model(before.run, run)
    source = TaxonomyRun(measure(run, taxonomy, _measuring(options)), taxonomy)
    pairs = pair_items(before, source, options.get("pair_by", "auto"))
    return compare_metrics("noise", taxonomy, (before, source), pairs, how, judge=False).levels


def _with_floor(cells: Sequence[AnyCell], effects: Mapping[str, Effect]) -> list[AnyCell]:
    """Add the noise floor to the cells, if there is one.

    It is the largest effect, in either direction, that is compatible with the data.
    """
    marked = []
    for cell in cells:
        effect = effects.get(cell.id)
        limits = effect.limits if effect is not None else None
        limit = max(map(abs, limits)) if limits else None
        inside = None if limit is None or cell.value is None else abs(cell.value) <= limit
        marked.append(replace(cell, noise=limit, within_noise=inside))
    return marked
