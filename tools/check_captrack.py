"""Check `--aggregator captrack-relative` against files that CapTrack itself published.

    python tools/check_captrack.py DIR

DIR has the averages of each model and the comparison of models:

    DIR/captrack_results/MODEL_averaged.csv
    DIR/captrack_comparison/relative_differences.csv
    DIR/captrack_comparison/relative_differences_std.csv

The model before is the one without a stage (`-in-`) in its name; a row of the comparison belongs to
the model with the same values.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

from forgetmap.capabilities.api import drift

TOLERANCE = 1e-9
Table = dict[str, dict[str, float]]


def published(path: Path) -> Table:
    """Read model -> column -> value."""
    with path.open(encoding="utf-8", newline="") as stream:
        return {
            row[""]: {name: float(cell) for name, cell in row.items() if name}
            for row in csv.DictReader(stream)
        }


def recomputed(files: list[Path]) -> dict[str, tuple[dict[str, float], dict[str, float]]]:
    """Return model -> values and standard deviations by published column."""
    result = drift(*files, aggregator="captrack-relative")
    found = {}
    for model in result.models:
        cells = [cell for cell in result.capabilities if cell.model == model]
        values = {cell.published: cell.value for cell in cells if cell.value is not None}
        spread = {cell.published: cell.std for cell in cells if cell.std is not None}
        found[model] = (values, spread)
    return found


def furthest(ours: dict[str, float], theirs: dict[str, float]) -> float:
    """Return the largest difference; infinite if columns are missing."""
    if ours.keys() != theirs.keys():
        return float("inf")
    return max(abs(ours[name] - theirs[name]) for name in theirs)


def main(folder: Path) -> int:
    """Print the distance of each published row from ours."""
    files = sorted((folder / "captrack_results").glob("*.csv"))
    before = next(path for path in files if "-in-" in path.name)
    found = recomputed([before, *(path for path in files if path != before)])
    means = published(folder / "captrack_comparison" / "relative_differences.csv")
    spreads = published(folder / "captrack_comparison" / "relative_differences_std.csv")
    worst = 0.0
    for name, row in means.items():
        model = min(found, key=lambda model: furthest(found[model][0], row))
        apart = furthest(found[model][0], row), furthest(found[model][1], spreads[name])
        worst = max(worst, *apart)
        print(f"{name} = {model}: {len(row)} cells, {apart[0]:.2g} in means, {apart[1]:.2g} in std")
    print(f"largest difference {worst:.2g}: {'ok' if worst <= TOLERANCE else 'NOT the same'}")
    return int(worst > TOLERANCE)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
