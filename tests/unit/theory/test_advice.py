"""Advice, checked against the formulas and flows that it is based on."""

from __future__ import annotations

import math

import pytest
from scipy.stats import binom

from forgetmap.errors import ForgetmapError
from forgetmap.theory import advice as advise
from forgetmap.theory import methods
from forgetmap.theory.methods import Setting


def test_batch_is_the_smallest_that_is_enough() -> None:
    size = advise.batch_size(0.02, 0.01).values["batch"]
    assert binom.pmf(0, size, 0.02) <= 0.01 < binom.pmf(0, size - 1, 0.02)  # type: ignore[operator]
    assert advise.batch_size(0.02, 0.01, 0.05).values["batch"] < size  # type: ignore[operator]


def test_replay_fraction_keeps_the_mass() -> None:
    fraction = advise.replay_fraction(0.15).values["fraction"]
    end = methods.replay(Setting(6.0), [2000.0], float(fraction or 0)).old_weight[-1]
    assert end == pytest.approx(0.15, abs=1e-5)
    assert advise.replay_fraction(0.15, base=0.5).values["fraction"] == pytest.approx(0.3)
    assert advise.replay_fraction(0.6, base=0.5).values["fraction"] is None


def test_kl_strength_keeps_the_floor() -> None:
    told = advise.kl_strength(0.6, 0.2, gap=1.5, eta=2.0).values
    setting = Setting(8.0, start_weight=0.6, start_offset=0.0)
    kept = methods.kl_rl(setting, [400.0], 1.5, float(told["expected_reward"] or 0)).old_weight[-1]
    assert kept == pytest.approx(0.2, abs=1e-3)
    strength = float(told["entropic"] or 0)
    tilted = methods.ttt_discover(setting, [800.0], 2.0, strength, 1.5).old_weight[-1]
    assert tilted == pytest.approx(0.2, abs=1e-3)
    assert float(told["entropic_any_reward"] or 0) > strength


def test_refreshes_keep_the_floor_and_one_more_does_not() -> None:
    told = advise.oapl_refreshes(0.5, 0.05, 1.0).values
    count = int(told["refreshes"] or 0)
    weights = methods.oapl(Setting(8.0, start_offset=0.0), count + 1, 1.0).old_weight
    assert weights[count] >= 0.05 > weights[count + 1]


def test_equal_rewards_are_a_limit() -> None:
    told = advise.oapl_refreshes(0.5, 0.05, 0.0)
    assert told.values == {"refreshes": None, "left": 0.5, "drop_in_log_odds": 0.0}
    assert told.answer.startswith("Any number")
    weights = methods.oapl(Setting(8.0, start_offset=0.0), 3, 0.0).old_weight
    assert weights[-1] == pytest.approx(0.5, abs=1e-6)
    assert advise.oapl_refreshes(0.5, 0.05, 1e-6).values["left"] == pytest.approx(0.05, rel=1e-4)
    assert advise.kl_strength(0.5, 0.2, gap=0.0).values["expected_reward"] == 0.0


def test_no_replay_is_a_limit() -> None:
    told = advise.replay_mass(0.0)
    assert told.values == {"fraction": 0.0, "keeps": 0.0}
    assert told.answer.startswith("None in the long run")
    assert advise.replay_fraction(0.0).values["fraction"] == 0.0
    assert advise.replay_mass(0.2, base=0.5).values["keeps"] == pytest.approx(0.1)
    alone, none = (
        path.old_weight
        for path in (
            methods.sft(Setting(4.0), [10.0, 100.0]),
            methods.replay(Setting(4.0), [10.0, 100.0], 0.0),
        )
    )
    assert none == pytest.approx(alone, abs=1e-9)


def test_anchor_check_wants_a_lower_limit() -> None:
    many, few = advise.sdft_anchor(450, 500, 0.85), advise.sdft_anchor(9, 10, 0.85)
    assert many.values["enough"]
    assert not few.values["enough"]
    z = 1.6448536
    share = many.values["lower_limit"]
    assert isinstance(share, float)
    assert (0.9 - share) / math.sqrt(share * (1 - share) / 500) == pytest.approx(z, abs=1e-4)


def test_every_advice_says_when_it_does_not_apply() -> None:
    told = [
        advise.batch_size(0.1),
        advise.replay_fraction(0.1),
        advise.kl_strength(0.5, 0.1),
        advise.oapl_refreshes(0.5, 0.1, 1.0),
        advise.sdft_anchor(5, 10, 0.2),
    ]
    for each in told:
        assert each.assumes
        assert each.not_for
        assert each.claims


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: advise.batch_size(0.0),
        lambda: advise.batch_size(0.1, replay=1.0),
        lambda: advise.replay_fraction(1.2),
        lambda: advise.kl_strength(0.2, 0.5),
        lambda: advise.kl_strength(0.5, 0.2, gap=-1.0),
        lambda: advise.oapl_refreshes(0.5, 0.1, -1.0),
        lambda: advise.replay_mass(1.0),
        lambda: advise.replay_mass(-0.1),
        lambda: advise.sdft_anchor(11, 10, 0.5),
        lambda: advise.sdft_anchor(1, 0, 0.5),
    ],
)
def test_bad_questions_are_refused(wrong: object) -> None:
    with pytest.raises(ForgetmapError):
        wrong()  # type: ignore[operator]
