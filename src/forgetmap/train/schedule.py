"""The schedule of looks: as often as the cost limit allows, denser early in training.

The budget is the cost limit times the duration of the whole training without looks. The first look,
at step 0, is always made and paid first. After a share u of all steps, at most sqrt(u) of the rest
is used, so that n affordable looks fall at about the shares (1/n)^2, (2/n)^2, ... 1. The cost of
one look is reserved for the last step.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from forgetmap.errors import UsageError

PILOT_STEPS = 3
"""Number of steps after which the duration of a step is known well enough to plan."""
LEAST_LOOKS = 10
"""Number of looks after the first that must be affordable; otherwise items are left out."""
MOST_LOOKS = 100
"""Maximum number of looks, however cheap: each one uses up a part of the error rate."""
LEAST_ITEMS = 100
"""Minimum number of items; with fewer, an alarm could hardly ever be raised."""
CAUTION = 1.1
"""Factor on the longest of the last three looks, for planning the next one."""


@dataclass(slots=True)
class LookSchedule:
    """Choice of the steps with a look.

    Attributes:
        cost: maximum time in the probe divided by training time, over the whole training.
        every: number of steps between looks, instead of a cost limit.
        max_steps: number of steps of the training.
        clock: returns seconds, from any origin.
        probed: duration of all looks.
        costs: duration of each look.
        first: duration of the first look.
    """

    cost: float | None = 0.05
    every: int | None = None
    max_steps: int = 0
    clock: Callable[[], float] = time.perf_counter
    probed: float = 0.0
    costs: list[float] = field(default_factory=list)
    first: float = 0.0
    _trained_before: float = 0.0
    _began: float = 0.0
    _probed_here: float = 0.0

    def __post_init__(self) -> None:
        self._began = self.clock()
        if self.every is not None and self.every < 1:
            raise UsageError(f"every is {self.every}", hint="use 1 or more.")
        if self.every is None and not (self.cost is not None and 0 < self.cost <= 1):
            raise UsageError(
                f"a cost of {self.cost} is not a share of the training time",
                hint="use a number above 0 and at most 1, such as 0.05; or every=100.",
            )

    def begin(self, max_steps: int, *, trained: float = 0.0, probed: float = 0.0) -> None:
        """Add the times of earlier parts of a resumed training; the clock is already running."""
        self.max_steps = max_steps
        self._trained_before, self.probed = trained, probed

    def count_look(self, seconds: float) -> None:
        """Add the duration of a look."""
        if not self.costs:
            self.first = seconds
        self.costs.append(seconds)
        self.count(seconds)

    def count(self, seconds: float) -> None:
        """Add other time that was spent on looks."""
        self.probed += seconds
        self._probed_here += seconds

    @property
    def trained(self) -> float:
        """Seconds of training so far, without looks."""
        return self._trained_before + self.clock() - self._began - self._probed_here

    @property
    def next_cost(self) -> float:
        """Planned seconds of the next look."""
        return CAUTION * max(self.costs[-3:], default=0.0)

    def first_check(self, step: int) -> int:
        """Return the first step at which to call `allows`, after a start or a resumption."""
        return self._after(step) if self.every else min(step + PILOT_STEPS, self.max_steps)

    def allows(self, step: int) -> bool:
        """Whether a look is allowed at this step."""
        if self.every is not None:
            return step % self.every == 0 or step >= self.max_steps
        needed = self.probed + self.next_cost
        if step >= self.max_steps:
            return self.cost is not None and needed <= self.cost * self.trained
        paced = self._early_budget(step) * math.sqrt(step / self.max_steps)
        return needed - self.first <= paced

    def plan(self, step: int) -> int:
        """Return the next step at which to call `allows`, from the duration of steps so far."""
        if self.every is not None:
            return self._after(step)
        budget = self._early_budget(step)
        needed = self.probed + self.next_cost - self.first
        if budget <= 0 or needed > budget:
            return self.max_steps
        share = (needed / budget) ** 2
        return min(max(math.ceil(share * self.max_steps), step + 1), self.max_steps)

    def affordable_share(self, step: int) -> float:
        """Return the share of items with which `LEAST_LOOKS` looks are still affordable."""
        if self.every is not None or not self.costs:
            return 1.0
        left = self._budget(step) - self.probed  # MOST_LOOKS is far more than LEAST_LOOKS
        return min(1.0, max(left, 0.0) / (LEAST_LOOKS * self.next_cost))

    def shrink(self, share: float) -> None:
        """Scale the expected duration of looks."""
        self.costs = [seconds * share for seconds in self.costs[-1:]]

    def _budget(self, step: int) -> float:
        """Return the seconds for all looks, if steps take as long as so far."""
        assert self.cost is not None  # noqa: S101  # only called without a fixed interval
        affordable = self.cost * self.trained * self.max_steps / step if step else 0.0
        return min(affordable, MOST_LOOKS * self.next_cost) if self.costs else affordable

    def _early_budget(self, step: int) -> float:
        """Return the budget without the first look and the one reserved for the last step."""
        return self._budget(step) - self.first - self.next_cost

    def _after(self, step: int) -> int:
        assert self.every is not None  # noqa: S101  # only called with a fixed interval
        return min((step // self.every + 1) * self.every, self.max_steps)
