"""Result of a gate as plain values; the format of `gate --json` and its JSON schema."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from forgetmap.comparison import ConfirmedResult, DecidesResult, LimitsResult, RunResult
from forgetmap.results import Notice, Value
from forgetmap.stats import Verdict

GATE_VERSION = 2
Status = Literal["PASS", "FAIL", "INCONCLUSIVE"]
"""Status of a check, and of the gate."""
Tier = Literal["blocking", "warning", "info"]
Scope = Literal["total", "task", "category", "tag", "capability"]
Accept = Literal["items", "net"]
"""What passes: few items lost, whatever was gained; or also a small accuracy drop."""

NO_LIMITS = LimitsResult(low=None, high=None, carried_by=None, p=None)
FORGOTTEN = "Number of answers right before and wrong after."
GAINED = "Number of answers wrong before and right after."
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

    name: str = Field(description="Name of the check in a list, such as `loss of maths`.")
    rule: str = Field(description="Name of the rule in the policy.")
    tier: Tier
    scope: Scope
    group: str = Field(description="Name of the task, category, tag or capability; or total.")
    quantity: str
    margin: float
    accept: Accept = Field(
        default="items", description="`net`: also passes if `drop_high` is below the margin."
    )
    status: Status
    sentence: str
    verdict: Verdict = Field(default="cannot_tell", description="The verdict of the limits.")
    loss: LimitsResult = Field(
        default=NO_LIMITS, description="At least `low`, at most `high`; positive is a loss."
    )
    drop_high: float | None = Field(default=None, description="Upper limit of the accuracy drop.")
    forgotten: int | None = Field(default=None, description=FORGOTTEN)
    gained: int | None = Field(default=None, description=GAINED)
    items: int = 0
    coverage: float | None = Field(
        default=None, description="Share of what BEFORE scored that is paired and scored after."
    )
    decides: DecidesResult | None = Field(default=None, description="What would decide it.")
    reasons: list[Notice] = Field(default=[], description="Why it is open, whatever the numbers.")
    waiver: WaiverResult | None = None

    @property
    def most(self) -> float | None:
        """The upper limit that decides whether the check passes."""
        if self.accept == "items" or self.loss.high is None or self.drop_high is None:
            return self.loss.high
        return min(self.loss.high, self.drop_high)


class ForgottenItem(Value):
    """An item that was right before and is wrong after."""

    task: str
    item: str


class LookResult(Value):
    """One of several looks at the same models."""

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
    decision: str = Field(
        default="", description="The same without the status; empty in earlier records."
    )
    before: RunResult | None = Field(description="Null if the runs could not be compared.")
    after: RunResult | None
    policy: PolicyResult
    look: LookResult
    checks: list[CheckResult]
    missing_tasks: list[str] = Field(description="Tasks required by the policy that are missing.")
    compared: int | None = Field(default=None, description="Number of compared pairs of answers.")
    items: int | None = Field(default=None, description="Number of compared items.")
    forgotten: int | None = Field(default=None, description=FORGOTTEN)
    gained: int | None = Field(default=None, description=GAINED)
    confirmed: ConfirmedResult | None = Field(default=None, description="Flips asked again.")
    forgotten_items: list[ForgottenItem] = Field(
        default=[], description="The first of them by task and item, if the result is FAIL."
    )
    warnings: list[Notice] = Field(description="Cautions about the numbers.")
    created: str = Field(description="ISO 8601, UTC.")
    forgetmap: str = Field(description="Version of forgetmap.")

    @property
    def counts(self) -> str:
        """What was forgotten and gained in all, as a sentence; empty if nothing was compared."""
        if self.compared is None:
            return ""
        held, again = self.confirmed, ""
        if held is not None:
            again = f"; of {held.asked:,} asked again, {held.held:,.0f} held"
        noun = "" if self.items in (None, self.compared) else " answers"
        counts = f"{self.forgotten:,} forgotten, {self.gained:,} gained of {self.compared:,}"
        return f"{counts}{noun}{again}."

    def of_tier(self, tier: Tier) -> list[CheckResult]:
        """Return the checks of one tier."""
        return [check for check in self.checks if check.tier == tier]
