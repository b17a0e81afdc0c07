"""Results as dataframes of the library of the caller."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals as nw
import pyarrow as pa

from forgetmap.comparison.cells import REASONS
from forgetmap.comparison.phrases import sentence
from forgetmap.comparison.result import GroupResult
from forgetmap.records import Frame, Run, fresh_name
from forgetmap.results import Estimate

COUNTS = ("items", "n", "n00", "n01", "n10", "n11", "forgotten", "gained")
RATES = ("acc_before", "acc_after")
ESTIMATES = ("forgetting", "backward_transfer", "conditional_forgetting")
TESTS = ("mcnemar_p", "detectable")


def flat_table(groups: Sequence[GroupResult]) -> pa.Table:
    """Return one row per group: estimates with their bounds, and a column for each reason."""
    columns: dict[str, pa.Array] = {"name": pa.array([group.name for group in groups], pa.string())}
    for name in COUNTS:
        columns[name] = pa.array([getattr(group, name) for group in groups], pa.int64())
    for name in (*RATES, "conventional_forgetting"):
        columns[name] = pa.array([getattr(group, name) for group in groups], pa.float64())
    for name in ESTIMATES:
        columns[name] = pa.array([getattr(group, name).value for group in groups], pa.float64())
    for side in ("loss", "gain"):
        limits = [getattr(group, side) for group in groups]
        for name in ("low", "high", "p", "q"):
            columns[f"{side}_{name}"] = pa.array([getattr(x, name) for x in limits], pa.float64())
        carried = [one.carried_by for one in limits]
        columns[f"{side}_carried_by"] = pa.array(carried, pa.string())
    for name in dict.fromkeys(name for group in groups for name in group.estimators):
        _add_limits(columns, name, [group.estimators[name].forgetting for group in groups])
    for name in TESTS:
        columns[name] = pa.array([getattr(group, name) for group in groups], pa.float64())
    columns["verdict"] = pa.array([group.verdict for group in groups], pa.string())
    columns["sentence"] = pa.array([sentence(group) for group in groups], pa.string())
    for reason in REASONS:
        counts = [group.reasons[reason] for group in groups]
        columns[f"forgotten_{reason}"] = pa.array(counts, pa.int64())
    return pa.table(columns)


def _add_limits(columns: dict[str, pa.Array], name: str, estimates: Sequence[Estimate]) -> None:
    for suffix in ("value", "low", "high"):
        column = name if suffix == "value" else f"{name}_{suffix}"
        values = [getattr(estimate, suffix) for estimate in estimates]
        columns[column] = pa.array(values, pa.float64())


def small_frame(groups: Sequence[GroupResult], like: Run) -> Any:
    """Return groups as a frame of the library of `like`."""
    groups_table = flat_table(groups)
    implementation = like.scores.implementation
    if implementation.is_pyspark():
        session = nw.to_native(like.scores).sparkSession
        return session.createDataFrame(groups_table)
    if implementation.is_duckdb() and like.handed_in != "path":
        # DuckDB finds the Arrow table by its name here, through the connection of the caller.
        return nw.to_native(like.scores).query(fresh_name(), "SELECT * FROM groups_table")
    if implementation.is_duckdb():
        return groups_table
    return nw.from_arrow(groups_table, backend=implementation).to_native()


def to_library(frame: Frame, like: Run) -> Any:
    """Return a lazy frame if the caller passed one, else collect it; Arrow for paths."""
    if like.handed_in == "lazy":
        return nw.to_native(frame)
    collected = frame.collect()
    return nw.maybe_reset_index(collected).to_native()
