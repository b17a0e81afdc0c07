from __future__ import annotations

import json
from pathlib import Path

import pytest

from forgetmap.errors import MissingInputError, UsageError
from forgetmap.evaluation.suites import catalogue
from forgetmap.evaluation.suites.basics import basics_suite
from forgetmap.evaluation.suites.catalogue import load_suite
from forgetmap.evaluation.suites.lessons import format_lessons
from forgetmap.scoring.grade import AnswerKind
from hub_copies import write_copies
from plugin_packages import use_entry_points


def test_suites_by_name() -> None:
    assert load_suite("basics").name == "basics"
    assert len(load_suite("post-forget").tasks) == 94
    assert load_suite("world").name == "world"


def test_a_broken_package_that_adds_a_suite_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    points = {"quiz": "no_such_package_anywhere:quiz"}
    use_entry_points(monkeypatch, catalogue, "SUITES", points)
    with pytest.raises(UsageError, match=r"the suite 'quiz' .*no_such_package_anywhere") as caught:
        load_suite("quiz")
    assert caught.value.hint == "fix or uninstall the package that adds it."


def test_only_some_tasks_in_the_order_of_the_suite() -> None:
    names = [task.name for task in load_suite("basics", only=["words:*", "logic:boolean"]).tasks]
    everything = [task.name for task in basics_suite().tasks]
    expected = [n for n in everything if n.startswith("words:") or n == "logic:boolean"]
    assert names == expected


def test_a_limit_keeps_the_same_items_and_more_of_them_when_it_rises() -> None:
    def ids(limit: int | None) -> list[str]:
        (task,) = load_suite("basics", only=["lists:nth"], limit=limit).tasks
        return [item.id for item in task.load()]

    assert len(ids(5)) == 5
    assert ids(5) == ids(5)
    assert set(ids(5)) < set(ids(12)) < set(ids(None)) == set(ids(1000))
    assert ids(12) == sorted(ids(12))
    assert ids(5) != sorted(ids(None))[:5]


def test_items_are_read_once(tmp_path: Path) -> None:
    (task,) = load_suite("basics", only=["lists:nth"]).tasks
    assert task.load() is task.load()


def test_a_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_text(json.dumps({"q": "1 + 1?", "gold": 2}))
    suite = load_suite(path, column_map={"question": "q"})
    assert suite.tasks[0].load()[0].question == "1 + 1?"


@pytest.mark.needs_torch
def test_a_data_set_on_the_hub(tmp_path: Path) -> None:
    names = {"options": "choices", "gold": "answer"}
    root = write_copies(tmp_path)
    suite = load_suite("hub:cais/mmlu:sociology@test", column_map=names, root=root)
    assert suite.name == "mmlu"
    assert len(suite.tasks[0].load()) == 2


def test_an_unknown_suite_lists_near_ones() -> None:
    with pytest.raises(UsageError, match="did you mean basics") as caught:
        load_suite("basic")
    assert "'basic'" in caught.value.message
    with pytest.raises(UsageError, match="choose from basics, post-forget, world"):
        load_suite("qqq")


def test_a_missing_file_is_called_a_file() -> None:
    with pytest.raises(MissingInputError):
        load_suite("nowhere/items.jsonl")


def test_an_unknown_task_lists_near_ones() -> None:
    with pytest.raises(UsageError, match="mmlu:sociology"):
        load_suite("post-forget", only=["sociolgy"])
    with pytest.raises(UsageError, match="did you mean mmlu:anatomy"):
        load_suite("post-forget", only=["mmlu:anatmy"])
    with pytest.raises(UsageError, match=r"choose from .*, \.\.\."):
        load_suite("post-forget", only=["zzz*"])


def test_nonsense_is_refused() -> None:
    with pytest.raises(UsageError, match="limit of 0"):
        load_suite("basics", limit=0)
    with pytest.raises(UsageError, match="does not accept a column map"):
        load_suite("basics", column_map={"gold": "x"})


@pytest.mark.parametrize("kind", ["option", "text", "number", "maths"])
def test_a_lesson_holds_its_own_answer(kind: AnswerKind) -> None:
    lessons = format_lessons(kind)
    assert len({lesson.question for lesson in lessons}) == len(lessons) == 3
    for lesson in lessons:
        assert lesson.gold in lesson.question
        assert bool(lesson.options) == (kind == "option")


@pytest.mark.parametrize("options", [2, 3, 4, 5, 7, 10])
def test_a_lesson_shows_as_many_options_as_the_task(options: int) -> None:
    lessons = format_lessons("option", options=options)
    places = {lesson.options.index(lesson.gold) for lesson in lessons}
    assert len(places) >= min(options, 3) - (options == 3)
    for lesson in lessons:
        assert len(set(lesson.options)) == options
        assert lesson.options.count(lesson.gold) == 1
        others = [option for option in lesson.options if option != lesson.gold]
        assert not any(option in lesson.question for option in others)


def test_lessons_are_never_items() -> None:
    for task in load_suite("basics").tasks:
        questions = {item.question for item in task.load()}
        assert not questions & {lesson.question for lesson in task.lessons}
