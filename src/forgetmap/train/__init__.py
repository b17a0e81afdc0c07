"""Training without forgetting: watch it in any trainer, and mitigations for trainers."""

from __future__ import annotations

from forgetmap._lazy import load_on_use

__all__: list[str] = []

__getattr__ = load_on_use(__name__, __file__)
