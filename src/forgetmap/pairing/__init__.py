"""Pairs of results before and after, joined by the key of the item and never by position."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forgetmap._lazy import load_on_use

if TYPE_CHECKING:
    from forgetmap.pairing.alignment import align
    from forgetmap.pairing.checks import check_directions, compare_conditions
    from forgetmap.pairing.choices import PairBy
    from forgetmap.pairing.matching import (
        Side,
        match,
        match_twins,
        prepare,
        prepare_all,
        with_results,
    )
    from forgetmap.pairing.metric import Measure
    from forgetmap.pairing.pair import (
        RIGHT,
        SIDES,
        UNSCORED,
        WRONG,
        Pairs,
        both_sides,
        is_in,
        is_transition,
        scored_pair,
        side_value,
    )
    from forgetmap.pairing.totals import SideFacts, SideTotals

__all__ = [
    "RIGHT",
    "SIDES",
    "UNSCORED",
    "WRONG",
    "Measure",
    "PairBy",
    "Pairs",
    "Side",
    "SideFacts",
    "SideTotals",
    "align",
    "both_sides",
    "check_directions",
    "compare_conditions",
    "is_in",
    "is_transition",
    "match",
    "match_twins",
    "prepare",
    "prepare_all",
    "scored_pair",
    "side_value",
    "with_results",
]

__getattr__ = load_on_use(__name__, __file__)
