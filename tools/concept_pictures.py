"""Draws the pictures of docs/concepts.md from simulated models whose knowledge is known.

python tools/concept_pictures.py
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import forgetmap as fm
from forgetmap.report import Figure, Record, Spec, as_table, write_figure
from forgetmap.simulation import Habits

IMAGES = Path(__file__).parent.parent / "docs" / "images"
SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
MARGIN = 0.02
COLOURS = {"counted": "#8c8c8c", "proven": "#d55e00", "truth": "#009e73", "verdict": "#0072b2"}


@dataclass(frozen=True)
class Line:
    """A value with its interval, limits alone, or the true value, which has none."""

    label: str
    kind: str
    value: float | None
    low: float | None = None
    high: float | None = None


def intervals(name: str, lines: Sequence[Line], *, margin: float | None = None) -> Figure:
    """Draw lines below each other, in their order, with the margin as a rule."""
    records: list[Record] = [
        {"label": line.label, "kind": line.kind, "value": line.value, "low": line.low,
         "high": line.high}
        for line in lines
    ]  # fmt: skip
    alt = "; ".join(_words(line) for line in lines)
    return Figure(name, name, "", alt, as_table(records), _spec(records, lines, margin))


def _words(line: Line) -> str:
    if line.value is not None:
        return f"{line.label}: {line.value:.1%}"
    return f"{line.label}: {line.low:.1%} to {line.high:.1%}"


def _spec(records: list[Record], lines: Sequence[Line], margin: float | None) -> Spec:
    share = {"type": "quantitative", "axis": {"format": ".0%", "tickCount": 6}}
    y = {"field": "label", "type": "nominal", "sort": [line.label for line in lines], "title": None,
         "axis": {"labelLimit": 320, "labelFontSize": 12}}  # fmt: skip
    kinds = list(dict.fromkeys(line.kind for line in lines))
    colour = {"field": "kind", "type": "nominal", "legend": None,
              "scale": {"domain": kinds, "range": [COLOURS[kind] for kind in kinds]}}  # fmt: skip
    x = {"field": "value", "title": "share of all items", **share}
    layers: list[dict[str, Any]] = [
        {"mark": {"type": "rule", "strokeWidth": 3},
         "encoding": {"x": {"field": "low", **share, "title": "share of all items"},
                      "x2": {"field": "high"}, "y": y, "color": colour}},
        {"mark": {"type": "point", "filled": True, "size": 90, "opacity": 1},
         "encoding": {"x": x, "y": y, "color": colour}},
    ]  # fmt: skip
    if margin is not None:
        rule = {"type": "rule", "strokeDash": [5, 4], "color": "#57606a"}
        text = {"type": "text", "text": "margin", "dy": -6, "dx": 4, "align": "left", "y": 0,
                "color": "#57606a"}  # fmt: skip
        at = {"x": {"datum": margin, **share}}
        layers += [{"mark": rule, "encoding": at}, {"mark": text, "encoding": at}]
    return {
        "$schema": SCHEMA,
        "params": [],
        "data": {"values": records},
        "width": 420,
        "height": 34 * len(lines),
        "layer": layers,
    }


def compared(
    *tasks: fm.SimulatedTask, repeats: int = 1, persistence: float = 0.0, mastery: float = 1.0
) -> tuple[fm.Comparison, float]:
    """Return a comparison, and the true loss."""
    habits = Habits(persistence=persistence, mastery=mastery)
    truth = fm.simulate(tasks, seed=3, repeats=repeats, habits=habits)
    classes = truth.truth["class"].to_pylist()
    return fm.compare(truth.before, truth.after), classes.count("lost") / len(classes)


def line_of(comparison: fm.Comparison, estimator: str, label: str, kind: str) -> Line:
    """Return one estimator of all items."""
    estimate = comparison.result.total.estimators[estimator].forgetting
    assert estimate.value is not None
    return Line(label, kind, estimate.value, estimate.low, estimate.high)


def proven(comparison: fm.Comparison, label: str) -> Line:
    """Return the limits of the loss."""
    loss = comparison.result.total.loss
    assert loss.low is not None
    return Line(label, "proven", None, max(loss.low, 0.0), loss.high)


def flips(folder: Path) -> None:
    """Draw accuracy beside forgotten and gained items."""
    tasks = [
        fm.SimulatedTask("facts", 500, None, known=0.7, lost=0.3, gained=0.4, category="Facts"),
        fm.SimulatedTask("sums", 500, None, known=0.6, lost=0.2, gained=0.45, category="Sums"),
        fm.SimulatedTask("dates", 500, None, known=0.5, lost=0.25, gained=0.25, category="Dates"),
        fm.SimulatedTask("code", 500, None, known=0.5, lost=0.15, gained=0.3, category="Code"),
    ]
    fm.write_figures(compared(*tasks)[0], folder)
    (folder / "conventional.svg").rename(IMAGES / "concept-flips.svg")


def luck() -> Figure:
    """Draw a model without losses whose guesses are redrawn."""
    comparison, truth = compared(fm.SimulatedTask("quiz", 8000, 4, known=0.4, lost=0, gained=0))
    return intervals(
        "luck",
        [
            line_of(comparison, "flips", "counted: flips", "counted"),
            line_of(comparison, "matched", "if guesses are blind", "verdict"),
            proven(comparison, "proven: the loss is in this range"),
            Line("truth", "truth", truth),
        ],
    )


def noise() -> Figure:
    """Draw a model that answers known items right nine times in ten."""
    task = fm.SimulatedTask("facts", 1500, None, known=0.7, lost=0.06, gained=0)
    once, truth = compared(task, mastery=0.9)
    often, _ = compared(task, repeats=3, mastery=0.9)
    return intervals(
        "noise",
        [
            line_of(once, "flips", "counted: flips", "counted"),
            proven(once, "proven by one answer per item"),
            proven(often, "proven by three answers"),
            Line("truth, as a share of answers", "truth", truth * 0.9),
        ],
    )


def margins() -> Figure:
    """Draw the five verdicts."""
    return intervals(
        "margins",
        [
            Line("no material loss: PASS", "verdict", None, 0.0, 0.012),
            Line("small loss: PASS", "verdict", None, 0.004, 0.017),
            Line("lost: FAIL", "proven", None, 0.031, 0.059),
            Line("no net loss: INCONCLUSIVE", "counted", None, 0.0, 0.048),
            Line("cannot tell: INCONCLUSIVE", "counted", None, 0.0, 0.036),
        ],
        margin=MARGIN,
    )


def main() -> None:
    """Draw every picture."""
    with tempfile.TemporaryDirectory() as folder:
        flips(Path(folder))
    for figure in (luck(), noise(), margins()):
        print(figure.name, figure.alt)
        write_figure(figure, IMAGES / f"concept-{figure.name}.svg", ground=True)


if __name__ == "__main__":
    main()
