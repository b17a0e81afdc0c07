"""Prompts of the sample suite of capabilities."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

from forgetmap.capabilities.sample import capabilities_suite, references
from forgetmap.capabilities.taxonomy import load_taxonomy
from forgetmap.scoring.registry import SCORERS
from forgetmap.scoring.scorer import ScorerInput
from forgetmap.scoring.scorers.style import style

PROJECT = Path(__file__).parents[3]
SAMPLE, CAPTRACK = load_taxonomy("sample"), load_taxonomy("captrack")


def test_every_scorer_has_its_items() -> None:
    items: Counter[str] = Counter()
    for metric in SAMPLE.metrics:
        for name in {metric.scorer, metric.judge} - {None}:
            items[str(name)] = max(items[str(name)], len(references()[metric.task]))
    assert items.keys() == SCORERS.built_in.keys()
    assert all(6 <= count <= 10 for count in items.values())


def test_the_sample_has_the_capabilities_of_captrack() -> None:
    ours, theirs = (
        [(each.id, each.group, each.code) for each in taxonomy.capabilities]
        for taxonomy in (SAMPLE, CAPTRACK)
    )
    assert ours == theirs
    assert {each.name: each.items for each in SAMPLE.tasks} == {
        task: len(all_) for task, all_ in references().items()
    }


def test_style_is_of_every_kind() -> None:
    scored = [style.score(ScorerInput(each.response)) for each in references()["style"]]
    found = [{name: verdict.score for name, verdict in each.items()} for each in scored]
    for feature in ("bullets", "tables", "emoji", "headings", "code", "hedging"):
        assert 0 < sum(bool(each[feature]) for each in found) < len(found), feature


def test_paraphrases_ask_the_same_in_other_words() -> None:
    for task in ("sums", "choices"):
        ours, theirs = references()[task], references()[f"{task}.reworded"]
        for one, other in zip(ours, theirs, strict=True):
            assert (one.item.id, one.item.gold) == (other.item.id, other.item.gold)
            assert one.item.options == other.item.options
            assert one.item.question != other.item.question


def test_long_texts_hide_what_is_asked_for() -> None:
    references.cache_clear()
    before = list(references()["long_texts"])
    references.cache_clear()
    assert before == list(references()["long_texts"])
    for each in before:
        assert 3000 < len(each.item.request) < 6000
        codes = re.findall(r"locker is (\d{7})\.", each.item.request)
        assert len(set(codes)) == 4
        assert set(each.item.material["gold"]) < set(codes)


def test_requests_to_be_refused_are_invented() -> None:
    for each in references()["stand_ins"]:
        assert "invented request" in each.item.request


def test_items_are_read_as_they_are_written() -> None:
    """Nothing is asked twice, and every item of a task has an id of its own."""
    for task in capabilities_suite().tasks:
        items = task.load()
        assert len({item.id for item in items}) == len(items)
        assert len({item.request or item.question for item in items}) == len(items)


def test_the_data_are_plain_lines() -> None:
    path = PROJECT / "src/forgetmap/capabilities/data/sample.jsonl"
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        assert {"task", "id", "question", "reference"} <= row.keys()
