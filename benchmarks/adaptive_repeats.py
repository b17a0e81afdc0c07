"""Does `--repeats auto` keep its error rate, and what does it save?

    .venv/bin/python benchmarks/adaptive_repeats.py --repetitions 2000

Models with a known probability of answering each item are evaluated repeatedly. Every line is a map
of several categories: how often any category without loss was called lost (the target is at most
2.5 %), also with the full budget at one look ("by all"); how many of those that lost the margin or
more were called free of material loss (2.5 % again); how often the verdicts are those of the full
budget; in how many of the categories with a loss it was found, also with the full budget; and the
share of the budget that was spent. The last scenarios violate the assumptions.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from rich.progress import track

from forgetmap.map import Auto

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests" / "support"))

from repeated_answers import Truth, ask, full_budget, spend  # noqa: E402  # lives with the tests

QUIET = Truth()
MARGIN = 0.02
JUST = replace(QUIET, known=1.0, wavering=0.0, lost=MARGIN / 0.73)
"""Forgotten items go from .98 to .25: a loss of exactly the margin."""
LOSSES, NO_LOSSES = ("lost", "small_loss"), ("no_material_loss", "small_loss")
SCENARIOS: dict[str, list[Truth]] = {
    "nothing lost, 6 x 200 items": [QUIET] * 6,
    "nothing lost, 1 x 50": [replace(QUIET, items=50)],
    "nothing lost, 12 x 50, half wavering": [replace(QUIET, items=50, wavering=0.5)] * 12,
    "nothing lost, 3 x 2000, sure answers": [replace(QUIET, items=2000, wavering=0.0)] * 3,
    "as much gained as lost, 6 x 200": [replace(QUIET, lost=0.1, gained=0.1)] * 6,
    "clear loss in 2 of 6 (15 %)": [replace(QUIET, lost=0.15)] * 2 + [QUIET] * 4,
    "clear loss everywhere (15 %)": [replace(QUIET, lost=0.15)] * 6,
    "faint loss in 2 of 6 (5 %)": [replace(QUIET, lost=0.05)] * 2 + [QUIET] * 4,
    "loss of every size, 0 to 20 %": [replace(QUIET, lost=0.04 * place) for place in range(6)],
    "just the margin of 2 % lost, 6 x 600": [replace(JUST, items=600)] * 6,
    "just the margin of 2 % lost, 6 x 1500": [replace(JUST, items=1500)] * 6,
    "one answer in ten is missing": [replace(QUIET, failed=0.1)] * 6,
    "BREAKS: repeats have moods (.5)": [replace(QUIET, mood=0.5)] * 6,
    "BREAKS: clusters of 10 items": [replace(QUIET, cluster=10)] * 6,
    "BREAKS: clusters of 10, 5 % lost": [replace(QUIET, cluster=10, lost=0.05)] * 6,
}


@dataclass(frozen=True)
class Line:
    """Results of one scenario."""

    scenario: str
    false_loss: float
    false_loss_by_all: float
    false_peace: float | None
    agree: float
    found: float | None
    found_by_all: float | None
    spent: float


def measure(name: str, truths: list[Truth], rule: Auto, repetitions: int, seed: int) -> Line:
    """Repeat one scenario."""
    source = np.random.default_rng([seed, *name.encode()])
    lost = {str(place) for place, truth in enumerate(truths) if truth.lost > 0}
    material = {str(place) for place, truth in enumerate(truths) if truth.loss >= MARGIN - 1e-9}
    wrong = wrong_by_all = peace = agree = spent = 0.0
    found = by_all = 0
    for _ in range(repetitions):
        asked = {str(place): ask(truth, rule.most, source) for place, truth in enumerate(truths)}
        outcome, full = spend(asked, rule), full_budget(asked, rule)
        verdicts = {group: each.verdict for group, each in outcome.groups.items()}
        wrong += any(verdicts[group] in LOSSES for group in verdicts.keys() - lost)
        wrong_by_all += any(full[group].verdict in LOSSES for group in full.keys() - lost)
        peace += sum(verdicts[group] in NO_LOSSES for group in material)
        agree += sum(verdicts[group] == full[group].verdict for group in verdicts) / len(verdicts)
        found += sum(verdicts[group] in LOSSES for group in lost)
        by_all += sum(full[group].verdict in LOSSES for group in lost)
        spent += outcome.spent / outcome.full
    tries = repetitions * len(lost)
    return Line(
        scenario=name,
        false_loss=wrong / repetitions,
        false_loss_by_all=wrong_by_all / repetitions,
        false_peace=peace / (repetitions * len(material)) if material else None,
        agree=agree / repetitions,
        found=found / tries if tries else None,
        found_by_all=by_all / tries if tries else None,
        spent=spent / repetitions,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=500)
    parser.add_argument("--most", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    rule = Auto(most=given.most)
    lines = [
        measure(name, truths, rule, given.repetitions, given.seed)
        for name, truths in track(SCENARIOS.items(), description="scenarios")
    ]
    print("scenario | false loss | by all | false peace | agree | found | by all | spent")
    for line in lines:
        numbers = [value for key, value in asdict(line).items() if key != "scenario"]
        shown = ["-" if value is None else f"{value:.3f}" for value in numbers]
        print(" | ".join([line.scenario, *shown]))
    if given.out:
        given.out.write_text(json.dumps([asdict(line) for line in lines], indent=1) + "\n")


if __name__ == "__main__":
    main()
