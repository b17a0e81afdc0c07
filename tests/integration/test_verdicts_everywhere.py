"""The Python API and the command line give the limits and verdicts of the kernel.

Data sets are drawn, written as files, compared as files, as frames and by the command, and checked
against an oracle that goes item by item.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import estimator_oracle as oracle
import forgetmap as fm
from backends import LIBRARIES, as_arrow, as_frame
from command_line import json_of, write
from estimator_oracle import Item, Row, Shape
from estimator_runs import read_halves
from forgetmap.comparison import ComparisonResult
from judged_groups import check_families, check_totals

SHAPES = {
    "single": Shape(lost=0.1, items=50),
    "losses and gains apart": Shape(tasks=9, items=16, lost=0.4, apart=True),
    "repeats": Shape(repeats=3, items=25, lost=0.2, gained=0.2),
    "uneven repeats": Shape(repeats=(2, 3), items=16, missing=0.2, unscored=0.02, lost=0.1),
    "clusters": Shape(clusters=True, tasks=9, items=12, lost=0.2),
    "shared content": Shape(content=3, tasks=9, items=12, lost=0.2),
    "repeats of BEFORE": Shape(items=40, lost=0.1, gained=0.1),
    "confirmed": Shape(items=60, lost=0.25, gained=0.25),
    "confirmed, clusters": Shape(items=40, lost=0.3, clusters=True),
}
LIBRARY = dict(zip(SHAPES, LIBRARIES * 2, strict=False))
"""Every data set in one of the libraries."""


def runs_of(name: str, seed: int) -> dict[str, list[Row]]:
    """Return the runs of a data set; reruns have the items that flipped, and others."""
    shape, sides = SHAPES[name], ["before", "after"]
    if name == "repeats of BEFORE":
        sides.append("again")
    runs = {side: oracle.random_run(seed, shape, side) for side in sides}
    if name.startswith("confirmed"):
        fresh = {"fresh before": "again", "fresh after": "later"}
        runs |= {name: oracle.random_run(seed, shape, side) for name, side in fresh.items()}
        for rerun in fresh:
            runs[rerun] = [row for row in runs[rerun] if int(row["item"]) % 5 or row["score"]]
    return runs


def items_of(name: str, runs: dict[str, list[Row]]) -> list[Item]:
    before, after = runs["before"], runs["after"]
    if SHAPES[name].repeats == 1 and "again" not in runs:
        items = oracle.paired_items(before, after)
    else:
        items = oracle.items_of(before, after, *runs.get("again", ()))
    if "fresh before" not in runs:
        return items
    fresh: list[dict[Any, list[Row]]] = [{}, {}]
    for answers, rerun in zip(fresh, ("fresh before", "fresh after"), strict=True):
        for row in runs[rerun]:
            answers.setdefault((row["task"], row["item"]), []).append(row)
    return [
        replace(item, fresh=(tuple(fresh[0].get(item.key, ())), tuple(fresh[1].get(item.key, ()))))
        for item in items
    ]


def compare_all(sources: dict[str, Any]) -> ComparisonResult:
    options: dict[str, Any] = {}
    if "again" in sources:
        options["noise"] = sources["again"]
    if "fresh before" in sources:
        options["confirm"] = (sources["fresh before"], sources["fresh after"])
    comparison: fm.Comparison = fm.compare(sources["before"], sources["after"], **options)
    return comparison.result


def command_of(paths: dict[str, Path]) -> list[object]:
    more: list[object] = ["--noise", paths["again"]] if "again" in paths else []
    if "fresh before" in paths:
        more += ["--confirm", paths["fresh before"], paths["fresh after"]]
    return [paths["before"], paths["after"], *more]


def numbers(result: ComparisonResult | dict[str, Any]) -> dict[str, Any]:
    """Return the groups of a result, without names of runs."""
    values = result if isinstance(result, dict) else result.to_dict()
    return {name: values[name]
            for name in ("total", "total_macro", "tasks", "categories", "tags")}  # fmt: skip


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("name", SHAPES)
def test_files_frames_and_the_command_equal_the_kernel(
    name: str, seed: int, tmp_path: Path
) -> None:
    runs = runs_of(name, seed)
    paths = {side: write(tmp_path / f"{side}.jsonl", rows) for side, rows in runs.items()}
    result = compare_all(paths)
    halves = read_halves(runs["before"], runs["after"]) if SHAPES[name].tasks > 7 else {}
    how: dict[str, Any] = {"confirmed": True} if "fresh before" in runs else {}
    items = items_of(name, runs)
    check_totals(result, items, halves, **how)
    check_families(result, items, halves, **how)
    library = LIBRARY[name]
    frames = {
        side: as_frame(rows, library, tmp_path / f"{side}.parquet") for side, rows in runs.items()
    }
    assert numbers(compare_all(frames)) == numbers(result)
    assert numbers(json_of(*command_of(paths))) == json.loads(json.dumps(numbers(result)))


def test_the_data_sets_have_every_bound() -> None:
    carried: set[Any] = set()
    for name in SHAPES:
        runs = {side: as_arrow(rows) for side, rows in runs_of(name, 1).items()}
        result = compare_all(runs)
        groups: Sequence[Any] = (result.total, *result.tasks)
        carried |= {group.loss.carried_by for group in groups if (group.loss.low or 0) > 0}
    assert carried == {"drop", "tasks", "repeats", "confirmed"}
