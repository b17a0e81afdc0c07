"""Choices and defaults of comparison options.

Imports nothing that computes: the command line needs it for every `--help`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

Kind = Literal["forgotten", "gained", "kept", "never"]
"""What happened to an item, from the first model to the second."""
Rollup = Literal["default", "post-forget"]
"""How tasks are averaged: ours alone, or the averages of Harmon et al. (2026) beside it."""
TASK_TABLES = ("as-run", "as-released", "corrected")
"""Tables of tasks that are shipped: number of options and category."""
MIN_PAIRED = 0.8
"""Share of what each side scored that must be paired and scored on the other."""
MARGIN = 0.02
"""Largest acceptable loss, as a share of all items."""
NOISE_FLOOR = 0.005
"""Share of greedy answers that batching and hardware flip one way, where nobody measured it."""
SAMPLED_NOISE = 0.05
"""The same of sampled answers, where a plan is told nothing else."""
LEVEL = 0.95
"""Confidence of every interval."""
CORRECT_AT = 0.5
"""Score from which on an answer is right."""
OPTION_COUNTS = (2.0, 3.0, 4.0, 5.0, 10.0, math.inf)
"""Kinds of items that a plan is made for."""
REPEAT_COUNTS = (2, 3, 5)
"""Answers per item that a plan is made for."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What is to be found.

    Attributes:
        loss: share of all items that is lost.
        accuracy: of the model before.
        noise_floor: how often two greedy runs of one model flip one way.
        sampled_noise: how often two sampled runs of one model do.
        margin: largest acceptable loss.
        level: confidence of intervals, and so of the verdict.
    """

    loss: float = 0.02
    accuracy: float = 0.6
    noise_floor: float = NOISE_FLOOR
    sampled_noise: float = SAMPLED_NOISE
    margin: float = MARGIN
    level: float = LEVEL
