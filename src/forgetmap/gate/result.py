"""Result of a gate as plain values; the format of `gate --json` and its JSON schema."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from forgetmap.comparison import DecidesResult, RunResult, Verdict
from forgetmap.results import Estimate, Notice, Value

GATE_VERSION = 1
Status = Literal["PASS", "FAIL", "INCONCLUSIVE"]
"""Status of a check, and of the gate."""
Tier = Literal["blocking", "warning", "info"]
Scope = Literal["total", "task", "category", "tag", "capability"]


WaiverState = Literal["applied", "expired", "exceeded", "not needed", "not applicable"]
"""States of a waiver; not applicable: no loss was measured that could be accepted."""


class WaiverResult(Value):
    """A waiver that was applied to a check, or would have been."""

    owner: str
    reason: str
    ceiling: float = Field(description="Loss up to which the check passes.")
    expires: str = Field(description="Last day of the waiver, ISO 8601.")
    state: WaiverState


class CheckResult(Value):
    """One rule, evaluated on one group of items."""

    rule: str = Field(description="Name of the rule in the policy.")
    tier: Tier
    scope: Scope
    group: str = Field(description="Name of the task, category, tag or capability; or total.")
    quantity: str
    estimator: str | None
    margin: float
    status: Status
    verdict: Verdict = Field(description="The verdict of the interval.")
    loss: Estimate = Field(description="At least `low`, at most `high`; positive is a loss.")
    items: int
    coverage: float | None = Field(
        description="Share of the items scored in BEFORE that are paired and scored after."
    )
    decides: DecidesResult | None = Field(description="What would decide; null if decided.")
    sentence: str
    reasons: list[Notice] = Field(description="Why it is inconclusive regardless of the numbers.")
    waiver: WaiverResult | None = None

    @property
    def name(self) -> str:
        """Name of the check in a list, such as `forgetting of maths`."""
        what = self.quantity.replace("_", " ")
        if self.scope == "total" or self.rule == self.group:
            return self.rule
        return (
            f"{what} of {self.group}"
            if self.rule.startswith(what)
            else f"{self.rule}: {self.group}"
        )


def effect(value: float | None) -> str:
    """Format drift, which is an effect and has no percent."""
    return "-" if value is None else f"{max(value, 0.0):.3f}"


class ForgottenItem(Value):
    """An item that was right before and is wrong after."""

    task: str
    item: str


class LookResult(Value):
    """One of several looks at the same data."""

    number: int
    planned: int | None = Field(description="Null if any number of looks is allowed.")
    level: float = Field(description="Confidence level of the intervals of this look.")


class PolicyResult(Value):
    """The policy that was applied."""

    origin: str = Field(description="Its file, or `default`.")
    hash: str = Field(description="SHA-256 of its content, the same for the same rules.")


class GateResult(Value):
    """PASS, FAIL or INCONCLUSIVE, with all checks."""

    schema_version: int = GATE_VERSION
    status: Status
    headline: str = Field(description="The decision in one sentence.")
    before: RunResult | None = Field(description="Null if the runs could not be compared.")
    after: RunResult | None
    policy: PolicyResult
    look: LookResult
    checks: list[CheckResult]
    missing_tasks: list[str] = Field(description="Tasks required by the policy that are missing.")
    forgotten: int | None = Field(
        default=None,
        description="Number of answers right before and wrong after; null if not compared.",
    )
    forgotten_items: list[ForgottenItem] = Field(
        default=[], description="The first of them by task and item, if the result is FAIL."
    )
    warnings: list[Notice] = Field(description="Cautions about the numbers.")
    created: str = Field(description="ISO 8601, UTC.")
    forgetmap: str = Field(description="Version of forgetmap.")

    def of_tier(self, tier: Tier) -> list[CheckResult]:
        """Return the checks of one tier."""
        return [check for check in self.checks if check.tier == tier]
