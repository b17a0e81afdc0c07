from __future__ import annotations

import pandas as pd
import pytest

from forgetmap.capabilities.taxonomy import (
    Capability,
    CapabilityGroup,
    Metric,
    Taxonomy,
    TaxonomyTask,
)
from forgetmap.capabilities.values import TaskPairs, TaxonomyRun, pair_items
from forgetmap.sources import open_run

TAXONOMY = Taxonomy(
    "two", "", (CapabilityGroup("CAN"),), (Capability("C", "CAN"),),
    (TaxonomyTask("a"), TaxonomyTask("b")),
    (Metric("a.acc", "C", "a"), Metric("b.acc", "C", "b")),
)  # fmt: skip


def pairs_of(rows: list[dict[str, object]]) -> dict[str, TaskPairs]:
    sides = [TaxonomyRun(open_run(pd.DataFrame(rows)), TAXONOMY) for _ in range(2)]
    return pair_items(sides[0], sides[1], "auto")


def row(task: str, item: str, question: str, cluster: str | None = None) -> dict[str, object]:
    return {
        "task": task, "item": item, "score": 1.0, "question": question, "gold": "g",
        "cluster": cluster,
    }  # fmt: skip


def test_questions_of_several_tasks_have_the_same_key_in_each() -> None:
    rows = [row("a", "1", "x"), row("a", "2", "y"), row("b", "7", "y"), row("b", "8", "z")]
    pairs = pairs_of(rows)
    first, second = pairs["a"].shared, pairs["b"].shared
    assert first is not None
    assert second is not None
    assert first.tolist() == [0, second[0]]
    assert second[0] > 0 == second[1]


def test_clusters_of_several_tasks_have_the_same_key_in_each() -> None:
    rows = [
        row("a", "1", "x", "passage"), row("a", "2", "y"), row("b", "7", "u", "passage"),
        row("b", "8", "z", "other"),
    ]  # fmt: skip
    pairs = pairs_of(rows)
    first, second = pairs["a"].shared, pairs["b"].shared
    assert first is not None
    assert second is not None
    assert first[0] == second[0] > 0
    assert (first[1], second[1]) == (0, 0)


@pytest.mark.parametrize("questions", [("x", "y"), ("u", "v")])
def test_where_nothing_is_shared_there_are_no_keys(questions: tuple[str, str]) -> None:
    pairs = pairs_of([row("a", "1", questions[0]), row("b", "2", questions[1])])
    assert pairs["a"].shared is None
    assert pairs["b"].shared is None
