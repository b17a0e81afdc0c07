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
    """Something that happened to a model.

    Attributes:
        model: its id.
        effort: what it took, where it is done.
        error: why it failed, where it did.
    """

    model: str
    effort: RunEffort | None = None
    error: ForgetmapError | None = None


OnRunUpdate = Callable[[RunUpdate], None]
"""Called when a model begins, is done, or failed."""


@dataclass(frozen=True, slots=True)
class StudyRuns:
    """What a call did.

    Attributes:
        done: models that were evaluated, or were already.
        failed: model -> why it could not be; the others went on.
        left: models that were not begun, as they would have cost too much.
        refusal: why not.
    """

    done: tuple[str, ...]
    failed: dict[str, ForgetmapError]
    left: tuple[str, ...] = ()
    refusal: str = ""


class RunLedger:
    """Which models are to begin, and what became of the others.

    Args:
        out: gets what failed.
        plans: all of them, in order.
        budget: what they may cost.
        on_update: called when a model begins, is done, or failed.
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
        """The next of these that may begin; None where there is none."""
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
        """A model is done."""
        self._done.add(plan.id)
        self._budget.settle(plan, effort)
        self._tell(RunUpdate(plan.id, effort=effort))

    def fail(self, plan: PlannedRun, error: ForgetmapError) -> None:
        """A model failed; the others go on."""
        self._failed[plan.id] = error
        with suppress(OutputError):  # the failure may be that nothing can be written there
            write_failure(self._out, plan.id, error)
        self._tell(RunUpdate(plan.id, error=error))

    def result(self) -> StudyRuns:
        """What became of all."""
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
