"""Blocks as HTML and Markdown: names and texts stay text."""

from __future__ import annotations

import re

from forgetmap.text import (
    Blocks,
    Line,
    Sheet,
    blocks_to_html,
    blocks_to_markdown,
    escape_markdown,
    markdown_table,
    quote_markdown,
)

BLOCKS: Blocks = [
    Line("Lost <b>5%</b>", "strong"),
    Line(),
    Sheet(("task", "net\nloss"), [("a|b", "5%")]),
    Line("of all items", "faint", "forgotten "),
    Line("of @all items", "faint", "gained "),
    Line("few items", "warning", "!"),
    Line("- x is better"),
]


def test_html_is_escaped() -> None:
    html = blocks_to_html(BLOCKS)
    assert "<div><b>Lost &lt;b&gt;5%&lt;/b&gt;</b></div><br><table>" in html
    assert '<td style="text-align: left">a|b</td><td>5%</td>' in html
    assert "<div><b>forgotten</b>: of all items</div>" in html


def test_markdown_has_paragraphs_tables_and_lists() -> None:
    first, table, items, last = blocks_to_markdown(BLOCKS)
    assert first == "**Lost &lt;b>5%&lt;/b>**"
    assert table == "| task | net loss |\n| --- | ---: |\n| a\\|b | 5% |"
    assert items.splitlines() == [
        "- **forgotten**: of all items",
        "- **gained**: of @\u200ball items",
        "- ⚠ few items",
    ]
    assert last == "\\- x is better"


def test_names_make_no_links_mentions_or_marks() -> None:
    assert escape_markdown("a_b*c [d](e)") == r"a\_b\*c \[d\](e)"
    assert escape_markdown("https://x www.x.y #1") == "https\\://x www\\.x.y #\u200b1"
    assert escape_markdown("see gh-7") == "see gh-\u200b7"


def test_texts_are_code() -> None:
    assert quote_markdown("a `b`\nc|d") == r"``a `b` c\|d``"
    assert quote_markdown("x" * 1_000_000, most=10) == f"`{'x' * 9}…`"
    assert quote_markdown(" \n ") == ""
    assert quote_markdown("`a`") == "`` `a` ``"


def test_a_table_of_escaped_cells() -> None:
    assert markdown_table(["a", "b"], [["1", "2"]]) == "| a | b |\n| --- | --- |\n| 1 | 2 |"


def test_a_badge_stands_before_its_text() -> None:
    badge: Blocks = [Line("a -> <b>", "strong", "LOST", tone="bad")]
    assert re.search(r'<b style="[^"]+">LOST</b> <b>a -&gt; &lt;b&gt;</b>', blocks_to_html(badge))
    assert blocks_to_markdown(badge) == ["**LOST** a -> &lt;b>"]


def test_commands_stay_commands() -> None:
    line = Line("type `a | b` & <c>", "commands")
    assert blocks_to_html([line]) == "<div>type <code>a | b</code> &amp; &lt;c&gt;</div>"
    assert blocks_to_markdown([line]) == ["type `a | b` &amp; &lt;c>"]
