"""Result of a comparison as plain values; the format of `--json` and its JSON schema."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import ConfigDict, Field

from forgetmap.comparison.choices import (
    CORRECT_AT,
    LEVEL,
    MARGIN,
    MIN_PAIRED,
    NOISE_FLOOR,
    Rollup,
)
from forgetmap.comparison.estimators import AUTO, estimator_names, find_estimator
from forgetmap.pairing import PairBy
from forgetmap.results import Estimate, Estimates, Notice, PublishedResult, Value

RESULT_VERSION = 2
Verdict = Literal["no_material_loss", "small_loss", "lost", "cannot_tell"]
"""Conclusions from the bounds of a loss and a margin."""
PathKind = Literal["kept", "lost", "regained", "gained", "never", "unstable"]


class PartResult(Estimate):
    """A part of the headline loss, as a share of all items, with its own verdict."""

    verdict: Verdict


class FamilyResult(Value):
    """Groups that were examined together: the more there are, the stronger the correction."""

    name: str = Field(description="tasks, categories, tags or models.")
    size: int


class DecidesResult(Value):
    """What would decide an open verdict with 80 % probability."""

    items: int | None = Field(
        description="Total number of items; null if more items would not help."
    )
    repeats: int | None = Field(description="Answers per item from each model.")


class CoverageResult(Value):
    """Share of the scored results of a side that are paired and scored; null if unknown."""

    before: float | None
    after: float | None


class GradedResult(Estimate):
    """Mean decrease of graded scores, before minus after: losses and gains cancel."""

    pairs: int = Field(description="Number of pairs with a score other than 0 and 1.")


class Headline(Value):
    """Forgetting, adjusted for luck and noise as far as the data allow, and its verdict."""

    verdict: Verdict
    estimator: str = Field(
        description="excess, excess_before, net, matched, bracket or raw; or the requested "
        "estimator."
    )
    forgetting: Estimate = Field(
        description="The loss as a share of all items, including what is no longer answered: at "
        "least `low`, at most `high`. A range has no value."
    )
    backward_transfer: Estimate
    of_known: Estimate = Field(description="Forgetting as a share of what was known before.")
    words: str
    note: str | None = Field(
        description="Why there is no verdict, how many items would decide, or a caution."
    )
    rests_on: str = Field(description="Items, estimator and assumptions, in words.")


def _meaning(name: str) -> Any:
    return Field(description=find_estimator(name).meaning)


class GroupResult(Value):
    """Counts and rates of one group of items, and each estimator under its name.

    Estimators of installed packages are further fields.
    """

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Estimates | Estimate]

    name: str
    items: int = Field(description="Number of different items among the pairs.")
    n: int = Field(description="Number of scored (item, repeat) pairs: the sum of the four cells.")
    n00: int = Field(description="Wrong before and after.")
    n01: int = Field(description="Wrong before, right after: backward transfer.")
    n10: int = Field(description="Right before, wrong after: forgetting.")
    n11: int = Field(description="Right before and after.")
    acc_before: float | None
    acc_after: float | None
    forgetting: Estimate = Field(description="n10 / n.")
    backward_transfer: Estimate = Field(description="n01 / n.")
    conditional_forgetting: Estimate = Field(description="n10 / (n10 + n11).")
    conventional_forgetting: float | None = Field(
        description="max(acc_before - acc_after, 0): the loss visible in averages."
    )
    reasons: dict[str, int | None] = Field(
        description="n10 by the outcome of the answer after; all but `unknown` are null if no "
        "outcome was recorded."
    )
    known_before: float | None = Field(description="Share known beyond guessing: mean c (a - 1/k).")
    published: PublishedResult = _meaning("published")
    latent: Estimates = _meaning("latent")
    upper: Estimates = _meaning("upper")
    bracket_low: Estimates = Field(
        description="Lower end of the plausible range; matched for three or more options."
    )
    bracket_high: Estimates = Field(
        description="Upper end of the plausible range; matched for three or more options."
    )
    matched: Estimates = _meaning("matched")
    excess: Estimates = _meaning("excess")
    excess_before: Estimate = _meaning("excess_before")
    net: Estimates = _meaning("net")
    noise_floor: Estimate = Field(
        description="Share of answers that flip one way between two runs of the same model."
    )
    p_lost: float | None = Field(
        description="One-sided p-value of the hypothesis that nothing was lost."
    )
    q_lost: float | None = Field(
        default=None,
        description="The p-value with the false discovery rate controlled over such groups.",
    )
    mcnemar_p: float | None = Field(
        description="P-value of the hypothesis that accuracy did not change."
    )
    detectable: float | None = Field(
        description="Smallest loss, as a share of all items, detected with 80 % probability; "
        "null if no loss would be detected."
    )
    between_tasks: Estimates | None = Field(
        default=None,
        description="Only for the mean over tasks: the raw rate, for tasks like these.",
    )
    verdict: Verdict
    margin: float = Field(description="Largest acceptable loss, as a share of all items.")
    family: FamilyResult | None = Field(
        description="Number of groups for which the verdict is corrected; null for a single claim."
    )
    decides: DecidesResult | None = Field(description="What would decide; null if decided.")
    knowledge: PartResult = Field(description="The part of the loss that is no longer known.")
    answering: PartResult = Field(description="The part of the loss that is no longer answered.")
    noise_assumed: float | None = Field(
        description="Assumed noise floor, subtracted from the lower bound; null if it was measured."
    )
    symmetric_noise: Estimate = Field(
        description="Valid for noise of any size that flips as many answers either way."
    )
    guess_rate_needed: float | None = Field(
        description="Rate of lucky guesses from which on no loss remains."
    )
    luck_ratio_needed: float | None = Field(
        description="The same as a ratio: how many times more often than any other option the "
        "right one would have to be guessed."
    )
    coverage: CoverageResult
    worst_case: float | None = Field(
        description="Upper bound of the loss if everything missing after was lost; null if "
        "nothing is missing."
    )
    answer_changes: int | None = Field(
        description="Number of answers that were wrong before and another wrong option after; "
        "null if options are not recorded."
    )
    graded: GradedResult | None = Field(description="Null if all scores are 0 or 1.")
    shrunk: Estimate | None = Field(
        default=None, description="For tasks: the loss, shrunk towards the mean of all tasks."
    )
    loss_exceeds_margin: float | None = Field(
        default=None, description="For tasks: probability that the loss exceeds the margin."
    )
    headline: Headline

    def estimates(self, name: str) -> Estimates:
        """Return the estimates of one estimator, in both directions."""
        if name == "raw":
            return Estimates(forgetting=self.forgetting, backward_transfer=self.backward_transfer)
        value: Estimates | Estimate = getattr(self, name)
        if isinstance(value, Estimates):
            return value
        gained = Estimate.missing(name, "does not estimate gains")
        return Estimates(forgetting=value, backward_transfer=gained)


class PairingResult(Value):
    """Paired and unpaired results. rows = paired + only + conflicts, on each side."""

    rows_before: int
    rows_after: int
    paired: int = Field(description="Number of pairs of results, scored or not.")
    items: int = Field(description="Number of different items among the scored pairs.")
    only_before: int
    only_after: int
    duplicates: int = Field(
        description="Number of results that share their content with another item."
    )
    conflicts: int = Field(
        description="Number of results with the same id but different content; they are not paired."
    )
    unscored: int = Field(description="Number of pairs without a score on one or both sides.")
    share: float = Field(description="Number of pairs divided by the size of the smaller side.")
    scored_before: float | None = Field(
        default=None, description="Share of what was scored before that is also scored after."
    )
    scored_after: float | None = Field(
        default=None, description="Share of what was scored after that is also scored before."
    )
    contradictions: list[Notice] = Field(
        default_factory=list,
        description="What the logs state about themselves and the results contradict; then nothing "
        "is decided.",
    )
    warnings: list[Notice]


class Rule(Value):
    """The rules of a comparison: what counts as right, and as the same item."""

    correct_at: float = Field(
        default=CORRECT_AT, allow_inf_nan=False, description="Minimum score that counts as right."
    )
    metric: str | None = Field(
        default=None, description="Requested metric; null for the recorded main metric."
    )
    min_paired: float = Field(
        default=MIN_PAIRED, gt=0, le=1, description="Minimum share of each side that must pair."
    )
    margin: float = Field(
        default=MARGIN, gt=0, lt=1, description="Largest acceptable loss, as a share of all items."
    )
    noise_floor: float = Field(
        default=NOISE_FLOOR,
        ge=0,
        le=0.5,
        description="Assumed share of answers that noise flips one way, if it is not measured.",
    )
    level: float = Field(
        default=LEVEL, gt=0.5, le=0.9999, description="Confidence level of the intervals."
    )
    pair_by: PairBy = "auto"
    strict: bool = Field(
        default=False,
        description="Stop at the first unusable row, and warn about the worst case if coverage is "
        "incomplete.",
    )
    estimator: str = Field(
        default=AUTO,
        description="Estimator of the headline.",
        json_schema_extra=lambda schema: schema.update(enum=[*estimator_names()]),
    )
    rollup: Rollup = Field(default="default", description="How tasks are averaged.")
    task_table: str | None = Field(
        default=None, description="Table of k and category for data without them."
    )


class RunResult(Value):
    """The identity of a run."""

    name: str
    origin: str
    run_id: str | None
    model: str | None
    stage: str | None
    simulated: bool


class StageResult(Value):
    """One later checkpoint of a chain; counts are over the items scored at every stage."""

    name: str
    pairing: PairingResult = Field(description="The first checkpoint compared with this one.")
    against_previous: GroupResult
    against_first: GroupResult
    first_lost: int = Field(
        description="Number of items right at the previous stage, wrong here, and never lost "
        "before."
    )
    regained: int = Field(
        description="Number of items lost at an earlier stage and right again here."
    )


class PathResult(Value):
    """Items with the same history; one digit per stage, 1 means right."""

    path: str
    n: int
    kind: PathKind


class RolledUpResult(Value):
    """A category, or all of them, under the published roll-up: mean and SD over seeds."""

    name: str
    mean: dict[str, float]
    deviation: dict[str, float | None] = Field(
        description="Standard deviation over seeds; null with a single seed."
    )


class ConsensusResult(Value):
    """A category, or all of them, among items on which seeds agree, as in the published code."""

    name: str
    seeds: int = Field(description="Number of seeds that must agree.")
    forgetting: float = Field(description="Share of the items on which they agree.")
    backward_transfer: float
    dropped: float = Field(description="Share of all items on which they do not agree.")


class ComparisonResult(Value):
    """One before and one after; with `stages` and `paths` for the ends of a chain."""

    schema_version: int = RESULT_VERSION
    headline: str = Field(description="The verdict.")
    seen: str = Field(description="The observed rates, including luck and noise.")
    before: RunResult
    after: RunResult
    rule: Rule
    pairing: PairingResult
    total: GroupResult = Field(description="All pairs with equal weight.")
    total_macro: GroupResult = Field(description="Counts of all pairs; rates are means over tasks.")
    categories: list[GroupResult]
    tags: list[GroupResult]
    tasks: list[GroupResult]
    measures: dict[str, str] = Field(
        default_factory=dict,
        description="The metric, or metric/scorer, compared for each task, from the run before.",
    )
    rolled_up: list[RolledUpResult] | None = Field(
        default=None, description="With the roll-up post-forget: its categories and total."
    )
    consensus: list[ConsensusResult] | None = Field(
        default=None, description="With the roll-up post-forget and two or more seeds."
    )
    stages: list[StageResult] | None = None
    paths: list[PathResult] | None = None


class FanOutResult(Value):
    """One model before, several models after."""

    schema_version: int = RESULT_VERSION
    comparisons: list[ComparisonResult]
