"""What two models' log-probabilities say, as plain values: the shape of `--json`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from forgetmap.results import Estimate, Value

RESULT_VERSION = 1
Scope = Literal["prompts like these", "these prompts"]


class OverlapNotice(Value):
    """Something a reader must know before believing the numbers."""

    kind: str
    text: str


class Certificate(Value):
    """What any behaviour keeps for sure: its probability before less what TV may have taken.

    Of several prompts it is about the average over them.
    """

    total_variation_limit: float = Field(
        description="One-sided upper limit of the mean total variation distance."
    )
    kept: dict[str, float | None] = Field(
        description="Probability of a behaviour before -> the least it still has after; null: no "
        "guarantee."
    )
    reason: str | None = Field(default=None, description="Why there is no guarantee, where null.")
    tokens: int | None = Field(description="Longest completion: later tokens are not certified.")
    draws: int = Field(description="Independent draws behind it: prompts, or completions of few.")
    method: str


class OverlapEstimates(Value):
    """The estimates of some prompts, or of one."""

    overlap: Estimate = Field(
        description="Bhattacharyya coefficient of the two models' completions; 1: the same."
    )
    total_variation: Estimate = Field(description="Largest difference in any event's probability.")
    forward_kl: Estimate = Field(description="KL(before||after) per completion, in nats.")
    reverse_kl: Estimate = Field(description="KL(after||before) per completion, in nats.")
    misassigned_before: Estimate = Field(
        description="Chance that a completion of the model before is taken for one of the after."
    )
    misassigned_after: Estimate = Field(description="The other way round.")
    kl_limit: float | None = Field(description="One-sided upper limit of forward_kl.")
    kept: dict[str, float | None] = Field(
        description="Probability of a behaviour before -> the least it still has after if kl_limit "
        "holds, which no number of prompts ensures: `certificate` is the guarantee. Null where "
        "next to nothing would be left."
    )
    kept_reason: str | None = Field(default=None, description="Why `kept` has a null.")
    certificate: Certificate | None = Field(
        default=None, description="What is kept for sure; null in files of older versions."
    )


class PromptResult(OverlapEstimates):
    """One prompt."""

    prompt: str
    group: str | None
    samples_before: int
    samples_after: int
    effective_before: float | None = Field(
        description="What the model before's completions are worth as samples of the after: "
        "effective size of the weights times the probability they account for."
    )
    effective_after: float | None = Field(description="The other way round.")


class LengthResult(Value):
    """The beginnings of all completions."""

    tokens: int
    overlap: Estimate
    forward_kl: Estimate
    reverse_kl: Estimate
    certificate: Certificate | None = Field(
        default=None, description="Of what shows within these tokens."
    )


class OverlapGroup(OverlapEstimates):
    """Some prompts together: means over prompts."""

    name: str
    scope: Scope = Field(description="What the intervals are about.")
    prompts: int
    samples_before: int
    samples_after: int
    tokens: float | None = Field(description="Mean length of a completion.")
    cut: float = Field(description="Share of completions that were cut.")
    separation: float | None = Field(
        description="In standard deviations, of two Gaussians that overlap as much."
    )
    misassigned_bound: float | None = Field(
        description="Largest misassigned_before that goes with this overlap."
    )
    old_mass: Estimate = Field(
        description="Weight of the model before in a mixture with the expert of the new."
    )
    effective_overlap: float | None = Field(
        description="How many completions both models would write: the sum of overlap terms."
    )
    effective_before: float | None = Field(description="Sum over prompts.")
    effective_after: float | None = Field(description="Sum over prompts.")


class OverlapResult(Value):
    """Two models on some prompts; the first group is all of them."""

    schema_version: int = RESULT_VERSION
    before: str
    after: str
    level: float
    new_share: float
    kl_from: Literal["whole distributions", "sampled ratios", "both"]
    groups: list[OverlapGroup]
    prompts: list[PromptResult]
    lengths: list[LengthResult]
    notices: list[OverlapNotice]
