"""Seeds of training runs: one for tuning, the others for the reported results."""

from __future__ import annotations

from forgetmap.errors import UsageError

DEVELOPMENT_SEED = 0
"""Seed for choosing settings; it is not reported, and its trainings are not watched."""
FEWEST_SEEDS = 2


def reported_seeds(count: int) -> list[int]:
    """Return all seeds except the development seed.

    Raises:
        UsageError: there are too few seeds for an interval.
    """
    if count < FEWEST_SEEDS:
        raise UsageError(
            f"an interval over seeds needs at least {FEWEST_SEEDS} seeds, not {count}",
            hint="use --seeds 3 or more.",
        )
    return [DEVELOPMENT_SEED + number for number in range(1, count + 1)]
