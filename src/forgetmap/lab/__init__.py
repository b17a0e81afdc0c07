"""Ways to train compared from the same start: what each keeps, and what it learns."""

from __future__ import annotations

from forgetmap._lazy import load_on_use

__all__: list[str] = []

__getattr__ = load_on_use(__name__, __file__)
