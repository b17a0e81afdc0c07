"""Result of the lab: every training run, each method over its seeds, and the conclusions."""

from __future__ import annotations

from pydantic import Field

from forgetmap.overlap import BridgeResult
from forgetmap.results import Estimate, Value


class LabCell(Value):
    """Counts of one part (near or far) and category, relative to the start model."""

    part: str
    category: str
    items: int
    known: int = Field(description="Number of items the start model answers right.")
    forgotten: int = Field(description="Number of these that are wrong after training.")
    gained: int = Field(
        description="Number of items wrong with the start model and right after training."
    )


class Divergences(Value):
    """Mean KL per answer token between the start and the trained model, in nats."""

    old_forward: float = Field(
        description="KL(start||model) on old questions that no method was trained on."
    )
    old_reverse: float = Field(description="KL(model||start) on the same questions.")
    new_forward: float = Field(description="KL(start||model) on the new examples.")
    new_reverse: float


class LabRun(Value):
    """One training run."""

    method: str
    strength: float
    rate: float
    seed: int
    score: float | None = Field(
        description="Share of the new examples known at the end; null if the run diverged."
    )
    reached: bool = Field(description="Whether the target was reached.")
    steps: int
    compute: int = Field(description="Tokens through the model; a backward pass counts twice.")
    seconds: float
    cells: list[LabCell] = Field(description="Null if the run diverged.")
    kl: Divergences | None = Field(description="Null if the run diverged.")
    diverged: bool = Field(
        default=False,
        description="The weights became infinite, so the target is not reached and the loss is "
        "unknown.",
    )
    peak: float | None = Field(
        default=None, description="Largest share of near items lost at any look during training."
    )
    peak_step: int | None = None
    folder: str = Field(description="Runs and model, inside the lab's folder.")

    def lost(self, part: str | None = None) -> float | None:
        """Return the share of the known items of a part, or of all, that were forgotten."""
        return _ratio(self._of(part), "forgotten", "known")

    def gained(self, part: str | None = None) -> float | None:
        """Return the share of the items of a part, or of all, that were gained."""
        return _ratio(self._of(part), "gained", "items")

    def _of(self, part: str | None) -> list[LabCell]:
        return [cell for cell in self.cells if part in (None, cell.part)]


def _ratio(cells: list[LabCell], one: str, other: str) -> float | None:
    total = sum(getattr(cell, other) for cell in cells)
    return sum(getattr(cell, one) for cell in cells) / total if total else None


class LabDifference(Value):
    """The difference of a method and a baseline, paired by seed."""

    baseline: str
    rate: float = Field(description="Learning rate of the baseline.")
    part: str
    ratio: float | None = Field(description="Share lost by the method / by the baseline.")
    difference: Estimate = Field(
        description="Share lost by the method minus share lost by the baseline."
    )


class LabCategory(Value):
    """A category, over seeds."""

    part: str
    category: str
    forgetting: Estimate = Field(description="Share of all items that was forgotten.")
    backward_transfer: Estimate = Field(description="Share of all items that was gained.")


class MethodResult(Value):
    """A method at its best setting, over the reported seeds."""

    method: str
    title: str
    needs: str = Field(
        description="What the method needs of the old data: nothing, prompts or examples."
    )
    strength: float
    strength_of: str
    rate: float
    seeds: int
    reached: int = Field(description="Number of seeds that reached the target.")
    diverged: int = Field(
        default=0, description="Number of seeds whose weights became infinite; means exclude them."
    )
    score: Estimate
    lost_near: Estimate
    lost_far: Estimate
    compute: float = Field(
        description="Mean compute, relative to plain fine-tuning at its best learning rate."
    )
    steps: float
    kl: Divergences
    peak: float | None = None
    peak_step: float | None = None
    differences: list[LabDifference]
    categories: list[LabCategory]
    bound: float | None = Field(
        description="Upper bound of the theory for the loss of old behaviour: "
        "sqrt(KL(model||start) / 2) per answer token, at most 1."
    )
    is_efficient: bool = Field(
        description="Whether no other method loses less, near and far together, with as little "
        "compute."
    )


class LabCapability(Value):
    """Drift of a capability, or of a group of capabilities, from the start model to one model."""

    method: str
    group: str = Field(description="CAN, WILL, HOW, or another of the taxonomy.")
    capability: str | None = Field(description="Null for the whole group.")
    name: str
    drift: Estimate = Field(description="Effect as in `forgetmap drift`; below 0 is worse or less.")


class LabResult(Value):
    """Comparison of methods from one start model."""

    schema_version: int = 1
    recipe: str
    target: float
    seeds: list[int]
    development_seed: int = Field(
        description="The seed that chose the settings; not one of the reported seeds."
    )
    parameters: int
    start_score: float = Field(
        description="Share of the new examples that the start model already knows."
    )
    known_near: int
    known_far: int
    items_near: int
    items_far: int
    methods: list[MethodResult] = Field(description="Least forgetting first.")
    runs: list[LabRun]
    bridge: BridgeResult | None
    capabilities: list[LabCapability] = Field(
        default_factory=list,
        description="Drift of each method at its best setting, on one seed, if requested.",
    )
    headline: str
    notices: list[str]


class RepairRun(Value):
    """The model that forgot after further training with one kind of replay."""

    kind: str = Field(description="targeted, random, or none: new examples alone.")
    seed: int
    rows: int = Field(description="Number of different old examples that were replayed.")
    score_before: float = Field(
        description="Share of the new examples known by the forgotten model."
    )
    score: float
    steps: int
    compute: int
    forgotten_targeted: int = Field(
        description="Number of forgotten items in the targeted domains."
    )
    recovered_targeted: int = Field(description="Number of these that are right again.")
    forgotten_untouched: int
    recovered_untouched: int
    lost_targeted: float | None = Field(
        description="Share of the known items that is wrong after repair; null if none was known."
    )
    lost_untouched: float | None


class RepairSummary(Value):
    """One kind of replay, over seeds."""

    kind: str
    recovered_targeted: Estimate = Field(description="Share of what was forgotten there.")
    recovered_untouched: Estimate
    lost_targeted: Estimate
    lost_untouched: Estimate
    score: Estimate
    score_change: Estimate


class RepairResult(Value):
    """Targeted synthetic replay compared with random replay of the same size."""

    schema_version: int = 1
    recipe: str
    seeds: list[int]
    domains: list[str] = Field(
        description="Categories with the largest losses on the development seed."
    )
    lost_before: Estimate = Field(description="Share of the known items that training had lost.")
    rows: int
    summaries: list[RepairSummary]
    targeted_less_random: Estimate = Field(
        description="Difference of the recovered shares in the targeted domains."
    )
    untouched_difference: Estimate = Field(
        description="Difference of the recovered shares in the other domains."
    )
    runs: list[RepairRun]
    headline: str
    notices: list[str]


class MergePoint(Value):
    """A merge of the start model and a trained model."""

    weight: float = Field(description="Share of the trained model in the merge.")
    lost: float = Field(description="Share of the known items that is lost.")
    halves: tuple[float, float] = Field(description="The same for even and odd items.")
    score: float = Field(description="Share of the new examples that is known.")


class MergeLevel(Value):
    """One model with a certain drift, and its merges with the start model."""

    share: float = Field(description="Share of the new examples used for training.")
    seed: int
    distance: float = Field(
        description="Norm of the weight change divided by the norm of the start model."
    )
    kl_old_reverse: float
    lost: float
    score: float
    points: list[MergePoint]
    recovered: float | None = Field(
        description="Share of the loss undone by the best merge with 95 % of the gain, on items "
        "that did not choose it."
    )
    weight: float | None = Field(
        description="Share of the trained model in the merge chosen by all items."
    )


class MergeDriftResult(Value):
    """Whether merging compensates forgetting if drift is small."""

    schema_version: int = 1
    recipe: str
    seeds: list[int]
    levels: list[MergeLevel]
    trend: Estimate = Field(description="Rank correlation of drift and recovered share.")
    small: Estimate = Field(
        description="Recovered share in the half of the levels with less drift."
    )
    large: Estimate = Field(
        description="Recovered share in the half of the levels with more drift."
    )
    difference: Estimate = Field(description="Difference of small and large drift, by seed.")
    headline: str
    notices: list[str]
