"""Blocks in a terminal: tables fit, names stay readable."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console

from forgetmap.text import Line, Sheet, blocks_to_text, fit, print_sheet, shorten
from forgetmap.text.console import wrap_head

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


def test_colours_follow_the_columns_that_are_left() -> None:
    shaded = replace(SHEET, shades={(1, 1): -0.5, (1, 2): 1.0})
    assert fit(shaded, 100).shades == shaded.shades
    assert fit(shaded, 29).shades == {(1, 1): 1.0}
    stream = StringIO()
    print_sheet(Console(file=stream, color_system="truecolor", force_terminal=True), shaded)
    assert "48;2;235;160;160" in stream.getvalue()
    assert "48;2;85;85;235" in stream.getvalue()


MODELS = tuple(f"qwen-3-80b-ioob-{stage}-l-final" for stage in ("dpo", "ift", "iift-dpo", "rl"))


@pytest.mark.parametrize("width", [40, 60, 80, 100, 200])
@pytest.mark.parametrize("many", [1, 3, 4, 12])
def test_heads_that_must_stay_whole_are_wrapped_or_stand_further_down(
    width: int, many: int
) -> None:
    models = tuple(f"{MODELS[place % 4]}{place}" for place in range(many))
    rows = [("a capability with a long name", *(f"{place}.00" for place in range(many)))]
    text = blocks_to_text([Sheet(("", *models), rows, whole_heads=True)], width=width)
    assert max(map(len, text.splitlines())) <= width
    assert not any("…" in line for line in text.splitlines() if not line.startswith("a"))
    for place in range(many):
        assert f"{place}.00" in text


def test_a_wrapped_head_is_the_head() -> None:
    for longest in (10, 14, 40):
        lines = wrap_head(MODELS[2], longest).split("\n")
        assert "".join(lines) == MODELS[2]
        assert max(map(len, lines)) <= longest
    assert wrap_head("ift → ift+dpo", 40) == "ift → ift+dpo"
    assert wrap_head("x" * 25, 10).replace("\n", "") == "x" * 25
