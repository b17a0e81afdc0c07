"""Divergence and overlap from log-probabilities that are recorded in evaluation results.

Results hold the log-probability of the right answer under each model, not samples. That answer is
one event, and restricting to one event can hide divergence but never add any (data processing
inequality): KL is at least, and overlap at most, the value for the two probabilities of the event.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Unpack

import narwhals as nw
import numpy as np
from pydantic import Field

from forgetmap.comparison import Comparison, Options, compare
from forgetmap.errors import ColumnError, FieldError
from forgetmap.overlap.samples import Floats
from forgetmap.pairing import SIDES, both_sides
from forgetmap.records import Run, reading
from forgetmap.results import Estimate, Value
from forgetmap.stats import TermGroup, cluster_terms, studentised_bootstrap
from forgetmap.theory import ROUNDING, bernoulli_kl

SURE = 1 - 1e-9
"""Maximum probability; at 1, rounding would make a divergence infinite."""
QUANTITIES = ("overlap_at_most", "forward_kl_at_least", "reverse_kl_at_least", "change")


class EventGroup(Value):
    """Means over the items of a task, or over all items."""

    name: str
    items: int
    clusters: int
    overlap_at_most: Estimate = Field(description="Bhattacharyya coefficient.")
    forward_kl_at_least: Estimate = Field(description="KL(before||after), in nats.")
    reverse_kl_at_least: Estimate = Field(description="KL(after||before), in nats.")
    change: Estimate = Field(
        description="Mean change of the log-probability of the right answer; negative: less likely."
    )


class EventResult(Value):
    """Two runs, compared by the log-probabilities of right answers."""

    schema_version: int = 1
    before: str
    after: str
    level: float
    total: EventGroup
    tasks: list[EventGroup]
    without: int = Field(
        description="Number of paired results without a log-probability on one side."
    )


def overlap_from_records(
    before: Any, after: Any, *, seed: int = 0, **options: Unpack[Options]
) -> EventResult:
    """Bound overlap and divergence by the log-probabilities of right answers.

    Args:
        before: path, dataframe or run of the model before.
        after: path, dataframe or run of the model after.
        seed: seed of the bootstrap.
        options: how the two are paired, and the level of the intervals, as for `compare`.

    Raises:
        ColumnError: no log-probabilities of right answers are recorded.
        FieldError: one is above 0.
    """
    comparison = compare(before, after, **options)
    rows, without = _rows(comparison)
    if not rows:
        raise ColumnError(
            "No item has the log-probability of its right answer on both sides.",
            field="logprob_gold",
            hint="evaluate by log-likelihood, as `forgetmap run` and lm-eval do for multiple "
            "choice.",
        )
    tasks = sorted({row[0] for row in rows})
    level = comparison.result.rule.level
    return EventResult(
        before=comparison.before.name,
        after=comparison.after.name,
        level=level,
        total=_group("all", rows, level, seed),
        tasks=[_group(task, [r for r in rows if r[0] == task], level, seed) for task in tasks],
        without=without,
    )


_Row = tuple[str, str, float, float]
"""Task, cluster, and the log-probability of the right answer before and after."""


def _rows(comparison: Comparison) -> tuple[list[_Row], int]:
    runs = dict(zip(SIDES, (comparison.before, comparison.after), strict=True))
    with reading(*runs.values()):
        known = {side: _logprobs(run) for side, run in runs.items()}
        pairs = comparison.pairs.frame.filter(both_sides())
        logs, without = [], 0
        for row in pairs.collect().iter_rows(named=True):
            keys = {side: (row["task"], row[f"item_{side}"], row["repeat"]) for side in SIDES}
            values = [known[side].get(key) for side, key in keys.items()]
            if None in values:
                without += 1
                continue
            # Without clusters each item is a cluster: its repeats are not independent.
            cluster = row.get("cluster_before") or "\0".join(map(str, keys["before"][:2]))
            logs.append((row["task"], str(cluster), *map(float, values)))  # type: ignore[arg-type]
    return logs, without


def _logprobs(run: Run) -> dict[tuple[Any, ...], float]:
    """Return the log-probability of the right answer by the key of a result."""
    if "logprob_gold" not in run.columns:
        return {}
    repeat = ["repeat"] if "repeat" in run.columns else []
    rows = run.scores.filter(~nw.col("logprob_gold").is_null())
    logprobs = {}
    for row in rows.select("task", "item", *repeat, "logprob_gold").collect().iter_rows(named=True):
        value = row["logprob_gold"]
        if np.isnan(value) or value > ROUNDING:
            raise FieldError(
                f"The log-probability of the right answer of {row['item']!r} is {value:g}.",
                file=run.origin,
                field="logprob_gold",
                hint="use sums of natural logarithms of probabilities, which are never above 0.",
            )
        logprobs[row["task"], row["item"], row.get("repeat", 0)] = min(value, 0.0)
    return logprobs


def _group(name: str, rows: list[_Row], level: float, seed: int) -> EventGroup:
    logs = np.array([row[2:] for row in rows])
    terms = np.array(list(_terms(logs[:, 0], logs[:, 1])))
    shares = cluster_terms(terms, np.array([row[1] for row in rows]))
    limits = studentised_bootstrap([TermGroup(shares)], level=level, seed=seed)
    estimates = {
        name: _estimate(limits.value[at], limits.low[at], limits.high[at], level)
        for at, name in enumerate(QUANTITIES)
    }
    return EventGroup(name=name, items=len(rows), clusters=shares.shape[1], **estimates)


def _terms(before: Floats, after: Floats) -> Iterator[Floats]:
    p, q = (np.clip(np.exp(logs), 1e-300, SURE) for logs in (before, after))
    yield np.sqrt(p * q) + np.sqrt((1 - p) * (1 - q))
    yield bernoulli_kl(p, q)
    yield bernoulli_kl(q, p)
    yield after - before


def _estimate(value: float, low: float, high: float, level: float) -> Estimate:
    if not np.isfinite([low, high]).all():
        return Estimate(
            value=value,
            method="mean",
            reason="No interval, because nearly all clusters are identical.",
        )
    return Estimate(
        value=value, low=low, high=high, method=f"studentised cluster bootstrap, {level:g}"
    )
