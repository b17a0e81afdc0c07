"""Lazy tables are aggregated by their engine: no per-item result is collected."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest

import forgetmap as fm
from backends import as_frame
from oracle import Row
from spy import Spy

ITEMS = 300
GROUPS = 40
"""Room for all counts of two tasks by category, tags, state and reason; far fewer than items."""
BY_STAGE, BY_CONTENT = 80, 120
"""The same by the answers of three stages, and by what items share."""
LAZY = ("polars-lazy", "duckdb")


def plain(seed: int) -> list[Row]:
    return [
        {
            "task": f"task {item % 2}",
            "item": str(item),
            "score": float((item + seed) % 3 > 0),
            "category": f"category {item % 3}",
            "outcome": "correct" if (item + seed) % 3 else "refused",
        }
        for item in range(seed, ITEMS + seed)
    ]


def with_content(seed: int) -> list[Row]:
    return [row | {"question": f"question {row['item']}", "gold": "yes"} for row in plain(seed)]


def with_repeats(seed: int) -> list[Row]:
    return [row | {"repeat": label} for row in with_content(seed) for label in (11, 42, 7)]


def with_twins(seed: int) -> list[Row]:
    """Items that share their content are counted by what they share."""
    return [row | {"question": f"twins {int(row['item']) // 50}"} for row in with_content(seed)]


DATA = [plain, with_content, with_repeats, with_twins]


@pytest.fixture
def spy(monkeypatch: pytest.MonkeyPatch) -> Spy:
    # Some ids are read, however many there are: fewer of them here than there are groups.
    monkeypatch.setattr("forgetmap.comparison.halves.IDS_READ", 20)
    return Spy(monkeypatch)


def lazy_sides(rows: Callable[[int], list[Row]], library: str) -> tuple[Any, Any]:
    return as_frame(rows(0), library, Path()), as_frame(rows(1), library, Path())


@pytest.mark.parametrize("rows", DATA)
@pytest.mark.parametrize("library", LAZY)
def test_only_counts_are_collected(
    library: str, rows: Callable[[int], list[Row]], spy: Spy
) -> None:
    comparison = fm.compare(*lazy_sides(rows, library))
    assert comparison.result.pairing.paired >= ITEMS - 1
    assert 1 <= spy.highest <= (BY_CONTENT if rows is with_twins else GROUPS)


@pytest.mark.parametrize("library", LAZY)
def test_chains_collect_counts_only(library: str, spy: Spy) -> None:
    frames = [as_frame(with_content(seed), library, Path()) for seed in (0, 1, 2)]
    assert len(fm.compare(*frames, chain=True).stages) == 2
    assert 1 <= spy.highest <= BY_STAGE


@pytest.mark.parametrize("library", LAZY)
def test_flips_are_not_collected_either(library: str, spy: Spy) -> None:
    comparison = fm.compare(*lazy_sides(with_content, library))
    for frame in (comparison.flips("kept", texts=True), comparison.unpaired()):
        assert isinstance(frame, pl.LazyFrame | duckdb.DuckDBPyRelation)
    assert spy.highest <= GROUPS


@pytest.mark.parametrize("library", LAZY)
def test_the_spy_sees_an_early_collect(library: str, spy: Spy) -> None:
    fm.open_run(lazy_sides(plain, library)[0]).scores.collect()
    assert spy.highest == ITEMS


EARLY: dict[str, Callable[[Any], object]] = {
    "polars": lambda frames: frames["polars-lazy"].collect(),
    "duckdb rows": lambda frames: frames["duckdb"].fetchall(),
    "duckdb arrow": lambda frames: frames["duckdb"].to_arrow_table(),
    "duckdb columns": lambda frames: frames["duckdb"].fetchnumpy(),
    "duckdb pandas": lambda frames: frames["duckdb"].df(),
}


@pytest.mark.parametrize("way", EARLY)
def test_the_spy_sees_every_other_way(way: str, spy: Spy) -> None:
    EARLY[way]({library: lazy_sides(plain, library)[0] for library in LAZY})
    assert spy.highest == ITEMS
