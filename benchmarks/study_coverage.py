"""How often do the intervals of a study hold the truth, and how often is a trend seen falsely?

Run: .venv/bin/python benchmarks/study_coverage.py [--draws 1000] [--seconds 600]

Every draw is a study: lineages (a model before, of one family and size) with pairs in several
stages, which all answer the same items. An item is known by a model before or not; a pair loses a
known item with a probability that depends on the size, on the scale of the data, on its lineage, on
itself, and on the item, as some items are lost by most pairs. Lineages, pairs and items are drawn
each time, and the truth is that of the population. Draws are made in chunks with their own seeds
and saved in a file, so that an interrupted run resumes.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from forgetmap.stats import Contrast, item_covariance, pair_effect
from forgetmap.study import PairFacts, StudyTable
from forgetmap.study.effects import difference, mean_effect, size_trend

Reals = NDArray[np.float64]
RESULTS = Path(__file__).parent / "results" / "study_coverage.json"
KNOWN, LOST = 0.7, 0.25
"""Share of items known before; mean share of these that a pair loses."""
SIZES, STAGES, CHUNK = 4, 3, 50
FACT = PairFacts("", "", "", "", "", "", None, None, None, 0, changed_style=False)


@dataclass(frozen=True)
class World:
    """One kind of study.

    Attributes:
        pairs: number of pairs.
        families: number of families; each has up to `sizes` sizes, two if possible.
        lineage: spread between lineages of the probability of losing a known item.
        slope: change of that probability per doubling of size.
        items: number of items of each of two tasks.
        pair: spread between pairs of one lineage.
        data: reduction of the loss with little data.
        sizes: maximum number of sizes; with one, a family is one lineage.
    """

    pairs: int
    families: int
    lineage: float
    slope: float = 0.0
    items: int = 200
    pair: float = 0.04
    data: float = 0.0
    sizes: int = SIZES

    @property
    def name(self) -> str:
        """The parameters as text."""
        return ", ".join(f"{name} {value:g}" for name, value in asdict(self).items())


WORLDS = (
    [
        World(pairs, families, lineage, slope)
        for pairs, families in ((5, 2), (10, 2), (10, 3), (20, 3), (20, 6), (40, 2), (40, 6))
        for lineage, slope in ((0.0, 0.0), (0.05, 0.0), (0.05, -0.02))
    ]
    + [
        World(20, 3, 0.02, items=50),
        World(20, 3, 0.02, items=2000),
        World(20, 3, 0.05, data=-0.05),
    ]
    + [
        World(pairs, lineages, spread, items=items, sizes=1)
        for lineages, pairs in ((2, 2), (2, 8), (3, 3), (3, 12))
        for spread, items in ((0.0, 400), (0.02, 200), (0.05, 50))
    ]
)


def draw_design(world: World) -> list[PairFacts]:
    """Return the pairs of a study: all lineages in a first stage, then in the next."""
    sizes = min(world.sizes, max(2, -(-world.pairs // world.families)))
    roots = [(family, size) for size in range(sizes) for family in range(world.families)]
    pairs = []
    for number in range(world.pairs):
        family, size = roots[number % len(roots)]
        stage = f"stage {number // len(roots) % STAGES}"
        fact = replace(
            FACT, group=stage, stage=stage, lineage=f"{family}-{size}", series=f"family {family}",
            size=float(2**size), data="low" if number % 2 else "high",
        )  # fmt: skip
        pairs.append(fact)
    return pairs


def chance_of(world: World, fact: PairFacts) -> float:
    """Return the mean probability that a pair with these facts loses a known item."""
    doublings = float(np.log2(fact.size or 1)) - (SIZES - 1) / 2
    return LOST + world.slope * doublings + (world.data if fact.data == "low" else 0.0)


def draw_table(world: World, random: np.random.Generator) -> StudyTable:
    """Draw one study with its values and their covariance over items."""
    facts = draw_design(world)
    items = 2 * world.items
    task = np.repeat([0, 1], world.items)
    easy, prone = random.normal(size=items), random.gamma(4.0, 0.25, size=items)
    peculiar = {fact.lineage: world.lineage * random.normal() for fact in facts}
    known = {name: _knows(easy, random) for name in peculiar}
    values, terms = [], []
    for fact in facts:
        chance = chance_of(world, fact) + peculiar[fact.lineage] + world.pair * random.normal()
        lost = random.random(items) < np.clip(chance, 0.01, 0.9) * prone
        right = known[fact.lineage]
        effect = pair_effect(
            right[None], (right * ~lost)[None], np.zeros(items), task, np.asarray([0.5, 0.5])
        )
        values.append(effect.values)
        terms.append(effect.terms[0])
    column = np.asarray(values)[:, :1]
    covariance = {("forgetting", "total"): item_covariance(np.stack(terms), task)}
    return StudyTable(tuple(facts), ("total",), column, column, covariance)  # type: ignore[arg-type]


def _knows(easy: Reals, random: np.random.Generator) -> Reals:
    """Return which items a model knows; every model knows the same share."""
    own = (easy + random.normal(size=easy.size)) / np.sqrt(2)
    threshold = 0.5244005127080409  # normal quantile: 70 % are known
    known: Reals = (own < threshold).astype(float)
    return known


def measure(world: World, random: np.random.Generator) -> dict[str, int]:
    """Return what holds in one study: 1 or 0; absent if the design allows no interval."""
    table = draw_table(world, random)
    facts = table.facts
    held: dict[str, int] = {}
    trend = size_trend(table, "forgetting")
    if trend is not None and not np.isnan(trend[0].error):
        held["trend covered"] = covers(trend[0], KNOWN * world.slope)
        held["larger forget less"] = int(trend[0].high < 0)
        held["larger forget more"] = int(trend[0].low > 0)
    mean = mean_effect(table, "forgetting", np.ones(len(facts), bool))
    truth = KNOWN * float(np.mean([chance_of(world, fact) for fact in facts]))
    if mean is not None and not np.isnan(mean.error):
        held["mean covered"] = covers(mean, truth)
    stages = [fact.stage for fact in facts]
    rows = (table.rows(data="low"), table.rows(data="high"))
    found = difference(table, "forgetting", rows, within=stages)
    if found is not None and not np.isnan(found[0].error):
        held["difference covered"] = covers(found[0], true_difference(world, table, rows, stages))
    return held


def true_difference(
    world: World,
    table: StudyTable,
    rows: tuple[NDArray[np.bool_], NDArray[np.bool_]],
    stages: list[str],
) -> float:
    """Return the contrast of the true values: sizes differ by chance between the sides."""
    column = KNOWN * np.asarray([[chance_of(world, fact)] for fact in table.facts])
    exact = StudyTable(table.facts, table.categories, column, column)
    found = difference(exact, "forgetting", rows, within=stages)
    assert found is not None
    return found[0].value


def covers(contrast: Contrast, truth: float) -> int:
    """Return whether the interval contains the truth."""
    return int(contrast.low <= truth <= contrast.high)


def chunks(world: World, number: int, done: int, draws: int) -> Iterator[dict[str, list[int]]]:
    """Yield sums and counts of each measure, for every missing chunk."""
    for chunk in range(done // CHUNK, -(-draws // CHUNK)):
        random = np.random.default_rng((23, number, chunk))
        counts: dict[str, list[int]] = {}
        for _ in range(CHUNK):
            for name, value in measure(world, random).items():
                count = counts.setdefault(name, [0, 0])
                count[0] += value
                count[1] += 1
        yield counts


def run(draws: int, seconds: float, path: Path) -> dict[str, dict[str, list[int]]]:
    """Draw until every world has this many studies, or the time is up."""
    kept = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    end = time.monotonic() + seconds
    for number, world in enumerate(WORLDS):
        entry = kept.setdefault(world.name, {"draws": [0, 0]})
        for counts in chunks(world, number, entry["draws"][0], draws):
            entry["draws"][0] += CHUNK
            for name, (total, count) in counts.items():
                before = entry.setdefault(name, [0, 0])
                entry[name] = [before[0] + total, before[1] + count]
            path.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
            if time.monotonic() > end:
                return kept
    return kept


def show(kept: dict[str, dict[str, list[int]]]) -> None:
    """Print a line per world, in percent."""
    names = ("trend covered", "mean covered", "difference covered", "larger forget less",
             "larger forget more")  # fmt: skip
    for world, entry in kept.items():
        cells = [
            f"{name} {100 * entry[name][0] / entry[name][1]:.1f}" for name in names if name in entry
        ]
        print(f"{world} [{entry['draws'][0]} studies]: {', '.join(cells)}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    show(run(options.draws, options.seconds, options.out))
