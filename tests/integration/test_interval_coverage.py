"""The benchmark of intervals covers every interval of the JSON output."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def coverage(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    yield importlib.import_module("interval_coverage")
    for name in ("interval_coverage", "verdicts", "verdict_measures", "worlds"):
        sys.modules.pop(name, None)


def test_every_interval_of_the_schema_has_an_estimand(coverage: Any) -> None:
    groups, paths = coverage.schema_paths()
    assert groups == coverage.GROUPS
    assert paths == coverage.ESTIMANDS.keys() | coverage.NO_INTERVAL


@pytest.mark.parametrize(
    "change",
    [
        {"k": 0},
        {},
        {"k": 2, "unread": (0.1, 0.2)},
        {"repeated": 0.5, "choices": False},
        {"k": 0, "unread": (0.1, 0.1)},
    ],
)
def test_expected_rates_are_those_of_a_large_draw(coverage: Any, change: dict[str, Any]) -> None:
    world = replace(coverage.MANY, items=40_000, lost=0.08, **change)
    expected = coverage.expect_world(world)
    before, after = coverage.draw_task(np.random.default_rng(3), world, "task")
    right, still = (np.asarray(sheet["score"]) == 1 for sheet in (before, after))
    no_answer = np.asarray(after["outcome"]) == "no_answer"
    rates = {
        "right": right,
        "forgetting": right & ~still,
        "backward_transfer": ~right & still,
        "to_none": right & no_answer,
    }
    for name, seen in rates.items():
        assert getattr(expected, name) == pytest.approx(seen.mean(), abs=0.006), name


def test_a_range_meets_the_truth_where_all_guesses_are_repeated(coverage: Any) -> None:
    expected = coverage.expect_world(replace(coverage.MANY, lost=0.05, repeated=1.0))
    assert expected.upper == pytest.approx((0.05, 0.04))


@pytest.mark.parametrize(
    "name", ["graded, 60 clusters of 5", "three checkpoints, n = 500", "open, n = 100, 5% lost"]
)
def test_settings_run(coverage: Any, name: str) -> None:
    setting = next(setting for setting in coverage.SETTINGS if setting.name == name)
    tallies = coverage.run_setting(setting, 4, [1])
    assert all(tally.sets >= 4 for tally in tallies.values())


def test_a_section_is_put_in_its_place(coverage: Any, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Page\n\n## Intervals\n\nold\n\n## Verdicts\n\nstay\n")
    coverage.write_section(page, coverage.SECTION, "\nnew")
    assert page.read_text() == "# Page\n\n## Intervals\n\nnew\n\n## Verdicts\n\nstay\n"
