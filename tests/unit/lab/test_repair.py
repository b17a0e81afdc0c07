"""Domains that are repaired, and the share that a repair recovers."""

from __future__ import annotations

from pathlib import Path

import pytest

from forgetmap.lab.repair import item_paths, summarise_repairs, worst_domains
from forgetmap.lab.result import LabCell, RepairRun
from lab_runs import make_run
from run_folders import results, write

pytestmark = pytest.mark.needs_torch


def cell(part: str, category: str, known: int, forgotten: int) -> LabCell:
    return LabCell(
        part=part, category=category, items=known, known=known, forgotten=forgotten, gained=0
    )


def test_the_worst_domains_lost_the_largest_share_of_what_was_known() -> None:
    cells = [
        cell("near", "Law", 100, 30),
        cell("near", "Art", 10, 4),
        cell("far", "Maths", 50, 10),
        cell("near", "Blank", 0, 0),
        cell("near", "Split", 10, 0),
        cell("far", "Split", 10, 9),
    ]
    assert worst_domains(cells, 2) == ["Split", "Art"]
    assert worst_domains(cells, 9)[-1] == "Blank"


def test_an_item_without_a_score_is_missing_not_wrong(tmp_path: Path) -> None:
    runs = [
        write(tmp_path / str(number), results(scores))
        for number, scores in enumerate([(1, 1, 1, 0), (0, None, 0, 1), (1, 1, None, 1)])
    ]
    assert item_paths(*runs) == [("t", "101")]
    assert item_paths(*runs[:2]) == [("t", "10"), ("t", "10")]


def repaired(kind: str, seed: int, targeted: int, score: float = 0.95) -> RepairRun:
    return RepairRun(
        kind=kind, seed=seed, rows=0 if kind == "none" else 20, score_before=0.95, score=score,
        steps=5, compute=10, forgotten_targeted=20, recovered_targeted=targeted,
        forgotten_untouched=10, recovered_untouched=5, lost_targeted=0.1, lost_untouched=0.1,
    )  # fmt: skip


def test_targeted_is_held_against_random_seed_by_seed() -> None:
    runs = [repaired("targeted", seed, 12 + seed) for seed in (1, 2, 3)]
    runs += [repaired("random", seed, 6 + seed) for seed in (1, 2, 3)]
    runs += [repaired("none", seed, 1) for seed in (1, 2, 3)]
    forgotten = [make_run(seed=seed) for seed in (1, 2, 3)]
    result = summarise_repairs("small", ["Law"], forgotten, runs, 20)
    assert result.targeted_less_random.value == pytest.approx(0.3)
    assert result.targeted_less_random.low == pytest.approx(0.3)
    assert result.untouched_difference.value == pytest.approx(0.0)
    assert result.lost_before.value == pytest.approx(0.15)
    assert result.headline == (
        "Targeting helps: targeted replay recovered 70.0% of what Law had forgotten, random replay "
        "of the same size 40.0%."
    )
    assert result.notices == []


def test_smaller_sets_than_asked_for_are_said() -> None:
    runs = [repaired(kind, seed, 5) for kind in ("targeted", "random", "none") for seed in (1, 2)]
    forgotten = [make_run(seed=seed) for seed in (1, 2)]
    result = summarise_repairs("small", ["Law"], forgotten, runs, 50)
    assert len(result.notices) == 1
    assert result.notices[0].startswith(
        "Replay sets have 20 rows instead of 50, because fewer texts were similar to"
    )


def test_what_a_repair_cost_is_said() -> None:
    runs = [
        repaired(kind, seed, 5, 0.9) for kind in ("targeted", "random", "none") for seed in (1, 2)
    ]
    forgotten = [make_run(seed=seed) for seed in (1, 2)]
    result = summarise_repairs("small", ["Law"], forgotten, runs, 20)
    assert result.headline.startswith("Cannot tell whether targeting helps")
    assert result.notices == ["One repair cost 5.0% of the new task."]
