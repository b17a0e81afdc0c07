"""The budget of a study: it stops before a model that would exceed it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from forgetmap.errors import UsageError
from forgetmap.study.bill import BillRates, RunBill
from forgetmap.study.plan import PlannedRun
from forgetmap.study.run_files import RunEffort

_WORDS = {"items": "answers", "tokens": "tokens", "gpu_hours": "GPU hours"}


@dataclass(frozen=True, slots=True)
class RunLimits:
    """Limits of one call; None is no limit.

    Attributes:
        items: number of answers, including repeats.
        tokens: tokens read and written.
        gpu_hours: hours of one GPU.
        rates: basis of cost estimates.
    """

    items: float | None = None
    tokens: float | None = None
    gpu_hours: float | None = None
    rates: BillRates | None = None

    @property
    def values(self) -> dict[str, float]:
        """The limits that are set."""
        limits = {name: getattr(self, name) for name in _WORDS}
        return {name: limit for name, limit in limits.items() if limit is not None}


class Budget:
    """Resources used and reserved so far; decides whether another model fits.

    Args:
        limits: limits of the call.
        bills: estimated costs by model.
        gpus: number of GPUs per model.

    Attributes:
        refusal: why no further model was started; empty if all were.
    """

    def __init__(self, limits: RunLimits, bills: Mapping[str, RunBill], gpus: int = 1) -> None:
        self._limits = limits.values
        self._bills = bills
        self._gpus = gpus
        self._taken: dict[str, float] = dict.fromkeys(self._limits, 0.0)
        self.refusal = ""

    def require_known(self, plans: Sequence[PlannedRun]) -> None:
        """Refuse limits that cannot be checked, before anything starts.

        Raises:
            UsageError: the cost of a model is unknown.
        """
        for plan in plans:
            for name in self._limits:
                if self._cost(plan, name) is None:
                    raise UsageError(
                        f"the number of {_WORDS[name]} of {plan.id} is unknown, so the limit "
                        "cannot be checked",
                        hint="set `items` of the study and `size` of the model, or remove the "
                        "limit.",
                    )

    def admit(self, plan: PlannedRun) -> bool:
        """Whether a model may start; after a refusal none may, so that the order is kept."""
        if self.refusal or not self._limits:
            return not self.refusal
        costs = self._costs(plan)
        for name, limit in self._limits.items():
            left = limit - self._taken[name]
            if costs[name] > left:
                self.refusal = (
                    f"{plan.id} would take about {_number(costs[name])} {_WORDS[name]}, but "
                    f"{_number(max(left, 0.0))} of {_number(limit)} are left"
                )
                return False
        for name in self._limits:
            self._taken[name] += costs[name]
        return True

    def settle(self, plan: PlannedRun, effort: RunEffort | None) -> None:
        """Replace the estimated cost by the actual one; a failed model keeps the estimate."""
        if effort is None or not self._limits:
            return
        costs = self._costs(plan)
        hours = effort.seconds * self._gpus / 3600
        real = {"items": effort.answers, "tokens": effort.tokens, "gpu_hours": hours}
        for name in self._limits:
            self._taken[name] += real[name] - costs[name]

    def _costs(self, plan: PlannedRun) -> dict[str, float]:
        return {name: self._cost(plan, name) or 0.0 for name in self._limits}

    def _cost(self, plan: PlannedRun, name: str) -> float | None:
        bill = self._bills[plan.id]
        costs = {"items": bill.answers, "tokens": bill.tokens, "gpu_hours": bill.gpu_hours}
        return costs[name]


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.2g}"
