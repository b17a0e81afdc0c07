"""Verdicts err as rarely as promised: a small part of benchmarks/verdicts.py."""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
MODULES = ("verdicts", "verdict_measures", "worlds", "simulated_rows")
SETS = 200
WORLDS = [
    "argmax of noisy logits (IRT), nothing changed, n = 300",
    "two of four options ruled out, guesses redrawn, n = 300",
    "batch noise 1.5% one way, 0% lost, n = 4241",
    "k = 2, guesses redrawn, 4% lost, n = 3000",
    "open, 2% lost, n = 2000",
    "drop at the margin: 6% lost, 4% gained, n = 3000",
    "too few items: open, nothing lost, n = 150",
    "clusters: 120 passages of 12 share run noise",
    "clusters: 400 passages of 10, noise .5% one way, 2% lost",
    "tasks: exchange between 20, 8% lost in ten, 8% gained in ten",
    "tasks: 20 of 200, passages of 10 share run noise",
    "tasks: macro of 12 of 20 to 2,000 items, 2% lost",
    "tasks: 30% of unknown items refused in 10 of 20",
    "family: 57 of MMLU's sizes, k = 4, nothing lost",
    "repeats: 3, k = 2, partial changes, 6% lost, n = 500",
    "repeats: 1 to 5 by item, same model, n = 500",
    "confirm: 50% of the flips, 1 fresh, same model, n = 500",
    "confirm: all, frozen guesses, no knowledge lost, n = 1000",
    "looks: 12 looks at new runs of the same model, n = 500",
    "looks: best of 20 checkpoints, all at the margin, n = 3000",
    "chain: 3 stages, 4% lost and 4% gained, n = 1000",
    "gate: loss at the margin, open, n = 3000, accept items",
    "gate: same model at T = 0.7, n = 500, accept net",
]


@pytest.fixture(scope="module")
def verdicts() -> Iterator[Any]:
    sys.path.insert(0, str(BENCHMARKS))
    yield importlib.import_module("verdicts")
    sys.path.remove(str(BENCHMARKS))
    for name in MODULES:
        sys.modules.pop(name, None)


def run(verdicts: Any, world: str, sets: int = SETS) -> Any:
    """Return what was found in a row."""
    rows = importlib.import_module("simulated_rows")
    (index,) = (n for n, row in enumerate(verdicts.ROWS) if row.world == world)
    line = rows.Line(verdicts.ROWS[index])
    line.add(verdicts.run_job(rows.Job(index, 0, sets, 1)))
    return line


@pytest.mark.parametrize("world", WORLDS)
def test_errors_are_as_rare_as_promised(verdicts: Any, world: str) -> None:
    line = run(verdicts, world)
    rates, row = line.rates, line.row
    for name, most in (row.shown | row.others).items():
        if name in rates:
            # One of 1,000 rows whose true rate is the target would have more.
            assert rates[name] * SETS <= binom.isf(1e-3, SETS, most), name
    for name, least in row.least.items():
        assert rates[name] * SETS >= binom.ppf(1e-3, SETS, least), name


@pytest.mark.parametrize(
    ("world", "rate", "least"),
    [
        ("control: halves by item where passages of 10 share run noise", "false_lost", 0.3),
        ("control: copies of 100% of items as 3 answers", "false_lost", 0.95),
        (
            "control: one level for best of 20 checkpoints, all at the margin, n = 3000",
            "false_within",
            0.15,
        ),
    ],
)
def test_what_breaks_the_procedure_is_seen(
    verdicts: Any, world: str, rate: str, least: float
) -> None:
    assert run(verdicts, world, 60).rates[rate] > least


def test_worlds_share_no_code_with_the_limits() -> None:
    names = set()
    for node in ast.walk(ast.parse((BENCHMARKS / "worlds.py").read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module or "")
    assert names <= {
        "__future__", "collections.abc", "dataclasses", "typing", "numpy", "numpy.typing",
    }  # fmt: skip


def test_truth_is_what_the_worlds_draw(verdicts: Any) -> None:
    """Over many items the loss and the answers are those that a world promises."""
    n, rng = 200_000, np.random.default_rng(8)
    worlds = importlib.import_module("worlds")
    for world in (
        worlds.choices(n, 0.05, 0.02),
        worlds.open_items(n, 0.05, 0.02, flips=0.01),
        worlds.sampled(n, 0.1, 0.6),
        worlds.sampled(n, 0.1, 0.6, gained=True),
        worlds.frozen_guesses(n, 0.04, k=2),
        worlds.moved_habit(n),
        worlds.latent_trait(n),
        worlds.open_items(n, 0.05, cluster=2, tied=0.5),
    ):
        items = worlds.draw(rng, world, mood=0.5)
        assert items.own_loss == pytest.approx(items.loss, abs=0.002)
        assert items.own_net == pytest.approx(items.net, abs=0.003)
        right = items.answer(rng, items.p, 2) / 2
        assert right.mean() == pytest.approx(items.p.mean(), abs=0.003)


def test_every_row_has_its_own_name(verdicts: Any) -> None:
    # Random numbers depend on the name: rows with the same name would be the same data sets.
    names = [row.world for row in verdicts.ROWS]
    assert len(names) == len(set(names))


def test_a_missed_target_is_in_the_table(verdicts: Any) -> None:
    rows = importlib.import_module("simulated_rows")
    line = run(verdicts, "control: copies of 100% of items as 3 answers", 4)
    row = rows.Row("copies", line.row.measure, verdicts.COLUMNS)
    table = rows.make_tables([rows.Line(row, line.sets, line.sums)])
    assert "MISSED: false lost, L above" in table
    assert "1 rows, 1 not within their targets." in table


def test_a_section_is_put_in_its_place(verdicts: Any, tmp_path: Path) -> None:
    rows = importlib.import_module("simulated_rows")
    page = tmp_path / "page.md"
    page.write_text("# Page\n\n## Verdicts\n\nold\n\n## Others\n\nstay\n")
    rows.write_section(page, verdicts.SECTION, "\nnew")
    assert page.read_text() == "# Page\n\n## Verdicts\n\nnew\n\n## Others\n\nstay\n"
