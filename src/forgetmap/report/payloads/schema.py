"""Schema of the payload: all values that renderers show; they compute nothing."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from forgetmap.capabilities import DriftResult
from forgetmap.comparison import ComparisonResult, Summary
from forgetmap.overlap import BridgeResult
from forgetmap.results import Value
from forgetmap.text import Tone

PAYLOAD_VERSION: Literal[2] = 2
"""Increased when a field is renamed, removed or changes its meaning."""

Kind = Literal["pair", "many", "chain", "drift"]
Level = Literal["total", "macro", "category", "tag", "task", "stage", "since_first"]
"""In a chain, `stage` compares with the previous stage, `since_first` with the first one."""
Direction = Literal["forgetting", "backward_transfer"]
Scale = Literal["items", "right_before"]
"""Share of all items, or of what was right before (of gains: of what was wrong before)."""
FLIPS = "flips"
"""First estimator in `Rows.estimator`: as counted. One without any value has no rows."""
PROVEN = "proven"
"""Also in `Rows.estimator`: limits of what is proven, drawn beside the others, without a value."""
Cell = str | float | int | list[str] | None


class Rows(Value):
    """Estimates in long form: column -> one value per row, all of the same length."""

    comparison: list[int] = Field(description="Index in `Payload.comparisons`.")
    level: list[Level]
    group: list[str]
    estimator: list[str]
    direction: list[Direction]
    scale: list[Scale]
    value: list[float | None]
    low: list[float | None]
    high: list[float | None]
    n: list[int]


class VerdictWords(Value):
    """A verdict as it is shown."""

    words: str
    tone: Tone


class Items(Value):
    """Items of one comparison: column -> one value per item; unrecorded columns are absent.

    `task`, `item`, `item_after` (if any differs), `repeat`, `transition` (forgotten, gained; kept
    and never on request), `category`, `reason` (of the forgotten), `k`, `gold`, `question`,
    `options`, and for each side `score_*`, `outcome_*`, `answer_*`, `choice_*`, `prompt_*`,
    `response_*`, `error_*`. In a drift, an item is listed once for every metric in which it
    changed: `metric` and `capability` name it, and the transitions are forgotten and gained if more
    is better, else less and more.
    """

    comparison: int
    total: dict[str, int] = Field(description="Total number of items by transition.")
    shortened: int = Field(
        default=0, description="Number of texts shortened in the middle to limit the file size."
    )
    columns: dict[str, list[Cell]]


class Histories(Value):
    """Histories of a chain: one entry per item scored at every stage, or a sample of them."""

    stages: list[str]
    total: int
    task: list[str]
    item: list[str]
    path: list[str] = Field(description="One digit per stage; 1 is right.")
    kind: list[str]


DRIFT_VERSION: Literal[1] = 1
"""Version of `Capabilities`; increased like `PAYLOAD_VERSION`."""
DriftLevel = Literal["group", "capability", "metric", "deep_dive"]
"""A deep dive has metrics that explain a capability and do not count in averages."""
DriftScale = Literal["effect", "points", "relative", "published"]
DriftState = Literal["sure", "open", "noise", "off", "none"]
"""Significant; not significant; within the noise floor; no value on this scale; no data."""


class DriftRows(Value):
    """Drift in long form: column -> one value per row, all of the same length.

    The sign of values is such that positive is better, or more if any change is drift.
    """

    comparison: list[int] = Field(description="Index in `DriftResult.models`.")
    after: list[str] = Field(description="Display name of the model.")
    level: list[DriftLevel]
    id: list[str]
    name: list[str] = Field(description="Display name.")
    parent: list[str] = Field(description="Group of a capability, or capability of a metric.")
    capability: list[str] = Field(description="Id of the capability to open; empty for groups.")
    order: list[int] = Field(description="Sort position; a group comes before its capabilities.")
    direction: list[str] = Field(description="Meaning of positive values: better, more, mixed.")
    scale: list[DriftScale]
    value: list[float | None]
    low: list[float | None]
    high: list[float | None]
    noise: list[float | None] = Field(description="Noise floor of the effect.")
    shade: list[float | None] = Field(description="Colour intensity from -1 to 1.")
    shown: list[str] = Field(description="The value in words, or why there is none.")
    state: list[DriftState]
    n: list[int]
    coverage: list[str]
    note: list[str | None] = Field(description="Why there is no value.")


class ScaleWords(Value):
    """A scale of a drift that can be selected."""

    name: DriftScale
    words: str
    strong: float = Field(description="Value of the strongest colour.")


class Withheld(Value):
    """Cells without a value, and the reason."""

    note: str
    level: DriftLevel
    models: list[str]
    ids: list[str]


class Capabilities(Value):
    """Drift of each capability of each model."""

    drift_version: Literal[1] = DRIFT_VERSION
    result: DriftResult
    headlines: list[str] = Field(description="One sentence per model.")
    leads: list[str] = Field(description="Data basis, one or two sentences per model.")
    compared: str | None = Field(
        default=None, description="For several models: which drifted most, with its uncertainty."
    )
    said: list[dict[str, str]] = Field(description="For each model, a sentence by capability id.")
    scales: list[ScaleWords]
    rows: DriftRows
    withheld: list[Withheld]


class Payload(Value):
    """A whole report."""

    payload_version: Literal[2] = PAYLOAD_VERSION
    kind: Kind
    title: str
    made: str | None = Field(description="Date, ISO 8601; null for reproducible reports.")
    version: str = Field(description="Of forgetmap.")
    redacted: bool = Field(description="Whether texts are left out or redacted.")
    comparisons: list[ComparisonResult] = Field(
        description="One for a pair; for several models each after compared with before; for a "
        "chain first with last (with stages and paths), then first with each later stage "
        "(only the last if read from a folder); none for a drift."
    )
    summaries: list[Summary] = Field(
        default_factory=list, description="The first screen of each comparison, in words."
    )
    verdicts: list[dict[Level, list[VerdictWords]]] = Field(
        default_factory=list,
        description="Of each comparison: by level, the verdicts of the groups in their order.",
    )
    rows: Rows
    items: list[Items]
    histories: Histories | None = None
    capabilities: Capabilities | None = Field(default=None, description="Of a drift.")
    bridge: BridgeResult | None = Field(
        default=None, description="Forgetting against divergence, over several training methods."
    )
