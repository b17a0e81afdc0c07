"""What those who start a sandbox and those in it agree on."""

from __future__ import annotations

WORK = "/tmp"  # noqa: S108  # of the sandbox, not of the system
PACKAGES = "/packages"

MAX_TASKS = 4
"""Processes and threads of one program; with the memory of each they bound the memory of all."""

CLOCK_PER_PROCESSOR = 3
"""Seconds on the clock for each second of work: other programs may be running."""
