"""Exports for the next step: replay sets, model card sections, data sets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forgetmap._lazy import load_on_use

if TYPE_CHECKING:
    from forgetmap.export.card import CardSummary, card_section, write_card
    from forgetmap.export.choices import (
        CARD_ROWS,
        MIN_SIMILARITY,
        PER_ITEM,
        RowFormat,
    )
    from forgetmap.export.duplicates import Duplicate, DuplicateFinder, PlainText
    from forgetmap.export.hub import HubSummary, write_hub
    from forgetmap.export.measured import MeasuredItem
    from forgetmap.export.replay import ReplaySummary, write_replay

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
    "RowFormat",
    "card_section",
    "write_card",
    "write_hub",
    "write_replay",
]

__getattr__ = load_on_use(__name__, __file__)
