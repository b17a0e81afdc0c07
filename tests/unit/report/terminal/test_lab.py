"""The lab and watched trainings on a terminal of 80 columns, and as Markdown."""

from __future__ import annotations

import pytest

import lab_results
from forgetmap.report.markdown import as_markdown
from forgetmap.report.terminal.lab import tell_lab, tell_merge_drift, tell_repair
from forgetmap.report.terminal.watch import tell_watch
from forgetmap.text import Blocks, blocks_to_text

TOLD = {
    "lab": lambda: tell_lab(lab_results.lab_result()),
    "repair": lambda: tell_repair(lab_results.repair_result()),
    "merge-drift": lambda: tell_merge_drift(lab_results.merge_drift_result()),
    "watch": lambda: tell_watch(lab_results.watch_history()),
}


def text_of(blocks: Blocks) -> str:
    return blocks_to_text(blocks, 80)


@pytest.mark.parametrize("name", TOLD)
def test_nothing_is_wider_than_80_columns_and_no_name_is_cut(name: str) -> None:
    text = text_of(TOLD[name]())
    assert max(map(len, text.splitlines())) <= 80
    assert "…" not in text
    assert "How we know" in text


def test_the_lab_says_what_came_out_and_against_what() -> None:
    text = text_of(TOLD["lab"]())
    assert "1->0 penalty with KL *" in text
    assert "near items, points" in text
    assert "far items, points" in text
    assert "of the known items, each method left out of the fit in turn" in text.replace("\n", " ")
    assert "! EWC: not every seed reached 95.0%" in text


def test_a_watched_training_names_peak_alarm_cost_and_gaps() -> None:
    text = text_of(TOLD["watch"]())
    assert text.startswith("Alarm at step 30: 24.0% of the items were forgotten at step 200.")
    assert "Most forgotten at step 30: 32.2%; 24.0% at the end." in text
    assert "10 looks took 3.0% of the time in training, with a limit of 5.0%." in text
    assert "! step 100: probe: the probe failed: out of memory" in text


def test_an_alarm_that_stands_is_told_once() -> None:
    history = lab_results.watch_history()
    (alarm, *_) = history.alarms
    later = [alarm.model_copy(update={"step": step}) for step in (150, 200)]
    text = text_of(tell_watch(history.model_copy(update={"alarms": [alarm, *later]})))
    assert text.count("Alarm at step") == 2  # the headline, and the sentence
    assert "The alarm was also raised at 2 later looks." in text


def test_a_long_training_has_a_short_table_with_both_ends() -> None:
    history = lab_results.watch_history()
    looks = [history.looks[-1].model_copy(update={"step": step}) for step in range(100)]
    text = text_of(tell_watch(history.model_copy(update={"looks": looks})))
    rows = [line.split() for line in text.splitlines() if line[:1].isdigit()]
    steps = [row[0] for row in rows if row[1].endswith("%")]
    assert steps[0] == "0"
    assert steps[-1] == "99"
    assert len(steps) < 20


def test_a_training_without_looks_says_so() -> None:
    empty = lab_results.watch_history(alarm=False).model_copy(update={"looks": [], "gaps": []})
    assert text_of(tell_watch(empty)).startswith("No look was taken.")


def test_markdown_says_what_the_terminal_says_and_escapes_names() -> None:
    lab = lab_results.lab_result(["sft", "replay"])
    named = [lab.methods[0].model_copy(update={"title": "<b>|replay|</b>"}), *lab.methods[1:]]
    text = as_markdown(lab.model_copy(update={"methods": named}))
    assert text.startswith("# 2 training methods compared: tiny")
    assert r"&lt;b>\|replay\|&lt;/b>" in text
    for result in (
        lab_results.repair_result(), lab_results.merge_drift_result(), lab_results.watch_history()
    ):  # fmt: skip
        assert "**How we know**" in as_markdown(result)
