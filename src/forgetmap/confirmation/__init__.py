"""Flips asked again: chosen, written for a harness, or asked at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forgetmap._lazy import load_on_use

if TYPE_CHECKING:
    from forgetmap.confirmation.api import Confirmation, confirm
    from forgetmap.confirmation.choices import ItemFormat
    from forgetmap.confirmation.flips import Flip, FlipPlan, choose_flips

__all__ = [
    "Confirmation",
    "Flip",
    "FlipPlan",
    "ItemFormat",
    "choose_flips",
    "confirm",
]

__getattr__ = load_on_use(__name__, __file__)
