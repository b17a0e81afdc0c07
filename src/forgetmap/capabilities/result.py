"""Values of a drift result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeVar

from forgetmap.capabilities.bootstrap import Distance
from forgetmap.capabilities.taxonomy import ScaleName
from forgetmap.scoring import Needs, Polarity

Direction = Literal["better", "more", "mixed"]
"""What a positive value means: better, more of it, or for some parts this and for some that."""


@dataclass(frozen=True, slots=True)
class MetricCoverage:
    """How many of the metrics that count have a value; nothing is ever put in for the others."""

    have: int
    of: int

    def __str__(self) -> str:
        return f"{self.have} of {self.of}"


@dataclass(frozen=True, slots=True)
class Cell:
    """Drift of a capability or of a group.

    Attributes:
        model: the model after.
        id: of the capability or group in the taxonomy.
        name: in words.
        value: mean effect; None where there is no data.
        low: lower 95 % limit.
        high: upper 95 % limit.
        std: standard error of the value; in `captrack-relative` the spread between metrics.
        n: items behind it, each counted once per task.
        coverage: how many of its metrics have a value.
        code: of a capability the id that parts of it share.
        group: of a capability the group it belongs to.
        published: of a capability the name of its column in CapTrack's comparison files.
        direction: what a positive value means.
        size: how far its metrics moved in either direction, root mean square beyond noise.
        p: that nothing changed.
        q: the same after Benjamini and Hochberg over all capabilities of the model.
        noise: largest |value| that a second run of the model before is compatible with.
        within_noise: whether the value is no larger than that.
        note: why there is no value, where there is none.
    """

    model: str
    id: str
    name: str
    value: float | None
    low: float | None
    high: float | None
    std: float | None
    n: int
    coverage: MetricCoverage
    code: str = ""
    group: str = ""
    published: str = ""
    direction: Direction = "better"
    size: float | None = None
    p: float | None = None
    q: float | None = None
    noise: float | None = None
    within_noise: bool | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class FormDrift:
    """What changed only in the form of answers.

    Attributes:
        before: share of answers that are right in the demanded form, before.
        after: the same after.
        points: change of that share minus change of the share that is right in any form: below 0,
            answers are still right but no longer where they should be.
        low: lower 95 % limit.
        high: upper 95 % limit.
    """

    before: float
    after: float
    points: float
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class MetricCell:
    """Drift of one metric.

    Attributes:
        model: the model after.
        id: of the metric in the taxonomy.
        name: in words.
        value: effect, positive is better (or more, if any change is drift); None without data.
        low: lower 95 % limit.
        high: upper 95 % limit.
        std: standard error.
        n: items with a score on both sides.
        coverage: 1 of 1, or 0 of 1.
        capability: it belongs to.
        task: it was measured on.
        scorer: who measured it, before and after.
        polarity: `up`, `down` or `both`.
        scale: what its values are.
        needs: a rule, a judge or a sandbox.
        weight: in the mean of its capability.
        before: mean before.
        after: mean after.
        points: after - before in the metric's own unit; of shares in percentage points.
        points_low: lower 95 % limit.
        points_high: upper 95 % limit.
        relative: change in percent; None near zero or chance, where it says nothing.
        chance: what guessing gives.
        lost: items that went from right to wrong, of binary metrics.
        gained: items that went from wrong to right.
        mcnemar_p: exact test that as many were lost as gained; only without repeats.
        p: that the mean did not change.
        q: the same after Benjamini and Hochberg over all metrics of the model.
        form: strict beside lenient, where the metric has both.
        distance: between the distributions before and after, where any change is drift.
        failed_before: share of answers before that held no answer to judge.
        failed_after: the same after.
        errors_before: share of answers before that could not be judged.
        errors_after: the same after.
        constant: whether every item of both models has the same value.
        noise: largest |value| that a second run of the model before is compatible with.
        within_noise: whether the value is no larger than that.
        note: why there is no value, where there is none.
    """

    model: str
    id: str
    name: str
    value: float | None
    low: float | None
    high: float | None
    std: float | None
    n: int
    coverage: MetricCoverage
    capability: str
    task: str
    polarity: Polarity
    scale: ScaleName
    needs: Needs
    weight: float
    scorer: tuple[str, str] | None = None
    before: float | None = None
    after: float | None = None
    points: float | None = None
    points_low: float | None = None
    points_high: float | None = None
    relative: float | None = None
    chance: float = 0.0
    lost: float | None = None
    gained: float | None = None
    mcnemar_p: float | None = None
    p: float | None = None
    q: float | None = None
    form: FormDrift | None = None
    distance: Distance | None = None
    failed_before: float | None = None
    failed_after: float | None = None
    errors_before: float | None = None
    errors_after: float | None = None
    constant: bool = False
    noise: float | None = None
    within_noise: bool | None = None
    note: str | None = None


AnyCell = TypeVar("AnyCell", Cell, MetricCell)


@dataclass(frozen=True, slots=True)
class Caution:
    """Something a reader must know before believing the numbers.

    Attributes:
        code: stable name, for programs.
        message: one sentence, for people.
        model: the model after it is about.
        metric: the metric it is about, if it is about one.
    """

    code: str
    message: str
    model: str
    metric: str | None = None
