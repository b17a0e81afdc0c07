"""Models of a study that are waiting, running, finished or failed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from forgetmap.errors import ForgetmapError, OutputError
from forgetmap.study.budget import Budget
from forgetmap.study.plan import PlannedRun
from forgetmap.study.run_files import RunEffort, clear_failure, write_failure


@dataclass(frozen=True, slots=True)
class RunUpdate:
    """A change of the status of a model.

    Attributes:
        model: its id.
        effort: cost of the run, if it is done.
        error: the error, if it failed.
    """

    model: str
    effort: RunEffort | None = None
    error: ForgetmapError | None = None


OnRunUpdate = Callable[[RunUpdate], None]
"""Callback that receives the start, end or failure of a model."""


@dataclass(frozen=True, slots=True)
class StudyRuns:
    """Result of a call.

    Attributes:
        done: evaluated models, including those of earlier calls.
        failed: model -> error; other models are not affected.
        left: models that were not started because of the limits.
        refusal: why they were not started.
    """

    done: tuple[str, ...]
    failed: dict[str, ForgetmapError]
    left: tuple[str, ...] = ()
    refusal: str = ""


class RunLedger:
    """Tracks which models are to start, and the outcome of the others.

    Args:
        out: folder for files about failures.
        plans: all plans, in order.
        budget: budget of the call.
        on_update: called when a model starts, is done, or fails.
    """

    def __init__(
        self,
        out: Path,
        plans: Sequence[PlannedRun],
        budget: Budget,
        on_update: OnRunUpdate | None,
    ) -> None:
        self._out = out
        self._plans = plans
        self._budget = budget
        self._on_update = on_update
        self._begun: set[str] = set()
        self._done = {plan.id for plan in plans if plan.state != "missing"}
        self._failed: dict[str, ForgetmapError] = {}

    def begin(self, plans: Sequence[PlannedRun]) -> PlannedRun | None:
        """Start the next of these that is allowed; None if there is none."""
        for plan in plans:
            if plan.id in self._begun or plan.id in self._done:
                continue
            if not self._budget.admit(plan):
                return None
            self._begun.add(plan.id)
            clear_failure(self._out, plan.id)
            self._tell(RunUpdate(plan.id))
            return plan
        return None

    def finish(self, plan: PlannedRun, effort: RunEffort) -> None:
        """Record that a model is done."""
        self._done.add(plan.id)
        self._budget.settle(plan, effort)
        self._tell(RunUpdate(plan.id, effort=effort))

    def fail(self, plan: PlannedRun, error: ForgetmapError) -> None:
        """Record that a model failed."""
        self._failed[plan.id] = error
        with suppress(OutputError):  # the failure may be that the folder is not writable
            write_failure(self._out, plan.id, error)
        self._tell(RunUpdate(plan.id, error=error))

    def result(self) -> StudyRuns:
        """Return the outcome of all models."""
        names = [plan.id for plan in self._plans]
        return StudyRuns(
            done=tuple(name for name in names if name in self._done),
            failed={name: self._failed[name] for name in names if name in self._failed},
            left=tuple(
                name for name in names if name not in self._done and name not in self._begun
            ),
            refusal=self._budget.refusal,
        )

    def _tell(self, update: RunUpdate) -> None:
        if self._on_update is not None:
            self._on_update(update)
