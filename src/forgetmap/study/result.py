"""What can be said over the pairs of a study, as plain values: the shape of `--json`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from forgetmap.results import Estimate, Notice, Value

FINDINGS_VERSION = 1
Answer = Literal["yes", "no", "cannot tell"]
"""Of a claim: the data support it, contradict it, or allow both."""


class NamedEstimate(Value):
    """A number that a finding rests on."""

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
    evidence: list[NamedEstimate] = Field(description="What the answer rests on, first the main.")
    confounds: list[str] = Field(description="What else could have made it so.")


class GroupEffect(Value):
    """The pairs of one group in one category."""

    group: str
    category: str
    pairs: int
    lineages: int
    forgetting: Estimate = Field(description="Mean over pairs such as these.")
    backward_transfer: Estimate
    forgetting_of_these: Estimate = Field(description="Mean of these pairs, items drawn anew.")
    backward_transfer_of_these: Estimate


class PaperFindings(Value):
    """The claims of one paper, held against its own values."""

    paper: str
    source: dict[str, str]
    findings: list[StudyFinding] = Field(description="What the paper claims.")
    further: list[StudyFinding] = Field(description="What else its values can be asked.")


class FindingsResult(Value):
    """What the pairs of a study say together."""

    schema_version: int = FINDINGS_VERSION
    study: str
    level: float
    margin: float
    pairs: int
    lineages: int
    findings: list[StudyFinding]
    groups: list[GroupEffect]
    notices: list[Notice]


class PairResults(Value):
    """One pair: shares of all items, a category being the mean of its tasks."""

    before: str
    after: str
    label: str
    group: str
    items: int = Field(description="That both models answered.")
    shared: float = Field(description="Their share of what either answered.")
    forgetting: dict[str, Estimate] = Field(description="By category, the total first.")
    backward_transfer: dict[str, Estimate]


class StudyGap(Value):
    """A model without a run, and the pairs that are missing for it."""

    model: str
    pairs: list[str]


class StudyStatus(Value):
    """Which models have runs."""

    schema_version: int = FINDINGS_VERSION
    study: str
    models: int = Field(description="Merges among them.")
    with_runs: int
    pairs: int = Field(description="Those of merges among them.")
    ready: int = Field(description="Pairs whose two models have runs.")
    gaps: list[StudyGap]


class StudyResult(Value):
    """All pairs of a study, and what they say together."""

    schema_version: int = FINDINGS_VERSION
    study: str
    pairs: list[PairResults]
    gaps: list[StudyGap] = Field(description="Models without a run: shown, never counted as 0.")
    findings: FindingsResult


class PublishedFindings(Value):
    """What two papers claim, held against their own values."""

    schema_version: int = FINDINGS_VERSION
    level: float
    papers: list[PaperFindings]
    groups: list[GroupEffect]
