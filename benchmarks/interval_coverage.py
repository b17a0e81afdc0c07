"""Does each interval of the JSON cover what it is an interval of?

    .venv/bin/python benchmarks/interval_coverage.py                     1,000 data sets a setting
    .venv/bin/python benchmarks/interval_coverage.py --settings k --sets 200
    .venv/bin/python benchmarks/interval_coverage.py --page docs/truth.md

Data sets are drawn by benchmarks/worlds.py and compared as in benchmarks/verdicts.py. ESTIMANDS
names the estimand of every interval in the schema; `Expected` gives its value in a world, in closed
form. An interval counts if its stated assumption holds (nan if not); for failing assumptions there
are rows in benchmarks/verdicts.py (V11, V12, V15) and FAILURES.

Targets at 95 %: coverage of .93 or more, and of .98 or less if 15 or more flips in 15 or more
clusters are expected. The upper target does not apply to intervals that are conservative by design:
ranges, shares of what was known, few clusters with a loss, few items or tasks. A setting that
misses gets four times more data sets.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import worlds
from verdicts import Json, compare, compare_many, limits, show_progress, table, write_section
from worlds import AnswerClass, Case, Columns, Rng, Sampling, Truth, World, draw_case, draw_task

import forgetmap as fm
from forgetmap.comparison.result import ComparisonResult

NAN = math.nan
LEAST, MOST = 0.93, 0.98
ENOUGH = 15
"""Number of flips, and of clusters with one, above which an interval must not be too wide."""
SAME = 1e-9
CHUNK = 100
AGAIN = 4
USUAL = 0.95
SECTION = "\n## Intervals\n"
ABOUT = """
Coverage of every interval of the JSON at the level 95 %, in all settings where its stated
assumption holds (`benchmarks/interval_coverage.py`; simulated by code that is independent of the
estimators). The target is .93 or more, and .98 or less if at least 15 flips in at least 15
clusters are expected. Intervals that are wide by design have no upper target: ranges, among them
a loss for any noise floor up to the assumed one; shares of known items; few flips; few clusters
with a loss. At the level 90 % the targets are .88 to .96. A setting that misses a target is
simulated four more times, and all data sets count.
"""


# --- estimands of intervals -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """Expected values over the population of items, as shares; nan if no interval estimates it.

    Attributes:
        lost: no longer known or no longer answered; with repeats, beyond noise.
        gained: newly known or newly answered; with repeats, beyond noise.
        forgetting: right before, wrong after, including luck and noise.
        backward_transfer: wrong before, right after.
        right: right before.
        known: known before, beyond guessing.
        knowledge: part of the loss that is no longer known.
        answering: part of the loss that is no longer answered.
        to_none: right before, no answer after, including luck.
        latent: loss and gain if guesses are redrawn.
        upper: expected upper end, loss and gain.
        matched: loss and gain if luck can be estimated from wrong options.
        low, high: ends of the range, likewise.
        excess: half of squared change and change, loss and gain.
        excess_before: probability of being right before times its fall.
        net: loss and gain beyond luck and noise.
        noise: noise floor.
        between: forgetting and backward transfer of the population of such tasks.
        headline: loss and gain as defined by the estimator of the headline.
        of_known: the loss as a share of what was known.
        graded: mean fall of scores.
        changed: share of items whose score changed.
        choices: whether three or more options are chosen and logged.
        lost_clusters, gained_clusters: clusters expected to lose or gain something.
    """

    lost: float = NAN
    gained: float = NAN
    forgetting: float = NAN
    backward_transfer: float = NAN
    right: float = NAN
    known: float = NAN
    knowledge: float = NAN
    answering: float = NAN
    to_none: float = 0.0
    latent: tuple[float, float] = (NAN, NAN)
    upper: tuple[float, float] = (NAN, NAN)
    matched: tuple[float, float] = (NAN, NAN)
    low: tuple[float, float] = (NAN, NAN)
    high: tuple[float, float] = (NAN, NAN)
    excess: tuple[float, float] = (NAN, NAN)
    excess_before: float = NAN
    net: tuple[float, float] = (NAN, NAN)
    noise: float = NAN
    between: tuple[float, float] = (NAN, NAN)
    headline: tuple[float, float] = (NAN, NAN)
    of_known: float = NAN
    graded: float = NAN
    changed: float = NAN
    choices: bool = False
    lost_clusters: float = math.inf
    gained_clusters: float = math.inf


Range = tuple[float, float]
"""The smallest and the largest value that the interval must cover."""
LOSS, GAIN, NO_ANSWER, NO_KNOWLEDGE, CHANGE, NOISE = range(6)


@dataclass(frozen=True, slots=True)
class Estimand:
    """The estimand of an interval.

    Attributes:
        value: value in a world; two numbers if each bound has its own.
        flips: events that make it narrow: losses, gains, ...
        is_wide: whether it is conservative by design.
    """

    value: Callable[[Expected], float | Range]
    flips: int = LOSS
    is_wide: bool = False


def both(name: str, attribute: str | None = None) -> dict[str, Estimand]:
    """Return an estimator in both directions."""
    attribute = attribute or name
    return {
        f"{name}.forgetting": Estimand(lambda e: getattr(e, attribute)[0]),
        f"{name}.backward_transfer": Estimand(lambda e: getattr(e, attribute)[1], GAIN),
    }


ESTIMANDS: dict[str, Estimand] = {
    "forgetting": Estimand(lambda e: e.forgetting),
    "backward_transfer": Estimand(lambda e: e.backward_transfer, GAIN),
    "conditional_forgetting": Estimand(lambda e: e.forgetting / e.right),
    **both("latent"),
    **both("upper"),
    **both("bracket_low", "low"),
    **both("bracket_high", "high"),
    **both("matched"),
    **both("excess"),
    "excess_before": Estimand(lambda e: e.excess_before),
    **both("net"),
    "noise_floor": Estimand(lambda e: e.noise, NOISE),
    **both("between_tasks", "between"),
    "knowledge": Estimand(lambda e: e.knowledge, NO_KNOWLEDGE),
    "answering": Estimand(lambda e: e.answering, NO_ANSWER),
    # At least the losses minus the gains, at most the losses: each bound has its own value.
    "symmetric_noise": Estimand(
        lambda e: (e.forgetting - e.backward_transfer, e.forgetting), is_wide=True
    ),
    "graded": Estimand(lambda e: e.graded, CHANGE),
    "shrunk": Estimand(lambda e: e.headline[0]),
    "headline.forgetting": Estimand(lambda e: e.headline[0]),
    "headline.backward_transfer": Estimand(lambda e: e.headline[1], GAIN),
    "headline.of_known": Estimand(lambda e: e.of_known, is_wide=True),
}
NO_INTERVAL = {
    "published.forgetting", "published.backward_transfer",
    "published.forgetting_max", "published.backward_transfer_max",
}  # fmt: skip
"""Estimates that never have an interval."""
GROUPS = {"total", "total_macro", "tasks", "categories", "tags",
          "stages.against_previous", "stages.against_first"}  # fmt: skip


def schema_paths() -> tuple[set[str], set[str]]:
    """Return the paths of groups in a result, and of intervals in a group, from the JSON schema."""
    schema = ComparisonResult.model_json_schema()
    shapes = schema["$defs"]

    def walk(node: Mapping[str, Any], path: str) -> Iterator[tuple[str, str]]:
        name = node.get("$ref", "").rpartition("/")[2]
        fields = shapes.get(name, node).get("properties", {})
        if name == "GroupResult":
            yield "group", path
        elif {"low", "high"} <= fields.keys():
            yield "interval", path
        else:
            for key, value in fields.items():
                yield from walk(value, f"{path}.{key}".lstrip("."))
        for part in (*node.get("anyOf", []), *([node["items"]] if "items" in node else [])):
            yield from walk(part, path)

    groups = {path for kind, path in walk(schema, "") if kind == "group"}
    group = {"properties": shapes["GroupResult"]["properties"]}
    return groups, {path for kind, path in walk(group, "") if kind == "interval"}


def find(group: Json, path: str) -> Mapping[str, Any]:
    """Return the estimate at a path; empty if there is none."""
    for name in path.split("."):
        group = group.get(name) or {}
    return group


def flips_of(expected: Expected, kind: int) -> tuple[float, float]:
    """Return the share of items that flip, and the expected number of clusters with one."""
    shares = {
        LOSS: expected.forgetting,
        GAIN: expected.backward_transfer,
        NO_ANSWER: expected.to_none,
        NO_KNOWLEDGE: expected.forgetting - expected.to_none,
        CHANGE: expected.changed,
        NOISE: 2 * expected.noise,
    }
    clusters = {LOSS: expected.lost_clusters, GAIN: expected.gained_clusters}
    least = min(expected.lost_clusters, expected.gained_clusters)
    return shares[kind], clusters.get(kind, least)


# --- worlds and their expected values -------------------------------------------------------------


def expect_world(world: World) -> Expected:
    """Return the expected values for a single run of each model: exact, from classes of items."""
    k = world.k
    luck = 1 / k if k else 0.0
    lost, gained = world.lost, world.gained
    kept, never = world.known - lost, 1 - world.known - gained
    unread_known, unread_other = world.unread
    redrawn = 1 - world.repeated
    # Right before and (readable wrong, no answer) after; wrong before and right after.
    to_wrong = (1 - unread_other) * (lost * (1 - luck) + never * redrawn * luck * (1 - luck))
    to_none = unread_known * (kept + gained * luck) + unread_other * (lost + never * luck)
    wrong_to_none = (1 - luck) * (unread_known * gained + unread_other * never)
    from_wrong = (1 - unread_known) * gained * (1 - luck)
    from_wrong += (1 - unread_other) * never * redrawn * luck * (1 - luck)
    truth = world.truth()
    c = 1 / (1 - luck)
    loss, gain = truth.lost, gained * (1 - unread_known)
    answering = to_none - (wrong_to_none * luck / (1 - luck) if k else 0.0)
    upper = (c * to_wrong + answering, c * from_wrong)
    latent = (loss, gain) if redrawn == 1 or not k else (NAN, NAN)
    clusters = world.items / max(world.cluster, 1)
    hit = lost / (world.known * world.partly)
    seen = 1 - (1 - gained) ** world.cluster
    return Expected(
        lost=loss, gained=gain, forgetting=to_wrong + to_none, backward_transfer=from_wrong,
        right=world.known + (1 - world.known) * luck, known=world.known,
        knowledge=truth.knowledge or 0.0, answering=truth.answering, to_none=to_none,
        latent=latent, upper=upper, matched=(loss, gain), headline=(loss, gain),
        of_known=loss / world.known, choices=world.choices and k > 2,
        lost_clusters=clusters * hit if world.cluster else math.inf,
        gained_clusters=clusters * seen if world.cluster else math.inf,
    )  # fmt: skip


def mix(parts: Sequence[Expected], weights: Sequence[float]) -> Expected:
    """Return the expected values of several groups together."""
    shares = np.asarray(weights, float) / np.sum(weights)
    values: dict[str, Any] = {}
    for name in Expected.__dataclass_fields__:
        if name in ("lost_clusters", "gained_clusters", "choices"):
            continue
        mean = shares @ np.array([getattr(part, name) for part in parts], float)
        values[name] = tuple(mean.tolist()) if np.ndim(mean) else float(mean)
    values["of_known"] = values["headline"][0] / values["known"]
    return replace(parts[0], **values)


def expect_classes(classes: Sequence[AnswerClass], plan: Sampling) -> Expected:
    """Return the expected values for several answers per item: exact, from classes of items."""
    k = plan.k
    share = np.array([one.share for one in classes])
    silent = np.array([one.silent for one in classes])
    right, right_after = np.array([one.right(k) for one in classes]).T
    known = np.array([one.before for one in classes])
    known_after = np.where(silent, 0.0, [one.after for one in classes])
    fall, known_fall = right - right_after, known - known_after
    excess, net = (
        (float(share @ (x**2 + x)) / 2, float(share @ (x**2 - x)) / 2) for x in (fall, known_fall)
    )
    forgetting = float(share @ (right * (1 - right_after)))
    to_none = float(share @ (silent * right))
    is_sure = bool(np.isin(known, (0, 1)).all() and np.isin(known_after, (0, 1)).all())
    answering = float(share @ (silent * known))
    c = k / (k - 1) if k else 1.0
    gains = float(share @ ((1 - right) * right_after))
    upper = (c * (forgetting - to_none) + answering, c * gains)
    if not k:  # raw, with luck and noise
        latent = (forgetting, gains)
        by_choices = (NAN, NAN)
    else:
        latent = by_choices = net if is_sure else (NAN, NAN)
    clusters = plan.items / max(plan.cluster, 1)
    lost, gained = (float(share @ (sign * known_fall > 0)) for sign in (1, -1))
    return Expected(
        lost=net[0], gained=net[1], forgetting=forgetting, backward_transfer=gains,
        right=float(share @ right), known=float(share @ known),
        knowledge=float(share @ (~silent * (known_fall**2 + known_fall))) / 2,
        answering=answering, to_none=to_none,
        latent=latent, upper=upper, matched=by_choices, excess=excess, net=net,
        excess_before=float(share @ (right * fall)),
        noise=float(share @ (right * (1 - right) + right_after * (1 - right_after))) / 2,
        choices=k > 2,
        headline=excess, of_known=excess[0] / float(share @ right),
        lost_clusters=_clusters_with(lost, clusters, plan) if plan.cluster else math.inf,
        gained_clusters=_clusters_with(gained, clusters, plan) if plan.cluster else math.inf,
    )  # fmt: skip


def _clusters_with(share: float, clusters: float, plan: Sampling) -> float:
    """Return the number of clusters with an item of a class of this share."""
    alone = 1 - (1 - (1 - plan.tied) * share) ** plan.cluster
    return clusters * (share + (1 - share) * alone)


# --- settings -------------------------------------------------------------------------------------

Groups = Mapping[str, Any]
"""Group -> its expected values; tasks, categories and tags by name, stages in a list."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One world.

    Attributes:
        name: description.
        draw: draws a data set and returns the expected values of its groups.
        run: returns the JSON of many data sets.
        level: level of the intervals.
    """

    name: str
    draw: Callable[[Rng], tuple[Case, Groups]]
    run: Callable[[Sequence[Case]], list[Json]] = compare_many
    level: float = USUAL

    @property
    def targets(self) -> tuple[float, float]:
        """The smallest and the largest acceptable coverage."""
        return (LEAST, MOST) if self.level == USUAL else (self.level - 0.02, self.level + 0.06)


def compare_each(cases: Sequence[Case]) -> list[Json]:
    """Compare data sets of several tasks one by one."""
    return [compare(case) for case in cases]


def of_world(name: str, world: World, **options: Any) -> Setting:
    """Return a setting with one task, one answer per item."""
    expected = {"total": expect_world(world)}

    def draw(rng: Rng) -> tuple[Case, Groups]:
        return draw_case(rng, world, **options), expected

    return Setting(name, draw, level=options.get("level", USUAL))


def of_classes(
    name: str, classes: Sequence[AnswerClass], plan: Sampling, **options: Any
) -> Setting:
    """Return a setting with one task, several answers per item."""
    expected = expect_classes(classes, plan)
    if options.get("estimator") == "net":
        share = expected.net[0] / expected.known
        expected = replace(expected, headline=expected.net, of_known=share)

    def draw(rng: Rng) -> tuple[Case, Groups]:
        return Case(*worlds.sampled(rng, classes, plan), options=options), {"total": expected}

    return Setting(name, draw, level=options.get("level", USUAL))


def of_noise_run(name: str, classes: Sequence[AnswerClass], plan: Sampling) -> Setting:
    """Return a setting with one answer per item, and a second run of the model before."""
    expected = expect_classes(classes, plan)
    right = np.array([one.right(plan.k)[0] for one in classes])
    noise = float(np.array([one.share for one in classes]) @ (right * (1 - right)))
    before = expected.excess_before
    expected = replace(
        expected, noise=noise, excess=(NAN, NAN), net=(NAN, NAN), headline=(before, NAN),
        of_known=before / expected.right,
    )  # fmt: skip

    def draw(rng: Rng) -> tuple[Case, Groups]:
        sheets = worlds.sampled(rng, classes, replace(plan, repeats=2))
        first: Columns
        second: Columns
        first, second = (
            {key: np.asarray(x)[np.asarray(sheets[0]["repeat"]) == run] for key, x in one.items()}
            for run, one in enumerate((sheets[0], sheets[0]))
        )
        after: Columns = {key: np.asarray(x)[: plan.items] for key, x in sheets[1].items()}
        for sheet in (first, second, after):
            del sheet["repeat"]
        return Case(first, after, options={"noise": table(second)}), {"total": expected}

    return Setting(name, draw, compare_each)


def of_scores(
    name: str, classes: Sequence[tuple[float, float, float]], plan: Sampling, **options: Any
) -> Setting:
    """Return a setting with graded scores; only the mean fall is checked."""
    share, before, after = np.asarray(classes).T
    changed = float(share @ (before != after))
    clusters = _clusters_with(changed, plan.items / max(plan.cluster, 1), plan)
    expected = Expected(
        graded=float(share @ (before - after)), changed=changed,
        lost_clusters=clusters if plan.cluster else math.inf,
        gained_clusters=clusters if plan.cluster else math.inf,
    )  # fmt: skip

    def draw(rng: Rng) -> tuple[Case, Groups]:
        return Case(*worlds.scored(rng, classes, plan), options=options), {"total": expected}

    return Setting(name, draw, level=options.get("level", USUAL))


LOSS_OF_TASKS = 0.06, 0.02
"""Mean and standard deviation of the losses of tasks."""


def of_tasks(name: str, world: World, sizes: Sequence[int], **options: Any) -> Setting:
    """Return a setting of tasks with different losses, with categories and tags."""
    names = [f"task {number:02}" for number in range(len(sizes))]
    labels = {task: f"part {place % 4}" for place, task in enumerate(names)}
    mean = expect_world(replace(world, lost=LOSS_OF_TASKS[0]))
    between = (mean.forgetting, mean.backward_transfer)

    def draw(rng: Rng) -> tuple[Case, Groups]:
        losses = np.clip(rng.normal(*LOSS_OF_TASKS, len(names)), 0.0, world.known)
        own = [
            replace(world, items=size, lost=float(loss))
            for size, loss in zip(sizes, losses, strict=True)
        ]
        parts = [draw_task(rng, one, task) for one, task in zip(own, names, strict=True)]
        for task, sheets in zip(names, parts, strict=True):
            for sheet in sheets:
                sheet["category"] = np.full(len(sheet["score"]), labels[task])
                sheet["tags"] = np.full(len(sheet["score"]), f"any; {labels[task]}")
        expected = dict(zip(names, map(expect_world, own), strict=True))
        weights = dict(zip(names, sizes, strict=True))
        categories = {label: _of(label, labels, expected, weights) for label in labels.values()}
        total = mix([*expected.values()], sizes)
        macro = mix([*expected.values()], np.ones(len(sizes)).tolist())
        groups = {
            "total": total, "total_macro": replace(macro, between=between), "tasks": expected,
            "categories": categories, "tags": {"any": total, **categories},
        }  # fmt: skip
        return worlds.join_tasks(parts, Truth(), options), groups

    return Setting(name, draw, compare_each, level=options.get("level", USUAL))


def _of(
    label: str,
    labels: Mapping[str, str],
    expected: Mapping[str, Expected],
    sizes: Mapping[str, int],
) -> Expected:
    tasks = [task for task in labels if labels[task] == label]
    return mix([expected[task] for task in tasks], [sizes[task] for task in tasks])


def of_sampled_tasks(
    name: str, classes: Sequence[AnswerClass], plans: Sequence[Sampling], **options: Any
) -> Setting:
    """Return a setting with several answers per item, in several similar tasks."""
    names = [f"task {number:02}" for number in range(len(plans))]
    expected = {
        task: expect_classes(classes, plan) for task, plan in zip(names, plans, strict=True)
    }
    clusters = {
        key: sum(getattr(one, key) for one in expected.values())
        for key in ("lost_clusters", "gained_clusters")
    }
    total = replace(expected[names[0]], **clusters)

    def draw(rng: Rng) -> tuple[Case, Groups]:
        parts = [
            worlds.sampled(rng, classes, plan, task)
            for plan, task in zip(plans, names, strict=True)
        ]
        groups = {"total": total, "total_macro": total, "tasks": expected}
        return worlds.join_tasks(parts, Truth(), options), groups

    return Setting(name, draw, compare_each, level=options.get("level", USUAL))


def of_shared_questions(name: str, items: int, world: World) -> Setting:
    """Return a setting in which two tasks have common questions, the second only some of them."""
    expected = expect_world(world)
    groups = {"total": expected, "total_macro": replace(expected, between=(NAN, NAN)),
              "tasks": {"one": expected, "two": expected}}  # fmt: skip

    def draw(rng: Rng) -> tuple[Case, Groups]:
        sheets = draw_task(rng, replace(world, items=items), "one")
        texts = np.array([f"What is the {number}th word of this book?" for number in range(items)])
        parts = []
        for task, kept in (("one", items), ("two", items * 2 // 3)):
            part: list[Columns] = []
            for sheet in sheets:
                copy: Columns = {key: np.asarray(values)[:kept] for key, values in sheet.items()}
                part.append({**copy, "task": np.full(kept, task), "question": texts[:kept]})
            parts.append((part[0], part[1]))
        return worlds.join_tasks(parts, Truth()), groups

    return Setting(name, draw, compare_each)


def of_chain(name: str, items: int) -> Setting:
    """Return a setting with three checkpoints and open-ended items."""
    right, lost, gained = 0.7, (0.05, 0.06), (0.04, 0.05)
    middle = right - lost[0] + gained[0]
    worlds_of = {
        "first": World(items=items, k=0, known=right, lost=lost[0], gained=gained[0]),
        "second": World(
            items=items, k=0, known=middle, lost=middle * lost[1], gained=(1 - middle) * gained[1]
        ),
        "both": World(
            items=items, k=0, known=right,
            lost=lost[0] * (1 - gained[1]) + (right - lost[0]) * lost[1],
            gained=gained[0] * (1 - lost[1]) + (1 - right - gained[0]) * gained[1],
        ),
    }  # fmt: skip
    expected = {key: expect_world(world) for key, world in worlds_of.items()}
    groups = {
        "total": expected["both"],
        "stages.against_previous": [expected["first"], expected["second"]],
        "stages.against_first": [expected["first"], expected["both"]],
    }

    def draw(rng: Rng) -> tuple[Case, Groups]:
        chance = rng.random((5, items))
        states = [chance[0] < right]
        share = lost[0] / right, gained[0] / (1 - right)
        states.append(np.where(states[0], chance[1] >= share[0], chance[2] < share[1]))
        states.append(np.where(states[1], chance[3] >= lost[1], chance[4] < gained[1]))
        sheets = [{**worlds.head("task", items), "score": state.astype(float)} for state in states]
        return Case(sheets[0], sheets[1], options={"last": sheets[2]}), groups

    return Setting(name, draw, chain_each)


def chain_each(cases: Sequence[Case]) -> list[Json]:
    """Return the JSON of chains of three."""
    return [
        dict(
            json.loads(
                fm.chain(table(c.before), table(c.after), table(c.options["last"])).to_json()
            )
        )
        for c in cases
    ]


def classes_of(
    lost: float, gained: float, half: float = 0.0, silent: float = 0.0
) -> list[AnswerClass]:
    """Return classes: half of the items certain, some half known, some lost or gained."""
    certain, unknown = 0.5, 0.5 - half
    parts = [
        (certain - lost, 1.0, 1.0), (lost, 1.0, 0.0),
        (unknown - gained, 0.0, 0.0), (gained, 0.0, 1.0),
    ]  # fmt: skip
    classes = [AnswerClass(share * (1 - silent), b, a) for share, b, a in parts if share]
    if silent:
        classes += [AnswerClass(certain * silent, 1.0, 1.0, silent=True)]
        classes += [AnswerClass(unknown * silent, 0.0, 0.0, silent=True)]
    return [*classes, *([AnswerClass(half, 0.5, 0.5)] if half else [])]


OPEN = World(k=0, known=0.7, gained=0.04)
MANY = World(items=1000, known=0.6, gained=0.04)
UNEVEN = [int(size) for size in np.geomspace(30, 600, 20)]
FRACTIONS = [(0.15, 0.0, 0.0), (0.1, 0.25, 0.5), (0.1, 0.75, 0.5), (0.5, 1.0, 1.0),
             (0.05, 1.0, 0.25), (0.06, 1.0, 0.0), (0.04, 0.0, 1.0)]  # fmt: skip
MOODS = classes_of(0.06, 0.04, half=0.2)

SETTINGS: list[Setting] = [
    *(
        of_world(f"open, n = {n}, {lost:.0%} lost", replace(OPEN, items=n, lost=lost))
        for n in (100, 1000) for lost in (0.05, 0.1)
    ),
    *(
        of_world(f"k = {k}, {kind}, n = {n}, {lost:.0%} lost",
                 replace(MANY, items=n, k=k, lost=lost, choices=choices))
        for k, kind, choices in (
            (4, "options logged", True), (4, "no options", False), (10, "options logged", True),
            (3, "options logged", True), (2, "options logged", True),
        )
        for n, lost in ((100, 0.1), (1000, 0.05))
    ),
    *(
        of_world(f"k = 4, {kind}, all guesses repeated, n = 1000, 5% lost",
                 replace(MANY, lost=0.05, choices=choices, repeated=1.0))
        for kind, choices in (("options logged", True), ("no options", False))
    ),
    *(
        of_world(f"{kind}, 10% unreadable after, n = 1000, 5% lost",
                 replace(world, items=1000, lost=0.05, unread=(0.1, 0.1)))
        for kind, world in (
            ("k = 4", MANY), ("k = 4, no options", replace(MANY, choices=False)),
            ("k = 2", replace(MANY, k=2)), ("open", OPEN),
        )
    ),
    *(
        of_world(f"{kind}, no noise assumed, n = 1000, 5% lost",
                 replace(world, items=1000, lost=0.05), noise_floor=0.0)
        for kind, world in (
            ("open", OPEN), ("k = 4", MANY), ("k = 10", replace(MANY, k=10)),
            ("k = 4, 10% unreadable", replace(MANY, unread=(0.1, 0.1))),
            ("open, 10% unreadable", replace(OPEN, unread=(0.1, 0.1))),
        )
    ),
    *(
        of_world(f"{clusters} clusters of {size}, {kind}, {lost:.0%} lost",
                 replace(world, items=clusters * size, cluster=size, partly=0.6, lost=lost))
        for clusters, size, lost in ((60, 5, 0.05), (25, 20, 0.05), (200, 5, 0.1), (100, 10, 0.15))
        for kind, world in (("open", OPEN), ("k = 4", MANY))
    ),
    of_classes("3 repeats, unstable items, 300 items", MOODS, Sampling()),
    of_classes("2 repeats, unstable items, 100 items", MOODS, Sampling(items=100, repeats=2)),
    of_classes("3 repeats, unstable items, k = 4, 300 items", MOODS, Sampling(k=4)),
    of_classes("3 repeats, k = 4, guesses redrawn, 300 items", classes_of(0.06, 0.04),
               Sampling(k=4)),
    of_classes("3 repeats, k = 4, net, 10% silent after", classes_of(0.06, 0.04, silent=0.1),
               Sampling(k=4, items=500), estimator="net"),
    *(
        of_classes(f"3 repeats, unstable items, {clusters} clusters of {size}, {kind}", MOODS,
                   Sampling(items=clusters * size, cluster=size, k=k))
        for clusters, size in ((60, 5), (25, 20), (200, 5))
        for kind, k in (("open", 0), ("k = 4", 4))
    ),
    of_noise_run("a second run of the model before, 500 items", MOODS, Sampling(items=500)),
    of_noise_run("the same in 100 clusters of 5", MOODS, Sampling(items=500, cluster=5)),
    of_scores("graded, n = 300", FRACTIONS, Sampling(repeats=1)),
    of_scores("graded, 60 clusters of 5", FRACTIONS, Sampling(repeats=1, cluster=5)),
    of_scores("graded, 2 repeats", FRACTIONS, Sampling(repeats=2)),
    of_tasks("20 uneven tasks, k = 4", MANY, UNEVEN),
    of_tasks("20 uneven tasks, open", OPEN, UNEVEN),
    of_sampled_tasks("5 tasks, 2 repeats, clusters of 5", MOODS,
                     [Sampling(items=n, repeats=2, cluster=5) for n in (60, 100, 150, 200, 300)]),
    of_shared_questions("the same questions in two tasks, open", 400, replace(OPEN, lost=0.08)),
    of_chain("three checkpoints, n = 500", 500),
    of_world("level .9: open, n = 1000, 5% lost", replace(OPEN, items=1000, lost=0.05), level=0.9),
    of_world("level .9: k = 4, n = 1000, 5% lost", replace(MANY, lost=0.05), level=0.9),
    of_classes("level .9: 3 repeats, unstable items, k = 4", MOODS, Sampling(k=4), level=0.9),
    of_scores("level .9: graded", FRACTIONS, Sampling(repeats=1), level=0.9),
    of_tasks("level .9: 20 tasks of 150, open", OPEN, [150] * 20, level=0.9),
]  # fmt: skip


# --- counting -------------------------------------------------------------------------------------


@dataclass(slots=True)
class Tally:
    """Counts of coverage of an interval.

    Attributes:
        sets: number of intervals.
        above: intervals with a lower bound above the truth.
        below: intervals with an upper bound below the truth.
        narrow: intervals with enough flips to be required to be narrow.
        covered: of these, those that cover the truth.
    """

    sets: int = 0
    above: int = 0
    below: int = 0
    narrow: int = 0
    covered: int = 0

    @property
    def coverage(self) -> float:
        """The share that covers the truth."""
        return 1 - (self.above + self.below) / self.sets

    @property
    def narrow_coverage(self) -> float:
        """The same for intervals with enough expected flips."""
        return self.covered / self.narrow if self.narrow else NAN

    def count(self, low: float, high: float, truth: Range, *, narrow: bool) -> None:
        """Add an interval."""
        above, below = low > truth[0] + 1e-9, high < truth[1] - 1e-9
        self.sets += 1
        self.above += above
        self.below += below and not above
        self.narrow += narrow
        self.covered += narrow and not (above or below)


Tallies = dict[tuple[str, str], Tally]
RANGES = ("headline.forgetting", "headline.backward_transfer", "knowledge")
"""Fields that are a range if the headline is one."""
LOSSES = ("headline.forgetting", "knowledge", "answering")
"""Fields that allow for any noise floor up to the assumed one, and so are ranges as well."""


def groups_of(result: Json, expected: Groups) -> Iterator[tuple[str, Json, Expected]]:
    """Yield every group of a result with its expected values."""
    for name, known in expected.items():
        if isinstance(known, Expected):
            yield name, result[name], known
        elif isinstance(known, Mapping):
            for group in result[name]:
                yield name, group, known[group["name"]]
        else:
            stages, _, key = name.partition(".")
            for stage, one in zip(result[stages], known, strict=True):
                yield name, stage[key], one


def with_ends(group: Json, expected: Expected) -> Expected:
    """Return the ends of the range for this data set: its estimators depend on the data."""
    values = {
        name: group[name]["forgetting"]["value"]
        for name in ("bracket_low", "bracket_high", "latent", "upper", "matched")
    }
    if values["matched"] is not None:
        return replace(expected, low=expected.matched, high=expected.matched)
    if values["latent"] is None:
        return expected
    low, high = expected.latent, expected.upper
    if abs(values["bracket_low"] - values["latent"]) > SAME and not expected.choices:
        drop = expected.lost - expected.gained  # habits changed
        low = (drop, -drop)
    if abs(values["bracket_high"] - values["upper"]) > SAME:
        high = (NAN, NAN)  # only of some tasks
    return replace(expected, low=low, high=high)


def count_group(tallies: Tallies, name: str, group: Json, expected: Expected) -> None:
    """Count every interval of a group."""
    is_range = group["headline"]["estimator"] == "bracket"
    expected = with_ends(group, expected)
    assumed = bool(group["noise_assumed"])
    for path, estimand in ESTIMANDS.items():
        value = estimand.value(expected)
        truth = value if isinstance(value, tuple) else (value, value)
        estimate = find(group, path)
        if estimate.get("low") is None or any(map(math.isnan, truth)):
            continue
        share, clusters = flips_of(expected, estimand.flips)
        enough = group["items"] * share >= ENOUGH and clusters >= ENOUGH
        wide = estimand.is_wide or (is_range and path in RANGES) or (assumed and path in LOSSES)
        tally = tallies.setdefault((name, path), Tally())
        tally.count(*limits(estimate), truth, narrow=enough and not wide)


def run_setting(
    setting: Setting, sets: int, seed: Sequence[int], tallies: Tallies | None = None
) -> Tallies:
    """Count the intervals of this many data sets."""
    rng, tallies = np.random.default_rng(seed), {} if tallies is None else tallies
    for start in range(0, sets, CHUNK):
        drawn = [setting.draw(rng) for _ in range(min(CHUNK, sets - start))]
        results = setting.run([case for case, _ in drawn])
        for (_, expected), result in zip(drawn, results, strict=True):
            for name, group, one in groups_of(result, expected):
                count_group(tallies, name, group, one)
    return tallies


def find_miss(setting: Setting, tally: Tally, sets: int) -> str | None:
    """Return why an interval misses its targets, if so; rare intervals have no targets."""
    least, most = setting.targets
    if tally.sets < sets / 2:
        return None
    if tally.coverage < least:
        return f"covers {tally.coverage:.3f}, below {least:g}"
    if tally.narrow >= sets / 2 and tally.narrow_coverage > most:
        return f"covers {tally.narrow_coverage:.3f}, above {most:g}"
    return None


def has_miss(setting: Setting, tallies: Tallies, sets: int) -> bool:
    """Whether any interval misses its targets."""
    return any(find_miss(setting, tally, sets) for tally in tallies.values())


# --- failing assumptions --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Failure:
    """A world in which no interval can hold, and the expected reaction.

    Attributes:
        name: description.
        world: the world.
        answer: the expected reaction, as text.
        is_done: whether the reaction is there.
    """

    name: str
    world: World
    answer: str
    is_done: Callable[[Json, World], bool]


def is_blocked(total: Json, world: World) -> bool:
    """Whether there is no estimate of knowledge and no verdict."""
    del world
    return total["latent"]["forgetting"]["value"] is None and total["verdict"] == "cannot_tell"


def is_widened(total: Json, world: World) -> bool:
    """Whether the range covers the truth."""
    low, high = limits(total["headline"]["forgetting"])
    return low <= world.lost <= high


def names_rate(total: Json, world: World) -> bool:
    """Whether a loss is stated with the guess rate that would explain it."""
    del world
    claims = total["verdict"] in ("lost", "small_loss")
    return not claims or total["guess_rate_needed"] is not None


A_TO_B = ((0.9, 0.1), (0.1, 0.9))
FAILURES = [
    Failure("V11: k = 2 logged as 4", World(items=500, k=2, logged_k=4, lost=0.05),
            "blocked", is_blocked),
    Failure("V11: k = 4 logged as 10", World(items=500, k=4, logged_k=10, lost=0.05),
            "blocked", is_blocked),
    Failure("V12: k = 2, habit moves from A to B", World(items=1000, k=2, habits=A_TO_B, lost=0.05),
            "widened: the range holds the loss", is_widened),
    Failure("V12: the same without positions",
            World(items=1000, k=2, habits=A_TO_B, positions=False, choices=False),
            "g* beside each loss", names_rate),
    Failure("V15: one option ruled out on all unknown items, options logged",
            World(items=1000, ruled_out=1.0), "g* beside each loss", names_rate),
    Failure("V15: the same, no options", World(items=1000, ruled_out=1.0, choices=False),
            "g* beside each loss", names_rate),
]  # fmt: skip
LEAST_DONE = 0.95


def run_failure(failure: Failure, sets: int, seed: Sequence[int]) -> float:
    """Return the share of data sets with the expected reaction."""
    rng, done = np.random.default_rng(seed), 0
    for start in range(0, sets, CHUNK):
        cases = [draw_case(rng, failure.world) for _ in range(min(CHUNK, sets - start))]
        done += sum(failure.is_done(one["total"], failure.world) for one in compare_many(cases))
    return done / sets


# --- the table ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Line:
    """An interval in a setting."""

    setting: int
    group: str
    path: str
    sets: int
    tally: Tally

    @property
    def where(self) -> str:
        """The name of the setting."""
        return SETTINGS[self.setting].name

    @property
    def miss(self) -> str | None:
        """Why it misses its targets, if so."""
        return find_miss(SETTINGS[self.setting], self.tally, self.sets)

    @property
    def is_usual(self) -> bool:
        """Whether it exists in most data sets, at the usual level."""
        return SETTINGS[self.setting].level == USUAL and self.tally.sets >= self.sets / 2


def run_job(job: tuple[int, int, int]) -> tuple[int, int, Tallies]:
    """Run a setting by number; return number, data sets and intervals; more data sets on a miss."""
    number, sets, seed = job
    setting = SETTINGS[number]
    tallies = run_setting(setting, sets, [seed, number])
    if not has_miss(setting, tallies, sets):
        return number, sets, tallies
    tallies = run_setting(setting, AGAIN * sets, [seed, number, 1], tallies)
    return number, (1 + AGAIN) * sets, tallies


def make_report(lines: Sequence[Line], failures: Mapping[str, float]) -> str:
    """Return the tables in Markdown, with a sentence on the result."""
    missed = [line for line in lines if line.miss]
    settings = len({line.setting for line in lines})
    head = "| interval | settings | lowest | where | highest, 15+ flips | highest, wide by design |"
    parts = [ABOUT, head, "|---|---|---|---|---|---|"]
    parts += [_row(path, [line for line in lines if line.path == path]) for path in ESTIMANDS]
    parts += ["", "| setting | data sets | intervals | lowest | highest, 15+ flips |"]
    parts += ["|---|---|---|---|---|"]
    numbers = dict.fromkeys(line.setting for line in lines)
    parts += [_setting_row([line for line in lines if line.setting == n]) for n in numbers]
    if failures:
        parts += ["", "| failed assumption | reaction | share |", "|---|---|---|"]
        answers = {failure.name: failure.answer for failure in FAILURES}
        parts += [f"| {name} | {answers[name]} | {rate:.3f} |" for name, rate in failures.items()]
    rest = [f"- {line.where}: {line.group} {line.path} {line.miss}" for line in missed]
    end = f"{len(lines):,} intervals in {settings} settings, {len(missed)} not within their targets"
    return "\n".join([*parts, "", end + (":" if rest else "."), *(["", *rest] if rest else [])])


def _row(path: str, lines: Sequence[Line]) -> str:
    usual = [line for line in lines if line.is_usual]
    if not usual:
        return f"| `{path}` | 0 | | | | |"
    lowest = min(usual, key=lambda line: line.tally.coverage)
    narrow = [line.tally.narrow_coverage for line in usual if line.tally.narrow >= line.sets / 2]
    wide = [line.tally.coverage for line in usual if line.tally.narrow < line.sets / 2]
    highest, widest = (f"{max(some):.3f}" if some else "" for some in (narrow, wide))
    least = f"{lowest.tally.coverage:.3f} | {lowest.where}, {lowest.group}"
    return f"| `{path}` | {len(usual)} | {least} | {highest} | {widest} |"


def _setting_row(lines: Sequence[Line]) -> str:
    often = [line for line in lines if line.tally.sets >= line.sets / 2]
    lowest = min(often, key=lambda line: line.tally.coverage)
    narrow = [line for line in often if line.tally.narrow >= line.sets / 2]
    text = ""
    if narrow:
        highest = max(narrow, key=lambda line: line.tally.narrow_coverage)
        text = f"{highest.tally.narrow_coverage:.3f} (`{highest.path}`)"
    least = f"{lowest.tally.coverage:.3f} (`{lowest.path}`)"
    return f"| {lines[0].where} | {lines[0].sets:,} | {len(often)} | {least} | {text} |"


def write_lines(path: Path | None, lines: Sequence[Line]) -> None:
    """Save every interval so far."""
    if path is not None:
        rows = [{"where": line.where, **asdict(line), "miss": line.miss} for line in lines]
        path.write_text(json.dumps(rows, indent=1) + "\n")


def read_lines(path: Path | None, settings: Sequence[int], sets: int) -> list[Line]:
    """Read the intervals of an earlier run: settings with as many data sets are not drawn again.

    Settings are identified by name, as their numbers change when others are added.
    """
    if path is None or not path.exists():
        return []
    numbers = {SETTINGS[number].name: number for number in settings}
    return [
        Line(numbers[row["where"]], row["group"], row["path"], row["sets"], Tally(**row["tally"]))
        for row in json.loads(path.read_text())
        if row["where"] in numbers and row["sets"] >= sets
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the tables; exit with 1 if a target is missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--settings", default="", help="those with this in their name")
    parser.add_argument("--sets", type=int, default=1_000, help="a setting [default: 1000]")
    parser.add_argument("--seed", type=int, default=0, help="of the random generator [default: 0]")
    parser.add_argument(
        "--processes", type=int, default=os.cpu_count(), help="[default: one a core]"
    )
    parser.add_argument(
        "--json", type=Path, help="write every interval to this file; goes on where it ends"
    )
    parser.add_argument("--page", type=Path, help="put the tables into this page: docs/truth.md")
    options = parser.parse_args(arguments)
    numbers = [n for n, setting in enumerate(SETTINGS) if options.settings in setting.name]
    if not numbers:
        parser.error(f"no setting has {options.settings!r} in its name")
    for name in ("POLARS_MAX_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(name, "1")  # on small tables, processes are better than threads
    lines, started = read_lines(options.json, numbers, options.sets), time.monotonic()
    known = {line.setting for line in lines}
    jobs = [(number, options.sets, options.seed) for number in numbers if number not in known]
    with multiprocessing.get_context("spawn").Pool(options.processes) as pool:
        for done, (number, sets, tallies) in enumerate(pool.imap_unordered(run_job, jobs), 1):
            lines += [Line(number, *key, sets, tally) for key, tally in tallies.items()]
            write_lines(options.json, lines)
            show_progress(done, len(jobs), time.monotonic() - started)
    lines.sort(key=lambda line: line.setting)
    failures = {
        failure.name: run_failure(failure, options.sets, [options.seed, n])
        for n, failure in enumerate(FAILURES)
        if not options.settings
    }
    report = make_report(lines, failures)
    print(report)
    if options.page:
        write_section(options.page, SECTION, report)
    never = [] if options.settings else ESTIMANDS.keys() - {line.path for line in lines}
    if never:
        print(f"never judged: {', '.join(sorted(never))}")
    is_short = any(rate < LEAST_DONE for rate in failures.values())
    sys.exit(bool(never) or is_short or any(line.miss for line in lines))


if __name__ == "__main__":
    main()
