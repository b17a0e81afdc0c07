"""How many examples a property is tried on: few in `make test`, many in `make test-long`."""

from __future__ import annotations

import os

from hypothesis import settings

LONG = "FORGETMAP_LONG" in os.environ
"""Whether this is `make test-long`."""

_MORE = 10


def examples(count: int) -> settings:
    """This many examples of a property, ten times as many in `make test-long`."""
    return settings(max_examples=count * _MORE if LONG else count, deadline=None)
