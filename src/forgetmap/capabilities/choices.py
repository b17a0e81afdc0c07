"""Choices and defaults of drift options.

Imports nothing that computes: the command line needs it for every `--help`.
"""

from typing import Literal

Aggregator = Literal["default", "captrack-relative"]
"""How metrics are averaged: bounded effects with intervals, or relative changes as published."""
AGGREGATORS: tuple[Aggregator, ...] = ("default", "captrack-relative")
"""Every aggregator."""
Profile = Literal["quick", "full"]
"""How much is measured: rules alone on few items, or everything."""
PROFILES: tuple[Profile, ...] = ("quick", "full")
"""Every profile."""
BOOTSTRAP_DRAWS = 2000
"""Bootstrap samples."""
BOOTSTRAP_SEED = 20_261_116
"""Random seed of the bootstrap."""
