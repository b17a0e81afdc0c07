"""The suite `basics`: generated offline tasks that need no knowledge of the world.

To add a task: write a generator of one question and add it to `KINDS` of its module.
"""

from __future__ import annotations

from pathlib import Path

from forgetmap.evaluation.items import Suite
from forgetmap.evaluation.suites.basics import formats, logic, numbers, times, words
from forgetmap.evaluation.suites.basics.drafts import as_task

KINDS = (*numbers.KINDS, *times.KINDS, *words.KINDS, *logic.KINDS, *formats.KINDS)


def basics_suite(_root: Path | None = None) -> Suite:
    """Return the suite: arithmetic, numbers, dates, lists, words, logic, formats and tables."""
    return Suite("basics", tuple(as_task(kind) for kind in KINDS))
