"""Pages of the lab and the story: complete without scripts, safe, in one file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import lab_results
from drawings import PAIR, report
from forgetmap.report.html.report import report_html
from forgetmap.report.html.story import WatchedTraining, write_story
from forgetmap.report.payloads import LabPayload

RESULTS: dict[str, Callable[[], LabPayload]] = {
    "lab": lambda: lab_results.lab_result(["sft", "replay", "lora"]),
    "repair": lab_results.repair_result,
    "merge-drift": lab_results.merge_drift_result,
    "watch": lab_results.watch_history,
}


@pytest.mark.parametrize("name", RESULTS)
def test_a_page_has_headline_number_tables_and_how_we_know(name: str) -> None:
    page = report_html(RESULTS[name]())
    assert page.count("<h1>") == 1
    assert '<b class="figure">' in page
    assert '<table class="sheet">' in page
    assert "<h2>How we know</h2>" in page
    assert "default-src 'none'" in page


def test_names_of_others_are_text() -> None:
    lab = lab_results.lab_result(["sft", "replay"])
    evil = "<script>alert(1)</script>"
    named = [lab.methods[0].model_copy(update={"title": evil}), *lab.methods[1:]]
    page = report_html(lab.model_copy(update={"methods": named, "headline": evil}))
    assert evil not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page


def test_a_training_without_looks_has_a_page() -> None:
    empty = lab_results.watch_history().model_copy(update={"looks": [], "alarms": []})
    assert "No look was taken." in report_html(empty)


def test_a_story_holds_both_trainings_and_the_merges(tmp_path: Path) -> None:
    better = {name: {**paths, "11": paths["11"] + 5} for name, paths in PAIR.items()}
    told = report(PAIR, question="Where is the <b>fox</b>?", gold="den", answer="hill")
    plain = WatchedTraining("Plain", lab_results.watch_history(), told, 0.95)
    protected = WatchedTraining(
        "protected", lab_results.watch_history(most=0.1, alarm=False), report(better)
    )
    sweep = lab_results.sweep_result()
    page = write_story(plain, protected, sweep, tmp_path / "story.html").read_text("utf-8")
    assert "Plain forgot 14.0% of the items; protected, 13.2%." in page
    for name in ("watched", "forgotten", "protected", "merges", "how"):
        assert f'id="{name}"' in page
        assert f'href="#{name}"' in page
    assert "0.94\u00d7" in page
    assert "new task" in page
    assert "12 of 35 items that were forgotten" in page
    assert "Where is the &lt;b&gt;fox&lt;/b&gt;?" in page
