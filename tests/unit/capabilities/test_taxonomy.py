"""Taxonomies: the shipped ones are complete, and a file that does not fit is refused by key."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from forgetmap.capabilities.taxonomy import (
    TARGET,
    Taxonomy,
    load_taxonomy,
    parse_taxonomy,
    with_targets,
)
from forgetmap.errors import FieldError, MissingInputError, UnreadableError
from forgetmap.scoring.registry import find_scorer, needs_of
from perfect_rows import ROWS
from scored_runs import TAXONOMY


@pytest.fixture(scope="module")
def captrack() -> Taxonomy:
    return load_taxonomy("captrack")


def test_captrack_is_complete(captrack: Taxonomy) -> None:
    assert [group.id for group in captrack.groups] == ["CAN", "WILL", "HOW"]
    cells = Counter(each.group for each in captrack.capabilities)
    assert cells == {"CAN": 7, "WILL": 6, "HOW": 6}
    assert len({each.code for each in captrack.capabilities}) == 17
    assert len(captrack.metrics) == 54
    assert {task.name for task in captrack.tasks} == ROWS.keys()
    assert len(ROWS) == 37
    assert len({metric.column for metric in captrack.metrics}) == 54
    assert len({each.published for each in captrack.capabilities}) == 19


def test_the_deep_dive_of_captrack_stands_apart(captrack: Taxonomy) -> None:
    """The 61 columns that CapTrack's files mark with _DD; others repeat what counts already."""
    assert len({metric.column for metric in captrack.deep_dive}) == 61
    assert all("_DD " in str(metric.column) for metric in captrack.deep_dive)
    assert not {metric.id for metric in captrack.metrics} & {m.id for m in captrack.deep_dive}
    style = {metric.field for metric in captrack.deep_dive if metric.scorer == "style"}
    assert {"hedging", "directness", "sentence_words"} < style
    assert {"hedging", "directness"} < {m.field for m in load_taxonomy("sample").deep_dive}


def test_captrack_says_what_its_metrics_need(captrack: Taxonomy) -> None:
    needs = Counter(metric.needs for metric in captrack.metrics)
    assert needs == {"rule": 41, "judge": 11, "sandbox": 2}
    assert sum(metric.judge is not None for metric in captrack.metrics) == 7
    for metric in captrack.metrics:
        assert metric.scorer is None or needs_of(find_scorer(metric.scorer)) == metric.needs


def test_bug_01_every_task_of_the_taxonomy_is_measured(captrack: Taxonomy) -> None:
    measured = {metric.task for metric in captrack.metrics if metric.scorer}
    assert measured == {task.name for task in captrack.tasks}


def test_bug_15_a_number_no_model_can_change_does_not_count(captrack: Taxonomy) -> None:
    (constant,) = (metric for metric in captrack.metrics if metric.scorer is None)
    assert (constant.column, constant.weight) == ("C3 Evidence Hit (BoolQ)", 0.0)


def test_bug_26_ids_of_metrics_and_capabilities_agree(captrack: Taxonomy) -> None:
    for metric in captrack.metrics:
        assert metric.id.startswith(f"{metric.capability}.")
    for capability in captrack.capabilities:
        assert capability.id.startswith(capability.code)
        assert capability.published.startswith(capability.code)


def test_nine_categories_of_knowledge() -> None:
    knowledge = load_taxonomy("knowledge")
    sizes = {each.id: len(knowledge.metrics_of(each.id)) for each in knowledge.capabilities}
    assert sizes == {
        "Common Sense": 2,
        "Culture": 2,
        "Logic": 20,
        "Knowledge": 4,
        "Language": 7,
        "Liberal Arts": 19,
        "Math": 9,
        "Safety": 6,
        "Science/Tech": 25,
    }


def test_a_file_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(
        'name = "mine"\ngroups = [{ id = "G" }]\n'
        'capabilities = [{ id = "a", group = "G", tasks = ["x", "y"] }]\n'
    )
    mine = load_taxonomy(path)
    assert [(m.id, m.task, m.scorer, m.field) for m in mine.metrics] == [
        ("a.x", "x", None, None),
        ("a.y", "y", None, None),
    ]
    assert [task.name for task in mine.tasks] == ["x", "y"]


@pytest.mark.parametrize(
    ("old", "new", "field", "message"),
    [
        ('capability = "maths"\n', 'capability = "x"\n', "metrics[0].capability", "no capability"),
        ('task = "sums"', 'task = "sum"', "metrics[0].task", "no task 'sum'"),
        ('scorer = "number"', 'scorer = "numbr"', "metrics[0].scorer", "no scorer 'numbr'"),
        ('field = "words"', 'field = "letters"', "metrics[3].field", "no field 'letters'"),
        ('strict = "acc_strict"', 'strict = "s"', "metrics[0].strict", "no field 's'"),
        ('id = "same.facts"', 'id = "maths.sums"', "metrics", "is defined 2 times"),
        ('id = "CAN", title', 'id = "WILL", title', "groups", "is defined 2 times"),
        ('{ name = "chat" }', '{ name = "chat" }, { name = "idle" }', "tasks", "belongs to 'idle'"),
        ('group = "WILL" },\n]', 'group = "X" },\n]', "capabilities[4].group", "no group 'X'"),
        ('agrees_with = "facts"', 'agrees_with = "f"', "metrics[2].agrees_with", "no task 'f'"),
        ('scale = "count"', 'scale = "share"', "metrics[3].scale", "not 'share'"),
        ('needs = "judge"', 'needs = "rule"', "metrics[5].needs", "needs a judge"),
        ("chance = 0.25", 'chance = "low"', "metrics[1].chance", "invalid value"),
        ('polarity = "both"', 'polarity = "sideways"', "metrics[3].polarity", "invalid value"),
        ('field = "emoji"', 'feild = "emoji"', "metrics[4].feild", "unknown field"),
        ('name = "small"', 'name = "small"\ngroup = 1', "group", "unknown key"),
        ('task = "sums"\n', "", "metrics[0]", "missing field: 'task'"),
    ],
)
def test_what_does_not_fit_is_named(old: str, new: str, field: str, message: str) -> None:
    text = TAXONOMY.decode()
    assert old in text
    with pytest.raises(FieldError, match=message) as caught:
        parse_taxonomy(text.replace(old, new, 1).encode(), origin="mine.toml")
    assert (caught.value.file, caught.value.field) == ("mine.toml", field)


def test_no_taxonomy_at_all(tmp_path: Path) -> None:
    with pytest.raises(MissingInputError, match="captrack, knowledge"):
        load_taxonomy("captrak")
    path = tmp_path / "broken.toml"
    path.write_text("groups = [")
    with pytest.raises(UnreadableError, match=r"broken\.toml"):
        load_taxonomy(path)


def test_target_tasks_stand_beside_the_others() -> None:
    small = with_targets(parse_taxonomy(TAXONOMY, origin="small"), ["law", "sums"])
    assert [each.id for each in small.capabilities_of(TARGET)] == ["target.law", "target.sums"]
    assert [metric.task for metric in small.metrics_of("target.law")] == ["law"]
    assert sum(task.name == "sums" for task in small.tasks) == 1
