"""Simulated models get the true verdict."""

from __future__ import annotations

import forgetmap as fm
from forgetmap.simulation import Habits


def test_simulated_models_get_the_verdict_that_is_true() -> None:
    """Half of the items known; nothing or a fifth of it lost; redrawn, frozen or moved guesses."""
    habits = [
        Habits(),
        Habits(persistence=1.0),
        Habits(letter_bias=(4, 1), moved_bias=(1, 1, 4)),
    ]
    for habit in habits:
        for lost, verdict in ((0.0, {"cannot_tell", "no_material_loss"}), (0.2, {"lost"})):
            task = fm.SimulatedTask("t", items=1500, k=4, known=0.5, lost=lost, gained=0.0)
            made = fm.simulate([task], seed=2, habits=habit)
            found = fm.compare(made.before, made.after).result.total.headline
            assert found.estimator == "matched"
            assert found.verdict in verdict, (habit, lost)
