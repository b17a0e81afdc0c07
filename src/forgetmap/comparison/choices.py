"""Choices and defaults of comparison options.

Imports no computing library, because every `--help` imports it.
"""

from __future__ import annotations

import math
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
NOISE_FLOOR = 0.005
"""Assumed share of greedy answers that batching and hardware flip one way."""
SAMPLED_NOISE = 0.05
"""The same for sampled answers, as assumed by a plan."""
LEVEL = 0.95
"""Confidence level of every interval."""
CORRECT_AT = 0.5
"""Minimum score of a right answer."""
OPTION_COUNTS = (2.0, 3.0, 4.0, 5.0, 10.0, math.inf)
"""Numbers of options in a plan."""
REPEAT_COUNTS = (2, 3, 5)
"""Numbers of answers per item in a plan."""


@dataclass(frozen=True, slots=True)
class Wish:
    """The loss to detect, and the conditions.

    Attributes:
        loss: share of all items that is lost.
        accuracy: accuracy of the model before.
        noise_floor: share of answers that flip one way between two greedy runs of the same model.
        sampled_noise: the same for two sampled runs.
        margin: largest acceptable loss.
        level: confidence level of the intervals and the verdict.
    """

    loss: float = 0.02
    accuracy: float = 0.6
    noise_floor: float = NOISE_FLOOR
    sampled_noise: float = SAMPLED_NOISE
    margin: float = MARGIN
    level: float = LEVEL
