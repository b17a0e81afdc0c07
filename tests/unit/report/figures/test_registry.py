"""The registry of figures for pages."""

from __future__ import annotations

import json

import pytest
import vl_convert

import lab_results
from forgetmap.report.figures.registry import figures_json
from forgetmap.report.html import shell


def test_figures_are_compiled_without_the_scripts_of_the_page(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """These take seconds, and a server compiles figures for every comparison."""

    def refuse() -> str:
        raise AssertionError("no page is made here")

    monkeypatch.setattr(vl_convert, "javascript_bundle", refuse)
    shell.vega_bundle.cache_clear()
    figures = json.loads(figures_json(lab_results.watch_history()))
    assert {figure["spec"]["$schema"].rpartition("/")[0] for figure in figures} == {
        "https://vega.github.io/schema/vega"
    }
