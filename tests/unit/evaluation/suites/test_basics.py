from __future__ import annotations

import hashlib
from collections import Counter

import pytest

from basics_solvers import SOLVERS
from forgetmap.evaluation.items import Task
from forgetmap.evaluation.suites.basics import basics_suite

TASKS = basics_suite().tasks


def test_it_has_many_different_sub_benchmarks() -> None:
    assert len(TASKS) >= 30
    assert len({task.name for task in TASKS}) == len(TASKS)
    assert len({task.category for task in TASKS}) >= 5
    kinds = Counter(task.kind for task in TASKS)
    assert set(kinds) == {"option", "text", "number", "maths"}
    assert min(kinds["option"], len(TASKS) - kinds["option"]) >= 10


def test_every_sub_benchmark_is_solved_by_its_solver() -> None:
    assert {task.name for task in TASKS} == set(SOLVERS)


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_the_gold_is_right_and_no_distractor_is(task: Task) -> None:
    solve = SOLVERS[task.name]
    for item in task.load():
        assert [*solve(item.question, item.options)] == [item.gold], item


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_items_are_many_and_distinct(task: Task) -> None:
    items = task.load()
    assert len(items) >= 40
    assert len({item.id for item in items}) == len(items)
    assert len({(item.question, frozenset(item.options)) for item in items}) == len(items)
    for item in items:
        assert bool(item.options) == (task.kind == "option")
        assert len(set(item.options)) == len(item.options)
        assert item.gold in item.options or task.kind != "option"


@pytest.mark.parametrize(
    "task", [task for task in TASKS if task.kind == "option"], ids=lambda task: task.name
)
def test_the_right_option_stands_in_each_place_equally_often(task: Task) -> None:
    items = task.load()
    (size,) = {len(item.options) for item in items}
    places = Counter(item.options.index(item.gold) for item in items)
    assert set(places) == set(range(size))
    assert max(places.values()) - min(places.values()) <= 1


def test_no_answer_of_a_fixed_set_dominates() -> None:
    choices = ("logic:boolean", "logic:liars", "logic:syllogism", "logic:conditional")
    for name in (*choices, "words:letters"):
        task = next(task for task in TASKS if task.name == name)
        golds = Counter(item.gold for item in task.load())
        assert golds.most_common(1)[0][1] <= 0.65 * len(task.load()), golds


def test_items_are_the_same_in_every_version_unless_said() -> None:
    """A changed digest means changed items: raise the version of the task, then the digest."""
    text = "\n".join(
        repr((task.name, task.version, item.id, item.question, item.gold, item.options))
        for task in basics_suite().tasks
        for item in task.load()
    )
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == "a8274d8f2b917c68"


def test_loading_twice_gives_the_same() -> None:
    for task in TASKS:
        assert task.load() == task.load()
