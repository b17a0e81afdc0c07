"""New facts of the tiny world, and the separation of pool, near and far items."""

from __future__ import annotations

from collections import Counter
from itertools import islice

import pytest

from forgetmap.evaluation.items import Item, Suite
from forgetmap.evaluation.suites.world import as_text, suite, training_text
from forgetmap.evaluation.suites.world_badges import (
    FAR,
    KNOWN,
    NEW,
    RELATIONS,
    badge_suite,
    far_suite,
    hint,
    near_suite,
    new_examples,
    pool_examples,
    pretraining_text,
)
from forgetmap.evaluation.suites.world_facts import world


def items_of(chosen: Suite) -> list[Item]:
    return [item for task in chosen.tasks for item in task.load()]


def test_every_new_fact_has_one_answer() -> None:
    examples = new_examples()
    assert len({question for question, _ in examples}) == len(examples) == 632
    values = {value for values in RELATIONS.values() for value in values}
    assert all(answer in values for _, answer in examples)
    subjects = {name for kind in NEW for name in world().names[kind]}
    assert {question.removesuffix("?").rsplit(" ", 1)[-1] for question, _ in examples} == subjects


def test_another_seed_gives_other_badges_to_the_same() -> None:
    one, other = new_examples(1), new_examples(2)
    assert one == new_examples(1)
    assert [question for question, _ in one] == [question for question, _ in other]
    same = sum(first == second for first, second in zip(one, other, strict=True))
    assert same < len(one) / 4  # one in twelve by chance


def test_the_new_task_asks_what_is_taught() -> None:
    asked = {item.question: item.gold for item in items_of(badge_suite(seed=3))}
    assert asked == {as_text(question): answer for question, answer in new_examples(3)}
    assert all(task.bare for task in badge_suite().tasks)


def test_a_new_fact_is_new() -> None:
    told = set(islice(pretraining_text(20_000), 20_000))
    news = {as_text(question, answer) for question, answer in new_examples(0)}
    assert not told & news
    world_text = set(training_text(20_000))
    assert not any("the badge of" in text for text in world_text)


def test_badges_of_other_kinds_are_told_before_so_that_they_can_be_guessed() -> None:
    told = set(islice(pretraining_text(40_000), 40_000))
    subjects = [name for kind in KNOWN for name in world().names[kind]]
    known = [
        name
        for name in subjects
        if any(text.startswith(f"Question: What is the badge of {name}?") for text in told)
    ]
    assert len(known) > 0.9 * len(subjects)
    assert not set(NEW) & set(KNOWN)


def test_pool_near_and_far_share_no_question() -> None:
    pool = {question for question, _ in pool_examples()}
    near, far = ({item.question for item in items_of(one)} for one in (near_suite(), far_suite()))
    assert min(len(pool), len(near), len(far)) > 500
    assert not pool & near
    assert not pool & far


def test_nothing_is_asked_in_the_pool_about_a_near_subject() -> None:
    near = {
        item.cluster or item.id
        for task in near_suite().tasks
        if task.name.startswith("direct:")
        for item in task.load()
    }
    asked = [question.removesuffix("?").split()[-1] for question, _ in pool_examples()]
    facts = {name for names in world().names.values() for name in names}
    assert set(asked) & facts
    assert not [
        question
        for question, _ in pool_examples()
        if question.startswith("What is the ") and question.removesuffix("?").split()[-1] in near
    ]


def test_far_categories_are_whole() -> None:
    assert {task.category for task in far_suite().tasks} == set(FAR)
    assert not {task.category for task in near_suite().tasks} & set(FAR)
    whole = Counter(task.category for task in suite().tasks)
    assert Counter(task.category for task in far_suite().tasks) == {
        name: whole[name] for name in FAR
    }


def test_near_items_have_the_right_option_among_theirs() -> None:
    for task in near_suite().tasks:
        for item in task.load():
            assert not item.options or item.gold in item.options


def test_hints_give_the_answer_away() -> None:
    told = [text for text in islice(pretraining_text(3_000), 3_000) if text.startswith("Hint: ")]
    assert 0.05 < len(told) / 3_000 < 0.25
    for text in told:
        given, question = text.split("\n\n", 1)
        answer = given.removeprefix("Hint: ")
        assert hint(answer) == f"{given}\n\n"
        assert question.startswith("Question: ")
        assert question.endswith(f"\nAnswer: {answer}")


@pytest.mark.parametrize("seed", [0, 1])
def test_pretraining_text_is_seeded(seed: int) -> None:
    first = list(pretraining_text(50, seed=seed))
    assert first == list(pretraining_text(50, seed=seed))
    assert first != list(pretraining_text(50, seed=seed + 1))
