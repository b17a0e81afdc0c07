"""What a drift says at the prompt of Python and in a notebook."""

from __future__ import annotations

from drifting_runs import drifted


def test_python_shows_sentences_and_a_table() -> None:
    lines = repr(drifted(2).result).splitlines()
    assert lines[0].startswith("Drift from ")
    assert "model-1: " in lines[1]
    assert any(line.split() == ["model-1", "model-2"] for line in lines)
    tools = next(line for line in lines if line.startswith("  tools Tool use"))
    assert tools.split()[3:] == ["no", "data", "no", "data"]


def test_notebooks_show_a_table() -> None:
    page = drifted(2).result._repr_html_()
    assert "<th>model-2</th>" in page
    assert "drifted most" in page
