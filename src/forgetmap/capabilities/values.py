"""Paired values of two runs: one row per item, with the value before and after of each metric."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from functools import cached_property
from hashlib import blake2b
from itertools import chain
from pathlib import Path

import duckdb
import narwhals as nw
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from forgetmap._cache import temporary_path
from forgetmap.capabilities.taxonomy import FIRST, Metric, Taxonomy
from forgetmap.comparison import plain_name
from forgetmap.errors import MetricError, PairingError
from forgetmap.pairing import Measure, PairBy, Side, both_sides, match, match_twins, prepare
from forgetmap.records import (
    CONTENT_HASHES,
    FAILED,
    Contradiction,
    Frame,
    Outcome,
    Run,
    arrow_batches,
    connection,
    fresh_name,
    is_spark,
    literal,
    reading,
)
from forgetmap.scoring import find_scorer, signature_of
from forgetmap.sources import OWN_SCORER
from forgetmap.stats import Reals

_FAILED = ", ".join(literal(outcome) for outcome in FAILED)
_CARRIED = (*CONTENT_HASHES, "k", "cluster")
_JUDGED = (*_CARRIED, "prompt_hash")
"""Columns of an answer that its verdict depends on, besides its score."""
_FACTS = ("k_before", "cluster_before", "question_hash_before")
"""Columns of a pair besides its task and ids."""


def relation_of(frame: Frame) -> duckdb.DuckDBPyRelation:
    """Return a frame of any library as a relation of DuckDB."""
    if frame.implementation.is_duckdb():
        native = nw.to_native(frame)
        try:
            return connection().sql("FROM native")
        except duckdb.InvalidInputException:  # it belongs to another connection
            return connection().from_arrow(native.arrow())
    if is_spark(frame):
        return connection().from_parquet(str(_spilled(frame)))
    return connection().from_arrow(frame.collect().to_arrow())


def _spilled(frame: Frame) -> Path:
    """Write the rows of a cluster to a local file: they may not fit into memory."""
    path = temporary_path(".parquet")
    batches = arrow_batches(frame)
    first = next(batches, None)
    if first is None:
        pq.write_table(frame.collect().to_arrow(), path)
        return path
    with pq.ParquetWriter(path, first.schema) as writer:
        for batch in chain([first], batches):
            writer.write_batch(batch.cast(first.schema))
    return path


def sql(query: str, **tables: duckdb.DuckDBPyRelation) -> duckdb.DuckDBPyRelation:
    """Run a query over tables under these names."""
    for name, table in tables.items():
        query = re.sub(rf"\b(FROM|JOIN) {name}\b", rf"\1 {_view(table)}", query)
    return connection().sql(query)


def _view(table: duckdb.DuckDBPyRelation) -> str:
    name = fresh_name()
    table.create_view(name)
    return name


class TaxonomyRun:
    """A run in the terms of a taxonomy.

    Args:
        run: a run with the scores to use.
        taxonomy: the taxonomy of the tasks.
    """

    def __init__(self, run: Run, taxonomy: Taxonomy) -> None:
        self.run = run
        self._table = relation_of(run.scores)
        self._columns = frozenset(self._table.columns)
        self.offered: dict[str, dict[Measure, int]] = defaultdict(dict)
        """Task as named in the run -> measure -> number of scores."""
        for task, metric, scorer, scored in self._counted():
            self.offered[task][Measure(metric, scorer)] = scored
        self.tasks = known_tasks(taxonomy, self.offered)
        self._asked = _fields_of(taxonomy)
        self._kept: dict[str, dict[Measure, Values]] = {}

    @property
    def strangers(self) -> list[str]:
        """Tasks that are not in the taxonomy, without first turns of its tasks."""
        known = set(self.tasks.values())
        return sorted(self.offered.keys() - known - {f"{task}{FIRST}" for task in known})

    def _counted(self) -> list[tuple[str, str, str, int]]:
        with reading(self.run):
            table = self._table
            return table.aggregate(
                f"task, {self._metric} AS metric, {self._scorer} AS scorer, count(score)",
                f"task, {self._metric}, {self._scorer}",
            ).fetchall()

    @property
    def _metric(self) -> str:
        return "coalesce(metric, 'score')" if "metric" in self._columns else "'score'"

    @property
    def _scorer(self) -> str:
        return "coalesce(scorer, 'default')" if "scorer" in self._columns else "'default'"

    def measure(self, metric: Metric, field: str | None) -> Measure | None:
        """Return the source of the values of this metric, None if there is none.

        Scorers of the taxonomy first; else any recorded values under the name.

        Raises:
            MetricError: several scorers recorded it.
        """
        task = self.tasks.get(metric.task)
        offered = self.offered[task] if task is not None else {}
        if field is None:
            return self._main(task, offered) if task is not None and offered else None
        for name in (metric.judge, metric.scorer):
            own = Measure(field, signature_of(find_scorer(name))) if name else None
            if own in offered:
                return own
        others = [m for m in offered if m.metric == field and not is_provisional(m, metric)]
        return self._only(metric.task, others) if others else None

    def _main(self, task: str, offered: Mapping[Measure, int]) -> Measure:
        info = self.run.info.tasks.get(task)
        if info is not None and info.main_metric is not None:
            main = [
                m
                for m in offered
                if m.metric == info.main_metric and info.main_scorer in (None, m.scorer)
            ]
            if main:
                return self._only(task, main)
        return self._only(task, list(offered))

    def _only(self, task: str, measures: Sequence[Measure]) -> Measure:
        if len(measures) == 1:
            return measures[0]
        choices = ", ".join(map(str, sorted(measures)))
        raise MetricError(
            f"{self.run.origin}: task {task!r} has several metrics ({choices}) and no main one",
            hint="set the main metric and scorer of the task in the manifest, or keep only one.",
        )

    def values(self, metric: Metric, measure: Measure) -> Values:
        """Return one value per item, its repeats averaged."""
        if metric.agrees_with is not None:
            return self._agreement(metric, measure)
        return self._of_task(metric.task)[measure]

    def _of_task(self, task: str) -> dict[Measure, Values]:
        """Return all values of a task for its metrics; those of the last task are cached."""
        if task not in self._kept:
            where = f"task = {literal(self.tasks[task])}"
            fields = self._asked[task]
            if None not in fields:
                names = sorted(literal(name) for name in fields if name is not None)
                where += f" AND {self._metric} IN ({', '.join(names)})"
            columns = f"{self._metric} AS metric", f"{self._scorer} AS scorer"
            self._kept = {task: _values(self._rows(where, "score", *columns), self.run)}
        return self._kept[task]

    def _where(self, task: str, measure: Measure) -> str:
        return (
            f"task = {literal(task)} AND {self._metric} = {literal(measure.metric)} "
            f"AND {self._scorer} = {literal(measure.scorer)}"
        )

    def _rows(self, where: str, *columns: str) -> duckdb.DuckDBPyRelation:
        outcome = "outcome" if "outcome" in self._columns else "NULL AS outcome"
        return self._table.filter(where).project(", ".join(["item", *columns, outcome]))

    def _agreement(self, metric: Metric, measure: Measure) -> Values:
        """Return whether an item and its paraphrase, which share an id, get the same answer.

        Both right is agreement, only one right is not; two wrong answers must be equal.
        """
        rows = self._agreed(metric, measure, ())
        return (
            Values.none() if rows is None else _values(rows, self.run).get(measure, Values.none())
        )

    def _agreed(
        self, metric: Metric, measure: Measure, more: Sequence[str]
    ) -> duckdb.DuckDBPyRelation | None:
        """Return a row per answer: its agreement as a score, and further columns of the item."""
        other = self.tasks.get(str(metric.agrees_with))
        if other is None or measure not in self.offered[other]:
            return None
        answer_columns = [name for name in ("choice", "answer") if name in self._columns]
        answer = f"lower(trim(coalesce({', '.join(answer_columns)})))" if answer_columns else "NULL"
        repeat = "repeat" if "repeat" in self._columns else "0 AS repeat"
        columns = ("score", f"{answer} AS answer", repeat)
        own_rows = self._rows(self._where(self.tasks[metric.task], measure), *columns, *more)
        other_rows = self._rows(self._where(other, measure), *columns)
        with reading(self.run):
            joined = own_rows.set_alias("a").join(
                other_rows.set_alias("b"), "a.item = b.item AND a.repeat = b.repeat"
            )
        right = "(a.score >= 0.5)", "(b.score >= 0.5)"
        agree = f"{right[0]} = {right[1]} AND ({right[0]} OR coalesce(a.answer = b.answer, false))"
        score = f"CASE WHEN a.score + b.score IS NOT NULL THEN ({agree})::DOUBLE END AS score"
        measure_columns = (
            f"{literal(measure.metric)} AS metric, {literal(measure.scorer)} AS scorer"
        )
        facts = "".join(f", a.{name} AS {name}" for name in ("repeat", *more))
        return joined.project(
            f"a.item AS item, {score}, {measure_columns}, a.outcome AS outcome{facts}"
        )

    def answers(
        self,
        asked: Sequence[tuple[Metric, Measure]],
        items: Mapping[str, tuple[pa.Array, pa.Array]],
    ) -> Run:
        """Return right and wrong answers as a run with a task for every metric.

        Args:
            asked: binary metrics, each with the source of its values.
            items: for each task of the taxonomy, ids of items here, and how they are called there.
        """
        kept = [name for name in _JUDGED if name in self._columns]
        repeat = "repeat" if "repeat" in self._columns else "0 AS repeat"
        tables = {"named": connection().from_arrow(_named(items))}
        wanted: list[str] = []
        parts: list[str] = []
        for metric, measure in asked:
            if metric.agrees_with is None:
                values = (metric.id, metric.task, self.tasks[metric.task], *astuple(measure))
                wanted.append(f"({', '.join(map(literal, values))})")
                continue
            rows = self._agreed(metric, measure, kept)
            if rows is not None:
                name = f"agreed_{len(parts)}"
                tables[name] = rows
                facts = f"{literal(metric.id)} AS id, {literal(metric.task)} AS task, repeat"
                parts.append(f"SELECT {', '.join([facts, 'item', 'score', *kept])} FROM {name}")
        if wanted:
            tables["scores"] = self._table.project(
                f"task AS own, item, {repeat}, score, {self._metric} AS metric, "
                f"{self._scorer} AS scorer{''.join(f', {name}' for name in kept)}"
            )
            parts.append(
                f"SELECT id, asked.task, {', '.join(['repeat', 'item', 'score', *kept])} "
                f"FROM scores JOIN (VALUES {', '.join(wanted)}) "
                "AS asked(id, task, own, metric, scorer) USING (own, metric, scorer)"
            )
        query = f"""
            SELECT id AS task, own.there AS item, repeat,
                CASE WHEN score IS NOT NULL THEN (score >= 0.5)::INT::DOUBLE END AS score
                {"".join(f", {name}" for name in kept)}
            FROM ({" UNION ALL ".join(parts)}) AS answers
            JOIN named AS own ON answers.task = own.task AND answers.item = own.here"""
        with reading(self.run):
            table = sql(query, **tables).to_arrow_table()
        scores = nw.from_native(connection().from_arrow(table))
        return replace(
            self.run,
            scores=scores,
            texts=None,
            ids_are_occurrences=False,
            positions_of=None,
            contradictions=tuple(self._contradictions(asked)),
        )

    def _contradictions(self, asked: Sequence[tuple[Metric, Measure]]) -> Iterator[Contradiction]:
        """Yield what contradicts the values of these metrics."""
        for metric, measure in asked:
            for fact in self.run.contradictions:
                is_own = fact.task == self.tasks[metric.task]
                names = (
                    fact.metric in (None, measure.metric),
                    fact.scorer in (None, measure.scorer),
                )
                if is_own and all(names):
                    yield replace(fact, task=metric.id, metric=None, scorer=None)

    def count(self, task: str) -> int:
        """Return the number of items of a task."""
        return self._sizes.get(task, 0)

    @cached_property
    def _sizes(self) -> dict[str, int]:
        counted = self.items.scores.group_by("task").agg(n=nw.len()).collect().rows(named=True)
        return {row["task"]: int(row["n"]) for row in counted}

    @cached_property
    def items(self) -> Run:
        """One row per item of the tasks of the taxonomy, to pair."""
        names = ", ".join(
            f"({literal(own_task)}, {literal(known_task)})"
            for known_task, own_task in self.tasks.items()
        )
        kept = [name for name in _CARRIED if name in self._columns]
        query = f"""
            SELECT named.ours AS task, item, 0.0::DOUBLE AS score
                {"".join(f", any_value({name}) AS {name}" for name in kept)}
            FROM scores JOIN (VALUES {names}) AS named(theirs, ours) ON task = named.theirs
            GROUP BY named.ours, item"""
        with reading(self.run):
            table = sql(query, scores=self._table).to_arrow_table()
        return replace(self.run, scores=nw.from_native(connection().from_arrow(table)))

    @cached_property
    def side(self) -> Side:
        """The items as a side, checked once for all models that they are paired with."""
        return prepare(self.items)


def _named(items: Mapping[str, tuple[pa.Array, pa.Array]]) -> pa.Table:
    """Return the ids of items with their names on the other side, in one table."""
    tasks = [
        pa.repeat(pa.scalar(task, pa.string()), len(here)) for task, (here, _) in items.items()
    ]
    columns = [tasks, *([own[at] for own in items.values()] for at in (0, 1))]
    names = ("task", "here", "there")
    return pa.table(
        {
            name: pa.chunked_array(parts, pa.string())
            for name, parts in zip(names, columns, strict=True)
        }
    )


def task_names(run: Run) -> list[str]:
    """Return the names of the tasks of a run."""
    with reading(run):
        return [name for (name,) in relation_of(run.scores).project("task").distinct().fetchall()]


def known_tasks(taxonomy: Taxonomy, offered: Iterable[str]) -> dict[str, str]:
    """Return the name in the run of each task of the taxonomy; names must match exactly."""
    plain = {plain_name(name): name for name in offered}
    known = {}
    for task in taxonomy.tasks:
        for name in (task.name, *task.also):
            if name in plain:
                known[task.name] = plain[name]
                break
    return known


def _fields_of(taxonomy: Taxonomy) -> dict[str, set[str | None]]:
    """Return the metrics of each task that may be read; None means any."""
    fields: dict[str, set[str | None]] = defaultdict(set)
    for metric in taxonomy.metrics:
        fields[metric.task].add(metric.field)
        if metric.strict:
            fields[metric.task].add(metric.strict)
    return fields


def is_provisional(measure: Measure, metric: Metric) -> bool:
    """Return whether a score is a provisional one from reading a log."""
    return measure.scorer == OWN_SCORER and metric.scorer is not None


@dataclass(frozen=True, slots=True)
class Values:
    """Values of one metric on one side.

    Attributes:
        items: ids of the items.
        mean: mean over the repeats of an item; nan if all are missing.
        answers: number of responses.
        failed: number of responses without an answer to judge.
        errors: number of responses that could not be judged.
    """

    items: pa.Array
    mean: Reals
    answers: int
    failed: int
    errors: int

    @classmethod
    def none(cls) -> Values:
        """Return empty values."""
        return cls(pa.array([], pa.string()), np.empty(0), 0, 0, 0)


def _values(rows: duckdb.DuckDBPyRelation, run: Run) -> dict[Measure, Values]:
    """Convert rows of item, score, metric, scorer and outcome to values by measure."""
    with reading(run):
        table = rows.aggregate(
            "item, metric, scorer, avg(score) AS mean, count(*) AS answers, "
            f"count(*) FILTER (outcome IN ({_FAILED})) AS failed, "
            f"count(*) FILTER (score IS NULL AND outcome = '{Outcome.ERROR}') AS errors",
            "item, metric, scorer",
        ).to_arrow_table()
    kinds = table.select(["metric", "scorer"]).group_by(["metric", "scorer"]).aggregate([])
    by_measure = {}
    for kind in kinds.to_pylist():
        here = pc.and_(
            pc.equal(table["metric"], kind["metric"]), pc.equal(table["scorer"], kind["scorer"])
        )
        by_measure[Measure(**kind)] = _of_measure(table.filter(here))
    return by_measure


def _of_measure(table: pa.Table) -> Values:
    mean = pc.fill_null(table["mean"].combine_chunks(), float("nan")).to_numpy()
    answers, failed, errors = (
        int(pc.sum(table[name]).as_py() or 0) for name in ("answers", "failed", "errors")
    )
    return Values(table["item"].combine_chunks().cast(pa.string()), mean, answers, failed, errors)


@dataclass(frozen=True, slots=True)
class TaskPairs:
    """The items of one task that are on both sides.

    Attributes:
        before: ids on the side before.
        after: ids of the same items on the side after.
        cluster: number of the cluster of each item; None if there are none.
        shared: for each item, a key if other tasks share its cluster or its question, else 0; None
            if none do.
        chance: mean value of guessing, if items have a number of options.
    """

    before: pa.Array
    after: pa.Array
    cluster: NDArray[np.intp] | None
    chance: float | None
    shared: NDArray[np.uint64] | None = None

    def __len__(self) -> int:
        return len(self.before)


def pair_items(before: TaxonomyRun, after: TaxonomyRun, pair_by: PairBy) -> dict[str, TaskPairs]:
    """Pair the items of each task: by content if both sides have it, else by id."""
    if not before.tasks.keys() & after.tasks.keys():
        return {}
    sides = before.side, after.side
    pairs = match(*sides, correct_at=0.5, pair_by=pair_by)
    table = _paired(pairs.frame, pairs.columns)
    if not _is_one_to_one(table):
        pairs = match_twins(*sides, pairs.keys, correct_at=0.5)
        table = _paired(pairs.frame, pairs.columns)
        if not _is_one_to_one(table):
            raise PairingError(
                f"some items of {before.run.name} and {after.run.name} are ambiguous",
                hint="give every item of a task a unique id.",
            )
    table = _with_shared_units(table)
    return {
        str(task): _task_pairs(table.filter(pc.equal(table["task"], task)))
        for task in sorted(pc.unique(table["task"]).to_pylist())
    }


def _paired(frame: Frame, columns: frozenset[str]) -> pa.Table:
    both = frame.filter(both_sides())
    more = [name for name in _FACTS if name in columns]
    return both.select("task", "item_before", "item_after", *more).collect().to_arrow()


def _with_shared_units(table: pa.Table) -> pa.Table:
    """Add a key of every unit that several tasks share: a cluster, or a question."""
    units = [
        pc.binary_join_element_wise(prefix, table[name].cast(pa.string()), "")
        for prefix, name in (("cluster ", "cluster_before"), ("question ", "question_hash_before"))
        if name in table.column_names
    ]
    if not units:
        return table
    table = table.append_column("unit", pc.coalesce(*units))
    tasks = table.group_by("unit").aggregate([("task", "count_distinct")])
    several = tasks.filter(
        pc.and_(pc.greater(tasks["task_count_distinct"], 1), pc.is_valid(tasks["unit"]))
    )["unit"].to_pylist()
    if not several:
        return table.drop_columns("unit")
    keys = {
        unit: int.from_bytes(blake2b(unit.encode(), digest_size=8).digest()) for unit in several
    }
    return table.append_column(
        "shared", pa.array([keys.get(unit, 0) for unit in table["unit"].to_pylist()], pa.uint64())
    )


def _is_one_to_one(table: pa.Table) -> bool:
    return all(
        table.group_by(["task", name]).aggregate([]).num_rows == table.num_rows
        for name in ("item_before", "item_after")
    )


def _task_pairs(table: pa.Table) -> TaskPairs:
    table = table.sort_by("item_before").combine_chunks()
    names = set(table.column_names)
    clusters = table["cluster_before"] if "cluster_before" in names else None
    chance = None
    if "k_before" in names:
        k = pc.drop_null(table["k_before"]).to_numpy()
        chance = float(np.mean(1 / k)) if len(k) == len(table) and len(k) else None
    return TaskPairs(
        before=table["item_before"].combine_chunks().cast(pa.string()),
        after=table["item_after"].combine_chunks().cast(pa.string()),
        cluster=_numbered(clusters),
        chance=chance,
        shared=table["shared"].to_numpy() if "shared" in names else None,
    )


def _numbered(clusters: pa.ChunkedArray | None) -> NDArray[np.intp] | None:
    """Number clusters from 0; an item without one is its own."""
    if clusters is None or clusters.null_count == len(clusters):
        return None
    own = pa.array([f"\0{index}" for index in range(len(clusters))])
    filled = pc.coalesce(clusters.combine_chunks().cast(pa.string()), own)
    return np.asarray(filled.dictionary_encode().indices.to_numpy(), np.intp)


def align(values: Values, items: pa.Array) -> Reals:
    """Return values in the order of these items; nan if missing."""
    indices = pc.index_in(items, value_set=values.items)
    aligned = np.full(len(items), np.nan)
    known = pc.is_valid(indices).to_numpy(zero_copy_only=False)
    aligned[known] = values.mean[pc.drop_null(indices).to_numpy()]
    return aligned
