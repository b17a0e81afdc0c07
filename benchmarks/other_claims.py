"""What drift, certificates, probes, sweeps and watching say of worlds whose truth is known.

    .venv/bin/python benchmarks/other_claims.py                      all rows, 1,000 data sets each
    .venv/bin/python benchmarks/other_claims.py --rows sweep --sets 200

Every data set goes through the same code as results of users. Verdicts: benchmarks/verdicts.py.

    missed              an interval does not contain the drift
    disagree            an interval and its p-value say different things
    false certificate   a certified limit is not kept
    false alarm         an alarm where there is no loss beyond the margin
    found               an alarm where there is one
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from simulated_rows import Job, Rates, Row, Tally, main, simulate

import forgetmap as fm
from forgetmap.capabilities.taxonomy import (
    Capability,
    CapabilityGroup,
    Metric,
    Taxonomy,
    TaxonomyTask,
)
from forgetmap.overlap import estimate_table, table_of_arrays
from forgetmap.probe import check_probe, choose_probe, write_probe
from forgetmap.records import MetricInfo, Run, RunInfo, build_run
from forgetmap.stats import LOSSES, ClusterDesign
from forgetmap.sweep.analyse import PathPoint, analyse_pair
from forgetmap.sweep.states import States
from forgetmap.train.alarm import AlarmRule, WatchedItems, judge_look

MARGIN = 0.02
SECTION = "\n## Other claims\n"
ABOUT = """
What drift, certificates of overlap, probes, sweeps and watching say of simulated models whose
truth is known (`.venv/bin/python benchmarks/other_claims.py`, {sets:,} data sets a row or more).
"""

Array = np.ndarray[Any, np.dtype[Any]]
Rng = np.random.Generator
Columns = dict[str, Array | list[Any]]


# --- worlds ---------------------------------------------------------------------------------------


def head(task: str, n: int) -> Columns:
    """Return the columns that identify items."""
    return {"task": np.full(n, task), "item": np.arange(n).astype(str)}


@dataclass(frozen=True, slots=True)
class DriftCase:
    """Values of one metric before and after, in one or two tasks, and the true effect."""

    before: Columns
    after: Columns
    effect: float


def lengths(rng: Rng, items: int, ratio: float, spread: float, alike: float = 0.6) -> DriftCase:
    """Counts such as words of an answer, log-normal; the effect is the log of a ratio."""
    common = rng.standard_normal(items)
    own = rng.standard_normal((2, items))
    logs = spread * (np.sqrt(alike) * common + np.sqrt(1 - alike) * own) - spread**2 / 2
    words = np.array([[300.0], [300.0 * ratio]]) * np.exp(logs)
    sides: list[Columns] = [{**head("one", items), "score": row} for row in words]
    return DriftCase(sides[0], sides[1], float(np.log(ratio)))


def passages(
    rng: Rng, clusters: int, size: int, lost: float, before: float = 0.7, gained: float = 0.1
) -> DriftCase:
    """Items of few passages, which are easy or hard, and lose, as a whole."""
    easy = np.repeat(rng.beta(3 * before, 3 * (1 - before), clusters), size)
    share = np.repeat(rng.beta(3 * lost, 3 * (1 - lost), clusters), size)
    right = rng.random(easy.size) < easy
    names = np.char.add("passage ", (np.arange(easy.size) // size).astype(str))
    sides: list[Columns] = [
        {**head("one", easy.size), "score": scores, "cluster": names}
        for scores in _two_sides(rng, right, np.where(right, 1 - share, gained))
    ]
    after = before * (1 - lost) + (1 - before) * gained
    return DriftCase(sides[0], sides[1], _angle(after) - _angle(before))


def tasks_that_share(rng: Rng, items: int, lost: float, before: float = 0.7) -> DriftCase:
    """Two tasks with the same questions and nearly the same answers."""
    right = rng.random(items) < before
    sides = _two_sides(rng, right, np.where(right, 1 - lost, 0.1))
    shares = before, before * (1 - lost) + (1 - before) * 0.1
    texts = np.char.add("What is question ", np.arange(items).astype(str))
    sheets: list[Columns] = []
    for scores, share in zip(sides, shares, strict=True):
        again = rng.random(items) < 0.95  # else another prompt gives an independent answer
        sheets.append(
            {
                "task": np.repeat(["one", "two"], items),
                "item": np.tile(np.arange(items).astype(str), 2),
                "question": np.tile(texts, 2),
                "score": np.append(scores, np.where(again, scores, rng.random(items) < share)),
            }
        )
    return DriftCase(sheets[0], sheets[1], _angle(shares[1]) - _angle(before))


def _two_sides(rng: Rng, right: Array, chance: Array) -> tuple[Array, Array]:
    """Return scores before, and after, which are right with this probability."""
    return right.astype(float), (rng.random(right.size) < chance).astype(float)


def _angle(share: float) -> float:
    return float(2 * np.arcsin(np.sqrt(share)))


@dataclass(frozen=True, slots=True)
class Completions:
    """Completions of two models with log-probabilities of both, and the distance of the models.

    Attributes:
        prompt: index of the prompt of each completion.
        wrote_before: whether the model before generated it.
        before: log-probability under the model before.
        after: log-probability under the model after.
        distance: mean total variation over the population of prompts.
    """

    prompt: Array
    wrote_before: Array
    before: Array
    after: Array
    distance: float


def rare_disasters(
    rng: Rng, prompts: int, samples: int, disasters: float, moved: float
) -> Completions:
    """Nearly all prompts keep their completions; a few change completely.

    There are ten possible completions per prompt. An ordinary prompt moves a share `moved` of
    probability from one half to the other; on a disaster nearly all goes to the last one.
    """
    base = np.full(10, 0.1)
    step = np.repeat([-moved / 5, moved / 5], 5)
    ordinary = base + step
    disaster = np.append(np.full(9, 0.0002), 1 - 9 * 0.0002)
    hit = rng.random(prompts) < disasters
    after = np.where(hit[:, None], disaster, ordinary)
    steps = np.cumsum(np.stack([np.tile(base, (prompts, 1)), after]), axis=2)
    luck = rng.random((2, prompts, samples))
    chosen = (luck[..., None] > steps[:, :, None, :-1]).sum(axis=3)
    number = np.tile(np.arange(prompts)[None, :, None], (2, 1, samples))
    wrote = np.tile(np.array([True, False])[:, None, None], (1, prompts, samples))
    distance = (1 - disasters) * moved + disasters * np.abs(disaster - base).sum() / 2
    return Completions(
        number.ravel(),
        wrote.ravel(),
        np.log(base)[chosen].ravel(),
        np.log(after[number, chosen]).ravel(),
        float(distance),
    )


@dataclass(frozen=True, slots=True)
class ProbeCase:
    """Full runs of the model before, another run of it, and one of the model after on all items."""

    before: Columns
    again: Columns
    after: Columns


def wavering(
    rng: Rng, groups: int, items: int, repeats: int, chance: float, lost: float = 0.0
) -> ProbeCase:
    """A tenth of the items of each group are right with this chance, the others always."""
    n = groups * items
    p = np.where(rng.random(n) < 0.1, chance, 1.0)
    group = np.char.add("group ", (np.arange(n) // items).astype(str))
    item = np.arange(n).astype(str)
    facts = {
        "task": group, "item": item, "category": group, "gold": np.full(n, "yes"),
        "question": np.char.add("question ", item),
    }  # fmt: skip
    before: Columns = {name: np.tile(values, repeats) for name, values in facts.items()}
    before["repeat"] = np.repeat(np.arange(repeats), n)
    before["score"] = (rng.random((repeats, n)) < p).astype(float).ravel()
    kept = rng.random(n) >= lost
    after: Columns = {**facts, "score": ((rng.random(n) < p) & kept).astype(float)}
    again: Columns = {**facts, "score": (rng.random(n) < p).astype(float)}
    return ProbeCase(before, again, after)


WEIGHTS = tuple(round(0.1 * step, 1) for step in range(1, 10))
TUNED_LOST = 0.25
SHAPES: Mapping[str, Sequence[float]] = {
    "all at the budget": (0.5,) * 9,
    "a bump": (0.1, 0.2, 0.55, 0.6, 0.55, 0.3, 0.2, 0.2, 0.6),
    "a zigzag": (0.3, 0.51, 0.3, 0.51, 0.3, 0.51, 0.3, 0.51, 0.8),
    "rising": (0.05, 0.12, 0.22, 0.34, 0.46, 0.58, 0.7, 0.8, 0.9),
}
"""Loss of a merge at each weight, as a share of the loss of the tuned model."""


@dataclass(frozen=True, slots=True)
class SweepCase:
    """Answers of base, tuned and merges (in this order), and which weights keep half of the loss.

    Attributes:
        right: (run, item).
        weights: weights of the merges.
        within: whether each merge lost less than half of what the tuned model lost.
    """

    right: Array
    weights: Sequence[float]
    within: Array


def merges(rng: Rng, items: int, shape: str, *, alike: bool) -> SweepCase:
    """The loss of merges does not only rise with the weight.

    Alike: the same items are lost first in every merge; otherwise each merge loses its own items
    among those that the tuned model lost, and as many among those that it kept.
    """
    losses = np.asarray(SHAPES[shape])[:, None]
    kind = rng.choice(4, items, p=[0.45, TUNED_LOST, 0.15, 0.15])  # kept, lost, gained, never
    luck = rng.random((1 if alike else len(WEIGHTS), items))
    if alike:
        lost = (kind == 1) & (luck < losses)
    else:
        spread = losses * TUNED_LOST / (TUNED_LOST + 0.45)
        lost = (kind <= 1) & (luck < spread)
    gains = rng.random(items) < np.asarray(WEIGHTS)[:, None]
    merged = ((kind <= 1) & ~lost) | ((kind == 2) & gains)
    right = np.vstack([kind <= 1, (kind == 0) | (kind == 2), merged])
    return SweepCase(right, WEIGHTS, losses[:, 0] < 0.5)


def same_items(rng: Rng, looks: int, items: int, loss: float, moving: float) -> list[Array]:
    """Draw scores of the same items at each look: the lost ones change slowly.

    From look to look an item is redrawn with the probability `moving`; at each single look a share
    `loss` of the population of items is lost.
    """
    states = rng.random(items) < loss
    scores = []
    for _ in range(looks):
        scores.append(states.astype(float))
        states = np.where(rng.random(items) < moving, rng.random(items) < loss, states)
    return scores


# --- measures -------------------------------------------------------------------------------------


def measure_drift(draw: Callable[[Rng], DriftCase], rng: Rng) -> Rates:
    """Return whether the interval of the capability misses its drift, and p disagrees with it."""
    case = draw(rng)
    runs = [_run(side, name) for name, side in (("before", case.before), ("after", case.after))]
    tasks = sorted(set(np.asarray(case.before["task"]).tolist()))
    is_count = max(case.before["score"]) > 1
    seed = int(rng.integers(2**31))
    result = fm.drift(*runs, taxonomy=_taxonomy(*tasks, count=is_count), cached=False, seed=seed)
    (cell,) = result.capabilities
    if cell.low is None or cell.high is None or cell.p is None:
        return {"missed": 1.0, "disagree": 0.0}
    has_drifted = cell.low > 0 or cell.high < 0
    return {
        "missed": float(not cell.low <= case.effect <= cell.high),
        "disagree": float(has_drifted != (cell.p <= 0.05)),
    }


@lru_cache
def _taxonomy(*tasks: str, count: bool) -> Taxonomy:
    """Return one capability that is the mean over tasks."""
    kind = {"scale": "count", "polarity": "both"} if count else {}
    return Taxonomy(
        "one",
        "",
        (CapabilityGroup("CAN"),),
        (Capability("C", "CAN"),),
        tuple(map(TaxonomyTask, tasks)),
        tuple(Metric(task, "C", task, **kind) for task in tasks),  # type: ignore[arg-type]
    )


def _run(columns: Columns, name: str) -> Run:
    size = len(columns["score"])
    lists = {key: np.asarray(values).tolist() for key, values in columns.items()}
    lists |= {"metric": ["value"] * size, "scorer": ["s"] * size, "repeat": [0] * size}
    return build_run(lists, RunInfo(metrics={"value": MetricInfo(high=None)}), name)


def measure_certificate(draw: Callable[[Rng], Completions], rng: Rng) -> Rates:
    """Return whether the certified bound of the total variation distance is below it."""
    case = draw(rng)
    table = table_of_arrays(case.prompt, case.wrote_before, case.before, case.after)
    group = estimate_table(table).groups[0]
    assert group.certificate is not None
    limit = group.certificate.total_variation_limit
    return {
        "false_certificate": float(limit < case.distance),
        "certifies_90%": float(group.certificate.kept["0.9"] is not None),
        "limit": limit,
    }


def measure_probe(
    draw: Callable[[Rng], ProbeCase], rng: Rng, *, rate: str = "false_alarm"
) -> Rates:
    """Return whether a loss is claimed in any group, against fresh answers of the model before."""
    case = draw(rng)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "probe.jsonl"
        probe = choose_probe([_table(case.before)], seed=int(rng.integers(2**31)))
        file = write_probe(probe, path)
        findings = check_probe(file, _table(case.after), before=_table(case.again))
    return {rate: float(any(finding.verdict in LOSSES for finding in findings))}


def _table(columns: Columns) -> pl.DataFrame:
    return pl.DataFrame({name: np.asarray(v).tolist() for name, v in columns.items()})


def measure_sweep(draw: Callable[[Rng], SweepCase], rng: Rng) -> Rates:
    """Return whether a merge is wrongly certified within the budget; the largest certified weight.

    Also the largest weight by bounds that hold for all merges at once.
    """
    case = draw(rng)
    n = case.right.shape[1]
    nothing = np.zeros(n)
    states = States(
        case.right, np.full(n, "A"), nothing > 0, ClusterDesign(), nothing, None, left_out=0
    )
    path = [PathPoint("linear", weight, at, f"m{at}") for at, weight in enumerate(case.weights, 2)]
    ends = PathPoint("linear", 0.0, 0, "base"), PathPoint("linear", 1.0, 1, "tuned")
    pair = analyse_pair(
        states, [ends[0], *path, ends[1]], names=("tuned", "tuned"), compared={}, drift=None
    )
    points = pair.points[1:-1]
    sure = np.array([point.within == "surely" for point in points])
    at_once = np.array([(point.over_budget.high or 0.0) < 0 for point in points])
    return {
        "false_certificate": float((sure & ~case.within).any()),
        "certified_weight": _largest(case.weights, sure),
        "more_than_at_once": _largest(case.weights, sure) - _largest(case.weights, at_once),
    }


def _largest(weights: Sequence[float], chosen: Array) -> float:
    return max((weight for weight, is_in in zip(weights, chosen, strict=True) if is_in), default=0)


def measure_watch(
    draw: Callable[[Rng], list[Array]], rng: Rng, *, margin: float, rate: str = "false_alarm"
) -> Rates:
    """Return whether any look at the same items raises an alarm; all were right at the start."""
    rule = AlarmRule(margin=margin, alpha=0.025)
    watched = WatchedItems({"t": "c"}, {})
    earlier = None
    for look, lost in enumerate(draw(rng), 1):
        now = {("t", str(item)): not gone for item, gone in enumerate(lost)}
        start = dict.fromkeys(now, True)
        if judge_look(look, start, now, watched, rule, earlier=earlier)["total"].alarm:
            return {rate: 1.0}
        earlier = now
    return {rate: 0.0}


# --- rows -----------------------------------------------------------------------------------------


def of(
    world: str,
    measure: Callable[..., Rates],
    draw: Callable[..., object],
    most: Mapping[str, float],
    least: Mapping[str, float] | None = None,
    **options: Any,
) -> Row:
    """Return a row; the options are those of the drawing function."""
    return Row(world, partial(_measure, measure, draw, options), most, least or {})


def _measure(
    measure: Callable[..., Rates], draw: Callable[..., object], options: Any, rng: Rng
) -> Rates:
    return measure(lambda rng: draw(rng, **options), rng)


INTERVALS = {"missed": 0.07, "disagree": 0.0}
CERTIFICATES = {"false_certificate": 0.05}
ALARMS = {"false_alarm": 0.05, "found": 1.0}
AGAIN = partial(measure_watch, margin=MARGIN)

# fmt: off
ROWS: tuple[Row, ...] = (
    *(of(f"drift: log-ratio of 20 {kind}", measure_drift, lengths, INTERVALS,
         items=20, ratio=0.8, spread=spread)
      for kind, spread in (("lengths", 0.6), ("long-tailed lengths", 1.0))),
    *(of(f"drift: {clusters} passages of 20, {lost:.0%} lost", measure_drift, passages, INTERVALS,
         clusters=clusters, size=20, lost=lost)
      for clusters, lost in ((5, 0.2), (10, 0.2), (15, 0.2), (15, 0.05), (30, 0.05))),
    of("drift: two tasks share 200 items", measure_drift, tasks_that_share, INTERVALS,
       items=200, lost=0.2),
    *(of(f"certificate: {share:.0%} disasters among {n} prompts", measure_certificate,
         rare_disasters, CERTIFICATES, prompts=n, samples=4, disasters=share, moved=0.02)
      for share, n in ((0.01, 32), (0.01, 100), (0.02, 32), (0.02, 100), (0.05, 100))),
    *(of(f"probe: {groups} groups of {items}, {repeats} repeats, 10% at p = .9", measure_probe,
         wavering, ALARMS, groups=groups, items=items, repeats=repeats, chance=0.9)
      for groups, items, repeats in ((1, 30, 4), (1, 100, 4), (8, 20, 4), (8, 20, 2), (8, 50, 8))),
    *(of(f"sweep: {shape}, {'the same' if alike else 'other'} items lost, n = {n}", measure_sweep,
         merges, CERTIFICATES, items=n, shape=shape, alike=alike)
      for shape, alike, n in (("all at the budget", True, 300), ("all at the budget", False, 300),
                              ("a bump", True, 300), ("a zigzag", False, 2000))),
    of("sweep: losses rise, the same items lost, n = 300", measure_sweep, merges, CERTIFICATES,
       {"more_than_at_once": 0.02}, items=300, shape="rising", alike=True),
    *(of(f"watch: 40 looks at the same {n} items, {moving:.0%} move", AGAIN, same_items,
         ALARMS, looks=40, items=n, loss=MARGIN, moving=moving)
      for n in (200, 1000) for moving in (0.05, 0.5)),
    of("watch: 40 looks at the same 1000 items, 5% lost", partial(AGAIN, rate="found"),
       same_items, ALARMS, {"found": 0.95}, looks=40, items=1000, loss=0.05, moving=0.05),
)
# fmt: on


def run_job(job: Job) -> Tally:
    """Simulate some data sets of a row."""
    return simulate(ROWS[job.row], job)


if __name__ == "__main__":
    sys.exit(main(ROWS, run_job, __doc__, SECTION, ABOUT, sets=1_000))
