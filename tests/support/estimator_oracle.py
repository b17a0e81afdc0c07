"""An independent implementation of every estimator in plain Python, answer by answer.

An answer is a row; an item's score is looked up case by case, and repeats are compared pair by
pair. Intervals are solved from sums over the list of scores.
"""

from __future__ import annotations

import math
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations, product
from statistics import fmean
from typing import Any

import numpy as np
from scipy import stats
from scipy.optimize import brentq

Row = dict[str, Any]
Limits = tuple[float, float, float]
Z = float(stats.norm.ppf(0.975))
TASKS = ("arc", "gsm8k", "piqa")


@dataclass(frozen=True)
class Shape:
    """Properties of random runs."""

    repeats: int = 1
    clusters: bool = False
    ks: tuple[int | None, ...] = (2, 3, 4, 5, None)
    items: int = 40
    missing: float = 0.0


def random_run(seed: int, shape: Shape, side: str) -> list[Row]:
    """Return a random run; descriptions of an item are the same on both sides."""
    rows = []
    for task, place in product(TASKS, range(shape.items)):
        group = place // 4 if shape.clusters else place
        dice = random.Random(f"{seed} {task} {group}")
        labels = {
            "category": dice.choice(["science", "maths", None]),
            "tags": dice.choice(["hard;long", "hard; easy", None]),
            "cluster": f"passage {group}" if shape.clusters and group % 3 else None,
        }
        item = random.Random(f"{seed} {task} {place} item")
        k, mastery = item.choice(shape.ks), item.choice([0.1, 0.5, 0.9])
        own = random.Random(f"{seed} {task} {place} {side}")
        for repeat in range(shape.repeats):
            named = {"task": task, "item": f"{place}", "repeat": repeat, "k": k, **labels}
            row = named | _answer(own, k, mastery)
            if repeat == 0 or own.random() >= shape.missing:
                rows.append(row)
    return rows


def _answer(dice: random.Random, k: int | None, mastery: float) -> Row:
    if dice.random() < mastery:
        return {"score": 1.0, "choice": "gold", "outcome": "correct"}
    if dice.random() < 0.2:
        return {"score": 0.0, "choice": None, "outcome": dice.choice(["no_answer", "refused"])}
    wrong = f"wrong {dice.randrange((k or 9) - 1)}"
    return {"score": 0.0, "choice": wrong, "outcome": "incorrect"}


@dataclass(frozen=True)
class Item:
    """All answers to an item, and its pairs."""

    row: Row
    before: dict[int, Row]
    after: dict[int, Row]

    @property
    def k(self) -> float:
        return self.row["k"] or math.inf

    @property
    def pairs(self) -> list[tuple[Row, Row]]:
        return [(row, self.after[at]) for at, row in self.before.items() if at in self.after]

    @property
    def cluster(self) -> tuple[Any, ...]:
        """Cluster of the item; equal names are one cluster, also across tasks."""
        name = self.row["cluster"]
        return (name,) if name else ("alone", self.row["task"], self.row["item"])


def items_of(before: Sequence[Row], after: Sequence[Row]) -> list[Item]:
    sides: list[dict[tuple[str, str], dict[int, Row]]] = []
    for rows in (before, after):
        found: dict[tuple[str, str], dict[int, Row]] = defaultdict(dict)
        for row in rows:
            found[row["task"], row["item"]][row["repeat"]] = row
        sides.append(found)
    return [
        Item(next(iter(sides[0][key].values())), sides[0][key], sides[1][key])
        for key in sides[0]
        if key in sides[1]
    ]


def swapped(items: Iterable[Item]) -> list[Item]:
    return [Item(item.row, item.after, item.before) for item in items]


def groups_of(items: Sequence[Item]) -> dict[str, dict[str, list[Item]]]:
    """Return level -> name -> items."""
    found: dict[str, dict[str, list[Item]]] = {
        level: defaultdict(list) for level in ("tasks", "categories", "tags")
    }
    for item in items:
        found["tasks"][item.row["task"]].append(item)
        if item.row["category"]:
            found["categories"][item.row["category"]].append(item)
        for tag in {tag.strip() for tag in (item.row["tags"] or "").split(";")} - {""}:
            found["tags"][tag].append(item)
    return found


@dataclass(frozen=True)
class Scored:
    """The score of one pair, c[10] - h[E], with the terms of its interval.

    `flip` is whether it was right before and wrong after, `lucky` the expected number of such flips
    by luck for such a pair.
    """

    s: float
    c: float
    spread_here: float
    spread: float
    flip: bool
    lucky: float = 0.0


def score(name: str, k: float, before: Row, after: Row) -> Scored:
    """Return the score of one pair of answers under one estimator, case by case."""
    was, now = before["score"] >= 0.5, after["score"] >= 0.5
    lost = was and not now
    if name == "raw" or math.isinf(k):
        return Scored(float(lost), 1.0, 0.0, 0.0, lost)
    c = k / (k - 1)
    h, u, counts = _luck(name, k, before, after)
    spread = h * (c + h)
    if lost:
        return Scored(c if after["choice"] else 1.0, c, 0.0, spread, lost)
    if was or now or not before["choice"]:
        return Scored(0.0, c, 0.0, spread, lost)
    if not after["choice"]:
        gone = 1 / (k - 1)
        return Scored(-gone, c, gone * (1 + gone), spread, lost, gone)
    return Scored(-h * counts, c, spread * counts, spread, lost, u * counts)


def _luck(name: str, k: float, before: Row, after: Row) -> tuple[float, float, bool]:
    """Return what a pair of wrong answers subtracts, its expected flips, and whether it counts."""
    c = k / (k - 1)
    if name == "upper" or (name == "matched_upper" and k == 2):
        return 0.0, 0.0, False
    if name == "latent" or k == 2:
        return c * c / k, 1 / (k - 1), True
    return c / (k - 2), 1 / (k - 2), before["choice"] != after["choice"]


def scores(name: str, items: Iterable[Item]) -> list[Scored]:
    return [score(name, item.k, *pair) for item in items for pair in item.pairs]


def solve(
    theta: float, a1: float, a2: float, q: float, z2: float, loss: float | None = None
) -> Limits:
    """Solve (estimate - x)^2 = z2 q + loss (a1 x - a2 x^2) for the bounds x."""
    loss = z2 if loss is None else loss
    alpha, beta, gamma = 1 + loss * a2, 2 * theta + loss * a1, theta**2 - z2 * q
    root = math.sqrt(max(beta**2 - 4 * alpha * gamma, 0.0))
    return theta, (beta - root) / (2 * alpha), (beta + root) / (2 * alpha)


def score_limits(found: Sequence[Scored], z2: float = Z**2, loss: float | None = None) -> Limits:
    n = len(found)
    theta, cbar = fmean(x.s for x in found), fmean(x.c for x in found)
    spread = sum(x.s**2 for x in found) - cbar * theta * n
    q = max(sum(x.spread_here for x in found), spread) / n**2
    q0 = (fmean(x.spread for x in found) + cbar**2 / 4) / n**2
    return solve(theta, cbar / n, 1 / n, q + q0, z2, loss)


def luck(name: str, items: Sequence[Item]) -> float:
    """Return the mid-p value of no loss, from the probabilities of every number of losses."""
    x, weights = 0, {0: 1.0}
    for item in items:
        for before, after in item.pairs:
            trial = _trial(name, item.k, before, after)
            if trial is not None:
                hit, chance = trial
                x += hit
                moved: dict[int, float] = defaultdict(float)
                for value, weight in weights.items():
                    moved[value] += weight * (1 - chance)
                    moved[value + 1] += weight * chance
                weights = moved
    return sum(weight for value, weight in weights.items() if value > x) + weights[x] / 2


def _trial(name: str, k: float, before: Row, after: Row) -> tuple[bool, float] | None:
    """Return whether a pair that is wrong after was right before, and its probability by luck."""
    was, now = before["score"] >= 0.5, after["score"] >= 0.5
    if now or math.isinf(k) or not (was or before["choice"]):
        return None
    if not after["choice"] or name == "latent" or k == 2:
        return was, 1 / k
    counts = was or before["choice"] != after["choice"]
    return (was, 1 / (k - 1)) if counts else None


def agreeing(limits: Limits, p: float) -> Limits:
    return (limits[0], min(limits[1], 0.0) if p > 0.025 else limits[1], limits[2])


def cluster_design(found: Sequence[float], clusters: Sequence[Any]) -> tuple[float, float]:
    """Return CR2 inflation and Bell-McCaffrey degrees of freedom, from whole matrices."""
    y, names = np.array(found), np.array([repr(name) for name in clusters])
    n = y.size
    rest = np.eye(n) - 1 / n
    residual, variance, columns = y - y.mean(), 0.0, []
    for name in sorted(set(names)):
        here = names == name
        size = here.sum()
        values, vectors = np.linalg.eigh(np.eye(size) - 1 / n)
        root = vectors @ np.diag(values**-0.5) @ vectors.T
        variance += float((root @ residual[here]).sum()) ** 2 / n**2
        columns.append(rest[:, here] @ root.sum(1) / n)
    gram = np.array(columns) @ np.array(columns).T
    freedom = float(np.trace(gram) ** 2 / (gram**2).sum())
    return max(1.0, variance / (y.var() / n)), freedom


def clustered_limits(name: str, items: Sequence[Item]) -> tuple[Limits, int]:
    """Return bounds and the clusters with a loss; fewer of these raise the upper bound."""
    found = scores(name, items)
    members = [item.cluster for item in items for _ in item.pairs]
    inflation, freedom = cluster_design([x.s for x in found], members)
    affected = len({m for m, x in zip(members, found, strict=True) if x.flip})
    real = max(0.0, affected - sum(x.lucky for x in found))
    weight = 0.0 if real >= 20 else 4 / (4 + real)
    kish = sum(size**2 for size in Counter(members).values()) / len(members)
    z2 = float(stats.t.ppf(0.975, freedom)) ** 2
    value, low, _ = score_limits(found, z2 * inflation)
    worst = max(inflation, 1 + (kish - 1) * weight)
    _, _, high = score_limits(found, z2 * inflation, z2 * worst)
    return (value, low, high), affected


def flips(first: Row, second: Row) -> float:
    return float(first["score"] >= 0.5 > second["score"])


def mean_pairs(of: Callable[[Row, Row], float], pairs: Iterable[tuple[Row, Row]]) -> float:
    return fmean(of(*pair) for pair in pairs)


def beyond_churn(item: Item, of: Callable[[Row, Row], float]) -> float:
    """Return the mean between models minus half of that within each, over all pairs of answers."""
    before, after = list(item.before.values()), list(item.after.values())
    within = [mean_pairs(of, permutations(side, 2)) for side in (before, after)]
    return mean_pairs(of, product(before, after)) - sum(within) / 2


def repeated_items(items: Iterable[Item], before: int = 2, after: int = 2) -> list[Item]:
    return [item for item in items if len(item.before) >= before and len(item.after) >= after]


def excess_scores(items: Iterable[Item]) -> list[float]:
    return [beyond_churn(item, flips) for item in repeated_items(items)]


def net_scores(items: Iterable[Item]) -> list[float]:
    return [
        beyond_churn(item, lambda b, a, k=item.k: score("matched", k, b, a).s)  # type: ignore[misc]
        for item in repeated_items(items)
    ]


def excess_before_scores(items: Iterable[Item]) -> list[float]:
    return [
        mean_pairs(flips, product(item.before.values(), item.after.values()))
        - mean_pairs(flips, permutations(item.before.values(), 2))
        for item in repeated_items(items, after=1)
    ]


def student_limits(found: Sequence[float], pseudo: float = 1.0) -> Limits:
    n, mean = len(found), fmean(found)
    squares = sum((x - mean) ** 2 for x in found) + pseudo**2
    half = float(stats.t.ppf(0.975, n - 1)) * math.sqrt(squares / (n * (n - 1)))
    return mean, mean - half, mean + half


def noise_floor(items: Sequence[Item]) -> float:
    sides = [[list(getattr(item, side).values()) for item in items] for side in ("before", "after")]
    floors = [
        [mean_pairs(flips, permutations(rows, 2)) for rows in side if len(rows) > 1]
        for side in sides
    ]
    return fmean(fmean(floor) for floor in floors if floor)


def change_p(items: Sequence[Item]) -> float:
    """Return a skewed normal tail of the summed excess over all permutations of items' answers."""
    total = variance = third = 0.0
    for item in repeated_items(items):
        answers = [*item.before.values(), *item.after.values()]
        dealt = []
        for chosen in combinations(range(len(answers)), len(item.before)):
            sides: tuple[dict[int, Row], dict[int, Row]] = ({}, {})
            for place, row in enumerate(answers):
                sides[place not in chosen][place] = row
            dealt.append(beyond_churn(Item(item.row, *sides), flips))
        total += beyond_churn(item, flips)
        variance += fmean((x - fmean(dealt)) ** 2 for x in dealt)
        third += fmean((x - fmean(dealt)) ** 3 for x in dealt)
    return float(stats.pearson3.sf(total / math.sqrt(variance), third / variance**1.5))


def known_share(items: Iterable[Item]) -> float:
    return fmean(
        (k / (k - 1) if k < math.inf else 1.0) * (flips(b, {"score": 0.0}) - 1 / k)
        for item in items
        for k in [item.k]
        for b, _ in item.pairs
    )


def published(items: Sequence[Item]) -> dict[str, float]:
    """Return the published adjustment, with the mean luck 1/(k-1) of the items."""
    pairs = [pair for item in items for pair in item.pairs]
    a, b = (fmean(pair[side]["score"] for pair in pairs) for side in (0, 1))
    chance = fmean(1 / (item.k - 1) for item in items for _ in item.pairs)
    lost = fmean(flips(before, after) for before, after in pairs)
    gained = fmean(flips(after, before) for before, after in pairs)
    taken = (1 - a) * (1 - b) * chance
    return {
        "forgetting": max(lost - taken, 0),
        "backward_transfer": max(gained - taken, 0),
        "forgetting_max": max(a - (1 - a) * chance, 0),
        "backward_transfer_max": max(b - (1 - b) * chance, 0),
    }


def detectable(name: str, items: Sequence[Item], floor: float = 0.005) -> float | None:
    """Solve the power equation by bisection; the lower bound must exceed the floor."""
    found = scores(name, items)
    n, c, v = len(found), fmean(x.c for x in found), fmean(x.spread_here for x in found)
    h = fmean(_subtracted(name, item.k) for item in items for _ in item.pairs)
    z_a, z_b = stats.norm.ppf(0.975), stats.norm.ppf(0.8)
    share_e = v / (h * (c + h)) if h else 0.0
    error = math.sqrt((v + c * floor - floor**2) / n + (h * (c + h) + c * c / 4) / n**2)
    slope = z_a * h * (c + h) / (2 * n * error)

    def gap(theta: float) -> float:
        """Return theta minus the larger of the losses that the test and the bound need."""
        spread = max(v + c * theta - theta**2, 0)
        wider = spread + share_e * (2 * h * slope + slope**2 + 2 * theta * slope)
        wider -= (share_e * slope) ** 2
        test = z_a * math.sqrt((v + h * theta) / n) + max(c - h, 0) * (z_a**2 - 1) / (6 * n)
        limit = floor + 0.75 * c / n + z_a * error
        needs = test + z_b * math.sqrt(spread / n), limit + z_b * math.sqrt(wider / n)
        return float(theta - max(needs))

    # Open-ended items: the smallest number of flips whose lower bound exceeds the floor.
    noise = math.sqrt(n * floor * (1 - floor) + 1 / 4)
    flips = next(x for x in range(n + 2) if x - 0.75 - n * floor > z_a * noise)
    loss = (
        float(brentq(gap, 1e-9, 5)) if h else c * float(stats.beta.ppf(0.8, flips, n - flips + 1))
    )
    return loss if loss <= known_share(items) else None


def _subtracted(name: str, k: float) -> float:
    if math.isinf(k):
        return 0.0
    c = k / (k - 1)
    return c / (k - 2) if name == "matched" and k > 2 else c * c / k
