"""How often intervals of drift contain the truth, on models whose drift is known.

    python benchmarks/drift_coverage.py [--evaluations N] [--draws N]

The models are those of tests/support/drifting_models.py: items are drawn for every evaluation, so
that the truth is the drift on the population of items. Prints a table in Markdown.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "support"))

from drifting_models import SHIFTS, estimate, truth

LEVELS = ("groups", "capabilities", "metrics")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--evaluations", type=int, default=1_000)
    parser.add_argument("--draws", type=int, default=1_000)
    given = parser.parse_args()
    known = truth()
    rng = np.random.default_rng(7)
    inside: dict[tuple[str, str], list[bool]] = {}
    alarms: dict[tuple[str, str], list[bool]] = {}
    for _ in range(given.evaluations):
        found = estimate(rng, given.draws)
        for level in LEVELS:
            for name, each in getattr(found, level).items():
                low, high = each.limits or (np.nan, np.nan)
                real = getattr(known, level)[name].value
                inside.setdefault((level, name), []).append(low <= real <= high)
                alarms.setdefault((level, name), []).append(each.p <= 0.05)
    print(f"{given.evaluations:,} evaluations of {len(SHIFTS)} metrics, {given.draws:,} draws\n")
    print("| level | cell | true drift | 95% interval covers | p <= .05 |\n|---|---|---|---|---|")
    for (level, name), hits in inside.items():
        real = getattr(known, level)[name].value
        rate = np.mean(alarms[level, name])
        print(
            f"| {level} | {name} | {real:+.3f} | {100 * np.mean(hits):.1f}% | {100 * rate:.0f}% |"
        )
    for level in LEVELS:
        mean = np.mean([np.mean(hits) for (each, _), hits in inside.items() if each == level])
        print(f"all {level}: {100 * mean:.1f}%")


if __name__ == "__main__":
    main()
