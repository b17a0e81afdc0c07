"""Checks our reproduction of the published arithmetic against a golden file of its output.

    .venv/bin/python tools/check_golden.py FILE.json

The file has `rows` (counts of one task and seed with the numbers of the published analysis under
`expected`), `pivots` (its means and standard deviations per category) and `samples` (transitions of
every item and seed). Rows must agree to 1e-12, categories to the printed digits.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from forgetmap.comparison.cells import Cells
from forgetmap.comparison.rollups import SeedRow, consensus, roll_up, row_values

PER_ROW = 1e-12
ROUNDED = {"": 5.1e-9, "_std": 5.1e-11}
NAMES = {
    "Adj. Abs. Forgetting": "forgetting",
    "Adj. Abs. Improvement": "backward_transfer",
    "Max Possible Forgetting": "forgetting_max",
    "Max Possible Improvement": "backward_transfer_max",
}
PIVOTS = {
    "Adj_Abs_Forgetting": "forgetting",
    "Adj_Abs_Improvement": "backward_transfer",
    "Max_Possible_Forgetting": "forgetting_max",
    "Max_Possible_Improvement": "backward_transfer_max",
    "acc_before": "acc_before",
    "acc_after": "acc_after",
}


def main() -> None:
    """Check every file on the command line."""
    failed = False
    for name in sys.argv[1:]:
        golden = json.loads(Path(name).read_text(encoding="utf-8"))
        worst = {
            "rows": (worst_row(golden["rows"]), PER_ROW),
            "consensus": (worst_consensus(golden), PER_ROW),
            "categories": (worst_pivot(golden, ""), ROUNDED[""]),
            "deviations": (worst_pivot(golden, "_std"), ROUNDED["_std"]),
        }
        for what, (difference, allowed) in worst.items():
            verdict = "ok" if difference <= allowed else "FAILED"
            failed |= difference > allowed
            print(f"{name}: {what}: largest difference {difference:.2g} ({allowed:g}): {verdict}")
    sys.exit(failed)


def seed_row(row: dict[str, Any]) -> SeedRow:
    """Convert a row of the file; k = 0 means that it is never adjusted."""
    names = {"n00": "0->0", "n01": "0->1", "n10": "1->0", "n11": "1->1"}
    counts: dict[str, Any] = {ours: int(row[theirs]) for ours, theirs in names.items()}
    category = "ignored" if row["Ignore"] else row["Category"]
    return SeedRow(row["task"], int(row["seed"]), Cells(**counts), row["num_choices"], category)


def worst_row(rows: list[dict[str, Any]]) -> float:
    """Return the largest difference over all rows and measures."""
    return max(
        abs(row_values(seed_row(row))[ours] - float(row["expected"][theirs]))
        for row in rows
        for theirs, ours in NAMES.items()
        if row["expected"].get(theirs) is not None
    )


def worst_consensus(golden: dict[str, Any]) -> float:
    """Return the largest difference of the two-seed consensus counts."""
    worst = 0.0
    for row in golden["rows"]:
        key = "|".join((row["model_before"], row["model_after"], row["task"]))
        seeds = golden["samples"].get(key)
        if seeds is None:
            continue
        table = np.array([[each.replace("->", "") for each in seed] for seed in seeds.values()]).T
        counts, _ = consensus(table, 2)
        for name, count in counts.items():
            theirs = row["expected"].get(f"mean_count_2_seeds_{name[0]}_{name[1]}")
            if theirs is not None:
                worst = max(worst, abs(count - theirs))
    return worst


def worst_pivot(golden: dict[str, Any], suffix: str) -> float:
    """Return the largest difference over categories and total."""
    rolled = {each.name: each for each in roll_up([seed_row(row) for row in golden["rows"]])}
    worst = 0.0
    for theirs, ours in PIVOTS.items():
        for category, value in golden["pivots"].get(theirs + suffix, {}).items():
            found = rolled["Total" if category == "OVERALL" else category]
            mine = (found.deviation if suffix else found.mean)[ours]
            if value is not None and mine is not None:
                worst = max(worst, abs(mine - value))
    return worst


if __name__ == "__main__":
    main()
