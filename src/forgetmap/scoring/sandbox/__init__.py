"""The sandbox for untrusted Python code: isolated, limited, and unable to report a false success.

This module has the constants shared by the processes outside and inside of the sandbox.
"""

import struct

WORK = "/tmp"  # noqa: S108  # of the sandbox, not of the system
PACKAGES = "/packages"

MESSAGE = struct.Struct(">cQ")
"""Header of a message to a template: kind and number of bytes."""
SETTINGS, PROGRAM, TESTS = b"S", b"P", b"T"

MAX_TASKS = 4
"""Processes and threads of a program; with the memory limit of each, they limit the total."""

CLOCK_PER_PROCESSOR = 3
"""Seconds of wall time for each second of processor time, since other programs may be running."""
