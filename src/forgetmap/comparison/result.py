"""Result of a comparison as plain values; the format of `--json` and its JSON schema."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from pydantic import Field

from forgetmap.comparison.choices import AUTO, CORRECT_AT, LEVEL, MARGIN, MIN_PAIRED, Rollup
from forgetmap.pairing import PairBy
from forgetmap.results import Estimate, Estimates, Notice, Plain, Value
from forgetmap.stats import BoundName, Verdict

RESULT_VERSION = 3
PathKind = Literal["kept", "forgotten", "regained", "gained", "never", "unstable"]
Undecided = Literal["nothing_paired", "nothing_right", "contradicted", "selected", "all_right"]
"""Why nothing can be concluded whatever the numbers are."""
Unlucky = Literal["unanswered", "letters_moved", "too_small", "not_recorded", "guesses_count"]
"""Why a loss of right answers need not be one of knowledge."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitsResult(Plain):
    """What is proven, as a share of all items: at least `low`, at most `high`."""

    low: float | None
    """Lower limit; 0 or below if nothing is proven."""
    high: float | None
    carried_by: BoundName | None
    """What the lower limit rests on: the drop in accuracy, tasks, repeats, confirmed flips, an
    earlier stage, or an assumption that a user stated."""
    p: float | None
    """Two-sided p-value of the hypothesis that there is none."""
    assumes: str | None = None
    """What must be true for the lower limit to hold, if a user stated it."""
    q: float | None = None
    """The p-value with the false discovery rate controlled over such groups."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FamilyResult(Plain):
    """Groups that were examined together: the more there are, the stronger the correction."""

    name: str
    """tasks, categories, tags, models or stages."""
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DecidesResult(Plain):
    """What would decide an open verdict."""

    items: int | None
    """About this many items would decide with 80 % probability; null if more would not help, as
    where accuracy held."""
    flips: int
    """Number of items that went from right to wrong, which can be asked again."""
    answers: int
    """Number of answers of both models together that asking them once more takes."""
    provable: float | None
    """Loss that would be proven if all flips hold in the fresh answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeResult(Plain):
    """Items that went either way while accuracy held."""

    noise_needed: float
    """Share of items that reruns of a model would have to flip one way to explain the flips."""
    rose_by: float
    """Lower limit of the gain in accuracy; 0 or below if none is proven."""
    is_large: bool
    """Whether more flips than the margin are certain."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfirmedResult(Plain):
    """Flips that were asked again."""

    flips: int
    asked: int
    held: float
    """Of the items asked, how many more right answers before than after in the fresh answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CoverageResult(Plain):
    """Share of the scored results of a side that are paired and scored; null if unknown."""

    before: float | None
    after: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeResult(Plain):
    """Mean decrease of a score or probability, before minus after: losses and gains cancel."""

    value: float | None
    low: float | None
    high: float | None
    method: str
    pairs: int
    """Number of pairs with such a value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupResult(Plain):
    """Counts, rates, limits and the verdict of one group of items."""

    name: str
    items: int
    """Number of different items among the pairs."""
    n: int
    """Number of scored (item, repeat) pairs: the sum of the four cells."""
    n11: int
    """Right before and after."""
    n10: int
    """Right before, wrong after."""
    n01: int
    """Wrong before, right after."""
    n00: int
    """Wrong before and after."""
    forgotten: int
    """Number of pairs that went from right to wrong, as counted: n10."""
    gained: int
    """Number of pairs that went from wrong to right, as counted: n01."""
    acc_before: float | None
    acc_after: float | None
    forgetting: Estimate
    """Share that went from right to wrong, noise and luck included."""
    backward_transfer: Estimate
    """Share that went from wrong to right."""
    conditional_forgetting: Estimate
    """Forgetting as a share of what was right before."""
    conventional_forgetting: float | None
    """max(acc_before - acc_after, 0): the loss visible in averages."""
    drop: Estimate
    """Accuracy before minus after, with its limits."""
    loss: LimitsResult
    """What is proven to be lost."""
    gain: LimitsResult
    """What is proven to be gained."""
    verdict: Verdict
    margin: float
    """Largest acceptable loss, as a share of all items."""
    undecided: Undecided | None
    """Why nothing can be concluded, if so."""
    family: FamilyResult | None
    """Number of groups for which the verdict is corrected; null for a single claim."""
    decides: DecidesResult | None
    """What would decide; null if decided."""
    exchange: ExchangeResult | None
    """Items that went either way; null unless the verdict is no_net_loss."""
    confirmed: ConfirmedResult | None
    """Flips that were asked again; null if none were."""
    is_knowledge: bool
    """Whether the loss may be called one of knowledge: it is not explained by answers that are no
    longer given, moved letters or guesses."""
    unlucky: Unlucky | None
    """Why not, if the data show it."""
    unanswered: float | None
    """Share of answers no longer given; null if outcomes are not recorded."""
    readable_drop: float | None
    """Accuracy before minus after among pairs with an answer on both sides, which is no limit; null
    if every answer was given, or outcomes are not recorded."""
    clusters: int | None
    """Number of clusters; null if items are independent."""
    held_here: bool = False
    """Whether accuracy held in the clusters that were seen, and only unseen ones leave it open."""
    reasons: dict[str, int | None]
    """n10 by the outcome of the answer after; all but `unknown` are null if no outcome was
    recorded."""
    noise_floor: Estimate
    """Share of answers that flip one way between two runs of the same model."""
    mcnemar_p: float | None
    """P-value of the hypothesis that accuracy did not change."""
    detectable: float | None
    """Smallest drop, as a share of all items, detected with 80 % probability."""
    coverage: CoverageResult
    worst_case: float | None
    """Upper limit of the loss if everything missing after was lost; null if nothing is missing."""
    answer_changes: int | None
    """Number of answers that were wrong before and another wrong option after; null if options
    are not recorded."""
    graded: ChangeResult | None
    """Null if all scores are 0 or 1."""
    probability: ChangeResult | None
    """Mean fall of the probability of the right answer against the strongest other one; null
    without log-likelihoods. It has far more power than right and wrong, and is another quantity."""
    estimators: dict[str, Estimates]
    """Estimates by name; those that do not decide rest on assumptions."""

    def estimates(self, name: str) -> Estimates:
        """Return the estimates of one estimator, in both directions."""
        return self.estimators[name]


@dataclass(frozen=True, slots=True, kw_only=True)
class PairingResult(Plain):
    """Paired and unpaired results. rows = paired + only + conflicts, on each side.

    Further answers to items that the other side answered less often are in rows alone.
    """

    rows_before: int
    rows_after: int
    paired: int
    """Number of pairs of results, scored or not."""
    items: int
    """Number of different items among the scored pairs."""
    only_before: int
    only_after: int
    duplicates: int
    """Number of results that share their content with another item."""
    conflicts: int
    """Number of results with the same id but different content; they are not paired."""
    unscored: int
    """Number of pairs without a score on one or both sides."""
    share: float
    """Number of pairs divided by the size of the smaller side."""
    scored_before: float | None = None
    """Share of what was scored before that is also scored after."""
    scored_after: float | None = None
    """Share of what was scored after that is also scored before."""
    contradictions: list[Notice] = field(default_factory=list)
    """What the logs state about themselves and the results contradict; then nothing is decided."""
    warnings: list[Notice] = field(default_factory=list)


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
    noise_floor: float | None = Field(
        default=None,
        ge=0,
        le=0.5,
        description="Stated share of answers that reruns flip one way at most; null for none.",
    )
    level: float = Field(
        default=LEVEL, gt=0.5, le=0.9999, description="Confidence level of the intervals."
    )
    look: int = Field(
        default=1, ge=1, description="Which look at these items this is; later looks are stricter."
    )
    looks: int | None = Field(
        default=None,
        ge=1,
        description="Number of looks, if it is fixed beforehand; then all are equally strict.",
    )
    chosen_among: int = Field(
        default=1,
        ge=1,
        description="Number of checkpoints among which this one was chosen by these items.",
    )
    selected: bool | None = Field(
        default=None,
        description="Whether the run before helped to choose the items; null to look for signs.",
    )
    pair_by: PairBy = "auto"
    strict: bool = Field(
        default=False,
        description="Stop at the first unusable row, and warn about the worst case if coverage is "
        "incomplete.",
    )
    estimator: str = Field(
        default=AUTO,
        description="Estimator whose assumption the user states; auto for none.",
    )
    rollup: Rollup = Field(default="default", description="How tasks are averaged.")
    task_table: str | None = Field(
        default=None, description="Table of k and category for data without them."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult(Plain):
    """The identity of a run."""

    name: str
    origin: str
    run_id: str | None
    model: str | None
    stage: str | None
    simulated: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class StageResult(Plain):
    """One later checkpoint of a chain; counts are over the items scored at every stage."""

    name: str
    pairing: PairingResult
    """The first checkpoint compared with this one."""
    against_previous: GroupResult
    against_first: GroupResult
    first_forgotten: int
    """Number of items right at the previous stage, wrong here, and never forgotten before."""
    regained: int
    """Number of items forgotten at an earlier stage and right again here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PathResult(Plain):
    """Items with the same history; one digit per stage, 1 means right."""

    path: str
    n: int
    kind: PathKind


@dataclass(frozen=True, slots=True, kw_only=True)
class RolledUpResult(Plain):
    """A category, or all of them, under the published roll-up: mean and SD over seeds."""

    name: str
    mean: dict[str, float]
    deviation: dict[str, float | None]
    """Standard deviation over seeds; null with a single seed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsensusResult(Plain):
    """A category, or all of them, among items on which seeds agree, as in the published code."""

    name: str
    seeds: int
    """Number of seeds that must agree."""
    forgetting: float
    """Share of the items on which they agree."""
    backward_transfer: float
    dropped: float
    """Share of all items on which they do not agree."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonResult(Plain):
    """One before and one after; with `stages` and `paths` for the ends of a chain."""

    schema_version: int = RESULT_VERSION
    headline: str
    """The verdict in one sentence."""
    before: RunResult
    after: RunResult
    rule: Rule
    pairing: PairingResult
    total: GroupResult
    """All pairs with equal weight."""
    total_macro: GroupResult
    """Counts of all pairs; rates are means over tasks."""
    categories: list[GroupResult]
    tags: list[GroupResult]
    tasks: list[GroupResult]
    measures: dict[str, str] = field(default_factory=dict)
    """The metric, or metric/scorer, compared for each task, from the run before."""
    rolled_up: list[RolledUpResult] | None = None
    """With the roll-up post-forget: its categories and total."""
    consensus: list[ConsensusResult] | None = None
    """With the roll-up post-forget and two or more seeds."""
    stages: list[StageResult] | None = None
    paths: list[PathResult] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FanOutResult(Plain):
    """One model before, several models after."""

    schema_version: int = RESULT_VERSION
    comparisons: list[ComparisonResult]


AnyResult = ComparisonResult | FanOutResult
