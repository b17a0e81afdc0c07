"""What drift, certificates, probes, sweeps and monitoring say of worlds whose truth is known.

Each function runs one data set of benchmarks/worlds.py through the same code as results of users,
and returns what is false in the result. benchmarks/verdicts.py has the rows.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
import polars as pl
from worlds import Array, Columns, Completions, DriftCase, ProbeCase, Rng, SweepCase

import forgetmap as fm
from forgetmap.capabilities.taxonomy import (
    Capability,
    CapabilityGroup,
    Metric,
    Taxonomy,
    TaxonomyTask,
)
from forgetmap.overlap import estimate_table, table_of_arrays
from forgetmap.probe import check_probe, choose_probe, write_probe
from forgetmap.records import MetricInfo, Run, RunInfo, build_run
from forgetmap.stats import ClusterDesign, monitor
from forgetmap.sweep.analyse import PathPoint, analyse_pair
from forgetmap.sweep.states import States

Rates = dict[str, float]


def measure_drift(draw: Callable[[Rng], DriftCase], rng: Rng) -> Rates:
    """Return whether the interval of the capability misses its drift, and p disagrees with it."""
    case = draw(rng)
    runs = [_run(side, name) for name, side in (("before", case.before), ("after", case.after))]
    tasks = sorted(set(np.asarray(case.before["task"]).tolist()))
    is_count = max(case.before["score"]) > 1
    seed = int(rng.integers(2**31))
    result = fm.drift(*runs, taxonomy=_taxonomy(*tasks, count=is_count), cached=False, seed=seed)
    (cell,) = result.capabilities
    if cell.low is None or cell.high is None or cell.p is None:
        return {"missed": 1.0, "disagree": 0.0}
    has_drifted = cell.low > 0 or cell.high < 0
    return {
        "missed": float(not cell.low <= case.effect <= cell.high),
        "disagree": float(has_drifted != (cell.p <= 0.05)),
    }


@lru_cache
def _taxonomy(*tasks: str, count: bool) -> Taxonomy:
    """Return one capability that is the mean over tasks."""
    kind = {"scale": "count", "polarity": "both"} if count else {}
    return Taxonomy(
        "one",
        "",
        (CapabilityGroup("CAN"),),
        (Capability("C", "CAN"),),
        tuple(map(TaxonomyTask, tasks)),
        tuple(Metric(task, "C", task, **kind) for task in tasks),  # type: ignore[arg-type]
    )


def _run(columns: Columns, name: str) -> Run:
    size = len(columns["score"])
    lists = {key: np.asarray(values).tolist() for key, values in columns.items()}
    lists |= {"metric": ["value"] * size, "scorer": ["s"] * size, "repeat": [0] * size}
    return build_run(lists, RunInfo(metrics={"value": MetricInfo(high=None)}), name)


def measure_certificate(draw: Callable[[Rng], Completions], rng: Rng) -> Rates:
    """Return whether the certified bound of the total variation distance is below it."""
    case = draw(rng)
    table = table_of_arrays(case.prompt, case.wrote_before, case.before, case.after)
    group = estimate_table(table).groups[0]
    assert group.certificate is not None
    limit = group.certificate.total_variation_limit
    return {
        "false_certificate": float(limit < case.distance),
        "certifies_90%": float(group.certificate.kept["0.9"] is not None),
        "limit": limit,
    }


def measure_probe(
    draw: Callable[[Rng], ProbeCase], rng: Rng, *, rate: str = "false_alarm"
) -> Rates:
    """Return whether a probe raises an alarm in any group."""
    case = draw(rng)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "probe.jsonl"
        probe = choose_probe([_table(case.before)], seed=int(rng.integers(2**31)))
        findings = check_probe(write_probe(probe, path), _table(case.after))
    return {rate: float(any(finding.alarm for finding in findings))}


def _table(columns: Columns) -> pl.DataFrame:
    return pl.DataFrame({name: np.asarray(v).tolist() for name, v in columns.items()})


def measure_sweep(draw: Callable[[Rng], SweepCase], rng: Rng) -> Rates:
    """Return whether a merge is wrongly certified within the budget; the largest certified weight.

    Also the largest weight by bounds that hold for all merges at once.
    """
    case = draw(rng)
    n = case.right.shape[1]
    nothing = np.zeros(n)
    states = States(
        case.right, np.full(n, "A"), nothing > 0, ClusterDesign(), nothing, None, left_out=0
    )
    path = [PathPoint("linear", weight, at, f"m{at}") for at, weight in enumerate(case.weights, 2)]
    ends = PathPoint("linear", 0.0, 0, "base"), PathPoint("linear", 1.0, 1, "tuned")
    pair = analyse_pair(
        states, [ends[0], *path, ends[1]], names=("tuned", "tuned"), headlines={}, drift=None
    )
    points = pair.points[1:-1]
    sure = np.array([point.within == "surely" for point in points])
    at_once = np.array([(point.over_budget.high or 0.0) < 0 for point in points])
    return {
        "false_certificate": float((sure & ~case.within).any()),
        "certified_weight": _largest(case.weights, sure),
        "more_than_at_once": _largest(case.weights, sure) - _largest(case.weights, at_once),
    }


def _largest(weights: Sequence[float], chosen: Array) -> float:
    return max((weight for weight, is_in in zip(weights, chosen, strict=True) if is_in), default=0)


def measure_monitor(
    draw: Callable[[Rng], list[Array]],
    rng: Rng,
    *,
    margin: float,
    fresh: bool,
    rate: str = "false_alarm",
) -> Rates:
    """Return whether any look raises an alarm."""
    looks = monitor(draw(rng), margin=margin, fresh=fresh)
    return {rate: float(any(look.alarm for look in looks))}
