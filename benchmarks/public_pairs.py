"""What does the verdict say of public logs, beside McNemar's test?

    .venv/bin/python benchmarks/public_pairs.py DIR --write docs/truth.md

DIR has a `truth.json`: a list of {name, before, after, n11, n10, n01, n00} with paths below DIR
and counts by an independent script (as in `tools/check_truth`). Pairs with "rerun" in their name
are two runs of one model.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from simulated_rows import write_section

import forgetmap as fm
from forgetmap.comparison import GroupResult
from forgetmap.stats import LOSSES

SECTION = "\n## Public logs\n\n"
TEXT = """Pairs of public evaluation logs of real models, compared as they are, in both
directions. `p` is the exact two-sided McNemar test of the accuracy. Where it is below .001, the
verdict must not be `cannot_tell`: it is a loss where accuracy fell, and may be `no_net_loss` where
it rose. Something may be lost in both directions only where tasks carry it, and a rerun of a model
must not be lost.

"""
HEADER = (
    "| pair | items | forgotten | gained | p | verdict | loss | exchanged: verdict | loss |\n"
    "|---|---|---|---|---|---|---|---|---|\n"
)
CELLS = ("n11", "n10", "n01", "n00")
OTHER_WAY = ("n11", "n01", "n10", "n00")


def list_pair(folder: Path, pair: dict[str, Any]) -> tuple[str, bool]:
    """Return the row of a pair, and whether its verdicts are right."""
    options: dict[str, Any] = {
        name: pair[name] for name in ("metric", "correct_at") if name in pair
    }
    names, runs = ("before", "after"), pair.get("run")
    results = []
    for way in (names, names[::-1]):
        if runs:
            options["run"] = runs if way == names else runs[::-1]
        paths = (folder / pair[name] for name in way)
        results.append(fm.compare(*paths, min_paired=0.01, **options).result)
    totals = [result.total for result in results]
    total, other = totals
    # Copies among repeats count once, which the other script does not know.
    is_copied = any(one.code == "copies" for one in results[0].pairing.warnings)
    p = total.mcnemar_p or 0.0
    is_right = all(
        (is_copied or tuple(getattr(one, name) for name in CELLS) == tuple(map(pair.get, cells)))
        and (p >= 0.001 or one.verdict != "cannot_tell")
        and not ("rerun" in pair["name"] and one.verdict in LOSSES)
        for one, cells in zip(totals, (CELLS, OTHER_WAY), strict=True)
    )
    both = [one.loss.carried_by for one in totals if one.verdict in LOSSES]
    is_right &= len(both) < len(totals) or "tasks" in both
    row = (
        pair["name"].replace("_", " "), total.n, total.forgotten, total.gained, f"{p:.2g}",
        *_verdict(total), *_verdict(other),
    )  # fmt: skip
    return f"| {' | '.join(map(str, row))} |\n", is_right


def _verdict(total: GroupResult) -> tuple[str, str]:
    low, high = total.loss.low, total.loss.high
    limits = "" if low is None or high is None else f"{max(low, 0):.1%} to {high:.1%}"
    return f"`{total.verdict}`", limits


def main() -> int:
    """List the pairs; the exit code is 1 if a verdict is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--write", type=Path, help="put the table into this page: docs/truth.md")
    options = parser.parse_args()
    pairs = json.loads((options.folder / "truth.json").read_text("utf-8"))
    listed = [list_pair(options.folder, pair) for pair in pairs]
    table = HEADER + "".join(row for row, _ in listed)
    print(table)
    if options.write:
        write_section(options.write, SECTION, TEXT + table)
    return int(not all(is_right for _, is_right in listed))


if __name__ == "__main__":
    sys.exit(main())
