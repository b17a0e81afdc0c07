"""Summary of runs: choice of settings, both baselines, paired differences, headline, notices."""

from __future__ import annotations

import pytest

from forgetmap.errors import ConvergenceError
from forgetmap.evaluation import Suite
from forgetmap.lab.arms import StartFacts
from forgetmap.lab.recipe import LabRecipe
from forgetmap.lab.result import LabResult, LabRun
from forgetmap.lab.summary import choose, mean_lost, over_seeds, paired_difference, summarise
from lab_runs import make_run

pytestmark = pytest.mark.needs_torch
EMPTY = Suite("empty", ())
RECIPE = LabRecipe("hand-made", "start", lambda _: [], [], EMPTY, EMPTY, [])


def summed(runs: list[LabRun], seeds: tuple[int, ...] = (1, 2)) -> LabResult:
    start = StartFacts(parameters=5, score=0.1)
    return summarise(RECIPE, runs, seeds=seeds, development_seed=0, start=start)


def test_the_setting_that_reached_the_target_and_lost_least_is_chosen() -> None:
    best = make_run(rate=0.2, lost=(5, 10))
    short = make_run(rate=0.3, lost=(0, 0), score=0.9, reached=False)
    assert choose([make_run(), best, short]) == best


def test_the_setting_that_learned_most_is_chosen_where_none_reached_the_target() -> None:
    runs = [
        make_run(rate=rate, lost=(int(100 * score), 0), score=score, reached=False)
        for rate, score in ((0.1, 0.2), (0.2, 0.6), (0.3, 0.4))
    ]
    assert choose(runs).rate == 0.2


def test_near_and_far_count_the_same() -> None:
    assert mean_lost(make_run(lost=(20, 10))) == pytest.approx(0.15)


def test_differences_are_of_runs_of_the_same_seed() -> None:
    method = [make_run("replay", seed=seed, lost=(seed, 0)) for seed in (1, 2, 3)]
    plain = [make_run(seed=seed, lost=(10 + seed, 0)) for seed in (3, 1, 2)]
    found = paired_difference("best", method, plain, "near")
    assert found.difference.value == pytest.approx(-0.10)
    # The same difference at every seed: no spread at all, though the runs themselves differ.
    assert found.difference.low == pytest.approx(-0.10)
    assert found.difference.high == pytest.approx(-0.10)
    assert found.ratio == pytest.approx(6 / 36)


def test_a_seed_that_only_one_has_is_left_out() -> None:
    method = [make_run("replay", seed=seed, lost=(4, 0)) for seed in (1, 2, 9)]
    plain = [make_run(seed=seed, lost=(8, 0)) for seed in (1, 2)]
    assert paired_difference("best", method, plain, "near").difference.value == pytest.approx(-0.04)


def test_the_interval_over_seeds_is_that_of_a_t_distribution() -> None:
    found = over_seeds([0.1, 0.2, 0.3])
    assert found.value == pytest.approx(0.2)
    half = 4.302652729911275 * 0.1 / 3**0.5  # t of two degrees of freedom
    assert (found.low, found.high) == pytest.approx((0.2 - half, 0.2 + half))
    assert over_seeds([None, None]).value is None


def baseline_runs() -> list[LabRun]:
    """The slower the rate, the less is lost and the more it costs."""
    settings = {0.4: ((40, 40), 500), 0.2: ((20, 20), 1000), 0.1: ((10, 10), 3000)}
    return [
        make_run(rate=rate, seed=seed, lost=lost, compute=compute, reached=rate != 0.1 or seed > 0)
        for rate, (lost, compute) in settings.items()
        for seed in (0, 1, 2)
    ]


@pytest.mark.parametrize(
    ("compute", "rate"),
    [
        (400, 0.4),  # nothing is as cheap: the cheapest
        (950, 0.2),  # a tenth more is allowed
        (1000, 0.2),
        (2600, 0.2),
        (2800, 0.1),
        (9000, 0.1),
    ],
)
def test_the_baseline_of_equal_compute_is_the_best_that_is_affordable(
    compute: int, rate: float
) -> None:
    method = [make_run("replay", seed=seed, lost=(5, 5), compute=compute) for seed in (0, 1, 2)]
    result = summed([*baseline_runs(), *method])
    replay = next(one for one in result.methods if one.method == "replay")
    rates = {row.baseline: row.rate for row in replay.differences}
    # The development seed did not reach the target at 0.1.
    assert rates == {"best learning rate": 0.2, "equal compute": rate}
    assert replay.compute == pytest.approx(compute / 1000)


def test_methods_are_ordered_and_the_best_is_in_the_headline() -> None:
    runs = [
        make_run(name, seed=seed, lost=lost, compute=compute)
        for seed in (0, 1, 2)
        for name, lost, compute in (
            ("sft", (30, 20), 1000),
            ("forward-kl", (6, 4), 3000),
            ("replay", (10, 10), 1500),
            ("ewc", (20, 20), 4000),
        )
    ]
    result = summed(runs)
    assert [one.method for one in result.methods] == ["forward-kl", "replay", "ewc", "sft"]
    assert [one.is_efficient for one in result.methods] == [True, True, False, True]
    assert result.headline == (
        "forward KL to the start lost 6.0% near and 4.0% far; plain fine-tuning lost 30.0% near "
        "and 20.0% far at 95.0% of the new task."
    )
    assert result.bridge is not None
    assert result.notices == []
    assert (result.known_near, result.items_far) == (100, 125)


def test_a_method_that_did_not_come_to_the_target_is_last_and_named() -> None:
    runs = [make_run(seed=seed) for seed in (0, 1, 2)]
    runs += [
        make_run("ema", seed=seed, lost=(1, 1), score=0.5, reached=False) for seed in (0, 1, 2)
    ]
    result = summed(runs)
    assert result.methods[-1].method == "ema"
    assert result.headline.startswith("No method lost less")
    assert any(notice.startswith("average of weights: not every seed") for notice in result.notices)


def test_scores_more_than_a_point_apart_are_said() -> None:
    runs = [
        make_run(name, seed=seed, score=score)
        for seed in (0, 1, 2)
        for name, score in (("sft", 0.95), ("replay", 0.97))
    ]
    assert any("more than one point" in notice for notice in summed(runs).notices)


def test_a_method_that_diverged_everywhere_is_left_out_and_named() -> None:
    runs = [make_run(seed=seed) for seed in (0, 1, 2)]
    runs += [make_run("l2sp", seed=seed, diverged=True) for seed in (0, 1, 2)]
    result = summed(runs)
    assert [one.method for one in result.methods] == ["sft"]
    assert result.notices[0].startswith("3 runs diverged and are excluded from the means")
    assert result.notices[1] == "L2-SP: diverged at every seed, and excluded."
    assert len(result.runs) == 6


def test_a_seed_that_diverged_is_missing_not_lost() -> None:
    runs = [make_run(seed=seed, lost=(30, 20)) for seed in (0, 1, 2, 3)]
    runs += [
        make_run("l2sp", seed=seed, lost=(10, 8), compute=2000, diverged=seed == 2)
        for seed in (0, 1, 2, 3)
    ]
    result = summed([make_run("l2sp", rate=9.0, diverged=True), *runs], (1, 2, 3))
    found = next(one for one in result.methods if one.method == "l2sp")
    assert (found.seeds, found.reached, found.diverged) == (3, 2, 1)
    assert (found.lost_near.value, found.lost_far.value) == pytest.approx((0.10, 0.08))
    assert (found.score.value, found.compute) == pytest.approx((0.95, 2.0))
    assert found.differences[0].difference.value == pytest.approx(-0.20)
    assert found.categories[0].forgetting.value == pytest.approx(8 / 125)
    assert result.notices[0] == (
        "2 runs diverged and are excluded from the means: l2sp-0-rate9-seed0, l2sp-0-rate0.1-seed2."
    )
    assert any(notice.startswith("L2-SP: not every seed reached") for notice in result.notices)
    assert (result.known_near, result.methods[-1].method) == (100, "l2sp")


def test_a_rate_that_diverged_is_no_baseline() -> None:
    runs = [make_run(seed=seed, lost=(30, 30)) for seed in (0, 1, 2)]
    runs += [
        make_run(rate=0.4, seed=seed, lost=(1, 1), compute=10, diverged=seed == 1)
        for seed in (0, 1, 2)
    ]
    runs += [make_run("replay", seed=seed, lost=(5, 5)) for seed in (0, 1, 2)]
    runs[3] = make_run(rate=0.4, diverged=True)
    replay = next(one for one in summed(runs).methods if one.method == "replay")
    assert {row.rate for row in replay.differences} == {0.1}


def test_nothing_is_compared_with_a_baseline_that_learned_less() -> None:
    runs = [make_run(seed=seed, score=0.5, reached=False) for seed in (0, 1, 2)]
    runs += [make_run("replay", seed=seed, lost=(5, 5)) for seed in (0, 1, 2)]
    assert summed(runs).headline == (
        "No comparison possible: plain fine-tuning reached 95.0% of the new task at only 0 of 2 "
        "seeds."
    )


def test_a_kl_that_was_rounded_below_0_is_0() -> None:
    runs = [make_run(seed=seed, lost=(0, 0)) for seed in (0, 1, 2)]
    runs = [
        run.model_copy(update={"kl": run.kl.model_copy(update={"old_reverse": -1e-9})})
        for run in runs
        if run.kl is not None
    ]
    assert summed(runs).methods[0].bound == 0.0


def test_without_plain_fine_tuning_there_is_nothing_to_compare_with() -> None:
    runs = [make_run(seed=seed, diverged=True) for seed in (0, 1, 2)]
    with pytest.raises(ConvergenceError, match="plain fine-tuning diverged"):
        summed(runs)
