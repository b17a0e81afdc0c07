"""What a comparison says, as plain values: the shape of `--json` and its published JSON schema."""

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
"""What a loss and its limits allow to conclude against a margin."""
PathKind = Literal["kept", "lost", "regained", "gained", "never", "unstable"]


class PartResult(Estimate):
    """A part of the headline loss, as a share of all items, with its own verdict."""

    verdict: Verdict


class FamilyResult(Value):
    """The groups that were looked at together: the more there are, the less one proves."""

    name: str = Field(description="tasks, categories, tags or models.")
    size: int


class DecidesResult(Value):
    """What would decide an open verdict four times in five."""

    items: int | None = Field(description="In all; null where more items would not do.")
    repeats: int | None = Field(description="Answers per item from each model.")


class CoverageResult(Value):
    """Share of what one side scored that is paired and scored on the other; null if unknown."""

    before: float | None
    after: float | None


class GradedResult(Estimate):
    """Mean fall of graded scores, before less after: losses and gains cancel."""

    pairs: int = Field(description="Pairs with a score that is neither 0 nor 1.")


class Headline(Value):
    """Forgetting, adjusted for luck and noise as far as the data allow, and what it means."""

    verdict: Verdict
    estimator: str = Field(
        description="excess, excess_before, net, matched, bracket or raw; or the one asked for."
    )
    forgetting: Estimate = Field(
        description="The loss as a share of all items, what is no longer known and what is no "
        "longer answered: at least `low`, at most `high`; a range has no value."
    )
    backward_transfer: Estimate
    of_known: Estimate = Field(description="Forgetting as a share of what was known before.")
    words: str
    note: str | None = Field(
        description="Why nothing can be told, what would decide, or what else is to be known."
    )
    rests_on: str = Field(description="Items, estimator and assumptions, in words.")


def _meaning(name: str) -> Any:
    return Field(description=find_estimator(name).meaning)


class GroupResult(Value):
    """The counts and rates of one group of items; under its name what each estimator says.

    Estimators of installed packages stand beside ours under theirs.
    """

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Estimates | Estimate]

    name: str
    items: int = Field(description="Different items among the pairs.")
    n: int = Field(description="Scored (item, repeat) pairs: the sum of the four cells.")
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
        description="max(acc_before - acc_after, 0): what averages alone would show."
    )
    reasons: dict[str, int | None] = Field(
        description="n10 by the way the answer ended after; all but `unknown` are null where no "
        "outcome was recorded."
    )
    known_before: float | None = Field(description="Share known beyond guessing: mean c (a - 1/k).")
    published: PublishedResult = _meaning("published")
    latent: Estimates = _meaning("latent")
    upper: Estimates = _meaning("upper")
    bracket_low: Estimates = Field(
        description="Lower end with all that the data allow: matched for three and more options."
    )
    bracket_high: Estimates = Field(description="Upper end, likewise.")
    matched: Estimates = _meaning("matched")
    excess: Estimates = _meaning("excess")
    excess_before: Estimate = _meaning("excess_before")
    net: Estimates = _meaning("net")
    noise_floor: Estimate = Field(description="How often two runs of one model flip one way.")
    p_lost: float | None = Field(description="One-sided p-value that nothing was lost.")
    q_lost: float | None = Field(
        default=None, description="The same, false discovery rate controlled over such groups."
    )
    mcnemar_p: float | None = Field(description="P-value that accuracy did not change.")
    detectable: float | None = Field(
        description="Smallest loss, as a share of all items, found four times in five; null where "
        "none of what is known would do."
    )
    between_tasks: Estimates | None = Field(
        default=None, description="Of the mean over tasks only: raw, for tasks like these."
    )
    verdict: Verdict
    margin: float = Field(description="The loss, as a share of all items, that is put up with.")
    family: FamilyResult | None = Field(
        description="Groups over which the verdict is corrected; null of a single claim."
    )
    decides: DecidesResult | None = Field(description="Null when decided.")
    knowledge: PartResult = Field(description="Of the headline loss: no longer known.")
    answering: PartResult = Field(description="Of the headline loss: no longer answered.")
    noise_assumed: float | None = Field(
        description="Noise floor that was taken off the lower limit; null where it was measured."
    )
    symmetric_noise: Estimate = Field(
        description="Holds for noise of any size that flips as many answers either way."
    )
    guess_rate_needed: float | None = Field(
        description="Rate of lucky guesses from which on nothing is left of the loss."
    )
    luck_ratio_needed: float | None = Field(
        description="The same as a ratio: how many times as often as any other option the right "
        "one would have to be hit by luck."
    )
    coverage: CoverageResult
    worst_case: float | None = Field(
        description="Loss at most if everything that is missing after was lost; null where nothing "
        "is missing."
    )
    answer_changes: int | None = Field(
        description="Wrong before, another wrong option after; null where options are not recorded."
    )
    graded: GradedResult | None = Field(description="Null where scores are 0 and 1.")
    shrunk: Estimate | None = Field(
        default=None, description="Of tasks: the loss, drawn towards the mean of all tasks."
    )
    loss_exceeds_margin: float | None = Field(
        default=None, description="Of tasks: probability that the loss is above the margin."
    )
    headline: Headline

    def estimates(self, name: str) -> Estimates:
        """What one estimator says, in both directions."""
        if name == "raw":
            return Estimates(forgetting=self.forgetting, backward_transfer=self.backward_transfer)
        value: Estimates | Estimate = getattr(self, name)
        if isinstance(value, Estimates):
            return value
        gained = Estimate.missing(name, "says nothing of what was gained")
        return Estimates(forgetting=value, backward_transfer=gained)


class PairingResult(Value):
    """What paired and what did not. rows = paired + only + conflicts, on each side."""

    rows_before: int
    rows_after: int
    paired: int = Field(description="Pairs of results, scored or not.")
    items: int = Field(description="Different items among the scored pairs.")
    only_before: int
    only_after: int
    duplicates: int = Field(description="Results that share their content with another item.")
    conflicts: int = Field(description="Same id, other content: not paired.")
    unscored: int = Field(description="Pairs without a score on one side or both.")
    share: float = Field(description="paired / the smaller side.")
    scored_before: float | None = Field(
        default=None, description="Share of what was scored before that is scored after as well."
    )
    scored_after: float | None = Field(default=None, description="The other way round.")
    warnings: list[Notice]


class Rule(Value):
    """How it was decided what counts as right, and as the same item."""

    correct_at: float = Field(
        default=CORRECT_AT, allow_inf_nan=False, description="Right from this score on."
    )
    metric: str | None = Field(default=None, description="As asked for; null: as recorded.")
    min_paired: float = Field(
        default=MIN_PAIRED, gt=0, le=1, description="Share of each side that must pair."
    )
    margin: float = Field(
        default=MARGIN, gt=0, lt=1, description="Loss that is put up with, of all items."
    )
    noise_floor: float = Field(
        default=NOISE_FLOOR,
        ge=0,
        le=0.5,
        description="Share of answers that noise alone flips one way, where not measured.",
    )
    level: float = Field(default=LEVEL, gt=0.5, le=0.9999, description="Confidence of intervals.")
    pair_by: PairBy = "auto"
    strict: bool = Field(
        default=False,
        description="A row that cannot be used is an error, and below full coverage the worst case "
        "is a warning.",
    )
    estimator: str = Field(
        default=AUTO,
        description="What the headline is made of.",
        json_schema_extra=lambda schema: schema.update(enum=[*estimator_names()]),
    )
    rollup: Rollup = Field(default="default", description="How tasks are summed up.")
    task_table: str | None = Field(
        default=None, description="Names k and category where the data do not."
    )


class RunResult(Value):
    """Which run."""

    name: str
    origin: str
    run_id: str | None
    model: str | None
    stage: str | None
    simulated: bool


class StageResult(Value):
    """One later checkpoint of a chain; counts are over the items scored at every stage."""

    name: str
    pairing: PairingResult = Field(description="Of the first checkpoint with this one.")
    against_previous: GroupResult
    against_first: GroupResult
    first_lost: int = Field(description="Right at the stage before, wrong here, never lost before.")
    regained: int = Field(description="Lost at some stage before, right again here.")


class PathResult(Value):
    """Items with the same history; one digit per stage, 1 is right."""

    path: str
    n: int
    kind: PathKind


class RolledUpResult(Value):
    """A category, or all of them, under the published roll-up: mean and SD over seeds."""

    name: str
    mean: dict[str, float]
    deviation: dict[str, float | None] = Field(description="Null with a single seed.")


class ConsensusResult(Value):
    """A category, or all of them, among items on which so many seeds agree; as published code."""

    name: str
    seeds: int = Field(description="Seeds that must agree.")
    forgetting: float = Field(description="Share of the items on which they agree.")
    backward_transfer: float
    dropped: float = Field(description="Share of all items on which they do not agree.")


class ComparisonResult(Value):
    """One before and one after; with `stages` and `paths` if they are the ends of a chain."""

    schema_version: int = RESULT_VERSION
    headline: str = Field(description="What may be concluded.")
    seen: str = Field(description="What was counted, luck and noise included.")
    before: RunResult
    after: RunResult
    rule: Rule
    pairing: PairingResult
    total: GroupResult = Field(description="Every pair counts the same.")
    total_macro: GroupResult = Field(description="Counts of all; rates are means over tasks.")
    categories: list[GroupResult]
    tags: list[GroupResult]
    tasks: list[GroupResult]
    measures: dict[str, str] = Field(
        default_factory=dict,
        description="Task -> metric, or metric/scorer, that was compared; of the run before.",
    )
    rolled_up: list[RolledUpResult] | None = Field(
        default=None, description="Under the roll-up post-forget: its categories and total."
    )
    consensus: list[ConsensusResult] | None = Field(
        default=None, description="Under the roll-up post-forget, with two seeds or more."
    )
    stages: list[StageResult] | None = None
    paths: list[PathResult] | None = None


class FanOutResult(Value):
    """One before, several after."""

    schema_version: int = RESULT_VERSION
    comparisons: list[ComparisonResult]
