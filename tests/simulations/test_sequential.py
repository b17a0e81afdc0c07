"""Group-sequential looks at repeats keep their error rates over many simulated runs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm

from forgetmap.stats.sequential import StoppingRule, crossing_levels
from repeated_answers import Truth, ask, full_budget, spend


@pytest.mark.parametrize("exponent", [1.0, 2.0])
@pytest.mark.parametrize(
    "variances", [[1.0], [1.0, 0.5, 1 / 3, 0.25], [1.0, 0.9, 0.3, 0.1], [0.2, 0.05]]
)
def test_all_looks_together_err_at_the_level(variances: list[float], exponent: float) -> None:
    fractions = np.arange(1, len(variances) + 1) / len(variances)
    levels = crossing_levels(variances, [*fractions], 0.05, exponent)
    assert levels[0] == pytest.approx(0.05 * fractions[0] ** exponent)
    source = np.random.default_rng(5)
    information = 1 / np.array(variances)
    pieces = np.sqrt(np.diff(information, prepend=0.0))
    steps = source.standard_normal((400_000, len(variances))) * pieces
    crossed = np.cumsum(steps, axis=1) / np.sqrt(information) > norm.isf(levels)
    assert crossed.any(axis=1).mean() == pytest.approx(0.05, abs=0.0014)


@pytest.mark.parametrize(
    ("truth", "groups"),
    [(Truth(items=60), 4), (Truth(items=150, wavering=0.5), 2), (Truth(items=80, failed=0.1), 3)],
)
def test_unchanged_models_are_called_worse_as_rarely_as_promised(truth: Truth, groups: int) -> None:
    source, tries = np.random.default_rng(11), 250
    wrong = 0
    for _ in range(tries):
        asked = {str(place): ask(truth, 8, source) for place in range(groups)}
        found = spend(asked, StoppingRule(most=8)).decisions
        wrong += any(each.verdict in ("lost", "small_loss") for each in found.values())
    assert wrong / tries <= 0.05


def test_a_loss_of_the_margin_is_seldom_called_immaterial() -> None:
    """All items are known; so many go from .98 to chance that the margin is lost."""
    rule, excess_of_one = StoppingRule(most=8), ((0.98 - 0.25) ** 2 + 0.98 - 0.25) / 2
    truth = Truth(items=400, known=1.0, wavering=0.0, lost=rule.margin / excess_of_one)
    source, tries = np.random.default_rng(14), 250
    called = dict.fromkeys((0.0, truth.lost), 0)
    for lost in called:
        for _ in range(tries):
            found = spend({"a": ask(replace(truth, lost=lost), 8, source)}, rule).decisions["a"]
            called[lost] += found.verdict in ("no_material_loss", "small_loss")
    assert called[0.0] / tries > 0.5
    assert called[truth.lost] / tries <= 0.05


def test_clear_losses_take_less_than_half_of_the_answers() -> None:
    source, rule = np.random.default_rng(12), StoppingRule(most=8)
    shares, agreed = [], 0
    for _ in range(30):
        asked = {str(place): ask(Truth(lost=0.15), rule.most, source) for place in range(4)}
        found, full = spend(asked, rule), full_budget(asked, rule)
        agreed += {n: d.verdict for n, d in found.decisions.items()} == {
            n: d.verdict for n, d in full.items()
        }
        shares.append(found.spent / found.full)
    assert np.mean(shares) < 0.5
    assert agreed >= 28


def test_limits_hold_at_all_looks_together() -> None:
    """A share of .1 goes from .98 to chance: excess is E[(p_b - p_a)(p_b - p_a + 1)] / 2."""
    truth = Truth(items=150, lost=0.1, wavering=0.0)
    true_excess = 0.1 * ((0.98 - 0.25) ** 2 + 0.98 - 0.25) / 2
    source, tries, held = np.random.default_rng(13), 150, 0
    for _ in range(tries):
        found = spend({"a": ask(truth, 8, source)}, StoppingRule(most=8)).decisions["a"]
        held += found.low <= true_excess <= found.high
    assert held / tries >= 0.9
