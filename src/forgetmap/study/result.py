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


class PairDrift(Value):
    """How far the capabilities of one pair drifted."""

    before: str
    after: str
    size: float = Field(description="Root mean square of effects in either direction, less noise.")


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
    drift: list[StudyFinding] = Field(
        default=[], description="Of capabilities, where the study measures any."
    )
    drift_sizes: list[PairDrift] = Field(default=[], description="Of the pairs it was measured of.")


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


class ModelStatus(Value):
    """How far one model or merge is."""

    model: str
    state: Literal["logs", "done", "stopped", "failed", "missing"]
    line: int | None = Field(default=None, description="Of the study, where it is a file.")
    answers: int = Field(default=0, description="So far, of a run that is not complete.")
    reason: str = Field(default="", description="Why the last attempt failed.")
    hint: str = Field(default="", description="What to do about it.")
    next: str = Field(default="", description="The command that tries it again.")


class StudyStatus(Value):
    """Which models have runs, and why others have none."""

    schema_version: int = FINDINGS_VERSION
    study: str
    models: int = Field(description="Merges among them.")
    with_runs: int
    pairs: int = Field(description="Those of merges among them.")
    ready: int = Field(description="Pairs whose two models have runs.")
    gaps: list[StudyGap]
    runs: list[ModelStatus] = Field(description="Every model, then every merge.")
    next: str = Field(description="The command to go on with.")


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
