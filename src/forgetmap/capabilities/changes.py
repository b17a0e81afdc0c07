"""Items behind a drift: those that changed, by metric, with both answers.

For binary metrics these are the flips; for gradual values the largest changes. The items of a task
are together, whatever the metric, so that texts shared by several metrics compress well.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import duckdb
import narwhals as nw
import pyarrow as pa

from forgetmap.capabilities.api import DriftWithRuns
from forgetmap.capabilities.result import MetricCell
from forgetmap.capabilities.taxonomy import Metric
from forgetmap.capabilities.values import TaskPairs, TaxonomyRun, pair_items, relation_of, sql
from forgetmap.pairing import Measure
from forgetmap.records import (
    Run,
    connection,
    fill_scores,
    fill_texts,
    literal,
    reading,
    sort_items,
)
from forgetmap.stats import fair_cap

EXAMPLES = 20
"""Number of items of a gradual metric in each direction."""
_SIDE = ("task", "item", "repeat", "score", "outcome", "answer", "choice", "category", "k", "gold")
_AGREEMENT = "agreement"
_ANSWER_TEXTS = ("prompt", "response", "error")


@dataclass(frozen=True, slots=True)
class ChangedItems:
    """The changed items of one model.

    Attributes:
        total: transition -> total number.
        table: one row per item and metric, at most the limit; None if no metric has data.
    """

    total: Mapping[str, int]
    table: pa.Table | None


def changed_items(drifted: DriftWithRuns, *, texts: bool, limit: int) -> list[ChangedItems]:
    """Return at most `limit` changed items of each model, divided among its metrics."""
    if not drifted.runs:
        return []
    sources = [TaxonomyRun(run, drifted.taxonomy) for run in drifted.runs]
    share = max(limit // len(drifted.comparisons), 1)
    return [
        _of_model(drifted, index, sources[before], sources[after], texts=texts, limit=share)
        for index, (before, after) in enumerate(drifted.comparisons)
    ]


def _of_model(
    drifted: DriftWithRuns,
    index: int,
    before: TaxonomyRun,
    after: TaxonomyRun,
    *,
    texts: bool,
    limit: int,
) -> ChangedItems:
    shares = _item_limits(drifted, index, limit)
    if not shares:
        return ChangedItems({}, None)
    pairs = pair_items(before, after, drifted.pair_by)
    metrics = [metric for metric, _ in shares]
    tables = {
        "metrics": connection().from_arrow(_table_of(shares, before, after)),
        "pairs": connection().from_arrow(_joined_pairs(pairs)),
        "before": _answers(before, metrics),
        "after": _answers(after, metrics),
    }
    with reading(before.run, after.run):
        changes = sql(_CHANGED, **tables).to_arrow_table()
    total = _totals(changes)
    changes = changes.drop_columns(["total", "others", "nr", "most", "far"])
    if texts:
        changes = _with_texts(changes, before, after)
    rows = nw.from_native(changes.drop_columns(["own_before", "own_after"])).lazy()
    return ChangedItems(total, sort_items(rows, "repeat", "metric").collect().to_arrow())


def _item_limits(drifted: DriftWithRuns, index: int, limit: int) -> list[tuple[Metric, int]]:
    """Return the metrics with data, and the maximum number of items of each."""
    metrics = {metric.id: metric for metric in drifted.taxonomy.metrics}
    model = drifted.result.models[index]
    cells = [
        cell for cell in drifted.result.metrics
        if cell.model == model and cell.before is not None and cell.note is None
    ]  # fmt: skip
    amounts = [_amount(cell) for cell in cells]
    cap = fair_cap(amounts, limit)
    return [
        (metrics[cell.id], max(min(amount, cap), 2))
        for cell, amount in zip(cells, amounts, strict=True)
    ]


def _amount(cell: MetricCell) -> int:
    if cell.forgotten is None or cell.gained is None:
        return 2 * EXAMPLES
    return round(cell.forgotten + cell.gained)


def _table_of(
    shares: Sequence[tuple[Metric, int]], before: TaxonomyRun, after: TaxonomyRun
) -> pa.Table:
    """Return the parameters of the query for each metric."""
    rows = []
    for metric, most in shares:
        ability = metric.scale == "binary" and metric.polarity == "up"
        measure_before, measure_after = (_measure(source, metric) for source in (before, after))
        rows.append({
            "id": metric.id, "capability": metric.capability, "task": metric.task,
            "scale": metric.scale, "most": most,
            "down": "forgotten" if ability else "less", "up": "gained" if ability else "more",
            "own_before": before.tasks[metric.task], "own_after": after.tasks[metric.task],
            "metric_before": measure_before.metric, "scorer_before": measure_before.scorer,
            "metric_after": measure_after.metric, "scorer_after": measure_after.scorer,
        })  # fmt: skip
    return pa.Table.from_pylist(rows)


def _measure(source: TaxonomyRun, metric: Metric) -> Measure:
    """Return the source of the values; agreement with another task has the id of the metric."""
    measure = source.measure(metric, metric.field)
    assert measure is not None  # noqa: S101  # it has a value
    return measure if metric.agrees_with is None else Measure(metric.id, _AGREEMENT)


def _joined_pairs(pairs: Mapping[str, TaskPairs]) -> pa.Table:
    columns: dict[str, list[pa.Array]] = {"item_before": [], "item_after": [], "task": []}
    for task, own in pairs.items():
        columns["item_before"].append(own.before)
        columns["item_after"].append(own.after)
        columns["task"].append(pa.repeat(task, len(own)))
    return pa.table({name: pa.chunked_array(parts, pa.string()) for name, parts in columns.items()})


_CHANGED = """
    WITH changed AS (
        SELECT m.task AS task, b.item AS item, a.item AS item_after, b.repeat AS repeat,
            m.id AS metric, m.capability AS capability,
            CASE WHEN a.score < b.score THEN m.down ELSE m.up END AS transition,
            coalesce(b.category, a.category) AS category, coalesce(b.k, a.k) AS k,
            coalesce(b.gold, a.gold) AS gold,
            b.score AS score_before, a.score AS score_after,
            b.outcome AS outcome_before, a.outcome AS outcome_after,
            b.answer AS answer_before, a.answer AS answer_after,
            b.choice AS choice_before, a.choice AS choice_after,
            m.own_before AS own_before, m.own_after AS own_after, m.most AS most,
            CASE m.scale WHEN 'binary' THEN 0.0
                WHEN 'count' THEN abs(ln((1 + greatest(a.score, 0)) / (1 + greatest(b.score, 0))))
                ELSE abs(a.score - b.score) END AS far
        FROM metrics AS m JOIN pairs AS p ON p.task = m.task
        JOIN before AS b ON b.task = m.own_before AND b.item = p.item_before
            AND b.metric = m.metric_before AND b.scorer = m.scorer_before
        JOIN after AS a ON a.task = m.own_after AND a.item = p.item_after
            AND a.metric = m.metric_after AND a.scorer = m.scorer_after AND a.repeat = b.repeat
        WHERE CASE m.scale WHEN 'binary' THEN (a.score >= 0.5) <> (b.score >= 0.5)
            ELSE a.score <> b.score END
    )
    SELECT *, count(*) OVER (PARTITION BY metric, transition) AS total,
        count(*) OVER (PARTITION BY metric) - total AS others,
        row_number() OVER (
            PARTITION BY metric, transition ORDER BY far DESC, item, repeat, item_after
        ) AS nr
    FROM changed QUALIFY nr <= greatest(most - others, (most + 1) // 2)"""
"""Flips sorted by name, lengths by ratio; each direction has half of the rows, or what is free."""


def _totals(changed: pa.Table) -> dict[str, int]:
    """Count each transition over all metrics."""
    kinds = changed.group_by(["metric", "transition"]).aggregate([("total", "max")]).to_pylist()
    total: Counter[str] = Counter()
    for kind in sorted(kinds, key=lambda kind: str(kind["transition"])):
        total[kind["transition"]] += kind["total_max"]
    return dict(total)


def _answers(source: TaxonomyRun, metrics: Sequence[Metric]) -> duckdb.DuckDBPyRelation:
    """Return one row per answer and measure, with the scores that count."""
    rows = (
        relation_of(fill_scores(source.run.scores))
        .filter("score IS NOT NULL")
        .project(
            "coalesce(metric, 'score') AS metric, coalesce(scorer, 'default') AS scorer, "
            + ", ".join(_SIDE)
        )
    )
    for metric in metrics:
        if metric.agrees_with is not None:
            rows = rows.union(_agreement(source, metric, rows))
    return rows


def _agreement(
    source: TaxonomyRun, metric: Metric, rows: duckdb.DuckDBPyRelation
) -> duckdb.DuckDBPyRelation:
    """Return answers scored by their agreement with the answers to another task."""
    measure = source.measure(metric, metric.field)
    assert measure is not None  # noqa: S101  # it has a value
    values = source.values(metric, measure)
    agreed = pa.table({"item": values.items, "mean": values.mean})
    own = (
        f"task = {literal(source.tasks[metric.task])} AND metric = {literal(measure.metric)} "
        f"AND scorer = {literal(measure.scorer)} AND repeat = 0"
    )
    columns = ", ".join("v.mean AS score" if name == "score" else f"s.{name}" for name in _SIDE)
    query = f"""
        SELECT {literal(metric.id)} AS metric, {literal(_AGREEMENT)} AS scorer, {columns}
        FROM rows AS s JOIN agreed AS v ON s.item = v.item WHERE NOT isnan(v.mean)"""
    return sql(query, rows=rows.filter(own), agreed=connection().from_arrow(agreed))


def _with_texts(changed: pa.Table, before: TaxonomyRun, after: TaxonomyRun) -> pa.Table:
    """Add questions and responses to these items."""
    table = connection().from_arrow(changed)
    with reading(before.run, after.run):
        for side, run, own, with_question in (
            ("before", before.run, "item", True),
            ("after", after.run, "item_after", before.run.texts is None),
        ):
            if run.texts is not None:
                table = _joined(table, run, side, own, with_question=with_question)
        return table.to_arrow_table()


def _joined(
    table: duckdb.DuckDBPyRelation, run: Run, side: str, own: str, *, with_question: bool
) -> duckdb.DuckDBPyRelation:
    texts = relation_of(fill_texts(run.texts))  # type: ignore[arg-type]  # asked before
    names: Sequence[str] = (*_ANSWER_TEXTS, *(("question", "options") if with_question else ()))
    values = ", ".join(f"any_value({name}) AS {name}" for name in names)
    aliases = ", ".join(
        f"t.{name} AS {name if name in ('question', 'options') else f'{name}_{side}'}"
        for name in names
    )
    query = f"""
        WITH wanted AS (SELECT DISTINCT own_{side} AS task, {own} AS item, repeat FROM found),
        once AS (
            SELECT task, item, repeat, {values} FROM texts
            SEMI JOIN wanted USING (task, item, repeat) GROUP BY task, item, repeat
        )
        SELECT f.*, {aliases} FROM found AS f LEFT JOIN once AS t
        ON t.task = f.own_{side} AND t.item = f.{own} AND t.repeat = f.repeat"""
    return sql(query, found=table, texts=texts)
