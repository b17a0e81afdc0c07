"""Makes Python believe that the packages named in HIDDEN_PACKAGES are not installed.

In a folder of its own: put that folder on PYTHONPATH, and child processes inherit it as well.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any

HIDDEN = frozenset(os.environ.get("HIDDEN_PACKAGES", "").split())


class HidingFinder:
    """A finder that does not find some packages."""

    def __init__(self, finder: Any) -> None:
        self._finder = finder

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: Any = None) -> Any:
        if name.partition(".")[0] in HIDDEN:
            return None
        return self._finder.find_spec(name, path, target)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._finder, name)


if HIDDEN:
    sys.meta_path[:] = [HidingFinder(finder) for finder in sys.meta_path]
