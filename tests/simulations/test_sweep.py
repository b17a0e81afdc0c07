"""Bounds of the chosen merge cover the truth at the stated rate; short form of a benchmark."""

from __future__ import annotations

import importlib.util
import sys
from math import sqrt
from pathlib import Path
from types import ModuleType

import pytest

from forgetmap.stats import simultaneous

SWEEPS = 40
DRAWS = 2_000
"""Of the quantile for all merges: a tenth, since its level is then off by half a point."""


def coverage() -> ModuleType:
    path = Path(__file__).parents[2] / "benchmarks" / "sweep_coverage.py"
    spec = importlib.util.spec_from_file_location("sweep_coverage", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("world", ["merging helps", "on the budget"])
def test_limits_hold_for_the_merge_that_was_chosen(
    world: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(simultaneous, "DRAWS", DRAWS)
    found = coverage().check(world, SWEEPS, 200)
    slack = 3 * sqrt(0.95 * 0.05 / SWEEPS)
    assert found["chosen"] > 0.5
    for name in ("forgetting", "retained", "recovered", "benefit"):
        assert found[f"{name} held"] >= 0.95 - slack
    assert found["false claims"] <= 0.05 + slack
