"""Dotted paths: names, indexes, names with dots, every element, JSON in texts."""

from __future__ import annotations

from typing import Any

import pytest

from forgetmap.sources.cells import NOTHING, scalar_paths, split_every, value_at

ROW = {
    "scores": {"pass@1": 0.5, "none": None},
    "trials": [{"reward": 1}, {"reward": 0}],
    "gpt-4.1": {"score": 1},
    "a.b": 7,
    "a": {"b": {"c": 8}},
    "text": '{"acc": 1}',
}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("scores.pass@1", 0.5),
        ("scores.none", None),
        ("trials.0.reward", 1),
        ("trials.-1.reward", 0),
        ("gpt-4.1.score", 1),
        ("a.b", 7),
        ("a.b.c", 8),
        ("text.acc", 1),
        ("scores.pass@2", NOTHING),
        ("trials.2.reward", NOTHING),
        ("trials.x", NOTHING),
        ("scores.pass@1.deeper", NOTHING),
        ("", ROW),
    ],
)
def test_value_at_a_path(path: str, value: Any) -> None:
    assert value_at(ROW, path) is value or value_at(ROW, path) == value


def test_text_that_is_no_json_is_not_looked_into() -> None:
    assert value_at({"a": "{broken"}, "a.b") is NOTHING


def test_every_element() -> None:
    assert split_every("trials.*.reward") == ("trials", "reward")
    assert split_every("graded.*") == ("graded", "")
    assert split_every("a.b") is None


def test_scalars_have_paths_and_lists_are_one() -> None:
    assert list(scalar_paths({"a": {"b": 1}, "c": [1, 2]})) == [("a.b", 1), ("c", [1, 2])]
