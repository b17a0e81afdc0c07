"""The suite `world`: every question has one right answer, derived here from the facts."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable

import pytest

from forgetmap.evaluation.items import Item, Task
from forgetmap.evaluation.suites.world import as_text, suite, training_text
from forgetmap.evaluation.suites.world_facts import world

TASKS = {task.name: task for task in suite().tasks}
CATEGORIES = {
    "Common Sense", "Culture", "Knowledge", "Language", "Liberal Arts", "Logic", "Math", "Safety",
    "Science/Tech",
}  # fmt: skip
NUMERALS = world().names["numeral"]


def named_in(question: str, pool: object) -> list[str]:
    """What of the pool the question mentions, in the order of mention."""
    words = re.findall(r"[\w]+", question)
    return [word for word in words if word in pool]  # type: ignore[operator]


def fact(relation: str, subject: str) -> str:
    return world().relations[relation].facts[subject]


def forward(about: str, item: Item, option: str) -> bool:
    (subject,) = named_in(item.question, world().relations[about].facts)
    return fact(about, subject) == option


def backward(about: str, item: Item, option: str) -> bool:
    values = set(world().relations[about].facts.values())
    (value,) = named_in(item.question, values)
    return fact(about, option) == value


def verify(about: str, item: Item, option: str) -> bool:
    facts = world().relations[about].facts
    (subject,) = named_in(item.question, facts)
    claimed = item.question.removesuffix("?").split(" is ")[-1]
    return option == str(facts[subject] == claimed).lower()


def statement(about: str, item: Item, option: str) -> bool:
    (subject,) = named_in(item.question, world().relations[about].facts)
    said, value = option.split(" is ")
    return subject in said.split() and fact(about, subject) == value


def same(about: str, item: Item, option: str) -> bool:
    (subject,) = named_in(item.question, world().relations[about].facts)
    return option != subject and fact(about, option) == fact(about, subject)


def odd(about: str, item: Item, option: str) -> bool:
    shown = named_in(item.question, world().relations[about].facts)
    kinds = Counter(fact(about, one) for one in shown)
    return option in shown and kinds[fact(about, option)] == 1


def compare(about: str, item: Item, option: str) -> bool:
    ranks = world().orders[about].ranks
    shown = named_in(item.question, ranks)
    return option in shown and all(ranks.index(option) >= ranks.index(one) for one in shown)


def following(about: str, item: Item, option: str) -> bool:
    ranks = world().orders[about].ranks
    (one,) = named_in(item.question, ranks)
    return ranks.index(option) - ranks.index(one) == 1


def two_hop(about: str, item: Item, option: str) -> bool:
    outer, inner = about.split("_of_")
    (subject,) = named_in(item.question, world().relations[inner].facts)
    return fact(outer, fact(inner, subject)) == option


def word_form(form: str, item: Item, option: str) -> bool:
    (word,) = named_in(item.question, world().genders)
    return option == f"{word}-{world().endings[form][world().genders[word]]}"


def number(name: str, item: Item, option: str) -> bool:
    shown = [NUMERALS.index(word) for word in named_in(item.question, NUMERALS)]
    answer: dict[str, Callable[[], object]] = {
        "after": lambda: NUMERALS[shown[0] + 1],
        "before": lambda: NUMERALS[shown[0] - 1],
        "twice": lambda: NUMERALS[shown[0] + shown[0]],
        "half": lambda: next(NUMERALS[n] for n in range(40) if n + n == shown[0]),
        "sum": lambda: NUMERALS[sum(shown)],
        "difference": lambda: NUMERALS[shown[0] - shown[1]],
        "between": lambda: NUMERALS[sum(shown) // 2],
        "steps": lambda: NUMERALS[shown[2] + shown[1] - shown[0]],
        "larger": lambda: NUMERALS[shown[shown[0] < shown[1]]],
        "parity": lambda: "odd" if shown[0] & 1 else "even",
    }
    return option == answer[name]()


RIGHT: dict[str, Callable[[str, Item, str], bool]] = {
    "direct": forward,
    "open": forward,
    "inverse": backward,
    "inverse_open": backward,
    "verify": verify,
    "statement": statement,
    "same": same,
    "odd": odd,
    "compare": compare,
    "next": following,
    "two_hop": two_hop,
    "two_hop_open": two_hop,
    "numbers": number,
    "word_forms": word_form,
    "word_forms_open": word_form,
}


@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
def test_exactly_one_option_is_right(task: Task) -> None:
    form, about = task.name.split(":")
    for item in task.load():
        answers = item.options or (item.gold,)
        right = [answer for answer in answers if RIGHT[form](about, item, answer)]
        assert right == [item.gold], item


def test_the_check_of_options_can_fail() -> None:
    (item, *_) = TASKS["direct:trade"].load()
    wrong = next(option for option in item.options if option != item.gold)
    assert not forward("trade", item, wrong)


@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
def test_a_task_is_well_formed(task: Task) -> None:
    items = task.load()
    assert 20 <= len(items) <= 60
    assert len({item.id for item in items}) == len(items)
    assert task.category in CATEGORIES
    sizes = {len(item.options) for item in items}
    assert len(sizes) == 1
    assert (task.kind == "option") == (sizes != {0})
    for item in items:
        assert len(set(item.options)) == len(item.options)


@pytest.mark.parametrize(
    "task", [task for task in TASKS.values() if task.kind == "option"], ids=lambda task: task.name
)
def test_gold_stands_everywhere_equally_often(task: Task) -> None:
    items = task.load()
    k = len(items[0].options)
    places = Counter(item.options.index(item.gold) for item in items)
    assert len(places) == k
    assert max(places.values()) - min(places.values()) <= 1


@pytest.mark.parametrize("about", world().forms["verify"])
def test_half_the_claims_are_true(about: str) -> None:
    golds = Counter(item.gold for item in TASKS[f"verify:{about}"].load())
    assert abs(golds["true"] - golds["false"]) <= 1


def test_an_open_question_has_one_answer() -> None:
    for task in TASKS.values():
        if task.kind == "text":
            questions = [item.question for item in task.load()]
            assert len(set(questions)) == len(questions), task.name


def test_size_and_spread() -> None:
    assert len(TASKS) == len(suite().tasks) >= 100
    assert {task.category for task in TASKS.values()} == CATEGORIES
    assert max(Counter(name.split(":")[0] for name in TASKS).values()) <= 10
    options = {len(task.load()[0].options) for task in TASKS.values()}
    assert options == {0, 2, 3, 4, 5}


def test_lessons_teach_the_form_and_nothing_else() -> None:
    here = world()
    things = {name for names in here.names.values() for name in names}
    values = {value for relation in here.relations.values() for value in relation.values}
    for task in TASKS.values():
        shape = len(task.load()[0].options)
        for lesson in task.lessons:
            words = set(re.findall(r"\w+", " ".join((lesson.question, *lesson.options))))
            assert not words & (things | values)
            assert len(lesson.options) == shape
            assert not shape or lesson.gold in lesson.options
            assert lesson.gold in lesson.question


def test_the_world_is_the_same_in_every_process() -> None:
    code = (
        "import hashlib; from forgetmap.evaluation.suites.world import suite, training_text\n"
        "said = [repr((task.name, task.load())) for task in suite().tasks]\n"
        "said += training_text(500, seed=3)\n"
        "print(hashlib.sha256('\\n'.join(said).encode()).hexdigest())"
    )
    runs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(runs) == 1


def test_what_is_asked_does_not_depend_on_what_was_asked_before() -> None:
    task = TASKS["compare:age"]
    first = task.load()
    TASKS["odd:family"].load()
    assert task.load() == first


def test_training_text_holds_the_facts_and_only_true_ones() -> None:
    texts = set(training_text(60_000))
    home = world().relations["home"]
    told = [text for text in texts if text.startswith("The home of")]
    true = {f"The home of {person} is {town}." for person, town in home.facts.items()}
    assert set(told) <= true
    assert len(told) > 0.9 * len(true)


def test_a_question_to_work_out_is_not_taught() -> None:
    texts = set(training_text(60_000))
    for name in ("compare:age", "compare:date", "odd:family"):
        asked = {as_text(item.question, item.gold) for item in TASKS[name].load()}
        assert not asked & texts
    assert any("Who is older" in text for text in texts)
    assert any("Which is no hornback" in text for text in texts)


def test_training_text_is_seeded() -> None:
    assert list(training_text(50, seed=1)) == list(training_text(50, seed=1))
    assert list(training_text(50, seed=1)) != list(training_text(50, seed=2))
