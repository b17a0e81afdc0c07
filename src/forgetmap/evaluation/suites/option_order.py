"""The order in which the options of a question are shown: fixed by seeds, never by chance."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha256


def insert_gold(gold: str, wrong: Sequence[str], index: int) -> tuple[str, ...]:
    """The right option at an index among the wrong ones, for suites that draw the index."""
    return (*wrong[:index], gold, *wrong[index:])


def order_by_hash(seed: str, options: Iterable[str]) -> tuple[str, ...]:
    """Options in an order that depends on the seed and their texts, not on how they are stored."""
    return tuple(sorted(options, key=lambda option: sha256(f"{seed}\n{option}".encode()).digest()))
