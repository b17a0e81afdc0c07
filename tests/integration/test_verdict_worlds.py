"""The benchmark of verdicts runs, and its kernel gives the same verdicts as `compare`."""

from __future__ import annotations

import ast
import importlib
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def verdicts(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    yield importlib.import_module("verdicts")
    for name in ("verdicts", "verdict_measures", "worlds"):
        sys.modules.pop(name, None)


def test_worlds_share_no_code_with_the_estimators() -> None:
    names = set()
    for node in ast.walk(ast.parse((BENCHMARKS / "worlds.py").read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module or "")
    assert names <= {"__future__", "collections.abc", "dataclasses", "typing", "numpy"}


def test_every_row_has_its_own_name(verdicts: Any) -> None:
    # Saved results are read by name: rows with the same name would show the same numbers.
    names = [(row.id, row.world) for row in verdicts.ROWS]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    "world",
    [
        "repeats, 30 passages of 10, 5% lost",
        "60 passages of 5, k = 4, 5% lost",
        "k = 2, habit moves from A to B, n = 300, 0% lost",
        "k = 4 logged as 10, n = 500, 0% lost",
        "10% unparsable after, range, 5% of knowledge lost",
        "scores in quarters, 3% lost",
    ],
)
def test_many_data_sets_at_once_give_what_each_gives(verdicts: Any, world: str) -> None:
    row = next(row for row in verdicts.ROWS if row.world == world)
    rng = np.random.default_rng(8)
    cases = [row.draw(rng) for _ in range(3)]
    assert row.in_batches
    for case, result in zip(cases, verdicts.compare_many(cases), strict=True):
        alone = verdicts.compare(case)["total"]
        assert result["total"]["verdict"] == alone["verdict"]
        for name in ("knowledge", "answering"):
            ours, theirs = (verdicts.limits(total[name]) for total in (result["total"], alone))
            assert ours == pytest.approx(theirs)
        ours, theirs = (
            verdicts.limits(total["headline"]["forgetting"]) for total in (result["total"], alone)
        )
        assert ours == pytest.approx(theirs)


def test_truth_is_what_the_worlds_draw(verdicts: Any) -> None:
    """Over many items the shares are those that a world promises."""
    world = verdicts.World(items=200_000, lost=0.05, gained=0.02, unread=(0.1, 0.3))
    rng = np.random.default_rng(8)
    items = verdicts.worlds.draw_items(rng, world)
    gone = items.before & ~items.after
    assert gone.mean() == pytest.approx(0.05, abs=0.003)
    assert (items.after & ~items.before).mean() == pytest.approx(0.02, abs=0.003)
    truth = world.truth()
    assert truth.knowledge == pytest.approx(0.05 * 0.7)
    assert truth.answering == pytest.approx(0.1 * 0.55 + 0.3 * 0.05)


def test_a_row_becomes_a_line_of_the_table(verdicts: Any) -> None:
    index = next(place for place, row in enumerate(verdicts.ROWS) if row.id == "V6")
    chunk = verdicts.run_chunk(verdicts.Job(index, 1, 4, 1))
    assert chunk.error is None
    line = verdicts.make_line(index, [chunk])
    assert (line.sets, line.files, line.unequal) == (4, 1, 0)
    assert verdicts.ROWS[index].world in verdicts.make_table([line])


@pytest.mark.parametrize(
    "world",
    [
        "sweep: losses rise, the same items lost, n = 300",
        "certificate: 2% disasters among 32 prompts",
        "monitor: 40 looks at 50 fresh items, graded, loss at the margin",
    ],
)
def test_other_results_are_measured(verdicts: Any, world: str) -> None:
    index, row = next((place, row) for place, row in enumerate(verdicts.ROWS) if row.world == world)
    chunk = verdicts.run_chunk(verdicts.Job(index, 1, 1, 0))
    assert chunk.error is None
    for rates in chunk.rates:
        assert rates.keys() >= {*row.targets, *row.floors}
