"""The sandbox for untrusted Python code: isolated, limited, and unable to report a false success.

Below is what those who start a sandbox and those in it must agree on.
"""

import struct

WORK = "/tmp"  # noqa: S108  # of the sandbox, not of the system
PACKAGES = "/packages"

MESSAGE = struct.Struct(">cQ")
"""What stands before each message to a template: what it holds, and how many bytes."""
SETTINGS, PROGRAM, TESTS = b"S", b"P", b"T"

MAX_TASKS = 4
"""Processes and threads of one program; with the memory of each they bound the memory of all."""

CLOCK_PER_PROCESSOR = 3
"""Seconds on the clock for each second of work: other programs may be running."""
