"""Intervals of a study cover the truth, and false trends are rare."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

DRAWS = 200


def coverage_module() -> ModuleType:
    path = Path(__file__).parents[2] / "benchmarks" / "study_coverage.py"
    spec = importlib.util.spec_from_file_location("study_coverage", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["study_coverage"] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("pairs", "families", "lineage"), [(5, 2, 0.05), (20, 3, 0.05)])
def test_intervals_hold_the_truth(pairs: int, families: int, lineage: float) -> None:
    module = coverage_module()
    world = module.World(pairs, families, lineage)
    random = np.random.default_rng(1)
    studies = [module.measure(world, random) for _ in range(DRAWS)]
    share = {name: np.mean([one[name] for one in studies]) for name in studies[0]}
    for name in ("trend covered", "mean covered", "difference covered"):
        assert 0.90 <= share[name] <= 0.99, name
    assert share["larger forget less"] <= 0.055


@pytest.mark.parametrize(("lineages", "pairs"), [(2, 2), (2, 8), (3, 6)])
def test_intervals_of_two_or_three_lineages_hold_the_truth(lineages: int, pairs: int) -> None:
    module = coverage_module()
    world = module.World(pairs, lineages, 0.02, sizes=1)
    random = np.random.default_rng(3)
    studies = [module.measure(world, random) for _ in range(2 * DRAWS)]
    held = np.mean([one["mean covered"] for one in studies])
    assert held >= 0.93


def test_clusters_by_pair_would_not_hold() -> None:
    """The control: pairs taken as independent, though lineages differ, cover too rarely."""
    module = coverage_module()
    world = module.World(40, 2, 0.1)
    random = np.random.default_rng(2)
    held = []
    for _ in range(DRAWS // 2):
        table = module.draw_table(world, random)
        facts = [
            module.replace(fact, lineage=str(number)) for number, fact in enumerate(table.facts)
        ]
        trend = module.size_trend(module.replace(table, facts=tuple(facts)), "forgetting")
        held.append(module.covers(trend[0], 0.0))
    assert np.mean(held) < 0.9


def test_a_run_that_was_stopped_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = coverage_module()
    monkeypatch.setattr(module, "WORLDS", [module.World(5, 2, 0.0, items=20)])
    monkeypatch.setattr(module, "CHUNK", 5)
    whole = module.run(15, 100.0, tmp_path / "whole.json")
    for _ in range(3):
        parts = module.run(15, 0.0, tmp_path / "parts.json")
    assert parts == whole
