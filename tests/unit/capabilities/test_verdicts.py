"""Right and wrong answers have the verdict of `compare` on the same items."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import forgetmap as fm
from forgetmap.capabilities.result import MetricCell
from forgetmap.capabilities.taxonomy import parse_taxonomy
from forgetmap.records import Contradiction, Run
from scored_runs import TAXONOMY, row, run_of

SMALL = parse_taxonomy(TAXONOMY, origin="small.toml")
ITEMS = 300
Facts = Callable[[int], dict[str, Any]]


def answered(
    name: str, chance: Sequence[float], seed: int, *, repeats: int = 1, more: Facts | None = None
) -> Run:
    """Answers to the sums and the facts, each right by its own chance."""
    random = np.random.default_rng(seed)
    rows = [
        row(task, item, "acc", float(random.random() < p), repeat=repeat,
            **(more(item) if more else {}))
        for task in ("sums", "facts")
        for repeat in range(repeats)
        for item, p in enumerate(chance)
    ]  # fmt: skip
    return run_of(rows, name)


def cells(before: Run, after: Run, **options: Any) -> list[MetricCell]:
    result = fm.drift(before, after, taxonomy=SMALL, cached=False, draws=200, **options)
    return [cell for cell in result.metrics if cell.id in ("maths.sums", "knowledge.facts")]


def exchanged(side: int) -> list[float]:
    """A tenth is lost, and as much gained."""
    return [0.95 if item % 10 not in (side, 9) else 0.05 for item in range(ITEMS)]


def dropped(side: int) -> list[float]:
    return [(0.9, 0.7)[side]] * ITEMS


def pair(
    chances: Callable[[int], list[float]], repeats: tuple[int, int] = (1, 1), clusters: int = 0
) -> tuple[Run, Run]:
    def cluster(item: int) -> dict[str, Any]:
        return {"cluster": f"c{item % clusters}"}

    before, after = (
        answered(f"m{side}", chances(side), side, repeats=count, more=cluster if clusters else None)
        for side, count in enumerate(repeats)
    )
    return before, after


CASES: dict[str, tuple[Run, Run]] = {
    "lost": pair(dropped),
    "exchange": pair(exchanged),
    "repeats": pair(exchanged, (3, 3)),
    "repeats before": pair(exchanged, (3, 1)),
    "repeats after": pair(exchanged, (1, 2)),
    "clusters": pair(dropped, clusters=75),
    "repeats in clusters": pair(exchanged, (3, 3), clusters=100),
}


@pytest.mark.parametrize("case", CASES)
def test_the_verdict_is_that_of_compare(case: str) -> None:
    before, after = CASES[case]
    tasks = {task.name: task for task in fm.compare(before, after).result.tasks}
    for cell in cells(before, after):
        task = tasks[cell.task]
        assert task.loss.low is not None
        assert cell.verdict == task.verdict
        assert cell.lost_by == task.loss.carried_by
        assert cell.lost_at_least == pytest.approx(max(task.loss.low, 0))
        assert cell.lost_at_most == pytest.approx(task.loss.high)
    if case == "repeats":  # what the drop cannot show
        assert tasks["sums"].verdict == "lost"
        assert tasks["sums"].loss.carried_by == "repeats"


def test_nothing_is_concluded_from_results_that_contradict_their_log() -> None:
    before, after = CASES["lost"]
    fact = Contradiction("total_contradicted", "sums", "acc", 0.2, 0.7,
                         "sums: the log states acc 20 %, but these records give 70 %")  # fmt: skip
    bad = replace(after, contradictions=(fact,))
    assert {task.undecided for task in fm.compare(before, bad).result.tasks} == {"contradicted"}
    for cell in cells(before, bad):
        assert (cell.verdict, cell.undecided, cell.lost_at_least) == (
            "cannot_tell", "contradicted", None,
        )  # fmt: skip
    result = fm.drift(before, bad, taxonomy=SMALL, cached=False, draws=200)
    assert result.cautions[0].code == "total_contradicted"
    assert result.headline("m1").startswith(f"m1: cannot tell: m1: {fact.message}")
    assert "ignificant" not in result.lead("m1")
    explained = replace(after, contradictions=(replace(fact, is_explained=True),))
    assert {cell.verdict for cell in cells(before, explained)} == {"lost"}


def test_items_that_the_model_before_chose_prove_nothing() -> None:
    """It is right in all 60 of them."""
    before, after = answered("m1", [1.0] * 30, 0), answered("m2", [0.5] * 30, 1)
    for selected, undecided, verdict in (
        (None, "all_right", "cannot_tell"),
        (True, "selected", "cannot_tell"),
        (False, None, "lost"),
    ):
        tasks = fm.compare(before, after, selected=selected).result.tasks
        own = cells(before, after, selected=selected)
        for cell, task in zip(own, tasks[::-1], strict=True):
            assert (cell.verdict, cell.undecided) == (verdict, undecided)
            assert (task.verdict, task.undecided) == (verdict, undecided)
            assert cell.lost_at_most == task.loss.high


def test_copies_among_repeats_count_once() -> None:
    """Two of three answers are one: the flips are those of single answers."""
    half = [0.5] * ITEMS
    runs = []
    for side in (0, 1):
        run = answered(f"m{side}", half, side, repeats=2)
        rows = run.scores.collect("polars").to_native().to_dicts()
        copy = [one | {"repeat": 2} for one in rows if one["repeat"] == 0]
        for at, one in enumerate(rows):
            one["logprob_answer"] = -float(at + 1)
        for one, first in zip(copy, [one for one in rows if one["repeat"] == 0], strict=True):
            one["logprob_answer"] = first["logprob_answer"]
        runs.append(run_of([*rows, *copy], f"m{side}"))
    tasks = {task.name: task for task in fm.compare(runs[0], runs[1]).result.tasks}
    for cell in cells(*runs):
        assert cell.verdict == tasks[cell.task].verdict
        assert cell.verdict not in ("lost", "small_loss")
        assert tasks[cell.task].n == 2 * ITEMS
    cautions = fm.drift(*runs, taxonomy=SMALL, cached=False, draws=200).cautions
    assert [caution.code for caution in cautions].count("copies") == 2
