"""What works on this machine, and what to do about what does not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forgetmap._lazy import load_on_use

if TYPE_CHECKING:
    from forgetmap.doctor.parts import Finding, all_parts, examine

__all__ = [
    "Finding",
    "all_parts",
    "examine",
]

__getattr__ = load_on_use(__name__, __file__)
