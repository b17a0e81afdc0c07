"""The model that drifted most: size, interval and probability, with known truth."""

from __future__ import annotations

import numpy as np
import pytest

from forgetmap.capabilities.effects import Effect
from forgetmap.capabilities.ranking import rank_models, recovery

RNG = np.random.default_rng(21)
CAPABILITIES = 12
NOISE = 0.05


def seen(truth: float, draws: int = 400) -> dict[str, Effect]:
    """Capabilities with the same true effect, each seen through noise."""
    values = truth + NOISE * RNG.standard_normal(CAPABILITIES)
    return {
        f"c{place}": Effect(value, value + NOISE * RNG.standard_normal(draws))
        for place, value in enumerate(values)
    }


def test_sizes_are_free_of_noise_and_their_intervals_hold() -> None:
    covered, sizes = 0, []
    for _ in range(150):
        ranking = rank_models({"a": seen(0.1), "b": seen(0.0)})
        assert ranking is not None
        entry = next(entry for entry in ranking.models if entry.model == "a")
        sizes.append(entry.size)
        covered += entry.low <= 0.1 <= entry.high
    assert np.mean(sizes) == pytest.approx(0.1, abs=0.005)
    assert 0.92 <= covered / 150 <= 1.0


def test_the_probability_knows_what_cannot_be_told() -> None:
    certain, wrong = 0, 0
    for _ in range(150):
        ranking = rank_models({"a": seen(0.1), "b": seen(0.1)})
        assert ranking is not None
        certain += ranking.is_certain
        clear = rank_models({"a": seen(0.2), "b": seen(0.05)})
        assert clear is not None
        wrong += clear.models[0].model != "a" or not clear.is_certain
    assert certain / 150 <= 0.14  # two sides of 5 %, and some for chance
    assert wrong == 0


def test_the_size_lies_within_its_interval() -> None:
    """Though draws of few items are pulled towards 0."""
    pulled = {name: Effect(part.value, 0.9 * part.draws) for name, part in seen(1.0).items()}
    ranking = rank_models({"a": pulled, "b": seen(0.0)})
    assert ranking is not None
    assert ranking.models[0].low < ranking.models[0].size < ranking.models[0].high


def test_only_what_all_models_have_intervals_for() -> None:
    first, second = seen(0.1), seen(0.2)
    second["c0"] = Effect(9.0, np.full(400, np.nan))
    del first["c1"]
    ranking = rank_models({"a": first, "b": second})
    assert ranking is not None
    assert ranking.capabilities == tuple(f"c{place}" for place in range(2, CAPABILITIES))
    assert [entry.model for entry in ranking.models] == ["b", "a"]
    assert sum(entry.largest for entry in ranking.models) == pytest.approx(1.0)
    assert rank_models({"a": first}) is None
    assert rank_models({"a": {}, "b": second}) is None


def test_what_a_step_undid() -> None:
    noise = 0.02 * RNG.standard_normal(2000)
    lost = Effect(-0.4, -0.4 + noise)
    half = Effect(-0.2, -0.2 + 0.5 * noise)
    entry = recovery(("ift", "dpo"), "C1", "Knowledge", lost, half)
    assert entry is not None
    assert (entry.model, entry.between) == ("dpo", "ift")
    assert entry.undone == pytest.approx(0.5)
    assert entry.low == pytest.approx(0.5)
    further = recovery(("ift", "dpo"), "C1", "Knowledge", half, lost)
    assert further is not None
    assert further.undone == pytest.approx(-1.0)
    open_ = Effect(0.01, 0.01 + noise)
    assert recovery(("ift", "dpo"), "C1", "Knowledge", open_, half) is None
