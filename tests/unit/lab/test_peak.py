"""The early peak of forgetting."""

from __future__ import annotations

from functools import partial

import pytest

from forgetmap.evaluation import Item, Suite, Task
from forgetmap.lab.peak import Peak, find_peak, near_probe
from forgetmap.lab.recipe import LabRecipe
from forgetmap.train import WatchGroup, WatchHistory, WatchLook, WatchRule

pytestmark = pytest.mark.needs_torch
EMPTY = Suite("empty", ())
RULE = WatchRule(
    cost=None, every=20, margin=0.5, noise_floor=0.0, alpha=0.05, on_alarm="log", keep_best=False
)


def look(step: int, accuracy: float, forgotten: float | None) -> WatchLook:
    total = WatchGroup(
        items=100, missing=0, accuracy=accuracy, forgotten=forgotten, lost_at_least=0.0,
        gained=0.0,
    )  # fmt: skip
    return WatchLook(
        look=step, step=step, run=f"step-{step}", total=total, categories={}, probe_seconds=0.0,
        probed_seconds=0.0, trained_seconds=1.0,
    )  # fmt: skip


def history(*looks: WatchLook) -> WatchHistory:
    return WatchHistory(suite="s", asked="", tokens="", rule=RULE, items=1, items_of_suite=1,
                        looks=list(looks))  # fmt: skip


def test_the_peak_is_the_worst_look_as_a_share_of_what_was_known() -> None:
    seen = history(look(0, 0.5, 0.0), look(20, 0.3, 0.25), look(40, 0.4, 0.1), look(60, 0, None))
    assert find_peak(seen) == Peak(0.5, 20)


def test_there_is_no_peak_where_nothing_was_known_or_seen() -> None:
    assert find_peak(history()) is None
    assert find_peak(history(look(0, 0.0, 0.0), look(20, 0.0, 0.0))) is None
    assert find_peak(history(look(0, 0.5, 0.0))) is None


def test_the_probe_has_the_same_few_near_items_each_time() -> None:
    tasks = [
        Task(
            name,
            "c",
            "text",
            partial(tuple, [Item(str(n), f"{name} {n}?", "x") for n in range(50)]),
        )
        for name in ("one", "two")
    ]
    recipe = LabRecipe("r", "start", lambda _: [], [], Suite("near", tuple(tasks)), EMPTY, [])
    probe = near_probe(recipe, 20)
    asked = [item.question for task in probe.tasks for item in task.load()]
    assert len(asked) == len(set(asked)) == 20
    assert asked == [item.question for task in near_probe(recipe, 20).tasks for item in task.load()]
    assert len(near_probe(recipe, 1000).tasks[0].load()) == 50
