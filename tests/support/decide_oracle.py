"""An independent implementation of the limits and verdicts, item by item (design/decide.md).

Written from the text of sections 2, 3 and 5 alone. Slow on purpose: CR2 takes the square root of
the hat matrix of every cluster, leave-one-out goes over all pairs of answers, and p values are
found by bisection.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
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
    return _clustered(tuple(e), tuple(names))


@cache
def _clustered(e: tuple[float, ...], names: tuple[Hashable, ...]) -> tuple[float, float]:
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
    found = math.sqrt(max(b * b - 4 * a * c, 0.0))  # 0 at z = 0, but for rounding
    return (-b - found) / (2 * a), (-b + found) / (2 * a)


def equal_clusters(items: Items) -> float:
    """Number of equal clusters that would leave as much open as these, by bisection.

    What can be lost while no lost cluster is seen in .025 of samples: a cluster with a share above
    the level is lost with probability 1 - level/share, and the product of level/share is .025.
    """
    shares = dict[Hashable, float]()
    for name, f in zip(named_clusters(items), factors(items), strict=True):
        shares[name] = shares.get(name, 0.0) + f / items.size
    low, high = 0.0, max(shares.values())
    for _ in range(200):
        level = (low + high) / 2
        seen = sum(math.log(level / share) for share in shares.values() if share > level)
        low, high = (level, high) if seen < math.log(0.025) else (low, level)
    most = sum(max(share - low, 0.0) for share in shares.values())
    return math.log(0.025) / math.log1p(-most)


def open_factor(items: Items, e: Sequence[float], design: float) -> float:
    """g, what unseen clusters leave open."""
    if items.clusters is None:
        return 1.0
    rows = list(zip(named_clusters(items), e, factors(items), strict=True))
    # A passage of a single item is a single item: that it flipped may be noise.
    values: dict[Hashable, list[float]] = {}
    for name, value, _ in rows:
        values.setdefault(name, []).append(value)
    lost = {name for name, own in values.items() if len(own) > 1 and fmean(own) > 0.5}
    weight = sum(f for name, _, f in rows if name in lost) / items.size
    number = equal_clusters(items)
    seen = min(len(lost), weight * number)
    size = items.size / (number * max(factors(items)))
    return max(design, 1 + (size - 1) * (0.0 if seen >= 20 else 4 / (4 + seen)))


def upper_v(items: Items, e: Sequence[float], a: float, *, seen: bool = False) -> float:
    """V(e); `seen` takes g = D, for these clusters only."""
    scores, h = weighted(items, e)
    s = max(factors(items)) / items.size
    squared, design, df = spread(items, scores, h)
    t = float(stats.t.isf(a, df))
    losses, gains = (fmean(max(sign * v, 0.0) for v in scores) for sign in (1, -1))
    g = design if seen else open_factor(items, e, design)
    binomial = t * t * g * s
    return roots(losses, t * t * squared - binomial * (losses - losses**2), binomial)[1] - gains


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
    limit = upper_t if items.clusters is None else upper_v
    root = math.sqrt(max(limit(items, squares, a), 0.0))
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


# ---------------------------------------------------------------------------- judged together

Bounds = dict[str, Callable[[float], float]]


@dataclass(frozen=True)
class Judged:
    """Limits and verdict of a group among others; q is None for a group alone."""

    low: float
    high: float
    high_drop: float
    p: float
    q: float | None
    verdict: str


def parts_of(bounds: Bounds, *, later: bool) -> dict[str, float]:
    """Return the part of the error that each bound has; L4 a quarter if it was asked for later."""
    planned = [name for name in bounds if name != "L4" or not later]
    return {name: 1 / len(planned) if name in planned else 1 / 4 for name in bounds}


def judge(
    groups: Mapping[str, Items],
    *,
    margin: float = 0.02,
    alpha: float = 0.025,
    high_alpha: float | None = None,
    later: bool = True,
    holm_order: bool = False,
    more: Callable[[Items], Bounds] | None = None,
) -> dict[str, Judged]:
    """Judge groups that are examined together, by Benjamini-Hochberg or by Holm.

    Args:
        groups: the items of each group; all of them have something that can be lost.
        margin: largest acceptable loss.
        alpha: one-sided error of the lower limits.
        high_alpha: that of the upper ones, if it is another.
        later: flips were asked again only after an undecided comparison.
        holm_order: by Holm, as the stages of a chain.
        more: further bounds, which a user stated.
    """
    bounds = {
        name: {**offered(items), **(more(items) if more else {})} for name, items in groups.items()
    }
    p = {name: _p_value(own, later=later) for name, own in bounds.items()}
    size, ranked = len(p), sorted(p, key=lambda name: p[name])
    if holm_order:
        chosen = dict(zip(p, holm(list(p.values()), 2 * alpha), strict=True))
        part = {name: 1 / (size - ranked.index(name)) for name in p}
        q: dict[str, float | None] = dict.fromkeys(p)
    else:
        found = {name: min(p[other] * size / (at + 1) for at, other in enumerate(ranked)
                           if p[other] >= p[name]) for name in p}  # fmt: skip
        q = {name: min(found[name], 1.0) if size > 1 else None for name in p}
        chosen = dict(zip(p, benjamini_hochberg(list(p.values()), 2 * alpha), strict=True))
        part = dict.fromkeys(p, max(sum(chosen.values()), 1) / size)
        chosen = chosen if size > 1 else dict.fromkeys(p, True)
    judged = {}
    for name, items in groups.items():
        parts = parts_of(bounds[name], later=later)
        low = max(bound(alpha * part[name] * parts[each]) for each, bound in bounds[name].items())
        high = max(upper(items, high_alpha or alpha), low)
        drop = upper_drop(items, high_alpha or alpha)
        low = low if chosen[name] else min(low, 0.0)
        judged[name] = Judged(low, high, drop, p[name], q[name], verdict(low, high, drop, margin))
    return judged


def _p_value(bounds: Bounds, *, later: bool) -> float:
    parts = parts_of(bounds, later=later)
    return min(1.0, 2 * min(smallest_level(bound) / parts[each] for each, bound in bounds.items()))


# ---------------------------------------------------------------------------- words


def knows_less(
    items: Items,
    none_before: Sequence[float],
    none_after: Sequence[float],
    options: Sequence[float],
    positions: Sequence[int | None],
    a: float,
) -> bool:
    """Return whether a proven drop may be called one of knowledge, by both guards.

    Args:
        items: the items.
        none_before: share of answers to each item before that were not given.
        none_after: the same after.
        options: number of options, inf for open items.
        positions: position of the right option; None if it is not recorded.
        a: one-sided error.
    """
    luck = [0.0 if math.isinf(k) else 1 / k for k in options]
    e = [
        (x + k * b) - (y + k * c)
        for x, y, k, b, c in zip(items.x, items.y, luck, none_before, none_after, strict=True)
    ]
    if lower_t(items, e, a) <= 0:
        return False
    if all(position is None for position in positions):
        return True
    return _at_equal_positions(items, e, options, positions, a) > 0


def _at_equal_positions(
    items: Items,
    e: Sequence[float],
    options: Sequence[float],
    positions: Sequence[int | None],
    a: float,
) -> float:
    total, variance = 0.0, 0.0
    for k in set(options):
        own = [n for n in range(items.size) if options[n] == k]
        if math.isinf(k):
            groups = [own]
        else:
            groups = [[n for n in own if positions[n] == at] for at in range(int(k))]
            if min(map(len, groups)) < 5:
                continue
        weight = sum(map(len, groups)) / items.size / len(groups)
        for group in groups:
            values = [e[n] for n in group]
            spread = float(np.var(values, ddof=1)) if len(values) > 1 else 0.0
            total += weight * fmean(values)
            variance += weight**2 * (spread + 1 / len(values)) / len(values)
    design = 1.0
    if items.clusters is not None:
        design = clustered(weighted(items, e)[0], named_clusters(items))[0]
    return total - float(stats.norm.isf(a)) * math.sqrt(variance * design)
