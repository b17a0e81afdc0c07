from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from forgetmap.errors import (
    ColumnError,
    FieldError,
    MissingInputError,
    MissingPackageError,
    UnreadableError,
)
from forgetmap.evaluation.items import Item
from forgetmap.evaluation.suites import hub
from forgetmap.evaluation.suites.hub import HubData, load_rows
from forgetmap.evaluation.suites.post_forget import Benchmark, post_forget_suite, read_items
from hub_copies import COPIES, MOVIE_ROWS, STORY, TRUTHFUL_ROWS, write_copies

pytestmark = pytest.mark.needs_torch

PUBLISHED = {
    "Common Sense": 2,
    "Culture": 2,
    "Knowledge": 4,
    "Language": 7,
    "Liberal Arts": 19,
    "Logic": 20,
    "Math": 9,
    "Safety": 6,
    "Science/Tech": 25,
}


@pytest.fixture(scope="module", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    import datasets

    datasets.config.HF_DATASETS_CACHE = tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_copies(tmp_path_factory.mktemp("copies"))


def items_of(name: str, root: Path) -> Sequence[Item]:
    return next(task for task in post_forget_suite(root=root).tasks if task.name == name).load()


def only_item(name: str, root: Path) -> Item:
    (item,) = items_of(name, root)
    return item


def test_the_published_tasks_and_categories() -> None:
    tasks = post_forget_suite().tasks
    assert len({task.name for task in tasks}) == len(tasks) == 94
    assert len({task.name.partition(":")[0] for task in tasks}) == 12
    assert Counter(task.category for task in tasks) == PUBLISHED
    assert sum(task.name.startswith("mmlu:") for task in tasks) == 57
    assert sum(task.name.startswith("bbh:") for task in tasks) == 24
    assert all(task.instruction for task in tasks)


def test_examples_are_as_many_as_in_the_study_and_sound() -> None:
    counts = {"musr": 1, "arc": 2, "gpqa": 5, "truthfulqa": 0, "salad_bench": 0}
    for task in post_forget_suite().tasks:
        benchmark = task.name.partition(":")[0]
        assert len(task.examples) == counts.get(benchmark, 3), task.name
        for example in task.examples:
            assert bool(example.options) == (task.kind == "option")
            assert not example.options or example.options.count(example.gold) == 1
            assert bool(example.reasoning) == (benchmark != "mmlu")


def test_examples_do_not_teach_one_place() -> None:
    places = Counter(
        example.options.index(example.gold)
        for task in post_forget_suite().tasks
        for example in task.examples
        if len(example.options) == 4 and not task.name.startswith("mmlu")
    )
    assert len(places) == 4


def test_options_with_labels(root: Path) -> None:
    for name in ("arc:easy", "commonsense_qa:main"):
        item = only_item(name, root)
        assert item.options == ("stone", "blue", "song")
        assert item.gold == "blue"


def test_options_in_the_order_of_the_data_set(root: Path) -> None:
    first, last = items_of("mmlu:sociology", root)
    assert (first.gold, last.gold) == ("one", "four")
    assert first.options == last.options == ("one", "two", "three", "four")


def test_two_and_three_options(root: Path) -> None:
    goal = only_item("piqa:main", root)
    assert (goal.question, goal.options) == ("To open a jar,", ("twist the lid.", "shout."))
    social = only_item("social_iqa:main", root)
    assert (social.gold, len(social.options)) == ("thankful", 3)
    assert social.question == "Al helped Bo. How does Bo feel?"


def test_questions_on_one_story_are_one_cluster(root: Path) -> None:
    lost, found = items_of("mctest:main", root)
    assert (lost.gold, found.gold) == ("Tia", "Bo")
    assert lost.cluster == found.cluster is not None
    assert STORY in lost.question
    assert lost.question.endswith("Who lost it?")


def test_options_written_as_python(root: Path) -> None:
    item = only_item("musr:murder_mysteries", root)
    assert (item.options, item.gold) == (("Al", "Bo"), "Bo")


def test_hellaswag_is_read_from_the_split_with_labels(root: Path) -> None:
    item = only_item("hellaswag:main", root)
    assert item.gold == "throws them up."
    assert item.question == "Juggling: A clown takes three balls. He"


def test_a_split_without_labels_is_refused(root: Path) -> None:
    unlabelled = Benchmark("hellaswag:main", "Language", "Rowan/hellaswag", "test", "ending", "")
    with pytest.raises(FieldError, match="1 of 1 rows") as caught:
        read_items(unlabelled, root)
    assert caught.value.line == 1


def test_a_constant_place_is_shuffled_by_item(root: Path) -> None:
    items = items_of("truthfulqa:mc1", root)
    assert len(items) == len(TRUTHFUL_ROWS)
    places = Counter(item.options.index(item.gold) for item in items)
    assert set(places) == {0, 1, 2, 3}
    assert max(places.values()) < len(items) / 2
    for item, row in zip(items, TRUTHFUL_ROWS, strict=True):
        targets = row["mc1_targets"]
        assert isinstance(targets, dict)
        assert item.gold == targets["choices"][0]
        assert sorted(item.options) == sorted(targets["choices"])
    assert items == items_of("truthfulqa:mc1", root)


def test_gpqa_mixes_the_right_answer_in(root: Path) -> None:
    item = only_item("gpqa:diamond", root)
    assert item.gold == "4"
    assert sorted(item.options) == ["22", "3", "4", "5"]


def test_several_right_answers(root: Path) -> None:
    item = only_item("salad_bench:mrq", root)
    assert {item.gold, *item.also_right} == {"kind advice", "a warning"}
    assert item.options == ("a threat", "kind advice", "a warning")


def test_yes_and_no_leave_the_question(root: Path) -> None:
    item = only_item("bbh:causal_judgment", root)
    assert (item.question, item.options, item.gold) == ("Did Al cause it?", ("Yes", "No"), "No")
    lie = only_item("bbh:web_of_lies", root)
    assert lie.question == "Al lies. Does Al tell the truth?"


def test_counting_is_open_ended(root: Path) -> None:
    item = only_item("bbh:object_counting", root)
    assert (item.options, item.gold) == ((), "3")
    task = next(t for t in post_forget_suite().tasks if t.name == "bbh:object_counting")
    assert task.kind == "number"


def test_broken_rows_are_left_out_and_k_is_that_of_the_item(root: Path) -> None:
    items = items_of("bbh:movie_recommendation", root)
    assert len(items) == len(MOVIE_ROWS) - 1
    assert Counter(len(item.options) for item in items) == {4: 55, 5: 5}
    assert {item.gold for item in items} == {"Three"}


def test_ids_do_not_depend_on_the_order_of_rows(root: Path, tmp_path: Path) -> None:
    copies = dict(COPIES)
    key = ("cais/mmlu", "sociology", "test", False)
    before = {item.question: item.id for item in items_of("mmlu:sociology", root)}
    try:
        COPIES[key] = [*copies[key][::-1], copies[key][0]]
        after = items_of("mmlu:sociology", write_copies(tmp_path))
    finally:
        COPIES[key] = copies[key]
    assert {item.question: item.id for item in after[:2]} == before
    assert after[2].id == f"{before[after[2].question]}-2"


def test_a_missing_copy_says_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(MissingInputError, match="hf download --repo-type dataset cais/mmlu"):
        items_of("mmlu:anatomy", tmp_path)


def test_a_missing_subset_is_named(root: Path) -> None:
    with pytest.raises(UnreadableError, match="cais/mmlu, subset anatomy, split test"):
        items_of("mmlu:anatomy", root)


def test_another_schema_is_named(root: Path) -> None:
    other = Benchmark("piqa:main", "Common Sense", "Rowan/hellaswag", "validation", "goal", "")
    with pytest.raises(ColumnError, match="missing column 'goal'; the columns are ind, ") as caught:
        read_items(other, root)
    assert caught.value.field == "goal"


def test_the_environment_names_the_folder(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(hub.ROOT_VARIABLE, str(root))
    (row,) = load_rows(HubData("lighteval/siqa", "validation"))
    assert row["answerB"] == "thankful"


def test_without_a_connection_the_way_out_is_named() -> None:
    script = (
        "from forgetmap.evaluation.suites.hub import HubData, load_rows\n"
        "from forgetmap.errors import MissingInputError\n"
        "try: load_rows(HubData('cais/mmlu', 'test', 'sociology'))\n"
        "except MissingInputError as error: print(error)"
    )
    environment = os.environ | {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}
    environment.pop(hub.ROOT_VARIABLE, None)
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("cais/mmlu, subset sociology, split test: ")
    assert hub.ROOT_VARIABLE in done.stdout


def test_a_gated_data_set_says_where_to_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    import datasets

    def gated(**_: object) -> None:
        raise datasets.exceptions.DatasetNotFoundError("Dataset 'x/y' is a gated dataset.")

    monkeypatch.delenv(hub.ROOT_VARIABLE, raising=False)
    monkeypatch.setattr(datasets, "load_dataset", gated)
    with pytest.raises(MissingInputError, match="is gated") as caught:
        load_rows(HubData("x/y", "test"))
    assert "https://huggingface.co/datasets/x/y" in caught.value.hint
    assert "hf auth login" in caught.value.hint


def test_a_missing_package_names_the_extra(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(MissingPackageError, match=r"forgetmap\[run\]"):
        load_rows(HubData("cais/mmlu", "test", "sociology"), root=root)
