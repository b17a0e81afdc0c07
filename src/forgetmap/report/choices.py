"""Choices and defaults of report options; a module without imports, because `--help` loads it."""

from typing import Literal

Format = Literal["svg", "png", "pdf"]
"""Formats of pictures."""
MAX_ITEMS = 10_000
"""Maximum number of changed items in a report, over all its comparisons."""
STUDY_ITEMS = 200
"""Maximum number of changed items on the page of a pair of a study; a file has all of them."""
