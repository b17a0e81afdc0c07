"""How often do the intervals of `forgetmap overlap` contain the truth?

    .venv/bin/python benchmarks/overlap_coverage.py --repetitions 1000

Two language models of four tokens whose completions of up to four tokens are all enumerated:
overlap and divergences are known exactly. Prompts are drawn from the 39 texts of up to three
letters, completions from the distributions of the models, and the whole estimate is repeated many
times. The last scenarios are meant to fail: the last column shows how often the output warns.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from rich.progress import track

from forgetmap.overlap.estimate import OverlapSettings, estimate_table
from forgetmap.overlap.result import OverlapEstimates

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests" / "support"))

from enumerable_models import (  # noqa: E402  # lives with the tests that use it
    Exact,
    all_prompts,
    drawn,
    drawn_mixture,
    enumerate_exactly,
    lettered_model,
)

NAMES = {
    "overlap": "overlap",
    "total_variation": "total_variation",
    "forward_kl": "forward_kl",
    "reverse_kl": "reverse_kl",
    "misassigned_before": "misassigned",
    "misassigned_after": "misassigned",
}
"""Quantity -> name of its exact value."""
DOUBTS = {"few terms", "leaning", "heavy weights"}


@dataclass(frozen=True)
class Scenario:
    """Parameters of a simulation."""

    name: str
    prompts: int
    samples: int
    step: float
    scale: float = 0.2
    whole: bool = True
    disasters: int = 0
    """Number of the 39 prompts that changed very much."""


SCENARIOS = (
    Scenario("near, 32 prompts x 16", 32, 16, 0.2),
    Scenario("near, 32 prompts x 16, ratios", 32, 16, 0.2, whole=False),
    Scenario("middle, 16 prompts x 8", 16, 8, 0.4),
    Scenario("middle, 32 prompts x 16", 32, 16, 0.4),
    Scenario("middle, 32 prompts x 16, ratios", 32, 16, 0.4, whole=False),
    Scenario("middle, 1 prompt x 64", 1, 64, 0.4),
    Scenario("far, 32 prompts x 16", 32, 16, 0.5, 0.6),
    Scenario("near with 2 disasters, 16 prompts x 8", 16, 8, 0.2, disasters=2),
    Scenario("near with 2 disasters, 39 prompts x 16", 39, 16, 0.2, disasters=2),
    Scenario("far, 6 prompts x 4, ratios", 6, 4, 0.5, 0.6, whole=False),
    Scenario("farther, 6 prompts x 4, ratios", 6, 4, 0.9, 0.6, whole=False),
)


def population(step: float, scale: float) -> list[Exact]:
    """Return both models on every prompt, exactly."""
    before = lettered_model(1, scale=scale)
    after = lettered_model(2, near=1, step=step, scale=scale)
    return [enumerate_exactly(before, after, prompt) for prompt in all_prompts()]


def hits(found: OverlapEstimates, truth: dict[str, float]) -> Counter[str]:
    """Count the available intervals, and those that contain the truth; also the one-sided bound."""
    counts: Counter[str] = Counter()
    for name, exact in truth.items():
        each = getattr(found, name)
        if each.low is not None:
            counts[f"{name} given"] += 1
            counts[name] += each.low <= exact + 1e-12 and exact <= each.high + 1e-12
    if found.kl_limit is not None:
        counts["kl_limit given"] += 1
        counts["kl_limit"] += truth["forward_kl"] <= found.kl_limit + 1e-12
    return counts


def cover(scenario: Scenario, known: list[Exact], repetitions: int, seed: int) -> dict[str, float]:
    """Return coverage over prompts, within prompts, and how often the output warns."""
    random = np.random.default_rng(seed)
    over, within, warned = Counter[str](), Counter[str](), 0
    for number in track(range(repetitions), description=scenario.name):
        places = random.integers(0, len(known), scenario.prompts)
        chosen = [known[place] for place in places]
        table = drawn(chosen, scenario.samples, random, whole=scenario.whole)
        result = estimate_table(table, settings=OverlapSettings(seed=number))
        one = scenario.prompts == 1
        over += hits(result.groups[0], _truth(chosen if one else known))
        for each in result.prompts[:4]:
            within += hits(each, _truth([chosen[int(each.prompt)]]))
        warned += bool(DOUBTS & {notice.kind for notice in result.notices})
    inner = repetitions * min(4, scenario.prompts)
    shares = {"warned": warned / repetitions, "per prompt given": within["overlap given"] / inner}
    for name in (*NAMES, "kl_limit"):
        shares[name] = over[name] / max(over[f"{name} given"], 1)
        shares[f"{name}, per prompt"] = within[name] / max(within[f"{name} given"], 1)
    return shares


def cover_mass(known: list[Exact], mass: float, repetitions: int, seed: int) -> dict[str, float]:
    """Return how often the interval of the old mass contains it, with 32 prompts x 16."""
    random = np.random.default_rng(seed)
    right = 0
    for number in track(range(repetitions), description=f"old mass {mass}"):
        chosen = [known[place] for place in random.integers(0, len(known), 32)]
        table = drawn_mixture(chosen, mass, 16, random)
        found = estimate_table(table, settings=OverlapSettings(seed=number)).groups[0].old_mass
        right += found.low is not None and found.low <= mass <= (found.high or 0.0)
    return {"old_mass": right / repetitions}


def _truth(exact: list[Exact]) -> dict[str, float]:
    return {
        name: float(np.mean([getattr(each, own) for each in exact])) for name, own in NAMES.items()
    }


def main() -> None:
    """Print a table, and save the numbers."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--repetitions", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    rows = []
    for scenario in SCENARIOS:
        if given.only in scenario.name:
            known = population(scenario.step, scenario.scale)
            known[: scenario.disasters] = population(0.9, 0.6)[: scenario.disasters]
            found = cover(scenario, known, given.repetitions, given.seed)
            truth = _truth(known)
            rows.append(asdict(scenario) | {"truth": truth, "coverage": found})
            print(scenario.name, {name: round(value, 3) for name, value in truth.items()})
            print("   ", {name: round(value, 3) for name, value in found.items()})
    for mass in (0.1, 0.5):
        if given.only in (name := f"far, old mass {mass}"):
            found = cover_mass(population(0.5, 0.6), mass, given.repetitions // 2, given.seed)
            rows.append({"name": name, "truth": {"old_mass": mass}, "coverage": found})
            print(name, found)
    if given.out:
        given.out.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
