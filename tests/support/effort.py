"""Number of examples per property: few in `make test`, many in `make test-long`."""

from __future__ import annotations

import os

from hypothesis import settings

LONG = "FORGETMAP_LONG" in os.environ
"""Whether this is `make test-long`."""

_MORE = 10


def examples(count: int, *, long: int | None = None) -> settings:
    """Return settings with `count` examples; in `make test-long`, `long` or ten times as many."""
    many = count * _MORE if long is None else long
    return settings(max_examples=many if LONG else count, deadline=None)
