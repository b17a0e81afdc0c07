"""Exports for the next step: replay sets, items to run again, model card sections, data sets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forgetmap._lazy import load_on_use

if TYPE_CHECKING:
    from forgetmap.export.card import CardSummary, card_section, write_card
    from forgetmap.export.choices import (
        CARD_ROWS,
        MIN_SIMILARITY,
        PER_ITEM,
        RerunHarness,
        RerunKind,
        RowFormat,
    )
    from forgetmap.export.duplicates import Duplicate, DuplicateFinder, PlainText
    from forgetmap.export.hub import HubSummary, write_hub
    from forgetmap.export.measured import MeasuredItem
    from forgetmap.export.replay import ReplaySummary, write_replay
    from forgetmap.export.rerun import RerunSummary, write_rerun

__all__ = [
    "CARD_ROWS",
    "MIN_SIMILARITY",
    "PER_ITEM",
    "CardSummary",
    "Duplicate",
    "DuplicateFinder",
    "HubSummary",
    "MeasuredItem",
    "PlainText",
    "ReplaySummary",
    "RerunHarness",
    "RerunKind",
    "RerunSummary",
    "RowFormat",
    "card_section",
    "write_card",
    "write_hub",
    "write_replay",
    "write_rerun",
]

__getattr__ = load_on_use(__name__, __file__)
