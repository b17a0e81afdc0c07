"""Writes the published values of two papers into the package, with their source.

    python tools/published_values.py post-forget COLLECTED.json
    python tools/published_values.py captrack relative_differences.csv

COLLECTED.json has the values of the plots on the site of Harmon et al. (8 decimals) and of the
tables of the paper (1 decimal), collected cell by cell; the CSV is the file of that name in the
code of Thede et al. Only published numbers and their locations are copied. Nothing is computed.
"""

from __future__ import annotations

import csv
import json
import re
import sys
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent.parent / "src" / "forgetmap" / "study" / "data"
CAPTRACK_SOURCE = {
    "paper": "Thede, Winzeck, Akata, Schwarz: CapTrack: Multifaceted Evaluation of Forgetting in "
    "LLM Post-Training, arXiv 2603.06610",
    "code": "github.com/thomsonreuters/captrack, 39dd07e (Apache-2.0)",
    "file": "relative_differences.csv",
    "units": "percent of the value before, mean over the metrics of a capability",
}
COLUMNS = (
    "forgetting", "forgetting_sd", "forgetting_ceiling",
    "transfer", "transfer_sd", "transfer_ceiling",
)  # fmt: skip
"""Columns of a category: shares of all items, standard deviations over seeds, ceilings."""


def post_forget(path: Path) -> dict[str, Any]:
    """Return the values of the plots that belong to a figure or table of the paper."""
    collected = json.loads(path.read_text(encoding="utf-8"))
    about = collected["about"]
    totals = {(row["plot"], row["pair_label"]): row for row in collected["totals"]}
    comparisons = []
    for plot in collected["plots"]:
        if plot["paper_figure"] is None:
            continue  # the same pairs again, under another heading
        labels = list(dict.fromkeys(row["pair_label"] for row in plot["rows"]))
        comparisons += [_comparison(plot, label, totals[plot["id"], label]) for label in labels]
    return {
        "source": {
            "paper": about["paper"],
            "site": f"github.com/post-forget/post-forget.github.io, {about['site_commit']}",
            "code": f"github.com/post-forget/post-forget, {about['code_commit']}",
            "units": "shares of all items: categories as plotted on the site (8 decimals), totals, "
            "standard deviations and ceilings as printed in the tables (1 decimal of a point)",
            "sd": "sample standard deviation over 3 seeds",
            "ceiling": "largest forgetting that the accuracy before allows, or transfer after",
        },
        "columns": COLUMNS,
        "comparisons": comparisons,
    }


def _comparison(plot: dict[str, Any], label: str, total: dict[str, Any]) -> dict[str, Any]:
    rows = [row for row in plot["rows"] if row["pair_label"] == label]
    return {
        "label": label,
        "before": rows[0]["before"],
        "after": rows[0]["after"],
        "prompt_before": rows[0]["prompt_before"],
        "prompt_after": rows[0]["prompt_after"],
        "figure": plot["paper_figure"],
        "tables": total["tables"],
        "total": [
            _share(total[f"{name}_total{part}_pct"])
            for name in ("forgetting", "bt")
            for part in ("", "_sd", "_ceiling")
        ],
        "categories": {
            row["category"]: [
                row["forgetting_adj"],
                _share(row["forgetting_sd_pct"]),
                _share(row["forgetting_ceiling_pct"]),
                row["backward_transfer_adj"],
                _share(row["bt_sd_pct"]),
                _share(row["bt_ceiling_pct"]),
            ]
            for row in rows
        },
    }


def _share(points: float | None) -> float | None:
    return None if points is None else round(points / 100, 6)


def captrack(path: Path) -> dict[str, Any]:
    """Return the relative change of every capability of every released model."""
    with path.open(encoding="utf-8", newline="") as file:
        head, *rows = csv.reader(file)
    return {
        "source": CAPTRACK_SOURCE,
        "capabilities": head[1:],
        "models": {row[0]: [float(value) for value in row[1:]] for row in rows},
    }


def _as_text(content: dict[str, Any]) -> str:
    return json.dumps(content, indent=1) + "\n"


def main(kind: str, path: str) -> None:
    """Write one of the two files."""
    content = {"post-forget": post_forget, "captrack": captrack}[kind](Path(path))
    out = DATA / f"{kind.replace('-', '_')}_published.json"
    # One line per category, for readable diffs.
    text = re.sub(r"\[[^][{}]*\]", lambda row: " ".join(row[0].split()), _as_text(content))
    out.write_text(text, encoding="utf-8")
    print(f"wrote {out.relative_to(DATA.parents[3])}")


if __name__ == "__main__":
    main(*sys.argv[1:])
