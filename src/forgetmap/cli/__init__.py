"""The command line: one module per command, one folder per group, loaded on use.

A module here imports click, option modules and light constants at the top; everything else is
imported when a command runs, so that every `--help` is fast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from forgetmap._lazy import load_on_use

if TYPE_CHECKING:
    from forgetmap.cli.main import script

__all__ = ["script"]

__getattr__ = load_on_use(__name__, __file__)
