"""The items of probes during training."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from forgetmap.errors import FieldError, UsageError
from forgetmap.evaluation import Item, Settings, Suite, Task
from forgetmap.train.probe_items import (
    categories_of,
    count_items,
    draw_keys,
    part_of_suite,
    suite_of_keys,
    watched_suite,
)
from small_suites import small_suite


def test_an_item_without_a_right_answer_is_refused_before_training() -> None:
    bad = Task("riddles", None, "text", lambda: [Item("7", "What am I?", "")])
    with pytest.raises(FieldError, match="'7' of task 'riddles' has no right answer") as caught:
        watched_suite(Suite("mine", (bad,)), Settings())
    assert caught.value.field == "gold"


def test_a_file_with_an_item_without_a_right_answer_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "probe.jsonl"
    file.write_text('{"question": "a?", "gold": "b"}\n{"question": "c?", "gold": ""}\n')
    with pytest.raises(FieldError, match=r"line 2.*no right answer"):
        watched_suite(file, Settings())


def test_no_items_and_repeats_are_refused() -> None:
    with pytest.raises(UsageError, match="no items"):
        watched_suite(Suite("mine", ()), Settings())
    with pytest.raises(UsageError, match="once per look"):
        watched_suite(small_suite(), Settings(repeats=3, temperature=1.0))


def test_a_task_without_a_category_is_its_own() -> None:
    suite = small_suite()
    nameless = replace(suite, tasks=(replace(suite.tasks[0], category=None), *suite.tasks[1:]))
    assert categories_of(nameless) == {
        "shown": "shown", "hidden": "choice", "text": "open", "number": "open"
    }  # fmt: skip


def test_a_part_has_the_same_share_of_every_task_and_is_the_same_each_time() -> None:
    suite = small_suite(20)
    part = part_of_suite(suite, 20, seed=1)
    assert [len(task.load()) for task in part.tasks] == [5, 5, 5, 5]
    again = part_of_suite(suite, 20, seed=1)
    assert [task.load() for task in part.tasks] == [task.load() for task in again.tasks]
    other = part_of_suite(suite, 20, seed=2)
    assert [task.load() for task in part.tasks] != [task.load() for task in other.tasks]
    assert part_of_suite(suite, 80, seed=1) is suite


def test_keys_are_drawn_evenly_over_tasks() -> None:
    keys = [(task, str(number)) for task in "abc" for number in range(30)]
    drawn = draw_keys(keys, 9, seed=0)
    assert sorted(task for task, _ in drawn) == sorted("abc" * 3)
    assert draw_keys(keys, 500, seed=0) == set(keys)


def test_a_suite_of_keys_has_these_items_only() -> None:
    part = suite_of_keys(small_suite(), {("text", "3"), ("number", "0")})
    assert count_items(part) == 2
