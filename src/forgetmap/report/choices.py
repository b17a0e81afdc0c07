"""What options of reports offer, and their defaults; imports nothing, since `--help` needs it."""

from typing import Literal

Format = Literal["svg", "png", "pdf"]
"""Of pictures."""
MAX_ITEMS = 10_000
"""Changed items in a report, over all its comparisons."""
