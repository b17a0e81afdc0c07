"""How often do the intervals on drift of a study hold the truth where all pairs share items?

Run: .venv/bin/python benchmarks/study_drift_coverage.py [--draws 1000] [--items 30 100 400]

Every draw is a study: eight models before, each trained in three ways and once in two steps. All
models answer the same items of twelve capabilities. Items differ in difficulty and in how much a
training changes them, which all pairs share. Models and items are drawn each time, and the truth is
that of the population.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from forgetmap.study.drift import DriftChain, StudyDrift
from forgetmap.study.drift_findings import find_drift_effects
from forgetmap.study.pair_table import PairFacts, StudyTable

Reals = NDArray[np.float64]
RESULTS = Path(__file__).parent / "results" / "study_drift_coverage.json"
FACT = PairFacts("", "", "", "tuning", "tuning", "", None, 1.0, None, 1, changed_style=False)
SCALES = {"SFT": 0.30, "DPO": 0.15, "RL": 0.15}
"""Spread of the relative change of a capability by a training."""
MODELS, CAPABILITIES, SPREAD = 8, 12, 0.3


@dataclass(frozen=True)
class Items:
    """Items of every capability: how easy they are, and how much a training changes them."""

    easy: Reals
    prone: Reals

    @classmethod
    def draw(cls, count: int, random: np.random.Generator) -> Items:
        """Draw items that all models of a study answer."""
        shape = (CAPABILITIES, count)
        return cls(0.8 + random.normal(size=shape), random.gamma(2.0, 0.5, size=shape))

    def chances(self, own: Reals, effects: Reals) -> Reals:
        """Return the probability of a right answer after the relative changes of capabilities."""
        before = 1 / (1 + np.exp(-(self.easy + own)))
        after: Reals = np.clip(before * (1 + effects[:, None] * self.prone), 0, 1)
        return after


def drift_size(before: NDArray[np.bool_], after: NDArray[np.bool_]) -> float:
    """Return the root mean square of relative changes, corrected for noise over items."""
    level = before.mean(axis=1)
    effects = after.mean(axis=1) / level - 1
    spread = (after - (1 + effects)[:, None] * before) / level[:, None]
    noise = spread.var(axis=1, ddof=1) / before.shape[1]
    return float(max(np.mean(effects**2 - noise), 0.0) ** 0.5)


def draw_study(count: int, random: np.random.Generator) -> StudyDrift:
    """Draw the drift of all pairs of one study."""
    items = Items.draw(count, random)
    facts, sizes, chains = [], [], []
    for number in range(MODELS):
        base, own = f"m{number}", 0.5 * random.normal(size=items.easy.shape)
        level = random.lognormal(0, SPREAD)
        effects = {
            name: scale * level * random.normal(size=CAPABILITIES) for name, scale in SCALES.items()
        }
        before = random.random(items.easy.shape) < items.chances(own, np.zeros(CAPABILITIES))
        drifts = {
            name: drift_size(before, random.random(before.shape) < items.chances(own, effect))
            for name, effect in {**effects, "back": effects["SFT"] / 2}.items()
        }
        for name in SCALES:
            fact = replace(FACT, before=base, after=f"{base}-{name}", lineage=base, method=name)
            facts.append(replace(fact, family=f"family{number % 2}", domain_names=("law",)))
            sizes.append([drifts[name]])
        change = drifts["back"] - drifts["SFT"]
        chains.append(DriftChain(base, "between", "last", "DPO", "SFT", base, change))
    drift = np.asarray(sizes)
    nothing = np.full_like(drift, np.nan)
    table = StudyTable(tuple(facts), ("total",), nothing, nothing, drift=drift)
    return StudyDrift(table, tuple(chains), (), ())


def mean_size(scale: float) -> float:
    """Return the mean drift of a training over models and items."""
    random = np.random.default_rng(1)
    items = Items.draw(4000, random)
    own = 0.5 * random.normal(size=items.easy.shape)
    grid = np.linspace(-2.5, 2.5, 101)
    level = items.chances(own, np.zeros(CAPABILITIES)).mean()
    curve = [items.chances(own, np.full(CAPABILITIES, x)).mean() / level - 1 for x in grid]
    effects = scale * random.lognormal(0, SPREAD, (40_000, 1))
    effects = effects * random.normal(size=(40_000, CAPABILITIES))
    return float(np.sqrt((np.interp(effects, grid, curve) ** 2).mean(axis=1)).mean())


def measure(count: int, draws: int) -> dict[str, float]:
    """Return the share of studies whose interval contains the truth, and of false differences."""
    far, near = mean_size(0.30), mean_size(0.15)
    truth = {
        "drift-method:SFT against DPO": far - near,
        "drift-method:DPO against RL": 0.0,
        "drift-family:family0 against family1": 0.0,
        "drift-recovery:DPO after SFT": near - far,
    }
    random = np.random.default_rng((23, count))
    held, told = dict.fromkeys(truth, 0), 0
    for _ in range(draws):
        findings = {one.id: one for one in find_drift_effects(draw_study(count, random))}
        for name, value in truth.items():
            estimate = findings[name].evidence[0].estimate
            assert estimate.low is not None
            assert estimate.high is not None
            held[name] += estimate.low <= value <= estimate.high
        told += findings["drift-method:DPO against RL"].answer != "cannot tell"
    shares = {name: count / draws for name, count in held.items()}
    return {**shares, "equal methods told apart": told / draws}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--items", type=int, nargs="+", default=[30, 100, 400])
    options = parser.parse_args()
    results = {f"{count} items": measure(count, options.draws) for count in options.items}
    print(json.dumps(results, indent=1))
    RESULTS.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
