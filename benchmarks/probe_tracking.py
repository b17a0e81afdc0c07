"""Does a probe say what the full run says, within its error bar?

    .venv/bin/python benchmarks/probe_tracking.py --repetitions 2000

The model before answers items with known probabilities r times; a probe is chosen from those that
were right every time; both models answer it once, and the model after all items. Every line shows
how often the interval contains the share of the stably known items that the full run has wrong; how
often a loss is claimed; the error of the probe; and its share of the full run. The last columns are
what no probe detects: the loss on items that are not known stably, and the gains.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from rich.progress import track

from forgetmap.probe.stable import AnsweredItem, Known
from forgetmap.stats import allocate, items_to_detect, plain_drop_p, sampled_share

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests" / "support"))

from repeated_answers import Truth, answers, chances  # noqa: E402  # lives with the tests

TASKS = (0.5, 0.3, 0.15, 0.05)
"""Shares of the items of a group in its tasks."""


@dataclass(frozen=True)
class Scenario:
    """Parameters of a simulation."""

    name: str
    truth: Truth
    repeats: int = 4
    detect: float = 0.05


SCENARIOS = [
    Scenario("unchanged, 1000 items, 4 repeats", Truth(items=1000)),
    Scenario("unchanged, 1000 items, 2 repeats", Truth(items=1000), repeats=2),
    Scenario("unchanged, 150 items", Truth(items=150)),
    Scenario("unchanged, half of the items waver", Truth(items=1000, wavering=0.5)),
    Scenario("5 % of known answers turn wrong", Truth(items=1000, lost=0.04)),
    Scenario("7.5 % of known answers turn wrong", Truth(items=1000, lost=0.06)),
    Scenario("a quarter turns wrong", Truth(items=1000, lost=0.2)),
    Scenario("a quarter turns wrong, looking for 2 %", Truth(items=2000, lost=0.2), detect=0.02),
    Scenario("7.5 % turn wrong, as much gained", Truth(items=1000, lost=0.06, gained=0.06)),
    Scenario("7.5 % turn wrong, 150 items", Truth(items=150, lost=0.06)),
    Scenario("sure answers, 7.5 % turn wrong", Truth(items=1000, lost=0.06, wavering=0.0)),
    Scenario("BREAKS: clusters of 10, 7.5 % turn wrong", Truth(items=1000, lost=0.06, cluster=10)),
]


@dataclass(frozen=True)
class Line:
    """Results of one scenario."""

    scenario: str
    within: float
    claims: float
    off: float
    asked: float
    unseen_loss: float
    unseen_gain: float


def try_once(scenario: Scenario, source: np.random.Generator) -> list[float]:
    """Simulate one probe and the full run."""
    p_before, p_after = chances(scenario.truth, source)
    n = scenario.truth.items
    right = answers(p_before, scenario.repeats, source).sum(1)
    again, after = (answers(p, 1, source)[:, 0] for p in (p_before, p_after))
    task = source.choice(len(TASKS), n, p=TASKS)
    stable = right == scenario.repeats
    items = tuple(AnsweredItem("t", "", None, int(m), scenario.repeats, None) for m in right)
    wanted = items_to_detect(scenario.detect, Known(items, (), "repeats").noise(items))
    known = [int((stable & (task == t)).sum()) for t in range(len(TASKS))]
    counts = allocate(known, wanted)
    wrong, asked = [], np.zeros(n, bool)
    for t, count in enumerate(counts):
        drawn = source.permutation(np.flatnonzero(stable & (task == t)))[:count]
        wrong.append(int((~after[drawn]).sum()))
        asked[drawn] = True
    found = sampled_share(wrong, counts, known)
    full = float((~after[stable]).mean())
    flips = [int((asked & first & ~then).sum()) for first, then in ((again, after), (after, again))]
    near = 1e-9
    share_before = right / scenario.repeats
    return [
        found.low - near <= full <= found.high + near,
        float(plain_drop_p(*flips)) <= 0.0125,
        abs(found.value - full),
        found.asked / n,
        float((share_before * ~after)[~stable].sum()) / n,
        float(((1 - share_before) * after).sum()) / n,
    ]


def measure(scenario: Scenario, repetitions: int, seed: int) -> Line:
    """Repeat one scenario."""
    source = np.random.default_rng([seed, *scenario.name.encode()])
    table = np.array([try_once(scenario, source) for _ in range(repetitions)], float)
    return Line(scenario.name, *map(float, table.mean(0)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    lines = [
        measure(scenario, given.repetitions, given.seed)
        for scenario in track(SCENARIOS, description="scenarios")
    ]
    print("scenario | within | claims | off | asked | unseen loss | gain")
    for line in lines:
        numbers = [f"{value:.3f}" for name, value in asdict(line).items() if name != "scenario"]
        print(" | ".join([line.scenario, *numbers]))
    if given.out:
        given.out.write_text(json.dumps([asdict(line) for line in lines], indent=1) + "\n")


if __name__ == "__main__":
    main()
