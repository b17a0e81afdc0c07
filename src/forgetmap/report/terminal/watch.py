"""A watched training as lines and tables."""

from __future__ import annotations

from forgetmap.report.payloads.watch import (
    MAX_ROWS,
    WATCH_LEGEND,
    watch_category_sheet,
    watch_facts,
    watch_gaps,
    watch_headline,
    watch_sentences,
    watch_sheet,
)
from forgetmap.text import Blocks, Line
from forgetmap.train import WatchHistory


def tell_watch(history: WatchHistory) -> Blocks:
    """Describe a training by look and by category, with missing results."""
    blocks: Blocks = [
        Line(watch_headline(history), "strong"),
        *(Line(sentence) for sentence in watch_sentences(history)),
    ]
    if history.curve:
        blocks += [Line(), watch_sheet(history, MAX_ROWS)]
        blocks += [Line(text, "faint", f"{name:<11}") for name, text in WATCH_LEGEND.items()]
        if len(history.curve[-1].categories) > 1:
            blocks += [Line(), watch_category_sheet(history)]
    blocks += [Line(), Line("How we know", "strong")]
    blocks += [Line(text, "plain", f"{name:<5}") for name, text in watch_facts(history).items()]
    return [*blocks, *(Line(text, "warning", "!") for text in watch_gaps(history))]
