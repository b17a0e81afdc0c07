"""Choices and defaults of drift options.

Imports no computing library, because every `--help` imports it.
"""

from typing import Literal

Aggregator = Literal["default", "captrack-relative"]
"""How metrics are averaged: bounded effects with intervals, or relative changes as published."""
AGGREGATORS: tuple[Aggregator, ...] = ("default", "captrack-relative")
"""Every aggregator."""
Profile = Literal["quick", "full"]
"""What is measured: only rules on few items, or everything."""
PROFILES: tuple[Profile, ...] = ("quick", "full")
"""Every profile."""
BOOTSTRAP_DRAWS = 2000
"""Number of bootstrap samples."""
BOOTSTRAP_SEED = 20_261_116
"""Random seed of the bootstrap."""
