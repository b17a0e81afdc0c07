"""Claims, and the functions that test them.

A claim has a statement, a formula, a provenance, and an experiment that returns checks: a measured
number, the expected one, and a tolerance. A claim that cannot fail is worthless, so each names a
control: one implemented formula that is changed by about 5 %, after which the same experiment must
fail.
"""

from __future__ import annotations

import importlib
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

from forgetmap.errors import ConvergenceError, UsageError

Relation = Literal["within", "relative", "at most", "at least"]
GROUPS = ("forward", "reverse", "conditioning", "replay", "distillation", "rewards", "estimates")
"""Modules that register claims, in listing order."""


@dataclass(frozen=True)
class Check:
    """A measured number and its expectation.

    Attributes:
        name: name of the quantity.
        measured: the value.
        expected: the expected value, or the bound.
        tolerance: allowed distance; relative if the relation is.
        relation: `within` and `relative` bound the distance, `at most` and `at least` one side.
    """

    name: str
    measured: float
    expected: float
    tolerance: float
    relation: Relation

    @property
    def excess(self) -> float:
        """Distance from the expectation relative to the tolerance; above 1 the check fails."""
        if math.isnan(self.measured):
            return math.inf
        gap = self.measured - self.expected
        if self.relation in {"within", "relative"}:
            scale = self.tolerance * (abs(self.expected) if self.relation == "relative" else 1)
            return abs(gap) / scale
        if (gap if self.relation == "at most" else -gap) > self.tolerance:
            return math.inf
        low, high = sorted((self.measured, self.expected))
        return max(0.0, low / high) if high > 0 else 0.0

    @property
    def passed(self) -> bool:
        """Whether the measured number is as expected."""
        return bool(self.excess <= 1)


def near(name: str, measured: Any, expected: float, within: float) -> Check:
    """Check the absolute distance."""
    return Check(name, float(measured), float(expected), float(within), "within")


def close(name: str, measured: Any, expected: float, share: float) -> Check:
    """Check the relative distance."""
    return Check(name, float(measured), float(expected), share, "relative")


def at_most(name: str, measured: Any, limit: float, slack: float = 0.0) -> Check:
    """Check an upper bound."""
    return Check(name, float(measured), float(limit), slack, "at most")


def at_least(name: str, measured: Any, limit: float, slack: float = 0.0) -> Check:
    """Check a lower bound."""
    return Check(name, float(measured), float(limit), slack, "at least")


@dataclass(frozen=True)
class Perturbation:
    """One implemented formula with a slightly changed value.

    Attributes:
        where: module and function (or class and method) within the theory package.
        factor: factor of its value.
        part: index of the only entry that is multiplied; None for all.
    """

    where: str
    factor: float = 1.05
    part: int | None = None

    @contextmanager
    def apply(self) -> Iterator[None]:
        """Apply the change within the context, in this process."""
        module, *path, name = self.where.split(".")
        owner: Any = importlib.import_module(f"forgetmap.theory.{module}")
        for part in path:
            owner = getattr(owner, part)
        original = getattr(owner, name)

        def changed(*args: Any, **options: Any) -> Any:
            return self._scale(original(*args, **options))

        setattr(owner, name, changed)
        try:
            yield
        finally:
            setattr(owner, name, original)

    def _scale(self, value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(
                item * self.factor if self.part in {None, index} else item
                for index, item in enumerate(value)
            )
        if self.part is None:
            return value * self.factor
        changed = value.copy()
        changed[self.part] = changed[self.part] * self.factor
        return changed


Experiment = Callable[[], list[Check]]


@dataclass(frozen=True)
class TheoryClaim:
    """A claim of the theory, and its test.

    Attributes:
        id: short name.
        statement: the claim in words.
        formula: the claim in symbols.
        provenance: source of the claim. [D] is derived here from first principles and not quoted,
            [ABS] an abstract, [SEC] a secondary source, [CODE] public code.
        experiment: returns the checks.
        control: the change under which the experiment must fail.
        cost: approximate duration in seconds; the slowest claims start first.
    """

    id: str
    statement: str
    formula: str
    provenance: str
    experiment: Experiment
    control: Perturbation
    cost: float


@dataclass(frozen=True)
class ClaimOutcome:
    """The outcome of a claim.

    Attributes:
        id: id of the claim.
        checks: all checks.
        control_passed: whether the experiment still passed with the changed formula, which it must
            not; None if the control was not run.
        seconds: duration, including the control.
    """

    id: str
    checks: list[Check] = field(default_factory=list)
    control_passed: bool | None = None
    seconds: float = 0.0

    @property
    def passed(self) -> bool:
        """Whether every check passed."""
        return bool(self.checks) and all(check.passed for check in self.checks)

    @property
    def decisive(self) -> Check:
        """The check nearest to failing, or the worst failure."""
        return max(self.checks, key=lambda check: check.excess)


_CLAIMS: dict[str, TheoryClaim] = {}

DERIVED = "[D] derived here"
FITS = "[D] derived here, consistent with [ABS], the abstract of arXiv 2603.12163"
CODE = "[CODE] method taken from public code; [D] claim derived here"


def claim(
    id: str,  # noqa: A002
    statement: str,
    formula: str,
    *,
    control: Perturbation,
    provenance: str = DERIVED,
    cost: float = 1.0,
) -> Callable[[Experiment], Experiment]:
    """Register an experiment as the test of a claim."""

    def register(experiment: Experiment) -> Experiment:
        _CLAIMS[id] = TheoryClaim(id, statement, formula, provenance, experiment, control, cost)
        return experiment

    return register


def find_claims(ids: tuple[str, ...] = ()) -> list[TheoryClaim]:
    """Return the claims of these ids, or all of them, in listing order.

    Raises:
        UsageError: there is no such claim.
    """
    for group in GROUPS:
        importlib.import_module(f"forgetmap.theory.claims.{group}")
    # The order must not depend on which module is imported first.
    claims = sorted(
        _CLAIMS.values(), key=lambda item: GROUPS.index(item.experiment.__module__.split(".")[-1])
    )
    unknown = [name for name in ids if name.upper() not in _CLAIMS]
    if unknown:
        known = ", ".join(item.id for item in claims)
        raise UsageError(f"there is no claim {', '.join(unknown)}", hint=f"choose from {known}.")
    names = {name.upper() for name in ids} or set(_CLAIMS)
    return [item for item in claims if item.id in names]


def verify(id: str, *, control: bool = False) -> ClaimOutcome:  # noqa: A002
    """Run the experiment of one claim, and with `control` again with the changed formula."""
    (tested,) = find_claims((id,))
    started = time.perf_counter()
    checks = tested.experiment()
    control_passed = _passes_perturbed(tested) if control else None
    return ClaimOutcome(tested.id, checks, control_passed, time.perf_counter() - started)


def _passes_perturbed(tested: TheoryClaim) -> bool:
    with tested.control.apply():
        try:
            return all(check.passed for check in tested.experiment())
        except ConvergenceError:
            return False
