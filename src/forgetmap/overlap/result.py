"""Result of an overlap measurement as plain values; the format of `--json`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from forgetmap.results import Estimate, Value

RESULT_VERSION = 1
Scope = Literal["prompts like these", "these prompts"]


class OverlapNotice(Value):
    """A limitation of the numbers."""

    kind: str
    text: str


class Certificate(Value):
    """Guaranteed probability of any behaviour: its probability before minus the bound of TV.

    For several prompts it applies to the average over them.
    """

    total_variation_limit: float = Field(
        description="One-sided upper bound of the mean total variation distance."
    )
    kept: dict[str, float | None] = Field(
        description="Guaranteed probability after, for each probability before; null if there "
        "is no guarantee."
    )
    reason: str | None = Field(default=None, description="Why there is no guarantee.")
    tokens: int | None = Field(
        description="Length of the longest completion; later tokens are not certified."
    )
    draws: int = Field(
        description="Number of independent draws: prompts, or completions if there are few prompts."
    )
    method: str


class OverlapEstimates(Value):
    """The estimates of some prompts, or of one."""

    overlap: Estimate = Field(
        description="Bhattacharyya coefficient of the completions of both models; 1 if identical."
    )
    total_variation: Estimate = Field(description="Largest difference in any event's probability.")
    forward_kl: Estimate = Field(description="KL(before||after) per completion, in nats.")
    reverse_kl: Estimate = Field(description="KL(after||before) per completion, in nats.")
    misassigned_before: Estimate = Field(
        description="Probability of assigning a completion of the model before to the model after."
    )
    misassigned_after: Estimate = Field(
        description="Probability of assigning a completion of the model after to the model before."
    )
    kl_limit: float | None = Field(description="One-sided upper bound of forward_kl.")
    kept: dict[str, float | None] = Field(
        description="Probability after, for each probability before, if kl_limit holds. This is "
        "not guaranteed by any number of prompts; see `certificate`. Null if almost nothing "
        "would remain."
    )
    kept_reason: str | None = Field(default=None, description="Why `kept` contains null.")
    certificate: Certificate | None = Field(
        default=None, description="Guaranteed lower bounds; null in files of older versions."
    )


class PromptResult(OverlapEstimates):
    """Estimates of one prompt."""

    prompt: str
    group: str | None
    samples_before: int
    samples_after: int
    effective_before: float | None = Field(
        description="Effective number of completions of the model before as samples of the "
        "model after: effective size of the weights times the covered probability."
    )
    effective_after: float | None = Field(
        description="The same for completions of the model after."
    )


class LengthResult(Value):
    """Estimates from the beginnings of all completions."""

    tokens: int
    overlap: Estimate
    forward_kl: Estimate
    reverse_kl: Estimate
    certificate: Certificate | None = Field(
        default=None, description="Length in tokens that the results cover."
    )


class OverlapGroup(OverlapEstimates):
    """Estimates of several prompts: means over prompts."""

    name: str
    scope: Scope = Field(description="Population of the intervals.")
    prompts: int
    samples_before: int
    samples_after: int
    tokens: float | None = Field(description="Mean length of a completion.")
    cut: float = Field(description="Share of completions that were cut.")
    separation: float | None = Field(
        description="Distance of two Gaussians with this overlap, in standard deviations."
    )
    misassigned_bound: float | None = Field(
        description="Largest misassigned_before compatible with this overlap."
    )
    old_mass: Estimate = Field(
        description="Weight of the model before in a mixture with the model of the new behaviour."
    )
    effective_overlap: float | None = Field(
        description="Number of completions that both models would write: the sum of overlap terms."
    )
    effective_before: float | None = Field(description="Sum over prompts.")
    effective_after: float | None = Field(description="Sum over prompts.")


class OverlapResult(Value):
    """Overlap of two models on some prompts; the first group has all of them."""

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
