"""Named tables of tasks: how many options, and which category. Data, not code.

`as-published` is what the released analysis of Harmon et al. (2026) used, hidden bucket included;
`corrected` has the options that the items really have, and the categories the paper names. A
column k or category in the data always wins over a table.
"""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass
from importlib.resources import files

from forgetmap.errors import UsageError

NAMES = ("as-published", "corrected")
IGNORED = "ignored"
MISSING = "Missing"


@dataclass(frozen=True, slots=True)
class TaskEntry:
    """What a table says of a task; k is `inf` for open-ended, None where it varies by item."""

    k: float | None
    category: str


@dataclass(frozen=True, slots=True)
class TaskTable:
    """A named table of tasks."""

    name: str
    entries: dict[str, TaskEntry]

    def find(self, task: str) -> TaskEntry | None:
        """The entry of a task, whatever the harness wraps around its name."""
        return self.entries.get(plain_name(task))


def load_table(name: str) -> TaskTable:
    """Read one of the tables that are shipped."""
    if name not in NAMES:
        raise UsageError(
            f"there is no task table {name!r}", hint=f"choose from {', '.join(NAMES)}."
        )
    text = (
        files("forgetmap.transitions").joinpath("data", f"{name}.csv").read_text(encoding="utf-8")
    )
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    entries = {
        row["task"]: TaskEntry(_options(row["k"]), row["category"]) for row in csv.DictReader(lines)
    }
    return TaskTable(name, entries)


def plain_name(task: str) -> str:
    """`community|mmlu:sociology|0` -> `mmlu:sociology`."""
    parts = task.split("|")
    return parts[1] if len(parts) == len(("suite", "task", "shots")) else task


def _options(text: str) -> float | None:
    if text == "varies":
        return None
    return math.inf if text == "open" else float(text)
