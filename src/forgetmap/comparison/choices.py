"""Choices and defaults of comparison options.

Imports no computing library, because every `--help` imports it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["forgotten", "gained", "kept", "never"]
"""Transition of an item from the first model to the second."""
Rollup = Literal["default", "post-forget"]
"""How tasks are averaged: our way only, or also as in Harmon et al. (2026)."""
TASK_TABLES = ("as-run", "as-released", "corrected")
"""Included tables of tasks: number of options and category."""
MIN_PAIRED = 0.8
"""Minimum share of the scored items of each side that must also be scored on the other side."""
MARGIN = 0.02
"""Largest acceptable loss, as a share of all items."""
PLANNED_NOISE = 0.015
"""Share of answers that reruns of a model flip one way, as a plan expects it: greedy reruns."""
AUTO = "auto"
"""Nothing is assumed: the verdict holds for any noise and guessing."""
STATED_ESTIMATORS = (AUTO, "latent", "upper", "matched")
"""Estimators whose assumption a user may state, without those of other packages."""
LEVEL = 0.95
"""Confidence level of every interval."""
CORRECT_AT = 0.5
"""Minimum score of a right answer."""
REPEAT_COUNTS = (1, 2, 3, 5)
"""Numbers of answers per item in a plan."""


@dataclass(frozen=True, slots=True)
class PlanInput:
    """The loss to detect, and the conditions.

    Attributes:
        loss: share of all items that is lost.
        gain: share of all items that is gained at the same time.
        noise: share of answers that flip one way between two runs of the same model.
        margin: largest acceptable loss.
        level: confidence level of the intervals and the verdict.
    """

    loss: float = 0.02
    gain: float = 0.0
    noise: float = PLANNED_NOISE
    margin: float = MARGIN
    level: float = LEVEL
