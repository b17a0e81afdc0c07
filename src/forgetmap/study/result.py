"""Result of a study as plain values; the format of `--json`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from forgetmap.comparison import ExchangeResult, LimitsResult, Undecided
from forgetmap.results import Estimate, Notice, Value
from forgetmap.stats import Verdict

FINDINGS_VERSION = 2
Answer = Literal["yes", "no", "cannot tell"]
"""Answer to a claim: the data support it, contradict it, or allow both."""


class NamedEstimate(Value):
    """An estimate that supports a finding."""

    name: str
    estimate: Estimate
    pairs: int
    lineages: int


class StudyFinding(Value):
    """A claim, and whether the pairs support it."""

    id: str = Field(description="Stable name, for programs.")
    claim: str
    answer: Answer
    sentence: str
    evidence: list[NamedEstimate] = Field(
        description="Estimates behind the answer, the main one first."
    )
    confounds: list[str] = Field(description="Alternative explanations.")


class GroupEffect(Value):
    """The pairs of one group in one category."""

    group: str
    category: str
    pairs: int
    lineages: int
    forgetting: Estimate = Field(description="Mean over pairs like these.")
    backward_transfer: Estimate
    forgetting_of_these: Estimate = Field(description="Mean of these pairs, items resampled.")
    backward_transfer_of_these: Estimate


class PaperFindings(Value):
    """Claims of one paper, tested on its own values."""

    paper: str
    source: dict[str, str]
    findings: list[StudyFinding] = Field(description="Claims of the paper.")
    further: list[StudyFinding] = Field(description="Further questions, tested on its values.")


class PairDrift(Value):
    """Drift of the capabilities of one pair."""

    before: str
    after: str
    size: float = Field(description="Root mean square of effects in either direction, minus noise.")


class FindingsResult(Value):
    """Findings over the pairs of a study."""

    schema_version: int = FINDINGS_VERSION
    study: str
    level: float
    margin: float
    pairs: int
    lineages: int
    findings: list[StudyFinding]
    groups: list[GroupEffect]
    notices: list[Notice]
    drift: list[StudyFinding] = Field(default=[], description="Drift of capabilities, if measured.")
    drift_sizes: list[PairDrift] = Field(
        default=[], description="Drift of the pairs for which it was measured."
    )


class PairResults(Value):
    """Results of one pair: shares of all items; a category is the mean of its tasks."""

    before: str
    after: str
    label: str
    group: str
    items: int = Field(description="Number of items answered by both models.")
    shared: float = Field(description="Share of these among the items answered by either model.")
    forgetting: dict[str, Estimate] = Field(
        description="Adjusted for chance as published; by category, the total first."
    )
    backward_transfer: dict[str, Estimate]
    verdict: Verdict = Field(description="Verdict on the total, as of `compare`.")
    margin: float = Field(description="Largest acceptable loss of this verdict.")
    loss: LimitsResult = Field(description="What is proven to be lost, as a share of all items.")
    exchange: ExchangeResult | None = Field(
        default=None, description="Items that went either way while accuracy held."
    )
    undecided: Undecided | None = Field(
        default=None, description="Kind of the reason why nothing can be concluded, if so."
    )
    reason: str = Field(default="", description="Why nothing can be concluded, if so.")


class StudyGap(Value):
    """A model without a run, and the pairs that need it."""

    model: str
    pairs: list[str]


class ModelStatus(Value):
    """Status of one model or merge."""

    model: str
    state: Literal["logs", "done", "stopped", "failed", "missing"]
    line: int | None = Field(default=None, description="Line in the study file, if it is a file.")
    answers: int = Field(default=0, description="Number of answers so far, for an incomplete run.")
    reason: str = Field(default="", description="Error of the last attempt.")
    hint: str = Field(default="", description="How to fix the error.")
    next: str = Field(default="", description="Command to try again.")


class StudyStatus(Value):
    """Status of all models of a study."""

    schema_version: int = FINDINGS_VERSION
    study: str
    models: int = Field(description="Number of merges among them.")
    with_runs: int
    pairs: int = Field(description="Number of pairs of merges among them.")
    ready: int = Field(description="Number of pairs with runs of both models.")
    gaps: list[StudyGap]
    runs: list[ModelStatus] = Field(description="Every model, then every merge.")
    next: str = Field(description="Next command.")


class StudyResult(Value):
    """All pairs of a study, and the findings over them."""

    schema_version: int = FINDINGS_VERSION
    study: str
    pairs: list[PairResults]
    gaps: list[StudyGap] = Field(description="Models without a run; listed, never counted as 0.")
    findings: FindingsResult


class PublishedFindings(Value):
    """Claims of two papers, tested on their own values."""

    schema_version: int = FINDINGS_VERSION
    level: float
    papers: list[PaperFindings]
    groups: list[GroupEffect]
