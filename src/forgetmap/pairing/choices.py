"""Choices of pairing options; a module without imports, because every `--help` loads it."""

from typing import Literal

PairBy = Literal["auto", "content", "id"]
"""What makes two items the same; `auto` is content where both sides have it, else the id."""
