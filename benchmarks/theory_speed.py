"""How fast is a phase diagram? All cells together against one `solve_ivp` call per cell.

    .venv/bin/python benchmarks/theory_speed.py

100 x 100 cells of separation and knob, once for SFT with replay and once for reward with a KL
penalty, up to t = 60. The calls are scipy's `solve_ivp` with LSODA, its fastest method here, on the
same equations with the same number of quadrature nodes and the same tolerances, on 200 random
cells; their time is extrapolated to all 10,000. The values of these cells are compared with a
solution of full precision. Seconds are processor time of this process.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from forgetmap.theory import methods
from forgetmap.theory.estimators import Floats
from forgetmap.theory.flows import Trajectory
from forgetmap.theory.methods import Setting
from forgetmap.theory.phase import GAP, PRECISION, Phase, PhaseParameter, phase_diagram
from forgetmap.theory.quadrature import COARSE, nodes

RESULTS = Path(__file__).parent / "results"
SIDE, DRAWN, UNTIL = 100, 200, 60.0
ASKED, ALLOWED = 20.0, 1e-4
SEPARATIONS = np.linspace(1.0, 8.0, SIDE)
KNOBS: dict[PhaseParameter, Floats] = {
    "replay": np.linspace(0.01, 0.5, SIDE),
    "temperature": np.geomspace(0.2, 5.0, SIDE),
}
SINGLE: dict[PhaseParameter, Callable[[Setting, float], Trajectory]] = {
    "replay": lambda setting, value: methods.replay(setting, [UNTIL], value),
    "temperature": lambda setting, value: methods.kl_rl(setting, [UNTIL], GAP, value),
}


def main() -> None:
    """Measure both diagrams."""
    found = {}
    for knob, values in KNOBS.items():
        started = time.process_time()
        diagram = phase_diagram(knob, SEPARATIONS, values, UNTIL)
        together = time.process_time() - started
        cells = np.random.default_rng(0).choice(SIDE * SIDE, DRAWN, replace=False)
        apart = one_by_one(knob, cells) * SIDE * SIDE / DRAWN
        gap, times = worst_gap(diagram, cells), apart / together
        met = "yes" if times >= ASKED and gap <= ALLOWED else "NO"
        print(
            f"{knob:12} {together:6.2f} s together  {apart:7.1f} s one by one  {times:5.1f}x  "
            f"worst gap {gap:.1e}  asked {ASKED:g}x and {ALLOWED:g}: {met}"
        )
        found[knob] = {"together": together, "one_by_one": apart, "times": times, "gap": gap}
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "theory_speed.json").write_text(json.dumps(found, indent=2) + "\n")


def one_by_one(knob: PhaseParameter, cells: np.ndarray) -> float:
    """Return the seconds of one solve_ivp call per cell."""
    started = time.process_time()
    for row, column in zip(*divmod(cells, SIDE), strict=True):
        setting = Setting(float(SEPARATIONS[row]), precision=PRECISION[knob], nodes=nodes(*COARSE))
        SINGLE[knob](setting, float(KNOBS[knob][column]))
    return time.process_time() - started


def worst_gap(diagram: Phase, cells: np.ndarray) -> float:
    """Return the largest difference in old mass or old weight from a precise solution."""
    gaps = [0.0]
    for row, column in zip(*divmod(cells, SIDE), strict=True):
        apart = float(SEPARATIONS[row])
        path = SINGLE[diagram.parameter](Setting(apart), float(diagram.values[column]))
        gaps.append(abs(float(path.old_mass(apart)[-1]) - diagram.mass[row, column]))
        gaps.append(abs(float(path.old_weight[-1]) - diagram.weight[row, column]))
    return float(max(gaps))


if __name__ == "__main__":
    main()
