"""What a comparison says, as plain values: the shape of `--json` and its published JSON schema."""

from __future__ import annotations

import json
import re
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from forgetmap.pairing.checks import Notice
from forgetmap.pairing.keys import PairBy

RESULT_VERSION = 1
PathKind = Literal["kept", "lost", "regained", "gained", "never", "unstable"]
_UNUSUAL = re.compile(r"[^\n\x20-\x7e]")


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    def to_json(self, *, indent: int | None = 2) -> str:
        """As JSON that is safe to print: what drives a terminal is escaped, letters are not."""
        return _UNUSUAL.sub(_escaped, self.model_dump_json(indent=indent))


def _escaped(found: re.Match[str]) -> str:
    return found[0] if found[0].isprintable() else json.dumps(found[0])[1:-1]


class Estimate(_Value):
    """A number, how sure we are, and how it was made. Unknown is null, never 0."""

    value: float | None
    low: float | None = None
    high: float | None = None
    method: str


class GroupResult(_Value):
    """The counts and rates of one group of items."""

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


class PairingResult(_Value):
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
    warnings: list[Notice]


class Rule(_Value):
    """How it was decided what counts as right, and as the same item."""

    correct_at: float = Field(
        default=0.5, allow_inf_nan=False, description="Right from this score on."
    )
    metric: str | None = Field(default=None, description="As asked for; null: as recorded.")
    min_paired: float = Field(default=0.8, gt=0, le=1, description="Share that must pair.")
    pair_by: PairBy = "auto"


class RunResult(_Value):
    """Which run."""

    name: str
    origin: str
    run_id: str | None
    model: str | None
    stage: str | None
    simulated: bool


class StageResult(_Value):
    """One later checkpoint of a chain; counts are over the items scored at every stage."""

    name: str
    pairing: PairingResult = Field(description="Of the first checkpoint with this one.")
    against_previous: GroupResult
    against_first: GroupResult
    first_lost: int = Field(description="Right at the stage before, wrong here, never lost before.")
    regained: int = Field(description="Lost at some stage before, right again here.")


class PathResult(_Value):
    """Items with the same history; one digit per stage, 1 is right."""

    path: str
    n: int
    kind: PathKind


class ComparisonResult(_Value):
    """One before and one after; with `stages` and `paths` if they are the ends of a chain."""

    schema_version: int = RESULT_VERSION
    headline: str
    before: RunResult
    after: RunResult
    rule: Rule
    pairing: PairingResult
    total: GroupResult = Field(description="Every pair counts the same.")
    total_macro: GroupResult = Field(description="Counts of all; rates are means over tasks.")
    categories: list[GroupResult]
    tags: list[GroupResult]
    tasks: list[GroupResult]
    stages: list[StageResult] | None = None
    paths: list[PathResult] | None = None


class FanOutResult(_Value):
    """One before, several after."""

    schema_version: int = RESULT_VERSION
    comparisons: list[ComparisonResult]
