"""Detection of wrong numbers of options."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

GOLD_LEVEL = 1e-4
CHOSEN_LEVEL = 0.01


def impossible_k(
    k: int, gold_counts: ArrayLike, chosen_counts: ArrayLike, wrong_before: int
) -> int | None:
    """Return the likely number of options if the observed positions contradict k, else None.

    Contradicted by a position of k or more, or by a position that is never gold,
    k (1 - 1/k)^N < 1e-4 (N >= 37 at k = 4, 110 at k = 10), and never chosen by either model,
    (k-1) (1 - 1/(k-1))^W < .01. Both, because sorted gold (always the first option) leaves
    positions without gold too. Assumes that gold is spread evenly, or wrong choices are.

    Args:
        k: number of options as logged.
        gold_counts: how often each position is gold, from the first position on.
        chosen_counts: how often each position is chosen by either model.
        wrong_before: W, items with a readable wrong answer before.

    Returns:
        The last observed position + 1; the number of observed positions if that is k itself.
    """
    gold, chosen = np.asarray(gold_counts, float), np.asarray(chosen_counts, float)
    seen = np.zeros(max(gold.size, chosen.size, k), bool)
    seen[: gold.size] |= gold > 0
    seen[: chosen.size] |= chosen > 0
    if not seen.any():
        return None
    likely = int(np.flatnonzero(seen)[-1]) + 1
    if likely > k:
        return likely
    if seen.all() or not _is_telling(k, gold.sum(), wrong_before):
        return None
    return likely if likely < k else int(seen.sum())


def _is_telling(k: int, items: float, wrong: float) -> bool:
    """Return whether this many items would have shown every one of k positions."""
    never_gold = k * (1 - 1 / k) ** items
    never_chosen = (k - 1) * (1 - 1 / (k - 1)) ** wrong if k > 1 else 0.0
    return bool(never_gold < GOLD_LEVEL and never_chosen < CHOSEN_LEVEL)
