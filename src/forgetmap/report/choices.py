"""Choices and defaults of report options; a module without imports, because `--help` loads it."""

from typing import Literal

Format = Literal["svg", "png", "pdf"]
"""Of pictures."""
MAX_ITEMS = 10_000
"""Changed items in a report, over all its comparisons."""
STUDY_ITEMS = 200
"""Changed items on the page of a pair of a study; all are in a file beside it."""
