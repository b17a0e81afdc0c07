"""Looks at more and more repeats keep their error rates over many simulated runs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from forgetmap.map.adaptive import Auto
from forgetmap.stats import LOSSES
from repeated_answers import Truth, ask, full_budget, spend

MARGIN, AUTO = 0.02, Auto(most=8)


@pytest.mark.parametrize(
    ("truth", "groups"),
    [(Truth(items=60), 4), (Truth(items=150, wavering=0.5), 2), (Truth(items=80, failed=0.1), 3)],
)
def test_unchanged_models_are_called_worse_as_rarely_as_promised(truth: Truth, groups: int) -> None:
    source, tries = np.random.default_rng(11), 200
    wrong = 0
    for _ in range(tries):
        asked = {str(place): ask(truth, 8, source) for place in range(groups)}
        found = spend(asked, AUTO).groups
        wrong += any(each.verdict in LOSSES for each in found.values())
    assert wrong / tries <= 0.03


def test_a_loss_of_the_margin_is_seldom_called_immaterial() -> None:
    """All items are known; so many go from .98 to chance that the margin is lost."""
    truth = Truth(items=4000, known=1.0, wavering=0.0, lost=MARGIN / 0.73)
    assert truth.loss == pytest.approx(MARGIN)
    source, tries = np.random.default_rng(14), 100
    called = dict.fromkeys((0.0, truth.lost), 0)
    for lost in called:
        for _ in range(tries):
            found = spend({"a": ask(replace(truth, lost=lost), 8, source)}, AUTO).groups["a"]
            called[lost] += found.verdict in ("no_material_loss", "small_loss")
    assert called[0.0] / tries > 0.5
    assert called[truth.lost] / tries <= 0.03


def test_clear_losses_take_less_than_half_of_the_answers() -> None:
    source = np.random.default_rng(12)
    shares, agreed = [], 0
    for _ in range(30):
        asked = {str(place): ask(Truth(lost=0.15), 8, source) for place in range(4)}
        found, full = spend(asked, AUTO), full_budget(asked, AUTO)
        agreed += all(
            (found.groups[name].verdict in LOSSES) == (full[name].verdict in LOSSES)
            for name in full
        )
        shares.append(found.spent / found.full)
    assert np.mean(shares) < 0.5
    assert agreed >= 28


def test_limits_hold_at_all_looks_together() -> None:
    truth = Truth(items=150, lost=0.1, wavering=0.0)
    source, tries, above, below = np.random.default_rng(13), 200, 0, 0
    for _ in range(tries):
        loss = spend({"a": ask(truth, 8, source)}, AUTO).groups["a"].loss
        assert loss.low is not None
        assert loss.high is not None
        above += loss.low > truth.loss
        below += loss.high < truth.loss
    assert above / tries <= 0.03
    assert below / tries <= 0.03
