"""What options of reports offer, and their defaults; imports nothing, since `--help` needs it."""

from typing import Literal

Format = Literal["svg", "png", "pdf"]
"""Of pictures."""
MAX_ITEMS = 10_000
"""Changed items in a report, over all its comparisons."""
STUDY_ITEMS = 200
"""Changed items on the page of a pair of a study; all are in a file beside it."""
