"""An independent implementation of the limits and verdicts, item by item (design/decide.md).

Written from the text of sections 2, 3 and 5 alone. Slow on purpose: CR2 takes the square root of
the hat matrix of every cluster, leave-one-out goes over all pairs of answers, and p values are
found by bisection.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from statistics import fmean

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Reals = NDArray[np.float64]
NO_BOUND = -math.inf


@dataclass(frozen=True)
class Items:
    """One entry per item: m of r_b answers right before, n of r_a after."""

    m: Sequence[int]
    r_b: Sequence[int]
    n: Sequence[int]
    r_a: Sequence[int]
    clusters: Sequence[Hashable | None] | None = None
    tasks: Sequence[int] | None = None
    halves: Sequence[int] | None = None
    macro: bool = False
    earlier: Sequence[float] | None = None
    """Share of right answers of the stage before AFTER."""
    flipped: Sequence[bool] | None = None
    """Right before and wrong after in the first answers."""
    confirmed: Sequence[float | None] | None = None
    """x' - y' of the fresh answers, None where nothing was asked."""

    @property
    def size(self) -> int:
        return len(self.m)

    @property
    def x(self) -> list[float]:
        return [m / r for m, r in zip(self.m, self.r_b, strict=True)]

    @property
    def y(self) -> list[float]:
        return [n / r for n, r in zip(self.n, self.r_a, strict=True)]

    @property
    def d(self) -> list[float]:
        return [x - y for x, y in zip(self.x, self.y, strict=True)]

    @property
    def single(self) -> bool:
        return max(*self.r_b, *self.r_a) == 1

    @property
    def plain(self) -> bool:
        """Whether the formulas of single answers apply."""
        return self.single and self.clusters is None and not self.macro


def factors(items: Items) -> list[float]:
    """f = N*w_t/n_t: 1 for totals over items."""
    if not items.macro:
        return [1.0] * items.size
    tasks = list(items.tasks or [])
    return [items.size * (1 / len(set(tasks))) / tasks.count(task) for task in tasks]


def named_clusters(items: Items) -> list[Hashable]:
    """Names of clusters; an item without one is its own."""
    given = items.clusters if items.clusters is not None else [None] * items.size
    return [("alone", n) if name is None else name for n, name in enumerate(given)]


def clustered(e: Sequence[float], names: Sequence[Hashable]) -> tuple[float, float]:
    """Return D and the Satterthwaite degrees of freedom of a mean (CR2 with a hat matrix)."""
    size = len(e)
    hat = np.full((size, size), 1 / size)
    residuals = np.array(e) - np.mean(e)
    variance, columns = 0.0, []
    for name in dict.fromkeys(names):
        own = [n for n, other in enumerate(names) if other == name]
        values, vectors = np.linalg.eigh(np.eye(len(own)) - hat[np.ix_(own, own)])
        root = vectors @ np.diag(values**-0.5) @ vectors.T
        weights = root @ np.full(len(own), 1 / size)
        variance += float(weights @ residuals[own]) ** 2
        columns.append((np.eye(size) - hat)[:, own] @ weights)
    products = np.array(columns) @ np.array(columns).T
    df = float(np.trace(products) ** 2 / np.sum(products**2))
    iid = float(residuals @ residuals) / (size * (size - 1))
    equal = max(e) - min(e) == 0
    return (1.0 if equal else max(1.0, variance / iid)), df


def spread(items: Items, e: Sequence[float], h: float) -> tuple[float, float, float]:
    """Return D*(sum (e - mean)^2 + h^2)/(N(N - 1)), D and df."""
    size = items.size
    design, df = 1.0, float(size - 1)
    if items.clusters is not None:
        design, df = clustered(e, named_clusters(items))
    mean = fmean(e)
    total = sum((each - mean) ** 2 for each in e) + h**2
    return design * total / (size * (size - 1)), design, df


def weighted(items: Items, e: Sequence[float], h: float = 1.0) -> tuple[list[float], float]:
    """Scores and the largest possible score, for macro totals times f."""
    f = factors(items)
    return [a * b for a, b in zip(e, f, strict=True)], h * max(f)


def lower_t(items: Items, e: Sequence[float], a: float, h: float = 1.0) -> float:
    """T(e, a)."""
    scores, largest = weighted(items, e, h)
    squared, _, df = spread(items, scores, largest)
    return float(np.mean(scores) - stats.t.isf(a, df) * math.sqrt(squared))


def upper_t(items: Items, e: Sequence[float], a: float) -> float:
    """The upper t limit with + h^2."""
    return -lower_t(items, [-each for each in e], a)


def roots(centre: float, fixed: float, binomial: float) -> tuple[float, float]:
    """Roots of (theta - centre)^2 = fixed + binomial*(theta - theta^2)."""
    a, b, c = 1 + binomial, -(2 * centre + binomial), centre**2 - fixed
    found = math.sqrt(b * b - 4 * a * c)
    return (-b - found) / (2 * a), (-b + found) / (2 * a)


def open_factor(items: Items, e: Sequence[float], design: float) -> float:
    """g, what unseen clusters leave open."""
    if items.clusters is None:
        return 1.0
    names = named_clusters(items)
    groups = {name: [v for v, own in zip(e, names, strict=True) if own == name] for name in names}
    kish = sum(len(group) ** 2 for group in groups.values()) / items.size
    lost = sum(bool(np.mean(group) > 0.5) for group in groups.values())
    return max(design, 1 + (kish - 1) * (0.0 if lost >= 20 else 4 / (4 + lost)))


def upper_v(items: Items, e: Sequence[float], a: float, *, seen: bool = False) -> float:
    """V(e); `seen` takes g = D, for these clusters only."""
    scores, h = weighted(items, e)
    s = max(factors(items)) / items.size
    squared, design, df = spread(items, scores, h)
    m, t = float(np.mean(scores)), float(stats.t.isf(a, df))
    positive = max(m, 0.0)
    c0 = max(squared - s * (positive - positive**2), s**2)
    if m + t * math.sqrt(c0) < 0:
        return m + t * math.sqrt(c0)
    g = design if seen else open_factor(items, e, design)
    return roots(m, t * t * c0, t * t * g * s)[1]


def cells(items: Items) -> tuple[int, int]:
    """n10 and n01 of single answers."""
    pairs = list(zip(items.m, items.n, strict=True))
    return pairs.count((1, 0)), pairs.count((0, 1))


def mcnemar(n10: int, n01: int) -> float:
    """P(Bin(n10 + n01, 1/2) >= n10), summed."""
    flips = n10 + n01
    return float(sum(math.comb(flips, k) for k in range(n10, flips + 1)) / 2**flips)


def drop(items: Items, a: float) -> float:
    """L1."""
    if not items.plain:
        return lower_t(items, items.d, a)
    (n10, n01), size, z = cells(items), items.size, float(stats.norm.isf(a))
    low = roots((n10 - 0.75 - n01) / size, z * z * (2 * n01 + 2.25) / size**2, z * z / size)[0]
    return min(low, 0.0) if n10 == 0 or mcnemar(n10, n01) > a else low


def task_half(items: Items, choosing: int) -> tuple[float, float, int]:
    """Return e, sd and the number of tasks chosen, with tasks chosen in one half."""
    tasks, halves, d = list(items.tasks or []), list(items.halves or []), items.d
    names, u, largest, chosen = named_clusters(items), dict[Hashable, float](), 0.0, 0
    for task in dict.fromkeys(tasks):
        own = [n for n, name in enumerate(tasks) if name == task]
        first = [d[n] for n in own if halves[n] == choosing]
        second = [n for n in own if halves[n] != choosing]
        if not first or not second:
            continue
        if np.mean(first) / math.sqrt(np.var(first) / len(first) + 1e-4) <= 0.5:
            continue
        chosen += 1
        w = 1 / len(set(tasks)) if items.macro else len(own) / items.size
        largest = max(largest, w / len(second))
        for n in second:
            u[names[n]] = u.get(names[n], 0.0) + w / len(second) * d[n]
    if not chosen:
        return 0.0, 0.0, 0
    squares = sum(each**2 for each in u.values()) + largest**2
    return sum(u.values()), math.sqrt(squares), chosen


def tasks_drop(items: Items, a: float) -> float:
    """L2."""
    (e1, sd1, chosen1), (e2, sd2, chosen2) = task_half(items, 0), task_half(items, 1)
    if not chosen1 + chosen2:
        return NO_BOUND
    return (e1 + e2) / 2 - float(stats.norm.isf(a)) * (sd1 + sd2) / 2


def left_out(m: int, r_b: int, n: int, r_a: int) -> float:
    """Mean over pairs of answers of (x_j - y_k)*[the others were more often right before]."""
    if min(r_b, r_a) < 2:
        return 0.0
    before, after = [1] * m + [0] * (r_b - m), [1] * n + [0] * (r_a - n)
    total = 0
    for j, k in product(range(r_b), range(r_a)):
        rest_before, rest_after = m - before[j], n - after[k]
        if rest_before * (r_a - 1) > rest_after * (r_b - 1):
            total += before[j] - after[k]
    return total / (r_b * r_a)


def one_side(m: int, r_b: int, n: int, r_a: int, repeats: tuple[int, int]) -> float:
    """x(1 - y) minus the flips of the repeated side by itself; 0 without a repeat."""
    right, r = repeats
    if r < 2:
        return 0.0
    return (m / r_b) * (1 - n / r_a) - right * (r - right) / (r * (r - 1))


def repeated_flips(items: Items) -> list[float] | None:
    """Scores of L3, or None without repeats."""
    rows = list(zip(items.m, items.r_b, items.n, items.r_a, strict=True))
    before, after = max(items.r_b) > 1, max(items.r_a) > 1
    if before and after:
        return [left_out(*row) for row in rows]
    if before:
        return [one_side(m, rb, n, ra, (m, rb)) for m, rb, n, ra in rows]
    if after:
        return [one_side(m, rb, n, ra, (n, ra)) for m, rb, n, ra in rows]
    return None


def confirmed_flips(items: Items, a: float) -> float:
    """L4."""
    answers, chosen = list(items.confirmed or []), sum(items.flipped or [])
    asked = sum(each is not None for each in answers)
    if asked < 2:
        return NO_BOUND
    scale = chosen / asked
    return lower_t(items, [0.0 if v is None else scale * v for v in answers], a, scale)


def offered(items: Items) -> dict[str, Callable[[float], float]]:
    """Lower bounds that the design offers, by name."""
    found: dict[str, Callable[[float], float]] = {"L1": lambda a: drop(items, a)}
    if items.tasks is not None and len(set(items.tasks)) >= 8:
        found["L2"] = lambda a: tasks_drop(items, a)
    if (flips := repeated_flips(items)) is not None:
        found["L3"] = lambda a: lower_t(items, flips, a)
    if items.confirmed is not None:
        found["L4"] = lambda a: confirmed_flips(items, a)
    if items.earlier is not None:
        kept = [(1 - z) * d for z, d in zip(items.earlier, items.d, strict=True)]
        found["L5"] = lambda a: lower_t(items, kept, a)
    return found


def lower(items: Items, a: float = 0.025) -> float:
    """L: the largest bound, each at a/m."""
    bounds = offered(items)
    return max(bound(a / len(bounds)) for bound in bounds.values())


def upper(items: Items, a: float = 0.025) -> float:
    """U, before max(U, L)."""
    if items.plain:
        z = float(stats.norm.isf(a))
        squared = z * z
        size = items.size
        return roots(cells(items)[0] / size, squared * 0.25 / size**2, squared / size)[1]
    plain = upper_v(items, [max(each, 0.0) for each in items.d], a)
    if min(*items.r_b, *items.r_a) < 2:
        return plain
    squares = [
        (x - y) ** 2 - x * (1 - x) / (rb - 1) - y * (1 - y) / (ra - 1)
        for x, y, rb, ra in zip(items.x, items.y, items.r_b, items.r_a, strict=True)
    ]
    root = math.sqrt(max(upper_t(items, squares, a), 0.0))
    return min(plain, (upper_v(items, items.d, a) + root) / 2)


def upper_drop(items: Items, a: float = 0.025) -> float:
    """Ud."""
    if not items.plain:
        return upper_v(items, items.d, a)
    (n10, n01), size, z = cells(items), items.size, float(stats.norm.isf(a))
    return roots((n10 - n01) / size, z * z * (2 * n01 + 2.25) / size**2, z * z / size)[1]


def lower_flips(n10: int, size: int, a: float = 0.025) -> float:
    """Lower limit of F from single answers."""
    z = float(stats.norm.isf(a))
    return roots((n10 - 0.75) / size, z * z * 0.25 / size**2, z * z / size)[0]


def smallest_level(bound: Callable[[float], float]) -> float:
    """Return the smallest a up to 1/2 at which the bound is above 0, by bisection."""
    low, high = 0.0, 0.5
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if bound(middle) > 0 else (middle, high)
    return high


def mirrored(items: Items) -> Items:
    """Swap before and after: gains become losses."""
    return replace(items, m=items.n, r_b=items.r_a, n=items.m, r_a=items.r_b)


def verdict(low: float, high: float, high_drop: float, margin: float = 0.02) -> str:
    """Lines 2 to 5 of the verdict."""
    high = max(high, low)
    if high < margin:
        return "small_loss" if low > 0 else "no_material_loss"
    if low > 0:
        return "lost"
    return "no_net_loss" if high_drop < margin else "cannot_tell"


def items_needed(net: float, v: float, a: float, margin: float, design: float) -> float:
    """About how many items would decide."""
    z, needed = float(stats.norm.isf(a)), math.inf
    if net > 0:
        needed = (z + 0.84) ** 2 * v / net**2 + 3 / net
    if net < margin:
        root = 1.96 * math.sqrt(margin + v + net**2 - net) + 0.84 * math.sqrt(v)
        needed = min(needed, (root / (margin - net)) ** 2 + 2 / (margin - net))
    return needed * design


def benjamini_hochberg(p: Sequence[float], share: float = 0.05) -> list[bool]:
    """Select by the step-up rule."""
    ranked = sorted(p)
    passed = [n for n in range(1, len(p) + 1) if ranked[n - 1] <= share * n / len(p)]
    return [each <= ranked[max(passed) - 1] if passed else False for each in p]


def holm(p: Sequence[float], share: float = 0.05) -> list[bool]:
    """Reject in the order of p until one fails."""
    rejected = [False] * len(p)
    for place, number in enumerate(sorted(range(len(p)), key=lambda n: p[n])):
        if p[number] > share / (len(p) - place):
            break
        rejected[number] = True
    return rejected
