"""What options of pairing offer; imports nothing, since every `--help` needs it."""

from typing import Literal

PairBy = Literal["auto", "content", "id"]
"""What makes two items the same; `auto` is content where both sides have it, else the id."""
