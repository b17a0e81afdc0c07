"""Keeps pandas out of processes of our own that do not need it."""

from __future__ import annotations

import sys


class WithoutPandas:
    """At its first array pyarrow imports pandas where it can, which takes longer than our start."""

    @staticmethod
    def find_spec(name: str, *_: object) -> None:
        """Refuse it."""
        if name == "pandas":
            raise ModuleNotFoundError(name)


def refuse_pandas() -> None:
    """From now on pandas counts as not installed; only for processes that nobody else works in."""
    sys.meta_path.insert(0, WithoutPandas)
