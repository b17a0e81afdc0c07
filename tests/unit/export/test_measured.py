"""Evaluation items, as recorded in runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from command_line import write
from forgetmap.export.measured import MeasuredItem, items_of, read_measured
from forgetmap.sources import open_run


def run(path: Path, *rows: dict[str, Any]) -> Any:
    return open_run(write(path, [{"task": "t", "score": 1.0} | row for row in rows]))


def test_items_with_all_that_was_recorded(tmp_path: Path) -> None:
    asked = {"item": 7, "question": "Why?", "options": ["so", "or so"], "gold": "B"}
    item = items_of(run(tmp_path / "a.jsonl", asked, asked | {"repeat": 1}))["t", "7"]
    assert (item.question, item.options, item.gold) == ("Why?", ("so", "or so"), "or so")
    assert item.question_hash is not None
    assert item.as_asked() == "Why?\nA. so\nB. or so"
    assert item.answer() == "B. or so"


def test_a_prompt_stands_in_for_a_question(tmp_path: Path) -> None:
    chat = json.dumps(
        [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Why?"}]
    )
    rows = {"item": "1", "prompt": chat}, {"item": "2", "prompt": "[not JSON"}
    first, second = items_of(run(tmp_path / "a.jsonl", *rows)).values()
    assert (first.question, first.is_bare) == ("Be kind.\nWhy?", False)
    assert second.question == "[not JSON"


def test_every_item_once_and_with_its_text_if_any_run_has_it(tmp_path: Path) -> None:
    before = run(tmp_path / "a.jsonl", {"item": "1", "question": "Why?"}, {"item": "2"})
    after = run(tmp_path / "b.jsonl", {"item": "1"}, {"item": "2"}, {"item": "3"})
    items = read_measured([before, after])
    assert [(item.item, item.question) for item in items] == [("1", "Why?"), ("2", ""), ("3", "")]


def test_an_open_question_is_asked_and_answered_as_it_is() -> None:
    item = MeasuredItem("t", "1", "Why?", gold="So.")
    assert (item.as_asked(), item.answer(), item.has_text) == ("Why?", "So.", True)
    assert not MeasuredItem("t", "1", gold="So.").has_text
