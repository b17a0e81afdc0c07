"""Simulate two models whose truth is known, compare them, and look at what was forgotten.

Run: .venv/bin/python examples/known_truth.py
"""

from __future__ import annotations

import forgetmap as fm

TASKS = [
    fm.SimulatedTask("capitals", items=400, k=4, known=0.8, lost=0.2, category="knowledge"),
    fm.SimulatedTask("sums", items=300, k=None, known=0.5, lost=0.1, category="reasoning"),
]


def main() -> None:
    """Print the comparison, two forgotten items and the truth."""
    simulation = fm.simulate(TASKS, seed=1, failures={"truncated": 0.2})
    comparison = fm.compare(simulation.before, simulation.after)
    print(comparison)
    for row in comparison.flips("forgotten").slice(0, 2).to_pylist():
        after = row["answer_after"] or row["outcome_after"]
        print(f"{row['item']}: {row['answer_before']} -> {after}")
    lost = simulation.truth["class"].to_pylist().count("lost")
    print(f"The truth: {lost} items were lost.")


if __name__ == "__main__":
    main()
