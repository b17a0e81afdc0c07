"""Result of a sweep as plain values; the format of `--json`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from forgetmap.comparison import LimitsResult
from forgetmap.merge import WeightDrift
from forgetmap.results import Estimate, Value
from forgetmap.stats import Verdict

RESULT_VERSION = 2
Within = Literal["surely", "perhaps", "no"]
Measure = Literal["accuracy", "loss"]
Sure = Literal["sure", "estimate", "none"]


class PointGroup(Value):
    """The items of one category at one point; forgetting and backward transfer as counted."""

    name: str
    target: bool = Field(description="What the tuned model was trained for.")
    n: int
    accuracy: float
    forgetting: Estimate = Field(description="Right in base, wrong here; share of all items.")
    backward_transfer: Estimate = Field(description="Wrong in base, right here.")
    loss: LimitsResult | None = Field(
        description="What is proven to be lost compared with base, valid for the best of all "
        "merges; null for base."
    )
    verdict: Verdict | None


class PointResult(Value):
    """One merge; the ends of a path are the parents themselves.

    Estimates named `..._all` have intervals that hold for all merges of the pair at once, so also
    for the chosen one; the others hold separately.
    """

    method: str
    weight: float = Field(description="Share of the tuned model: 0 is base, 1 is tuned.")
    run: str
    reused: Literal["base", "tuned"] | None = Field(
        description="Which parent this point is, if any."
    )
    accuracy: float
    forgetting: Estimate = Field(
        description="Compared with base; outside the target tasks, if there are any."
    )
    forgetting_all: Estimate
    backward_transfer: Estimate = Field(
        description="Compared with base; in the target tasks, if there are any."
    )
    backward_transfer_all: Estimate
    retained: Estimate = Field(description="Share of the tuned model's gains that are right here.")
    retained_all: Estimate
    recovered: Estimate = Field(
        description="Share of the tuned model's losses that are right here."
    )
    recovered_all: Estimate
    benefit: Estimate = Field(
        description="retained + recovered - 1: 0 for each parent and for mixing their answers."
    )
    benefit_all: Estimate
    over_budget: Estimate = Field(
        description="Forgetting minus the budget, with simultaneous intervals for all merges."
    )
    over_budget_limit: float | None = Field(
        default=None,
        description="One-sided upper bound of forgetting minus the budget, for this merge "
        "alone; within the budget if 0 or below.",
    )
    within: Within | None = Field(
        description="Whether forgetting is within the budget; null for parents. surely: "
        "certified, as are all smaller weights of its path."
    )
    below_line: Estimate = Field(
        description="Accuracy below the straight line between the ends, with simultaneous "
        "intervals."
    )
    loss: float | None = Field(description="Mean negative log-probability of the right answers.")
    loss_above_line: Estimate
    lost_from_tuned: Estimate = Field(description="Right in tuned, wrong here.")
    gained_on_tuned: Estimate = Field(description="Wrong in tuned, right here.")
    on_front: bool = Field(description="Whether no other merge forgets less and keeps more.")
    surely_beaten: bool = Field(
        description="Whether another point significantly forgets less and keeps more."
    )
    groups: list[PointGroup] = Field(description="All items, then categories.")


class Barrier(Value):
    """How far a path falls below the line between its ends."""

    method: str
    group: str
    measure: Measure
    height: Estimate = Field(
        description="The maximum over the path; there is a barrier if it is above 0."
    )
    weight: float = Field(description="Weight of the maximum.")


class Choice(Value):
    """The best merge by the rule."""

    sure: Sure
    point: int | None = Field(description="Index in `points`.")
    words: str


class PairResult(Value):
    """All merges of base with one tuned model."""

    tuned: str
    name: str
    items: int
    left_out: int = Field(description="Number of answers without a score in every run.")
    lost: int = Field(description="Right in base, wrong in tuned.")
    gained: int = Field(description="Wrong in base, right in tuned.")
    chance_gained: float | None = Field(
        description="Share of the gained items that guesses alone would answer right."
    )
    points: list[PointResult]
    barriers: list[Barrier]
    best: Choice
    greatest_benefit: Estimate = Field(description="For all merges, interval of the maximum.")
    drift: WeightDrift | None
    notices: list[str]


class Correlation(Value):
    """Correlation of weight difference and benefit of merging."""

    pairs: int
    rank: Estimate = Field(
        description="Spearman correlation of relative distance and largest benefit."
    )
    p: float | None
    words: str


class SweepResult(Value):
    """Merges of one base with one or more tuned models."""

    schema_version: int = RESULT_VERSION
    base: str
    suite: str
    targets: list[str] = Field(description="Tasks that the tuned models were trained for.")
    level: float
    budget: float = Field(description="Maximum forgetting, as a share of what tuned forgot.")
    rule: str
    pairs: list[PairResult]
    correlation: Correlation
