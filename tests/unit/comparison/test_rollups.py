"""The published roll-up, checked against a plain loop, and the two task tables."""

from __future__ import annotations

import math
import random
import statistics
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import forgetmap as fm
from command_line import call, write
from forgetmap.comparison.cells import Cells
from forgetmap.comparison.notices import seed_warnings
from forgetmap.comparison.rollups import SeedRow, consensus, roll_up, row_values
from forgetmap.comparison.task_tables import load_table, plain_name
from forgetmap.errors import UsageError


def random_rows(seed: int) -> list[SeedRow]:
    dice = random.Random(seed)
    rows = []
    for task in range(12):
        k, category = dice.choice([2.0, 4.0, 18.0]), dice.choice(["Logic", "Math", "Missing"])
        for run in range(3):
            counts = [dice.randrange(60) for _ in range(4)]
            cells = Cells(n11=counts[0], n10=counts[1], n01=counts[2], n00=counts[3] + 1)
            rows.append(SeedRow(f"task {task}", run, cells, k, category))
    return rows


def by_hand(row: SeedRow) -> dict[str, float]:
    n11, n10, n01, n00 = row.cells.n11, row.cells.n10, row.cells.n01, row.cells.n00
    n = n11 + n10 + n01 + n00
    a, b = (n11 + n10) / n, (n11 + n01) / n
    chance = (1 - a) * (1 - b) / (row.k - 1)
    return {
        "forgetting": max(n10 / n - chance, 0),
        "backward_transfer": max(n01 / n - chance, 0),
        "forgetting_max": max((row.k * a - 1) / (row.k - 1), 0),
        "backward_transfer_max": max((row.k * b - 1) / (row.k - 1), 0),
        "acc_before": a,
        "acc_after": b,
    }


def test_values_of_one_task_and_seed() -> None:
    for row in random_rows(1):
        assert row_values(row) == pytest.approx(by_hand(row), abs=1e-12)


def test_means_over_tasks_then_seeds_and_total_over_categories() -> None:
    rows = random_rows(2)
    found = {each.name: each for each in roll_up(rows)}
    totals = []
    for seed in range(3):
        means = [
            statistics.mean(
                by_hand(row)["forgetting"]
                for row in rows
                if (row.seed, row.category) == (seed, category)
            )
            for category in sorted({row.category for row in rows})
        ]
        totals.append(statistics.mean(means))
    assert found["Total"].mean["forgetting"] == pytest.approx(statistics.mean(totals))
    assert found["Total"].deviation["forgetting"] == pytest.approx(statistics.stdev(totals))
    assert list(found)[-1] == "Total"


def test_ignored_and_empty_tasks_do_not_enter() -> None:
    rows = random_rows(3)
    more = [
        SeedRow("x", 0, Cells(n10=9, n11=1), 4.0, "ignored"),
        SeedRow("y", 0, Cells(), 4.0, "Math"),
    ]
    assert roll_up([*rows, *more]) == roll_up(rows)
    assert roll_up([]) == []


def test_one_seed_has_no_deviation() -> None:
    (category, total) = roll_up([SeedRow("x", 0, Cells(n10=1, n11=9), 4.0, "Math")])
    assert category.deviation["forgetting"] is total.deviation["forgetting"] is None


def test_tables_differ_where_the_published_one_is_wrong() -> None:
    published, corrected = load_table("as-run"), load_table("corrected")
    assert published.entries.keys() == corrected.entries.keys()
    piqa = "community|piqa:main|0"
    assert [table.find(piqa).k for table in (published, corrected)] == [4, 2]  # type: ignore[union-attr]
    arc = [table.find("arc:easy") for table in (published, corrected)]
    assert [entry.category for entry in arc if entry] == ["Missing", "Logic"]
    counting = corrected.find("bbh:object_counting")
    assert counting is not None
    assert counting.k == math.inf
    varied = corrected.find("truthfulqa:mc1")
    assert varied is not None
    assert varied.k is None


def test_the_released_map_and_what_was_run_differ_in_arc_alone() -> None:
    run, released = load_table("as-run").entries, load_table("as-released").entries
    assert run.keys() == released.keys()
    differing = {name for name, entry in run.items() if entry != released[name]}
    assert differing == {name for name in run if name.startswith("arc")}
    assert {run[name].category for name in differing} == {"Missing"}
    assert {released[name].category for name in differing} == {"Logic"}
    assert "Missing" not in {entry.category for entry in released.values()}


def test_the_old_name_of_a_table_is_refused_with_those_there_are() -> None:
    with pytest.raises(UsageError) as caught:
        load_table("as-published")
    assert "as-run, as-released, corrected" in caught.value.hint


def test_scored_tasks_of_the_published_table() -> None:
    entries = load_table("as-run").entries
    scored = [
        name
        for name, entry in entries.items()
        if entry.category != "ignored" and not name.startswith("arc_reasoning")
    ]
    assert len(scored) == 94
    assert sum(entries[name].category == "Missing" for name in scored) == 2


def test_names_and_unknown_tables() -> None:
    assert plain_name("community|mmlu:sociology|0") == "mmlu:sociology"
    assert plain_name("mmlu:sociology") == "mmlu:sociology"
    assert load_table("corrected").find("something else") is None
    with pytest.raises(UsageError):
        load_table("mine")


TASKS = {"mmlu:anatomy": 30, "mmlu:sociology": 20, "piqa:main": 25}


def answers(seeds: int, generator: int = 5) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Two models that answer all items under every seed."""
    dice = random.Random(generator)
    sides: tuple[list[dict[str, Any]], list[dict[str, Any]]] = ([], [])
    for task, items in TASKS.items():
        for item in range(items):
            easy = dice.random()
            for seed in range(seeds):
                for side in sides:
                    score = float(dice.random() < easy)
                    side.append({"task": task, "item": f"{item}", "repeat": seed, "score": score})
    return sides


def by_seed(rows: list[dict[str, Any]]) -> dict[tuple[str, str, int], int]:
    return {(row["task"], row["item"], row["repeat"]): int(row["score"]) for row in rows}


@pytest.mark.parametrize("size", [2, 3])
def test_consensus_stands_beside_the_roll_up(size: int) -> None:
    """By the kernel that is checked against the authors' code, task by task."""
    before, after = answers(3)
    result = fm.compare(
        pa.Table.from_pylist(before), pa.Table.from_pylist(after), rollup="post-forget"
    ).result
    assert result.consensus is not None
    found = {group.name: group for group in result.consensus if group.seeds == size}
    states, rates = (by_seed(before), by_seed(after)), {}
    for task, items in TASKS.items():
        table = np.array(
            [
                ["".join(str(side[task, f"{item}", seed]) for side in states) for seed in range(3)]
                for item in range(items)
            ]
        )
        counts, dropped = consensus(table, size)
        rates[task] = (counts["10"] / sum(counts.values()), dropped)
    assert found["Common Sense"].forgetting == pytest.approx(rates["piqa:main"][0])
    assert found["Common Sense"].dropped == pytest.approx(rates["piqa:main"][1])
    categories = [group for name, group in found.items() if name != "Total"]
    assert found["Total"].forgetting == pytest.approx(
        statistics.mean(group.forgetting for group in categories)
    )
    assert {group.seeds for group in result.consensus} == {2, 3}


def test_no_consensus_of_one_seed_nor_without_the_roll_up() -> None:
    before, after = map(pa.Table.from_pylist, answers(1))
    assert fm.compare(before, after, rollup="post-forget").result.consensus is None
    before, after = map(pa.Table.from_pylist, answers(2))
    assert fm.compare(before, after).result.consensus is None


def test_consensus_is_printed(tmp_path: Path) -> None:
    before, after = answers(2)
    paths = write(tmp_path / "a.jsonl", before), write(tmp_path / "b.jsonl", after)
    done = call("compare", *paths, "--rollup", "post-forget", columns=120)
    assert done.code == 0, done.err
    assert "published consensus" in done.out


def seed_rows(**seeds: int) -> list[SeedRow]:
    return [
        SeedRow(task, seed, Cells(n11=5), 4.0, "Math")
        for task, count in seeds.items()
        for seed in range(count)
    ]


def test_unequal_seeds_over_tasks_warn() -> None:
    assert seed_warnings(seed_rows(a=3, b=3)) == []
    assert seed_warnings([]) == []
    (notice,) = seed_warnings(seed_rows(a=3, b=3, c=2))
    assert notice.code == "seeds_differ"
    assert "most tasks have 3 seeds, but c have other seeds" in notice.message
    before, after = answers(3)
    kept = [row for row in after if (row["task"], row["repeat"]) != ("piqa:main", 2)]
    first, second = map(pa.Table.from_pylist, (before, kept))
    result = fm.compare(first, second, rollup="post-forget", min_paired=0.5).result
    assert "seeds_differ" in {warning.code for warning in result.pairing.warnings}


def test_consensus_counts_by_hand() -> None:
    table = np.array([["11", "11", "10"], ["10", "10", "10"], ["01", "00", "01"]])
    counts, dropped = consensus(table, 2)
    assert counts == {"00": 0.0, "01": 1 / 3, "10": 1.0, "11": 1 / 3}
    assert dropped == pytest.approx(4 / 9)


def test_consensus_of_kinds_of_items_and_of_missing_answers() -> None:
    table = np.array([["11", "11"], ["10", "10"], ["01", ""]])
    counts, dropped = consensus(table, 2, [2, 1, 5])
    spelled = consensus(np.array([["11", "11"]] * 2 + [["10", "10"]]), 2)
    assert (counts, dropped) == spelled
