"""Choices of pairing options; a module without imports, because every `--help` loads it."""

from typing import Literal

PairBy = Literal["auto", "content", "id"]
"""What identifies an item; `auto` is the content if both sides have it, else the id."""
