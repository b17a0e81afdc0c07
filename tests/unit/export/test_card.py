"""The section of a model card, and the text around it."""

from __future__ import annotations

from pathlib import Path

import pytest

import forgetmap as fm
from command_line import four_items, results, write
from forgetmap import __version__
from forgetmap.comparison import Comparison
from forgetmap.errors import OutputError, UnreadableError
from forgetmap.export import write_card
from forgetmap.export.card import BEGIN, END

CARD = "---\nlicense: mit\n---\n\n# My model\n\nIt is <b>good</b>.\r\n"


def lossy(folder: Path) -> Comparison:
    """30 tasks of 20 items; the later, the more is lost."""
    rows = [row for n in range(30) for row in results([1] * 19 + [0], f"task|{n:02d}")]
    scores = [float(place // 20 // 2 <= place % 20 < 19) for place in range(len(rows))]
    changed = [row | {"score": score} for row, score in zip(rows, scores, strict=True)]
    return fm.compare(write(folder / "base.jsonl", rows), write(folder / "tuned.jsonl", changed))


def test_a_card_says_verdict_number_where_and_how(tmp_path: Path) -> None:
    out = tmp_path / "README.md"
    summary = write_card(lossy(tmp_path), out, command="forgetmap compare base tuned", rows=5)
    text = out.read_text(encoding="utf-8")
    assert (summary.action, summary.verdict) == ("made", "lost")
    assert text.startswith(f"{BEGIN}\n")
    assert text.endswith(f"{END}\n")
    for part in ("## Forgetting", "(95%; margin 2%)", "**based on**", "### Limits", __version__):
        assert part in text
    assert "210 forgotten, 0 gained of 600 items" in text
    assert "`forgetmap compare base tuned`" in text
    rows = [line for line in text.splitlines() if line.startswith(r"| task\|")]
    assert len(rows) == 5
    assert rows[0].startswith(r"| task\|2")
    assert str(tmp_path) not in text


def test_writing_again_replaces_the_section_and_nothing_else(tmp_path: Path) -> None:
    out = tmp_path / "README.md"
    out.write_bytes(CARD.encode())
    comparison = lossy(tmp_path)
    assert write_card(comparison, out).action == "added"
    first = out.read_bytes()
    assert first.startswith(CARD.rstrip().encode())
    out.write_bytes(first + b"\n## Afterwards\r\n\\1 stays\n")
    assert write_card(comparison, out, rows=3).action == "replaced"
    again = out.read_bytes()
    assert again.startswith(CARD.rstrip().encode())
    assert again.endswith(b"\n## Afterwards\r\n\\1 stays\n")
    assert again.count(BEGIN.encode()) == again.count(END.encode()) == 1
    write_card(comparison, out, rows=3)
    assert out.read_bytes() == again


def test_a_verdict_that_is_open_is_a_limit(tmp_path: Path) -> None:
    write_card(fm.compare(*four_items(tmp_path)), tmp_path / "card.md")
    text = (tmp_path / "card.md").read_text(encoding="utf-8")
    assert "These data do not show whether anything was lost." in text


def test_what_cannot_be_a_card(tmp_path: Path) -> None:
    comparison = fm.compare(*four_items(tmp_path))
    (tmp_path / "card.md").write_bytes(b"\xff\xfe")
    with pytest.raises(UnreadableError, match="not UTF-8"):
        write_card(comparison, tmp_path / "card.md")
    with pytest.raises(OutputError, match="is a folder"):
        write_card(comparison, tmp_path)


def test_names_cannot_become_markup(tmp_path: Path) -> None:
    rows = [*results([1] * 40, "<b>x</b>|[y](http://z)"), *results([1] * 40, "-->")]
    changed = [row | {"score": 0.0} for row in rows]
    pair = write(tmp_path / "a.jsonl", rows), write(tmp_path / "b.jsonl", changed)
    write_card(fm.compare(*pair), tmp_path / "card.md")
    text = (tmp_path / "card.md").read_text(encoding="utf-8")
    assert "<b>" not in text
    assert "[y](" not in text
