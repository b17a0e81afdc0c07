"""The public functions `compare` and `chain`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypedDict, Unpack, overload

from pydantic import ValidationError

from forgetmap.comparison.chains import Chain, build_chain, order_by_lineage
from forgetmap.comparison.choices import Rollup
from forgetmap.comparison.comparison import Comparison
from forgetmap.comparison.estimators import check_estimator
from forgetmap.comparison.pipeline import Extra, compare_sides, in_one_family
from forgetmap.comparison.render import as_html, as_text
from forgetmap.comparison.result import FanOutResult, Rule
from forgetmap.comparison.side_counts import side_facts
from forgetmap.comparison.task_tables import load_table
from forgetmap.errors import ColumnError, UsageError
from forgetmap.pairing import PairBy, align, prepare, prepare_all
from forgetmap.records import BY_NAME, ColumnMap, Kept, Run, kept_frames, spark_errors
from forgetmap.results import Presentable
from forgetmap.sources import (
    ComparedWith,
    Progress,
    Reading,
    ScoreRange,
    engine_session,
    open_run,
)


@dataclass(frozen=True, slots=True, repr=False)
class FanOut(Presentable):
    """One model before and several models after: a sequence of comparisons."""

    comparisons: tuple[Comparison, ...]

    @property
    def result(self) -> FanOutResult:
        """All numbers and texts, as in `--json`."""
        return FanOutResult(comparisons=[comparison.result for comparison in self.comparisons])

    def to_json(self, *, indent: int | None = 2) -> str:
        """Return all numbers and texts as JSON; the schema is in docs/schemas."""
        return self.result.to_json(indent=indent)

    def __len__(self) -> int:
        return len(self.comparisons)

    def __iter__(self) -> Iterator[Comparison]:
        return iter(self.comparisons)

    def __getitem__(self, index: int) -> Comparison:
        return self.comparisons[index]

    def __repr__(self) -> str:
        return as_text(self.result)

    def _repr_html_(self) -> str:
        return as_html(self.result)


class Options(TypedDict, total=False):
    """Options of `compare`, which documents them."""

    metric: str | None
    correct_at: float
    min_paired: float
    margin: float
    noise_floor: float | None
    level: float
    look: int
    looks: int | None
    chosen_among: int
    selected: bool | None
    pair_by: PairBy
    column_map: ColumnMap | None
    task: str | None
    estimator: str
    noise: Any
    confirm: tuple[Any, Any] | None
    planned: bool
    rollup: Rollup
    task_table: str | None
    run: str | Sequence[str] | None
    strict: bool
    scores: Literal["log", "own"] | None
    cached: bool
    texts: bool
    progress: Progress | None
    score_range: tuple[float, float] | None
    mapping: str | Path | None
    engine: Any
    master: str | None


RANGES: dict[int | str, str] = {
    "min_paired": "give a share of the items above 0 and up to 1, such as 0.8.",
    "margin": "give a share of all items between 0 and 1, such as 0.02.",
    "noise_floor": "give a share of all answers from 0 to 0.5, such as 0.02.",
    "level": "give a confidence level above 0.5 and up to 0.9999, such as 0.95.",
}
"""Hints for values that are out of range."""
OTHER_RANGES = "for example --correct-at 0.5, --min-paired 0.8, --pair-by id, --estimator matched."


@overload
def compare(before: Any, after: Any, /, **options: Unpack[Options]) -> Comparison: ...
@overload
def compare(
    before: Any, after: Any, /, *more: Any, chain: Literal[True], **options: Unpack[Options]
) -> Chain: ...
@overload
def compare(
    before: Any, after: Any, another: Any, /, *more: Any, **options: Unpack[Options]
) -> FanOut: ...
def compare(
    before: Any, after: Any, /, *more: Any, chain: bool = False, **options: Unpack[Options]
) -> Comparison | FanOut | Chain:
    """Compare a model before and after training: what it forgot and what it gained.

    Args:
        before: path, dataframe or run of the model before.
        after: path, dataframe or run of the model after.
        more: further models; each is compared with `before`, or continues the chain.
        chain: the models are successive checkpoints, in the order of their recorded parents if
            these are known, else as given.
        metric: `METRIC` or `METRIC/SCORER`, if a run has several.
        correct_at: minimum score that counts as right.
        min_paired: minimum share of the scored items of each side that must also be scored on the
            other side; 0.8 by default.
        margin: the largest acceptable loss, as a share of all items; 0.02 by default.
        noise_floor: share of answers that reruns flip one way at most, if you know it: adds a limit
            that holds only if this is true, and says so.
        level: confidence level of the intervals and the verdicts; 0.95 by default.
        look: which look at these items this is, if the same comparison was made before with fewer
            answers; later looks are stricter.
        looks: number of such looks, if it is fixed beforehand; then all are equally strict.
        chosen_among: number of checkpoints among which the model after was chosen by these items.
        selected: whether answers of the model before helped to choose the items; by default, looks
            for signs of it.
        pair_by: `auto` pairs by content if both sides have it, else by id; or `content` or `id`.
        column_map: canonical field -> column, for tables with other column names.
        task: name of the task, for logs or tables with a single task.
        estimator: `latent`, `upper` or `matched` add a limit that holds only if guesses are blind;
            `auto` assumes nothing.
        noise: path, dataframe or run of another run of the model before: a repeat of it.
        confirm: fresh answers of both models to the items that flipped, from `forgetmap confirm`.
        planned: the fresh answers were planned before the first ones were seen.
        rollup: `default`, or `post-forget` to add the published averages.
        task_table: `corrected`, `as-run` or `as-released`: number of options and category of the
            tasks of the published study, if the data do not have them.
        run: part of a model name, time stamp or file name, for logs with several runs; one for all
            sides or one per side.
        strict: raise an error at the first unusable row of a log, and warn about the worst case if
            results are missing after.
        scores: `log` uses only the scores of the log, `own` our own grading of each response; by
            default the scores of the log, and our own if it has none.
        cached: use cached data of logs that were read before.
        texts: also read questions, prompts and responses of logs, for `flips(texts=True)`.
        progress: called with progress messages.
        score_range: the worst and the best score, if they are not 0 and 1, such as `(1, 10)`.
        mapping: mapping file of `forgetmap records map`.
        engine: `duckdb`, or `spark` or a Spark session for paths, addresses and names of tables
            that a cluster reads.
        master: address of the cluster, such as `spark://HOST:7077`; by default the configured one.

    Returns:
        A `Comparison`; a `FanOut` for several models after; a `Chain` for checkpoints.

    Example:
        >>> import forgetmap as fm
        >>> fm.compare("runs/base", "runs/tuned").flips("forgotten")  # doctest: +SKIP
    """
    rule = make_rule(options)
    sources = [before, after, *more]
    column_map, task = options.get("column_map"), options.get("task")
    readings = make_readings(options, len(sources))
    runs = open_all(sources, column_map=column_map, task=task, readings=readings)
    refuse_same_source(sources, readings, runs)
    if chain:
        runs = order_by_lineage(runs)
    confirm = options.get("confirm")
    if confirm is not None and (chain or more):
        raise UsageError(
            "--confirm takes the fresh answers of two models",
            hint="compare the model before with one model after.",
        )
    further = [("noise", options.get("noise"))]
    further += [*zip(("fresh before", "fresh after"), confirm or (None, None), strict=True)]
    opened = {
        name: _open_mapped(source, name, dict(column_map or {}), task, readings[0])[0]
        for name, source in further
        if source is not None
    }
    if opened:
        given = [source for _, source in further if source is not None]
        refuse_same_source(
            [*sources, *given],
            [*readings, *[readings[0]] * len(given)],
            [*runs, *opened.values()],
            again=tuple(opened),
        )
    with spark_errors(), kept_frames() as kept:
        planned = options.get("planned", False)
        return _compare_runs(runs, opened, rule, kept, chain=chain, planned=planned)


def _compare_runs(
    runs: Sequence[Run],
    further: Mapping[str, Run],
    rule: Rule,
    kept: Kept,
    *,
    chain: bool,
    planned: bool,
) -> Comparison | FanOut | Chain:
    """Compare opened runs; on a cluster, cache the tables that several queries read."""
    facts = side_facts(rule.correct_at)
    for run in (*runs, *further.values()):
        if "question_hash" in run.columns:
            kept.keep(run.scores)
    sides = align(prepare_all(runs, rule.metric, facts))
    of = {"noise": sides[0], "fresh before": sides[0], "fresh after": sides[1]}
    extra_sides = {
        name: align([of[name], prepare(run, rule.metric, facts=facts)])[1]
        for name, run in further.items()
    }
    noise = extra_sides.get("noise")
    if chain:
        return build_chain(sides, rule, noise=noise)
    fresh = None
    if "fresh before" in extra_sides:
        fresh = (extra_sides["fresh before"], extra_sides["fresh after"])
    extra = Extra(noise=noise, fresh=fresh, planned=planned)
    comparisons = [compare_sides(sides[0], later, rule, extra=extra) for later in sides[1:]]
    if len(comparisons) == 1:
        return comparisons[0]
    return FanOut(tuple(in_one_family(comparisons)))


def chain(first: Any, second: Any, /, *more: Any, **options: Unpack[Options]) -> Chain:
    """Compare ordered checkpoints: `compare` with `chain=True`."""
    return compare(first, second, *more, chain=True, **options)


def make_rule(options: Options) -> Rule:
    """Build the rule of a comparison from its options, and check it."""
    try:
        rule = Rule(**{name: options[name] for name in Rule.model_fields if name in options})  # type: ignore[literal-required]
    except ValidationError as error:
        first = error.errors()[0]
        name = "--" + str(first["loc"][0]).replace("_", "-")
        raise UsageError(
            f"{name} is {first['input']!r}, which is out of range or no such value",
            hint=RANGES.get(first["loc"][0], OTHER_RANGES),
        ) from None
    check_estimator(rule.estimator)
    if rule.rollup == "post-forget" and rule.task_table is None:
        rule = rule.model_copy(update={"task_table": "as-run"})
    if rule.task_table is not None:
        load_table(rule.task_table)
    return rule


def make_readings(options: Options, count: int) -> list[Reading]:
    """Return the reading options of each side."""
    run = options.get("run")
    names: list[str | None] = [run] if run is None or isinstance(run, str) else [*run]
    names = names or [None]
    if len(names) not in (1, count):
        raise UsageError(
            f"--run is given {len(names)} times for {count} sources",
            hint="give --run once for all sources, or once per source in order.",
        )
    scale, mapping = options.get("score_range"), options.get("mapping")
    common = Reading(
        texts=options.get("texts", True),
        strict=options.get("strict", False),
        cached=options.get("cached", True),
        progress=options.get("progress"),
        score_range=ScoreRange(*scale) if scale else None,
        mapping=Path(mapping) if mapping else None,
        scores=options.get("scores"),
        spark=engine_session(options.get("engine"), options.get("master")),
    )
    return [replace(common, run=names[index % len(names)]) for index in range(count)]


def refuse_same_source(
    sources: Sequence[Any],
    readings: Sequence[Reading],
    runs: Sequence[Run],
    *,
    again: Sequence[str] = (),
) -> None:
    """Refuse to compare a run with itself; the error shows its name, not its address.

    Args:
        sources: the arguments of the user.
        readings: reading options of each source.
        runs: the opened sources.
        again: names of the last sources, which should be other runs of the compared models.

    Raises:
        UsageError: two sources are the same path with the same selection.
    """
    seen: dict[tuple[str, str, str | None], str] = {}
    for source, reading, run in zip(sources, readings, runs, strict=True):
        if not isinstance(source, str | os.PathLike):
            continue
        path, _, part = os.fspath(source).partition("#")
        key = (os.path.realpath(path), part, reading.run)
        if key in seen and again:
            same = "the same run as" if seen[key] in again else "one of the compared runs:"
            raise UsageError(
                f"{run.name} is {same} {seen[key]}",
                hint="pass another run of the model, in its own files.",
            )
        if key in seen:
            raise UsageError(
                f"{run.name} is both before and after",
                hint="give the run of another model, or select one of several with #NAME or --run.",
            )
        seen[key] = run.name


def open_all(
    sources: Sequence[Any],
    *,
    column_map: ColumnMap | None,
    task: str | None,
    readings: Sequence[Reading] | None = None,
    labels: Sequence[str | None] | None = None,
) -> list[Run]:
    """Open every source; name dataframes by position, and runs of equal names by their paths.

    Args:
        sources: paths, dataframes or runs; the model before is the first.
        column_map: canonical field -> column.
        task: name of the task, for tables without such a column.
        readings: reading options of each source.
        labels: name of each run; None keeps the name of the source.
    """
    only = len(sources) == len(("before", "after"))
    afters = ["after"] if only else [f"after {number}" for number in range(1, len(sources))]
    runs = []
    unused: list[dict[str, ColumnError]] = []
    readings = readings or [Reading()] * len(sources)
    labels = labels or [None] * len(sources)
    for source, name, reading, label in zip(
        sources, ["before", *afters], readings, labels, strict=True
    ):
        run_name = None if isinstance(source, str | os.PathLike) else name
        compared = replace(reading, beside=_compared_with(sources, source))
        run, without = _open_mapped(source, run_name, dict(column_map or {}), task, compared)
        runs.append(run if label is None else replace(run, name=label))
        unused.append(without)
    for field, error in unused[0].items():
        if all(field in without for without in unused):
            raise error
    return _with_unique_names(runs)


def _compared_with(sources: Sequence[Any], source: Any) -> ComparedWith:
    """Return what a source is compared with: the run before, or the first one after it."""
    paths = [os.fspath(one) for one in sources if isinstance(one, str | os.PathLike)]
    if len(paths) < max(len(sources), 2):
        return ComparedWith()
    other = paths[1] if source is sources[0] else paths[0]
    return ComparedWith(tuple(paths), Path(other))


def _open_mapped(
    source: Any, name: str | None, column_map: dict[str, str], task: str | None, reading: Reading
) -> tuple[Run, dict[str, ColumnError]]:
    """Open a source, and return the entries of the column map that it does not have.

    A source that already has the field under its own name does not need the entry.
    """
    try:
        run = open_run(source, name=name, column_map=column_map, task=task, reading=reading)
    except ColumnError as error:
        if error.field not in column_map or error.field not in {*BY_NAME, "rows", "model"}:
            raise
        rest = {field: column for field, column in column_map.items() if field != error.field}
        try:
            run, without = _open_mapped(source, name, rest, task, reading)
        except ColumnError:
            raise error from None
        return run, {**without, error.field: error}
    return run, {}


def _with_unique_names(runs: Sequence[Run]) -> list[Run]:
    """Rename runs of the same name by their paths, without the folders that all paths share."""
    names = [run.name for run in runs]
    paths = {run.origin: Path(run.origin).absolute() for run in runs if names.count(run.name) > 1}
    if len(paths) > 1:
        shared = os.path.commonpath([path.parent for path in paths.values()])
        labels = {origin: str(path.relative_to(shared)) for origin, path in paths.items()}
    else:
        labels = {origin: origin for origin in paths}
    models = [run.info.model.name for run in runs]
    if len(paths) == 1 and None not in models and len({*models}) == len(models):
        return [replace(run, name=str(model)) for run, model in zip(runs, models, strict=True)]
    return [replace(run, name=labels.get(run.origin, run.name)) for run in runs]
