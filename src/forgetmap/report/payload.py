"""Everything a report says, as plain values. Every renderer reads this and computes nothing."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from forgetmap.transitions.result import ComparisonResult, Value

PAYLOAD_VERSION: Literal[1] = 1
"""Rises when something is renamed, removed or means something else."""

Kind = Literal["pair", "many", "chain"]
Level = Literal["total", "macro", "category", "tag", "task", "stage", "since_first"]
"""Of a chain `stage` is against the stage before, `since_first` against the first one."""
Direction = Literal["forgetting", "backward_transfer"]
Scale = Literal["items", "known"]
"""A share of all items; or, of what there was to lose (or to gain)."""
ESTIMATORS = ("headline", "raw", "published", "latent", "upper", "matched", "excess", "net")
"""In the order they are offered; one that has no value anywhere has no rows."""
NOISE_FLOOR = "noise_floor"
"""Stands in `Rows.estimator` too; it is drawn beside the others, not chosen."""
Cell = str | float | int | list[str] | None


class Rows(Value):
    """Estimates in long form: column -> one value per row, all of the same length."""

    comparison: list[int] = Field(description="Place in `Payload.comparisons`.")
    level: list[Level]
    group: list[str]
    estimator: list[str]
    direction: list[Direction]
    scale: list[Scale]
    value: list[float | None]
    low: list[float | None]
    high: list[float | None]
    n: list[int]


class Items(Value):
    """Items of one comparison: column -> one value per item; what nobody recorded is absent.

    `task`, `item`, `item_after` (where any is called otherwise), `repeat`, `transition`
    (forgotten, gained; kept and never where asked for), `category`, `reason` (of the forgotten),
    `k`, `gold`, `question`, `options`, and for each side `score_*`, `outcome_*`, `answer_*`,
    `choice_*`, `prompt_*`, `response_*`, `error_*`.
    """

    comparison: int
    total: dict[str, int] = Field(description="Transition -> how many there are in all.")
    shortened: int = Field(
        default=0, description="Texts that lost their middle, so that the file fits."
    )
    columns: dict[str, list[Cell]]


class Histories(Value):
    """Of a chain: one entry per item scored at every stage, or a sample of them."""

    stages: list[str]
    total: int
    task: list[str]
    item: list[str]
    path: list[str] = Field(description="One digit per stage; 1 is right.")
    kind: list[str]


class Payload(Value):
    """A whole report."""

    payload_version: Literal[1] = PAYLOAD_VERSION
    kind: Kind
    title: str
    made: str | None = Field(description="Date, ISO 8601; null where reports must not differ.")
    version: str = Field(description="Of forgetmap.")
    redacted: bool = Field(description="Texts are left out or blackened.")
    comparisons: list[ComparisonResult] = Field(
        description="One of a pair; of many each after against the one before; of a chain first "
        "against last (with stages and paths), then first against each later stage "
        "(only the last where it was read from a folder)."
    )
    rows: Rows
    items: list[Items]
    histories: Histories | None = None
