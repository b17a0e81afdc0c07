"""Do verdicts hold? Worlds with a known loss, and how often what is said of them is false.

    .venv/bin/python benchmarks/verdicts.py                           all rows, 1,000 data sets each
    .venv/bin/python benchmarks/verdicts.py --rows V1,V7 --sets 200   two rows, quickly

The worlds are drawn by benchmarks/worlds.py, which shares no code with the estimators. Every data
set of one task goes through the kernel, many at a time; those of several tasks through `compare`.
Some of each row are also written to files and compared as users do, with equal results. Prints:

    false lost    a loss is claimed where nothing was lost, or of a part that lost nothing
    false none    "no loss beyond the margin" where as much or more was lost
    L above       the limit printed as "at least" is above the truth
    U below       the limit printed as "at most" is below the truth
    cannot tell   neither

Rows about drift, overlap, probe, sweep and monitoring have a `measure` (verdict_measures.py), which
takes a random generator and returns named rates (0 or 1) of one data set; their targets say how
large means of these may be.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import polars as pl
import worlds
from verdict_measures import (
    measure_certificate,
    measure_drift,
    measure_monitor,
    measure_probe,
    measure_sweep,
)
from worlds import Case, Columns, Rng, Truth, World, draw_case

import forgetmap as fm
from forgetmap.comparison.api import make_rule, open_all
from forgetmap.comparison.evidence import by_task_total, gather_evidence
from forgetmap.comparison.group_results import group_result
from forgetmap.comparison.luck import trust_tasks
from forgetmap.comparison.pipeline import count_positions, make_policy, pair_and_count
from forgetmap.errors import ForgetmapError
from forgetmap.pairing import align, prepare
from forgetmap.records import reading

MARGIN = 0.02
CLAIMS = ("lost", "small_loss")
WITHIN = ("no_material_loss", "small_loss", "none_lost")
"""Verdicts that say that less than the margin was lost."""
CHUNK = 25
DEFAULT_TARGETS = {"false_lost": 0.05, "false_none": 0.05, "low_above": 0.05, "high_below": 0.05}
SHOWN = ("false_lost", "false_none", "low_above", "high_below", "cannot_tell")

SECTION = "\n## Verdicts\n"
"""Where a page has the table; truth_recovery.py leaves it as it is."""
ABOUT = """
Worlds with a known loss, drawn by code that shares nothing with the estimators
(`benchmarks/verdicts.py`), and how often what is said of them is false: a loss claimed where
nothing was lost (false lost), "no loss beyond the margin" where as much or more was lost (false
none), a limit on the wrong side of the truth (low above, high below). In worlds that no data could
tell apart (options ruled out, habits without positions) a claim counts as false where the guess
rate it names as needed is above the true one; where something was lost, the size of the limit rests
on that assumption. A row is ok if no rate is above its target.
"""

Rates = dict[str, float]
Json = Mapping[str, Any]
Draw = Callable[[Rng], Case]
Judge = Callable[[Case, Json], Rates]
Drawn = TypeVar("Drawn")


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table.

    Attributes:
        id: finding that it is about, such as `V7`.
        world: what is simulated, in words.
        measure: draws one data set and says what is true of it; or both of these:
        draw: draws one data set of a comparison,
        judge: says what is true of its result.
        in_batches: data sets have one task, and only their total is judged.
        targets: the largest mean that each rate may have.
        floors: the smallest.
    """

    id: str
    world: str
    measure: Callable[[Rng], Rates] | None = None
    draw: Draw | None = None
    judge: Judge | None = None
    in_batches: bool = False
    targets: Mapping[str, float] = field(default_factory=lambda: DEFAULT_TARGETS)
    floors: Mapping[str, float] = field(default_factory=dict)


def table(columns: Columns) -> pl.DataFrame:
    """A table as users have it."""
    return pl.DataFrame({name: list(np.asarray(v).tolist()) for name, v in columns.items()})


def compare(case: Case) -> Json:
    """The JSON of a comparison in memory."""
    comparison = fm.compare(table(case.before), table(case.after), **case.options)
    return dict(json.loads(comparison.to_json(indent=None)))


def compare_files(case: Case) -> Json:
    """The JSON of the same comparison, from files."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{side}.jsonl" for side in ("before", "after")]
        for path, columns in zip(paths, (case.before, case.after), strict=True):
            table(columns).write_ndjson(path)
        options = {"cached": False, **case.options}
        return dict(json.loads(fm.compare(*paths, **options).to_json(indent=None)))


def compare_many(cases: Sequence[Case]) -> list[Json]:
    """The totals of many data sets of one task, which the kernel takes for the tasks of one run.

    All are compared with the options of the first. Only what is trusted about guesses depends on
    how many tasks are looked at: where that differs, the data set is compared on its own.
    """
    names = [f"{number:04}" for number in range(len(cases))]
    tables = [
        pl.concat(
            [_as_task(getattr(case, side), name) for name, case in zip(names, cases, strict=True)]
        )
        for side in ("before", "after")
    ]
    options: Any = cases[0].options
    rule = make_rule(options)
    before, after = align(
        [prepare(run, rule.metric) for run in open_all(tables, column_map=None, task=None)]
    )
    with reading(before.run, after.run):
        pairs, cells = pair_and_count(before, after, rule)
        sides = count_positions(before, after, rule.correct_at)
        is_graded = any(task["graded"] for task in before.measured.recorded.values())
        evidence = gather_evidence(pairs, cells, sides=sides, level=rule.level, graded=is_graded)
    policy = make_policy(rule, before.run, after.run, pairs)
    tasks, (first, second) = evidence.tasks(), map(by_task_total, sides)
    together = trust_tasks(first, second)
    results: list[Json] = []
    for name, case in zip(names, cases, strict=True):
        alone = trust_tasks(_only(name, first), _only(name, second))
        if alone.get(name) == together.get(name):
            total = group_result("total", tasks[name], policy)
            results.append({"total": total.model_dump(mode="json")})
        else:
            results.append(compare(case))
    return results


def _only(name: str, groups: Mapping[str, Any]) -> dict[str, Any]:
    return {name: groups[name]} if name in groups else {}


def _as_task(columns: Columns, name: str) -> pl.DataFrame:
    renamed = table(columns).with_columns(pl.lit(name).alias("task"))
    if "cluster" in columns:
        return renamed.with_columns(pl.lit(f"{name} ") + pl.col("cluster"))
    return renamed


def limits(estimate: Mapping[str, Any]) -> tuple[float, float]:
    """Both limits; none at all where there is no estimate."""
    low, high = estimate.get("low"), estimate.get("high")
    return (-np.inf if low is None else low), (np.inf if high is None else high)


def claims_loss(group: Mapping[str, Any]) -> bool:
    """Whether a group says that something was lost."""
    return group["headline"]["verdict"] in CLAIMS


def judge_total(case: Case, result: Json, group: str = "total") -> Rates:
    """What is said of the total, or of the mean over tasks, against the truth."""
    result = result[group]
    truth, headline = case.truth, result["headline"]
    lost = truth.lost if group == "total" or truth.macro is None else truth.macro
    low, high = limits(headline["forgetting"])
    claimed = headline["verdict"] in CLAIMS
    excused = _is_excused(result, truth)
    return {
        "false_lost": float((claimed and lost == 0 and not excused) or _false_part(result, truth)),
        "false_none": float(headline["verdict"] in WITHIN and lost >= MARGIN),
        "low_above": float(low > lost + 1e-12 and claimed and not excused),
        "high_below": float(high < lost - 1e-12),
        "cannot_tell": float(headline["verdict"] == "cannot_tell"),
        "found": float(claimed),
        "disagree": float(claimed != (low > 0)) if headline["verdict"] != "cannot_tell" else 0.0,
    }


def _is_excused(result: Mapping[str, Any], truth: Truth) -> bool:
    """Whether the words carry the assumption that fails: the guess rate that it takes is named."""
    needed = result.get("guess_rate_needed")
    if truth.guess_rate is None or needed is None or "assumes" not in result["headline"]["words"]:
        return False
    return truth.lost > 0 or bool(needed <= truth.guess_rate)  # a true loss may need more


def _false_part(result: Mapping[str, Any], truth: Truth) -> bool:
    """Whether a part is claimed that lost nothing, beside another that did."""
    if truth.knowledge is None or truth.lost == 0:
        return False
    parts = {"knowledge": truth.knowledge, "answering": truth.answering}
    return any(
        lost == 0 and (result.get(name) or {}).get("verdict") in CLAIMS
        for name, lost in parts.items()
    )


def judge_parts(case: Case, result: Json) -> Rates:
    """The total, and the limits of both parts."""
    rates = judge_total(case, result)
    truths = {"knowledge": case.truth.knowledge or 0.0, "answering": case.truth.answering}
    above, below = 0.0, 0.0
    for name, lost in truths.items():
        low, high = limits(result["total"].get(name) or {})
        above = max(above, float(low > max(lost, 0.0) + 1e-12))
        below = max(below, float(high < lost - 1e-12))
    named = all(result["total"].get(name) for name in truths)
    return {**rates, "part_above": above, "part_below": below, "no_parts": float(not named)}


def judge_tasks(case: Case, result: Json) -> Rates:
    """False claims among the tasks: their share of all claims is the false discovery proportion."""
    losses = case.truth.tasks or {}
    claims = [task for task in result["tasks"] if claims_loss(task)]
    false = [task for task in claims if losses[task["name"]] == 0]
    above = [limits(t["headline"]["forgetting"])[0] > losses[t["name"]] + 1e-12 for t in claims]
    within = [
        task["headline"]["verdict"] in WITHIN
        for task in result["tasks"]
        if losses[task["name"]] >= MARGIN
    ]
    hit = [task for task in result["tasks"] if losses[task["name"]] > 0]
    found = [claims_loss(task) for task in hit]
    return {
        "false_lost": len(false) / len(claims) if claims else 0.0,
        "false_none": float(np.mean(within)) if within else 0.0,
        "low_above": float(np.mean(above)) if above else 0.0,
        "high_below": float(
            np.mean(
                [
                    limits(task["headline"]["forgetting"])[1] < losses[task["name"]] - 1e-12
                    for task in result["tasks"]
                ]
            )
        ),
        "cannot_tell": float(
            np.mean([task["headline"]["verdict"] == "cannot_tell" for task in result["tasks"]])
        ),
        "found": float(np.mean(found)) if found else 0.0,
    }


def judge_macro(case: Case, result: Json, widest: float = 1.0) -> Rates:
    """The mean over tasks: false claims, whether `matched` was refused, and its width."""
    rates, macro = judge_total(case, result, "total_macro"), result["total_macro"]
    low, high = limits(macro["headline"]["forgetting"])
    refused = macro["matched"]["forgetting"]["value"] is None
    return {**rates, "refused": float(refused), "too_wide": float(high - low > widest)}


def measure_refusal(draw: Draw, rng: Rng) -> Rates:
    """Whether a comparison is refused with a typed error."""
    try:
        verdict = compare(draw(rng))["total"]["headline"]["verdict"]
    except ForgetmapError:
        return {"refused": 1.0, "false_none": 0.0}
    return {"refused": 0.0, "false_none": float(verdict in WITHIN)}


def measure_same_run(draw: Draw, rng: Rng) -> Rates:
    """Whether the same file on both sides is refused, and equal answers in two files are not."""
    case = draw(rng)
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{side}.jsonl" for side in ("before", "after")]
        for path in paths:
            table(case.before).write_ndjson(path)
        try:
            fm.compare(paths[0], paths[0], cached=False)
            refused = 0.0
        except ForgetmapError:
            refused = 1.0
        warnings = fm.compare(paths[0], paths[1], cached=False).result.pairing.warnings
    return {"refused": refused, "warned": float(any("identical" in str(w) for w in warnings))}


def judge_noise(case: Case, result: Json) -> Rates:
    """Above the assumed noise floor a false claim must at least name the assumption."""
    rates, group = judge_total(case, result), result["total"]
    named = group.get("noise_assumed") is not None and "noise" in group["headline"]["words"]
    unnamed = {name: rates[name] * (not named) for name in ("false_lost", "low_above")}
    return {**rates, **unnamed}


def judge_graded(case: Case, result: Json) -> Rates:
    """Whether fractions are named and their mean change covers the truth."""
    rates, graded = judge_total(case, result), result["total"].get("graded")
    change = (graded or {}).get("change") or graded or {}
    low, high = limits(change)
    inside = graded is not None and low <= case.truth.lost <= high
    return {**rates, "silent": float(graded is None), "graded_missed": float(not inside)}


def measure_plan(rng: Rng, k: float, loss: float, accuracy: float) -> Rates:
    """Whether the planned number of items finds the loss as often as promised."""
    items = _planned_items(k, loss, accuracy)
    # Known is what is right beyond guessing.
    known = accuracy if np.isinf(k) else (accuracy - 1 / k) / (1 - 1 / k)
    world = World(items=items, k=0 if np.isinf(k) else int(k), known=known, lost=loss)
    return {"found": float(claims_loss(compare(draw_case(rng, world))["total"]))}


@lru_cache
def _planned_items(k: float, loss: float, accuracy: float) -> int:
    from forgetmap.comparison import Wish, make_plan

    plan = make_plan(Wish(loss=loss, accuracy=accuracy), ks=[k], repeats=[])
    items = plan.rows[0].items
    return 0 if items is None else items


@lru_cache
def _planned_repeated_items(repeats: int, loss: float, noise: float) -> int:
    from forgetmap.comparison import Wish, make_plan

    plan = make_plan(Wish(loss=loss, sampled_noise=noise), ks=[], repeats=[repeats])
    return plan.rows[0].items or 0


def planned_repeats(rng: Rng, repeats: int, lost: float, noise: float, *, coins: bool) -> Case:
    """As many items as `plan --repeats` wants."""
    items = _planned_repeated_items(repeats, lost, noise)
    return worlds.planned_repeats(rng, items, repeats, lost, noise, coins=coins)


def of_measure(
    id_: str,
    world: str,
    measure: Callable[..., Rates],
    draw: Callable[[Rng], object],
    **targets: float,
) -> Row:
    """A row about anything else: `measure` takes what draws a data set, and a random generator."""
    return Row(id_, world, partial(measure, draw), targets=targets)


def of(
    id_: str,
    world: str,
    draw: Draw,
    judge: Judge = judge_total,
    **targets: float,
) -> Row:
    """A row about comparisons; worlds of one task go through the kernel in batches."""
    most = {**DEFAULT_TARGETS, "disagree": 0.0, **targets}
    return Row(id_, world, None, draw, judge, in_batches=_has_one_task(draw), targets=most)


def _has_one_task(draw: Draw) -> bool:
    """Whether a world draws one task without questions, so that data sets cannot meet."""
    alone = (worlds.clustered_repeats, worlds.moody, worlds.graded, planned_repeats)
    return isinstance(draw, partial) and (draw.func is _one or draw.args[0] in alone)


def one(world: World, guess_rate: float | None = None) -> Callable[[Rng], Case]:
    """Draws the one task of a world."""
    return partial(_one, world, guess_rate)


def _one(world: World, guess_rate: float | None, rng: Rng) -> Case:
    case = draw_case(rng, world)
    return replace(case, truth=replace(case.truth, guess_rate=guess_rate))


def _call(draw: Callable[..., Drawn], options: Mapping[str, Any], rng: Rng) -> Drawn:
    return draw(rng, **options)


def more(draw: Callable[..., Drawn], **options: Any) -> Callable[[Rng], Drawn]:
    """Draws a world of its own."""
    return partial(_call, draw, options)


A_TO_B = ((0.9, 0.1), (0.1, 0.9))
SHIFT = ((0.4, 0.3, 0.2, 0.1), (0.1, 0.2, 0.3, 0.4))
FIRST = (1.0, 0.0, 0.0, 0.0)
FAVOURS_A = (0.55, 0.15, 0.15, 0.15)
FAVOURS_B = (0.15, 0.55, 0.15, 0.15)
OPEN = World(k=0, known=0.7)
WIDE = 0.30

ROWS: list[Row] = [
    *(
        of("V1", f"repeats, {clusters} passages of {size}, {lost:.0%} lost",
           more(worlds.clustered_repeats, clusters=clusters, size=size, lost=lost))
        for clusters, size in ((60, 5), (60, 10), (30, 10), (30, 20)) for lost in (0.0, 0.05)
    ),
    *(
        of("V2", f"60 passages of 5, {kind}, {lost:.0%} lost",
           one(World(items=300, k=k, known=0.8, lost=lost, cluster=5)), false_none=0.025)
        for kind, k in (("open", 0), ("k = 4", 4)) for lost in (0.02, 0.05)
    ),
    *(
        of("V3", f"{kind}, n = {n}, {lost:.0%} lost", one(replace(world, items=n, lost=lost)),
           low_above=0.04)
        for kind, world in (
            ("open", OPEN), ("matched k = 4", World()),
            ("range k = 4", World(choices=False)), ("matched k = 10", World(k=10)),
        )
        for n, lost in ((300, 0.05), (2000, 0.02))
    ),
    *(
        of("V4", f"repeats of {n} items, {lost:.0%} lost",
           more(worlds.moody, items=n, repeats=2, lost=lost))
        for n in (40, 100) for lost in (0.0, 0.1)
    ),
    *(
        Row("V5", f"plan: {kind}, {loss:.0%} lost",
            partial(measure_plan, k=k, loss=loss, accuracy=0.7),
            targets={}, floors={"found": 0.78})
        for kind, k in (("open", np.inf), ("k = 4", 4.0), ("k = 10", 10.0))
        for loss in (0.02, 0.05)
    ),
    *(
        replace(
            of("V5", f"plan: {repeats} repeats, noise on {kind}, {loss:.0%} lost",
               more(planned_repeats, repeats=repeats, lost=loss, noise=0.05, coins=coins)),
            targets={}, floors={"found": 0.78},
        )
        for repeats in (2, 5) for loss in (0.02, 0.05)
        for kind, coins in (("coin flips", True), ("many items", False))
    ),
    *(
        of("V6", f"open, n = {n}, 10% lost", one(replace(OPEN, items=n, lost=0.1)))
        for n in (5, 10, 20)
    ),
    *(
        of("V7", f"100 tasks of 100, {kind}, nothing lost",
           more(worlds.many_tasks, tasks=100, world=world), judge_tasks)
        for kind, world in (
            ("k = 4", World(items=100)), ("open", World(items=100, k=0, flips=0.005))
        )
    ),
    *(
        of("V8", f"macro of {tasks} balanced tasks, nothing lost",
           more(worlds.many_tasks, tasks=tasks, world=World(items=100)), judge_macro,
           refused=0.05)
        for tasks in (57, 100)
    ),
    *(
        of("V9", f"macro: a tiny clustered task among three, {lost:.0%} lost",
           more(worlds.tiny_clustered_task, lost=lost), partial(judge_macro, widest=WIDE),
           too_wide=0.05)
        for lost in (0.0, 0.1)
    ),
    *(
        of("V10", f"open, n = {n}, noise flips .005 one way, {lost:.0%} lost",
           one(World(items=n, k=0, flips=0.005, lost=lost)))
        for n in (500, 5000) for lost in (0.0, 0.02)
    ),
    of("V10", "open, n = 2000, noise flips .010 one way: assumption named",
       one(World(items=2000, k=0, flips=0.01)), judge_noise),
    *(
        of("V11", f"k = {true} logged as {said}, n = 500, {lost:.0%} lost",
           one(World(items=500, k=true, logged_k=said, lost=lost)))
        for true, said in ((2, 4), (3, 4), (4, 10)) for lost in (0.0, 0.1)
    ),
    *(
        of("V12", f"k = 2, habit moves from A to B, n = {n}, {lost:.0%} lost",
           one(World(items=n, k=2, habits=A_TO_B, lost=lost)))
        for n, lost in ((300, 0.0), (2000, 0.0), (5000, 0.05))
    ),
    of("V12", "the same without positions: g* stands beside it",
       one(World(items=300, k=2, habits=A_TO_B, positions=False, choices=False), guess_rate=1.0)),
    *(
        of("V13", f"10% unparsable after, {kind}, {lost:.0%} of knowledge lost",
           one(replace(world, unread=(0.1, 0.1), lost=lost)), judge_parts,
           part_above=0.075, part_below=0.075, no_parts=0.0)
        for kind, world in (
            ("k = 4", World(items=1000)), ("range", World(items=1000, choices=False)),
            ("k = 2", World(items=1000, k=2)), ("open", World(items=1000, k=0)),
        )
        for lost in (0.0, 0.05)
    ),
    *(
        of("V14", f"300 questions in two tasks, {lost:.0%} lost",
           more(worlds.shared_questions, items=300, lost=lost))
        for lost in (0.0, 0.02, 0.1)
    ),
    *(
        of("V15", f"one option ruled out on {share:.0%} of unknown items, {kind}",
           one(World(ruled_out=share, choices=choices, items=1000), guess_rate=rate))
        for share, rate in ((1.0, 1 / 3), (0.5, 7 / 24))
        for kind, choices in (("matched", True), ("range", False))
    ),
    *(
        of_measure("V16", f"drift: {world}", measure_drift, draw, disagree=0.0, missed=0.07)
        for world, draw in (
            ("log-ratio of 20 lengths", more(worlds.lengths, items=20, ratio=0.8, spread=0.6)),
            ("log-ratio of 20 long-tailed lengths",
             more(worlds.lengths, items=20, ratio=0.8, spread=1.0)),
            *(
                (f"{clusters} passages of 20, {lost:.0%} lost",
                 more(worlds.passages, clusters=clusters, size=20, lost=lost))
                for clusters, lost in ((5, 0.2), (10, 0.2), (15, 0.2), (15, 0.05), (30, 0.05))
            ),
            ("two tasks share 200 items", more(worlds.tasks_that_share, items=200, lost=0.2)),
        )
    ),
    *(
        of_measure("V17", f"certificate: {share:.0%} disasters among {n} prompts",
                   measure_certificate,
                   more(worlds.rare_disasters, prompts=n, samples=4, disasters=share, moved=0.02),
                   false_certificate=0.05)
        for share, n in ((0.01, 32), (0.01, 100), (0.02, 32), (0.02, 100), (0.05, 100))
    ),
    *(
        of_measure("V18", f"probe: {groups} groups of {items}, {repeats} repeats, 10% at p = .9",
                   measure_probe,
                   more(worlds.wavering, groups=groups, items=items, repeats=repeats, chance=0.9),
                   false_alarm=0.05)
        for groups, items, repeats in ((1, 30, 4), (1, 100, 4), (8, 20, 4), (8, 20, 2), (8, 50, 8))
    ),
    *(
        of_measure("V19", f"sweep: {shape}, {kind} items lost, n = {n}", measure_sweep,
                   more(worlds.merges, items=n, shape=shape, alike=alike),
                   false_certificate=0.05)
        for shape, kind, alike, n in (
            ("all at the budget", "the same", True, 300),
            ("all at the budget", "other", False, 300),
            ("a bump", "the same", True, 300), ("a zigzag", "other", False, 2000),
        )
    ),
    replace(
        of_measure("V19", "sweep: losses rise, the same items lost, n = 300", measure_sweep,
                   more(worlds.merges, items=300, shape="rising", alike=True),
                   false_certificate=0.05),
        floors={"more_than_at_once": 0.02},
    ),
    Row("V20", "the same file on both sides",
        partial(measure_same_run, one(World(items=60))),
        targets={}, floors={"refused": 1.0, "warned": 1.0}),
    *(
        Row("V21", f"after lacks 258 of 600, all {word} before",
            partial(measure_refusal, more(worlds.missing_after, right=right)),
            targets={"false_none": 0.0}, floors={"refused": 1.0})
        for word, right in (("wrong", 0.0), ("right", 1.0))
    ),
    *(
        of("V22", f"scores in quarters, {lost:.0%} lost",
           more(worlds.graded, items=1000, lost=lost), judge_graded, silent=0.0,
           graded_missed=0.07)
        for lost in (0.0, 0.03)
    ),
    *(
        of_measure("own", f"monitor: 40 looks at {n} fresh items, {kind}, loss at the margin",
                   partial(measure_monitor, margin=MARGIN, fresh=True),
                   more(worlds.fresh_looks, looks=40, items=n, loss=MARGIN, graded=graded),
                   false_alarm=0.05)
        for n in (50, 500) for kind, graded in (("lost or not", False), ("graded", True))
    ),
    *(
        of_measure("own", f"monitor: 40 looks at the same {n} items, {moving:.0%} move",
                   partial(measure_monitor, margin=MARGIN, fresh=False),
                   more(worlds.same_items, looks=40, items=n, loss=MARGIN, moving=moving),
                   false_alarm=0.05)
        for n in (200, 1000) for moving in (0.05, 0.5)
    ),
    *(
        replace(
            of_measure("own", f"monitor: 40 looks at 1000 {kind} items, 5% lost",
                       partial(measure_monitor, margin=MARGIN, fresh=fresh, rate="found"), draw),
            floors={"found": 0.95},
        )
        for kind, fresh, draw in (
            ("fresh", True,
             more(worlds.fresh_looks, looks=40, items=1000, loss=0.05, graded=False)),
            ("of the same", False,
             more(worlds.same_items, looks=40, items=1000, loss=0.05, moving=0.05)),
        )
    ),
    *(
        of("own", f"tasks of 2,000, 200 and 15 items, {lost:.0%} lost",
           more(worlds.sizes_apart, lost=lost), judge)
        for lost in (0.0, 0.02, 0.05) for judge in (judge_total, judge_tasks)
    ),
    *(
        of("own", f"refuses 30% of what it does not know, {kind}, {lost:.0%} lost",
           one(replace(world, unread=(0.0, 0.3), outcome="refused", lost=lost)), judge_parts,
           part_above=0.075, part_below=0.075)
        for kind, world in (("k = 4", World(items=1000)), ("k = 2", World(items=1000, k=2)))
        for lost in (0.0, 0.05)
    ),
    *(
        of("own", f"habits move and 5% unreadable, k = 4, {lost:.0%} lost",
           one(World(items=1000, habits=SHIFT, unread=(0.05, 0.05), lost=lost)), judge_parts,
           part_above=0.075, part_below=0.075)
        for lost in (0.0, 0.05)
    ),
    *(
        of("own", f"moods, 3 repeats of 300 items, {lost:.0%} lost",
           more(worlds.moody, items=300, repeats=3, lost=lost))
        for lost in (0.0, 0.02, 0.05)
    ),
    *(
        of("own", f"{clusters} passages of {size}, {kind}, 60% of some lost, {lost:.0%} in all",
           one(World(items=clusters * size, k=k, cluster=size, partly=0.6, lost=lost)))
        for clusters, size, kind, k in (
            (60, 8, "k = 4", 4), (25, 20, "k = 4", 4), (12, 25, "open", 0)
        )
        for lost in (0.0, 0.02, 0.06)
    ),
    of("own", "10% lost in one of 40 tasks",
       more(worlds.many_tasks, tasks=40, world=World(items=200), hit=1, lost=0.1), judge_tasks),
    of("own", "20% lost in 8 of 40 uneven tasks",
       more(worlds.many_tasks, tasks=40, world=World(items=150), hit=8, lost=0.2, sizes="uneven"),
       judge_tasks),
    *(
        of("own", f"questions twice within and between tasks, {lost:.0%} lost",
           more(worlds.shared_questions, items=300, lost=lost, within=150))
        for lost in (0.0, 0.02, 0.1)
    ),
    *(
        of("own", f"right answer always at A, {habit}, {kind}, {lost:.0%} lost",
           one(World(items=1000, gold=FIRST, habits=habits, choices=choices, lost=lost), rate))
        for habit, habits, rate in (
            ("no habit", (None, None), None), ("habit of A", (FAVOURS_A, FAVOURS_A), FAVOURS_A[0])
        )
        for kind, choices in (("options", True), ("no options", False)) for lost in (0.0, 0.05)
    ),
    *(
        of("own", f"k of 2, 4 and 10 in one task, {lost:.0%} lost",
           more(worlds.mixed_options, lost=lost))
        for lost in (0.0, 0.05)
    ),
    *(
        of("own", f"{share:.0%} of guesses repeated, {kind}, n = 1000, {lost:.0%} lost",
           one(World(items=1000, repeated=share, choices=choices, lost=lost)))
        for share in (0.5, 1.0) for kind, choices in (("options", True), ("no options", False))
        for lost in (0.0, 0.02, 0.05)
    ),
    *(
        of("own", f"right answers {gold[0]:.0%} at A, habit moves from A to B, k = {k}, 0% lost",
           one(World(items=1000, k=k, gold=gold, habits=habits)))
        for k, gold, habits in (
            (2, (0.6, 0.4), A_TO_B), (4, (0.4, 0.2, 0.2, 0.2), (FAVOURS_A, FAVOURS_B))
        )
    ),
    of("own", "10% gained, nothing lost, k = 4", one(World(items=1000, gained=0.1))),
    of("own", "open, 6% truncated after, nothing forgotten",
       one(World(items=1000, k=0, unread=(0.06, 0.06), outcome="truncated")), judge_parts,
       part_above=0.075, part_below=0.075),
    of("own", "base model unreadable in 20%, k = 4, 5% lost",
       one(World(items=1000, unread_before=0.2, lost=0.05)), judge_parts,
       part_above=0.075, part_below=0.075),
    of("own", "large n at the margin: k = 4, n = 8000, 2% lost", one(World(items=8000, lost=0.02))),
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Line:
    """What came of a row."""

    row: int
    id: str
    world: str
    sets: int
    rates: Rates
    missed: tuple[str, ...]
    files: int
    unequal: int
    error: str | None = None

    @property
    def is_ok(self) -> bool:
        """Whether every target is met."""
        return not (self.missed or self.unequal or self.error)


class Job(NamedTuple):
    """Data sets to draw: the row, a seed, how many, and how many of them also as files."""

    row: int
    seed: int
    sets: int
    files: int


class Chunk(NamedTuple):
    """What came of a job."""

    row: int
    rates: list[Rates]
    files: int = 0
    unequal: int = 0
    error: str | None = None


def run_chunk(job: Job) -> Chunk:
    """Some data sets of a row, of which some also go through files."""
    row, rng = ROWS[job.row], np.random.default_rng([job.row, job.seed])
    try:
        if row.draw is None or row.judge is None:
            return Chunk(
                job.row, [row.measure(rng) for _ in range(job.sets)] if row.measure else []
            )
        cases = [row.draw(rng) for _ in range(job.sets)]
        results = compare_many(cases) if row.in_batches else [compare(case) for case in cases]
        rates = [row.judge(case, result) for case, result in zip(cases, results, strict=True)]
        pairs = zip(cases[: job.files], results[: job.files], strict=True)
        unequal = sum(not _is_equal(case, result) for case, result in pairs)
    except Exception as error:  # noqa: BLE001  # a crash is a finding about this row only
        return Chunk(job.row, [], error=f"{type(error).__name__}: {error}")
    return Chunk(job.row, rates, job.files, unequal)


def _is_equal(case: Case, result: Json) -> bool:
    """Whether files give the verdict and limits that the kernel gave."""
    ours, theirs = result["total"], compare_files(case)["total"]
    names = [(total["verdict"], total["headline"]["estimator"]) for total in (ours, theirs)]
    ends = [limits(total["headline"]["forgetting"]) for total in (ours, theirs)]
    return names[0] == names[1] and bool(np.allclose(ends[0], ends[1], rtol=1e-9, atol=1e-12))


def make_jobs(rows: Sequence[int], sets: int, files: int, seed: int) -> Iterator[Job]:
    """Data sets in chunks; the first of each row also go through files."""
    for row in rows:
        for start in range(0, sets, CHUNK):
            count = min(CHUNK, sets - start)
            yield Job(row, seed + start, count, max(0, min(count, files - start)))


def run_rows(jobs: Sequence[Job], processes: int) -> Iterator[Line]:
    """Lines as their rows are finished, from several processes, with a bar that says how far."""
    left = Counter(row for row, *_ in jobs)
    chunks: dict[int, list[Chunk]] = {row: [] for row in left}
    started = time.monotonic()
    for name in ("POLARS_MAX_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(name, "1")  # on small tables processes do better than threads
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        for done, chunk in enumerate(pool.imap_unordered(run_chunk, jobs), start=1):
            chunks[chunk.row].append(chunk)
            show_progress(done, len(jobs), time.monotonic() - started)
            if len(chunks[chunk.row]) == left[chunk.row]:
                yield make_line(chunk.row, chunks[chunk.row])


def read_lines(path: Path | None, rows: Sequence[int], sets: int) -> list[Line]:
    """The lines of an earlier run, as far as it came: rows with as many data sets are not redone.

    Rows are known by their world, as their numbers change when others are added.
    """
    if path is None or not path.exists():
        return []
    saved = {(line["id"], line["world"]): line for line in json.loads(path.read_text())}
    lines = []
    for row in rows:
        line = saved.get((ROWS[row].id, ROWS[row].world))
        if line is not None and line["sets"] >= sets and line["error"] is None:
            lines.append(make_saved(row, line))
    return lines


def make_saved(row: int, line: Mapping[str, Any]) -> Line:
    """A line that was saved, held against the targets of today."""
    missed = find_missed(ROWS[row], line["rates"])
    return Line(**{**line, "row": row, "missed": missed})


def show_progress(done: int, of_all: int, seconds: float) -> None:
    """One line on the terminal, written over."""
    width = 40
    bar = "#" * (width * done // of_all)
    left = seconds / done * (of_all - done)
    end = "\n" if done == of_all else ""
    print(f"\r[{bar:<{width}}] {done}/{of_all}, {left:,.0f} s left ", end=end, file=sys.stderr)


def make_line(index: int, chunks: Sequence[Chunk]) -> Line:
    """Means of the rates, and which targets they miss."""
    row, rates = ROWS[index], [rates for chunk in chunks for rates in chunk.rates]
    names = dict.fromkeys(name for some in rates for name in some)
    means = {name: float(np.mean([some.get(name, 0.0) for some in rates])) for name in names}
    return Line(
        index,
        row.id,
        row.world,
        len(rates),
        means,
        find_missed(row, means),
        files=sum(chunk.files for chunk in chunks),
        unequal=sum(chunk.unequal for chunk in chunks),
        error=next((chunk.error for chunk in chunks if chunk.error), None),
    )


def find_missed(row: Row, means: Rates) -> tuple[str, ...]:
    """The targets that the means miss."""
    above = [name for name, most in row.targets.items() if means.get(name, 0.0) > most + 1e-12]
    below = [name for name, least in row.floors.items() if means.get(name, 0.0) < least - 1e-12]
    return (*above, *below)


def make_table(lines: Sequence[Line]) -> str:
    """The table in Markdown, and what came of it in one sentence."""
    head = ["", "world", "data sets", *(name.replace("_", " ") for name in SHOWN)]
    rows = [[*head, "other", "target", ""], ["---"] * (len(head) + 3)]
    rows += [_cells(line) for line in lines]
    bad, files = sum(not line.is_ok for line in lines), sum(line.files for line in lines)
    end = f"{len(lines)} rows, {bad} not within their targets; {files:,} data sets also as files."
    return "\n".join([*("| " + " | ".join(row) + " |" for row in rows), "", end])


def _cells(line: Line) -> list[str]:
    shown = [f"{line.rates[name]:.3f}" if name in line.rates else "" for name in SHOWN]
    verdict = "ok" if line.is_ok else f"NOT: {_why(line)}"
    about = [line.id, line.world, f"{line.sets:,}"]
    return [*about, *shown, _others(line), _targets(ROWS[line.row]), verdict]


def write_section(page: Path, section: str, body: str) -> None:
    """Put a section into a page, in its place or at the end; the others stay as they are."""
    before, _, rest = page.read_text(encoding="utf-8").partition(section)
    _, title, after = rest.partition("\n## ")
    text = before.rstrip("\n") + f"\n{section}{body}\n{title}{after}"
    page.write_text(text.rstrip("\n") + "\n", encoding="utf-8")


def _others(line: Line) -> str:
    named = {**ROWS[line.row].targets, **ROWS[line.row].floors}
    rates = {name: rate for name, rate in line.rates.items() if name not in SHOWN}
    return ", ".join(
        f"{name.replace('_', ' ')} {rate:.3f}"
        for name, rate in rates.items()
        if name == "found" or (name in named and (name != "disagree" or rate))
    )


def _targets(row: Row) -> str:
    own = [f"{name.replace('_', ' ')} <= {most:g}" for name, most in row.targets.items()
           if DEFAULT_TARGETS.get(name) != most and name != "disagree"]  # fmt: skip
    own += [f"{name.replace('_', ' ')} >= {least:g}" for name, least in row.floors.items()]
    return ", ".join(["<= .05", *own] if "false_lost" in row.targets else own)


def _why(line: Line) -> str:
    parts = [name.replace("_", " ") for name in line.missed]
    parts += [f"{line.unequal} differ as files"] if line.unequal else []
    return ", ".join([*parts, *([line.error] if line.error else [])])


def choose_rows(text: str | None) -> list[int]:
    """Rows by their ids or by words of their worlds, separated by commas."""
    if text is None:
        return [*range(len(ROWS))]
    wishes = [part.strip() for part in text.split(",")]
    return [
        index
        for index, row in enumerate(ROWS)
        if any(wish == row.id or (len(wish) > 3 and wish in row.world) for wish in wishes)
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table; exits with 1 where a target is missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", help="such as V1,V7,own or words of a world [default: all]")
    parser.add_argument("--sets", type=int, default=1_000, help="data sets a row [default: 1000]")
    parser.add_argument("--files", type=int, default=50, help="of them also as files [default: 50]")
    parser.add_argument("--seed", type=int, default=0, help="of the random generator [default: 0]")
    parser.add_argument(
        "--processes", type=int, default=os.cpu_count(), help="[default: one a core]"
    )
    parser.add_argument(
        "--json", type=Path, help="write all rates to this file; goes on where it ends"
    )
    parser.add_argument("--page", type=Path, help="put the table into this page: docs/truth.md")
    options = parser.parse_args(arguments)
    rows = choose_rows(options.rows)
    if not rows:
        parser.error(f"no row is called {options.rows!r}")
    lines = read_lines(options.json, rows, options.sets)
    left = [row for row in rows if row not in {line.row for line in lines}]
    jobs = [*make_jobs(left, options.sets, options.files, options.seed)]
    for line in run_rows(jobs, options.processes):
        lines = sorted([*lines, line], key=lambda each: each.row)
        if options.json:
            options.json.write_text(json.dumps([asdict(each) for each in lines], indent=1) + "\n")
    print(make_table(lines))
    if options.page:
        write_section(options.page, SECTION, f"{ABOUT}\n{make_table(lines)}")
    sys.exit(not all(line.is_ok for line in lines))


if __name__ == "__main__":
    main()
