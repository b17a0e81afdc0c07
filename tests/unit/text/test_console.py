"""Blocks in a terminal: tables fit, names stay readable."""

from __future__ import annotations

import pytest

from forgetmap.text import Line, Sheet, blocks_to_text, fit, shorten

SHEET = Sheet(
    ("task", "items", "forgotten"),
    [("all items", "1,000", "5.0%"), ("a_task_with_a_rather_long_name", "12", "50.0%")],
    strong=1,
    spare=("items",),
)


def test_a_wide_terminal_has_everything() -> None:
    sheet = fit(SHEET, 100)
    assert (sheet.heads, sheet.rows, sheet.strong) == (SHEET.heads, SHEET.rows, 1)


def test_columns_go_before_names() -> None:
    sheet = fit(SHEET, 29)
    assert sheet.heads == ("task", "forgotten")
    assert sheet.rows[1] == ("a_task_wi…ong_name", "50.0%")


@pytest.mark.parametrize(
    ("name", "width", "short"),
    [
        ("short", 10, "short"),
        ("mmlu_abstract_algebra", 11, "mmlu_…gebra"),
        ("文文文文文", 6, "文…文"),
    ],
)
def test_both_ends_of_a_name_stay(name: str, width: int, short: str) -> None:
    assert shorten(name, width).replace(" ", "") == short


def test_lines_and_tables_as_text() -> None:
    text = blocks_to_text([Line("Title", "strong"), Line("x\x1b[2J", lead="!"), SHEET], width=60)
    lines = text.splitlines()
    assert lines[:2] == ["Title", "! x\ufffd[2J"]
    assert lines[2].split() == ["task", "items", "forgotten"]
    assert all(len(line) <= 60 for line in lines)
