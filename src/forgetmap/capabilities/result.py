"""Values of a drift result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeVar

from forgetmap.capabilities.bootstrap import Distance
from forgetmap.capabilities.taxonomy import ScaleName
from forgetmap.comparison import Undecided
from forgetmap.scoring import Needs, Polarity
from forgetmap.stats import BoundName, Verdict

Direction = Literal["better", "more", "mixed"]
"""Meaning of a positive value: better, more, or different for its parts."""


@dataclass(frozen=True, slots=True)
class MetricCoverage:
    """Number of metrics with a value; missing values are never filled in."""

    have: int
    of: int

    def __str__(self) -> str:
        return f"{self.have} of {self.of}"


@dataclass(frozen=True, slots=True)
class Cell:
    """Drift of a capability or of a group.

    Attributes:
        model: the model after.
        id: id of the capability or group in the taxonomy.
        name: title of the capability or group.
        value: mean effect; None without data.
        low: lower bound of the 95 % interval.
        high: upper bound of the 95 % interval.
        std: standard error of the value; in `captrack-relative` the spread between metrics.
        n: number of items, each counted once per task.
        coverage: number of its metrics with a value.
        code: for a capability, the id that its parts share.
        group: for a capability, its group.
        published: for a capability, its column in the comparison files of CapTrack.
        direction: meaning of a positive value.
        size: root mean square change of its metrics in either direction, beyond noise.
        p: p-value of no change.
        q: the same after Benjamini and Hochberg over all capabilities of the model.
        noise: largest |value| that a second run of the model before is compatible with.
        within_noise: whether the value is no larger than that.
        note: why there is no value, if so.
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
    """Changes of the form of answers only.

    Attributes:
        before: share of answers before that are right in the required form.
        after: the same after.
        points: change of that share minus change of the share that is right in any form: below 0,
            answers are still right but not in the required form.
        low: lower bound of the 95 % interval.
        high: upper bound of the 95 % interval.
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
        id: id of the metric in the taxonomy.
        name: title of the metric.
        value: effect, positive is better (or more, if any change is drift); None without data.
        low: lower bound of the 95 % interval.
        high: upper bound of the 95 % interval.
        std: standard error.
        n: number of items with a score on both sides.
        coverage: 1 of 1, or 0 of 1.
        capability: capability of the metric.
        task: task of the metric.
        scorer: scorers before and after.
        polarity: `up`, `down` or `both`.
        scale: kind of its values.
        needs: a rule, a judge or a sandbox.
        weight: weight in the mean of its capability.
        before: mean before.
        after: mean after.
        points: after - before in the unit of the metric; percentage points for shares.
        points_low: lower bound of the 95 % interval; None for counts, whose rare large values may
            not have been seen.
        points_high: upper bound of the 95 % interval.
        relative: change in percent; None near zero or chance, where it is meaningless.
        chance: value of guessing.
        forgotten: items that went from right to wrong, of binary metrics.
        gained: items that went from wrong to right.
        mcnemar_p: p-value of equally many of both; only without repeats.
        verdict: verdict of `compare`, of binary metrics of which more is better.
        undecided: why nothing can be concluded, if so.
        lost_at_least: what is proven to be lost, as a share of the items.
        lost_at_most: upper limit of it.
        lost_by: what proves it: the drop in accuracy, or repeats.
        extreme_before: values before of more than ten times the median, of counts.
        extreme_after: the same after.
        p: p-value of no change of the mean.
        q: the same after Benjamini and Hochberg over all metrics of the model.
        form: change of form, if the metric has a strict field.
        distance: distance between the distributions before and after, if any change is drift.
        failed_before: share of responses before without an answer to judge.
        failed_after: the same after.
        errors_before: share of responses before that could not be judged.
        errors_after: the same after.
        constant: whether every item of both models has the same value.
        noise: largest |value| that a second run of the model before is compatible with.
        within_noise: whether the value is no larger than that.
        note: why there is no value, if so.
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
    forgotten: float | None = None
    gained: float | None = None
    mcnemar_p: float | None = None
    verdict: Verdict | None = None
    undecided: Undecided | None = None
    lost_at_least: float | None = None
    lost_at_most: float | None = None
    lost_by: BoundName | None = None
    extreme_before: int | None = None
    extreme_after: int | None = None
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
    """A limitation of the numbers.

    Attributes:
        code: stable name, for programs.
        message: one sentence, for people.
        model: the model after that is concerned.
        metric: the metric that is concerned, if any.
    """

    code: str
    message: str
    model: str
    metric: str | None = None
