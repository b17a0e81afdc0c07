"""How often do the limits of the chosen merge hold the truth?

Run: .venv/bin/python benchmarks/sweep_coverage.py [--sweeps 1000] [--items 300]

Items are drawn for every sweep. Each is known, lost, gained or never known; a lost item becomes
wrong, and a gained one right, above its own weight, and every answer of a merge flips by chance
with a small probability. So the truth is an integral over two uniform numbers. The merge is chosen
by the rule; measured is whether the intervals of the chosen merge hold, and how often a merge is
certified to be within the budget but is not.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from forgetmap.stats.simultaneous import ClusterDesign
from forgetmap.sweep.analyse import PathPoint, analyse_pair
from forgetmap.sweep.states import States

WEIGHTS = np.round(np.arange(0.1, 1.0, 0.1), 1)
SHARES = {"kept": 0.45, "lost": 0.25, "gained": 0.15, "never": 0.15}
CHURN = 0.03
"""Share of the answers of a merge that flip by chance."""
WORLDS = {
    # Ranges of weights in which lost items become wrong, and gained ones right.
    "merging helps": ((0.3, 1.0), (0.0, 0.6)),
    "mixing": ((0.0, 1.0), (0.0, 1.0)),
    "merging hurts": ((0.0, 0.5), (0.5, 1.0)),
    "on the budget": ((0.2, 0.8), (0.2, 0.8)),
}
SPOTS = [
    PathPoint("linear", 0.0, 0, "base"),
    *(PathPoint("linear", float(w), n, f"m{n}") for n, w in enumerate(WEIGHTS, start=2)),
    PathPoint("linear", 1.0, 1, "tuned"),
]
Reals = NDArray[np.float64]


def turned(limits: tuple[float, float]) -> Reals:
    """Return the share of items that have changed at each weight."""
    return np.clip((WEIGHTS - limits[0]) / (limits[1] - limits[0]), 0.0, 1.0)


def truth(world: str) -> dict[str, Reals]:
    """Return the true values in the population, at each weight."""
    lost, gained = (turned(limits) for limits in WORLDS[world])
    wrong_of_lost = lost * (1 - CHURN) + (1 - lost) * CHURN
    right_of_gained = gained * (1 - CHURN) + (1 - gained) * CHURN
    return {
        "forgetting": SHARES["kept"] * CHURN + SHARES["lost"] * wrong_of_lost,
        "retained": right_of_gained,
        "recovered": 1 - wrong_of_lost,
        "benefit": right_of_gained - wrong_of_lost,
    }


def draw(world: str, items: int, source: np.random.Generator) -> States:
    """Draw one sweep."""
    kind = source.choice(len(SHARES), items, p=list(SHARES.values()))
    turns = [source.uniform(*limits, items) for limits in WORLDS[world]]
    base, tuned = kind <= 1, (kind == 0) | (kind == 2)
    runs = [base, tuned]
    for weight in WEIGHTS:
        lost, gained = weight > turns[0], weight > turns[1]
        right = (kind == 0) | ((kind == 1) & ~lost) | ((kind == 2) & gained)
        runs.append(right ^ (source.random(items) < CHURN))
    nothing = np.zeros(items)
    category = np.full(items, "A")
    return States(np.array(runs), category, nothing > 0, ClusterDesign(), nothing, None, 0)


def check(world: str, sweeps: int, items: int, seed: int = 0) -> dict[str, float]:
    """Return shares of sweeps in which the statements hold."""
    source = np.random.default_rng([seed, items, *world.encode()])
    known = truth(world)
    allowed = 0.5 * SHARES["lost"]
    held = dict.fromkeys(known, 0)
    alone = dict.fromkeys(known, 0)
    chosen = false = sure = 0
    for _ in range(sweeps):
        pair = analyse_pair(
            draw(world, items, source), SPOTS, names=("t", "t"), compared={}, drift=None
        )
        claimed = [p for p in pair.points if p.within == "surely"]
        at = {point.weight: n for n, point in enumerate(pair.points[1:-1])}
        false += any(known["forgetting"][at[point.weight]] > allowed for point in claimed)
        if pair.best.point is None:
            continue
        chosen += 1
        sure += pair.best.sure == "sure"
        best = pair.points[pair.best.point]
        for name, values in known.items():
            value = values[at[best.weight]]
            together, own = getattr(best, f"{name}_all"), getattr(best, name)
            held[name] += bool(together.low <= value <= together.high)
            alone[name] += bool(own.low <= value <= own.high)
    found = {"chosen": chosen / sweeps, "sure": sure / sweeps, "false claims": false / sweeps}
    found |= {f"{name} held": n / max(chosen, 1) for name, n in held.items()}
    return found | {f"{name} held, alone": n / max(chosen, 1) for name, n in alone.items()}


def main() -> None:
    """Check every world, print, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sweeps", type=int, default=1000)
    parser.add_argument("--items", type=int, default=300)
    given = parser.parse_args()
    results = {}
    for world in WORLDS:
        results[world] = check(world, given.sweeps, given.items)
        shown = ", ".join(f"{name} {value:.3f}" for name, value in results[world].items())
        print(f"{world}: {shown}", flush=True)
    path = Path(__file__).parent / "results" / "sweep_coverage.json"
    content = {"sweeps": given.sweeps, "items": given.items, "worlds": results}
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
