"""Numbers along a path of merges, checked against counts by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from forgetmap.merge.distance import GroupDrift, WeightDrift
from forgetmap.results import Estimate
from forgetmap.stats.simultaneous import ClusterDesign
from forgetmap.sweep.analyse import ALL_ITEMS, PathPoint, analyse_pair, correlate
from forgetmap.sweep.result import PairResult
from forgetmap.sweep.states import States


def states_of(*runs: str, target: str = "", loss: list[list[float]] | None = None) -> States:
    """One digit per item; base, tuned, then merges."""
    right = np.array([[digit == "1" for digit in run] for run in runs])
    items = right.shape[1]
    targets = np.array([digit == "1" for digit in target or "0" * items])
    return States(
        right=right,
        category=np.array(["A", "B"] * items)[:items],
        target=targets,
        design=ClusterDesign(),
        chance=np.zeros(items),
        loss=None if loss is None else np.array(loss),
        left_out=0,
    )


def pair_of(states: States, *weights: float, budget: float = 0.5) -> PairResult:
    spots = [PathPoint("linear", 0.0, 0, "base")]
    spots += [
        PathPoint("linear", weight, place, f"m{place}") for place, weight in enumerate(weights, 2)
    ]
    spots.append(PathPoint("linear", 1.0, 1, "tuned"))
    return analyse_pair(
        states, spots, names=("models/tuned", "tuned"), compared={}, drift=None, budget=budget
    )


def ends(each: Estimate) -> tuple[float, float]:
    assert each.low is not None
    assert each.high is not None
    return each.low, each.high


#          kept   lost    gained  never
BASE = "1111111110000000"
TUNED = "1111000001111100"
GOOD = "1111111101111000"
POOR = "1110100001000001"


def test_every_share_is_counted() -> None:
    found = pair_of(states_of(BASE, TUNED, GOOD, POOR), 0.3, 0.6)
    base, good, poor, tuned = found.points
    assert (found.lost, found.gained, found.items) == (5, 5, 16)
    assert good.forgetting.value == pytest.approx(1 / 16)
    assert poor.forgetting.value == pytest.approx(5 / 16)
    assert tuned.forgetting.value == pytest.approx(5 / 16)
    assert good.backward_transfer.value == pytest.approx(4 / 16)
    assert poor.backward_transfer.value == pytest.approx(2 / 16)
    assert (good.retained.value, poor.retained.value) == pytest.approx((0.8, 0.2))
    assert (good.recovered.value, poor.recovered.value) == pytest.approx((0.8, 0.2))
    assert good.benefit.value == pytest.approx(0.6)
    assert poor.benefit.value == pytest.approx(-0.6)
    assert good.lost_from_tuned.value == pytest.approx(1 / 16)
    assert good.gained_on_tuned.value == pytest.approx(4 / 16)
    assert good.accuracy == pytest.approx(12 / 16)
    line = 0.7 * 9 / 16 + 0.3 * 9 / 16
    assert good.below_line.value == pytest.approx(line - 12 / 16)
    assert good.over_budget.value == pytest.approx(1 / 16 - 0.5 * 5 / 16)
    assert (base.reused, tuned.reused) == ("base", "tuned")


def test_limits_for_all_at_once_hold_each_ones_own() -> None:
    found = pair_of(states_of(BASE, TUNED, GOOD, POOR), 0.3, 0.6)
    for point in found.points:
        for name in ("forgetting", "backward_transfer", "retained", "recovered", "benefit"):
            alone, together = getattr(point, name), getattr(point, f"{name}_all")
            assert together.low <= alone.low <= alone.value <= alone.high <= together.high


def test_parents_are_what_they_are_by_definition() -> None:
    found = pair_of(states_of(BASE, TUNED, GOOD), 0.5)
    base, _, tuned = found.points
    values = [(p.retained_all, p.recovered_all, p.benefit_all) for p in (base, tuned)]
    assert [[(e.low, e.value, e.high) for e in own] for own in values] == [
        [(0, 0, 0), (1, 1, 1), (0, 0, 0)],
        [(1, 1, 1), (0, 0, 0), (0, 0, 0)],
    ]
    assert (base.forgetting.high, base.within) == (0, None)


def test_the_front_holds_what_nothing_beats() -> None:
    found = pair_of(states_of(BASE, TUNED, GOOD, POOR), 0.3, 0.6)
    assert [point.on_front for point in found.points] == [True, True, False, True]


def test_with_a_target_gains_count_there_and_losses_elsewhere() -> None:
    target = "0000000001111100"
    base = "1111111110000100"
    found = pair_of(states_of(base, TUNED, GOOD, target=target), 0.4)
    assert (found.lost, found.gained) == (5, 4)
    good = found.points[1]
    assert good.forgetting.value == pytest.approx(1 / 11)
    assert good.retained.value == pytest.approx(1.0)
    groups = {group.name: group for group in good.groups}
    assert groups[ALL_ITEMS].n == 16
    assert groups["A"].n + groups["B"].n == 16


def test_the_best_keeps_most_of_what_is_surely_within_the_budget() -> None:
    many = 40
    found = pair_of(states_of(*(run * many for run in (BASE, TUNED, GOOD, POOR))), 0.3, 0.6)
    assert [point.within for point in found.points] == [None, "surely", "no", None]
    assert (found.best.sure, found.best.point) == ("sure", 1)
    assert "linear 0.3 is certified: it forgets at most 50%" in found.best.words


def test_what_is_within_by_its_estimate_only_is_not_called_sure() -> None:
    found = pair_of(states_of(BASE, TUNED, GOOD), 0.3)
    assert (found.best.sure, found.best.point) == ("estimate", 1)
    assert "No merge is certified" in found.best.words


def test_certificates_end_at_the_first_weight_that_fails() -> None:
    runs = (run * 40 for run in (BASE, TUNED, GOOD, POOR, GOOD))
    found = pair_of(states_of(*runs), 0.2, 0.4, 0.6)
    assert [point.within for point in found.points[1:4]] == ["surely", "no", "perhaps"]
    limits = [point.over_budget_limit for point in found.points]
    assert limits[0] is limits[4] is None
    assert limits[1] == limits[3]
    assert limits[1] is not None
    assert limits[1] < 0 < (limits[2] or 0)


def test_paths_share_the_error_rate() -> None:
    one = pair_of(states_of(BASE, TUNED, GOOD), 0.3).points[1].over_budget_limit
    spots = [PathPoint(method, 0.3, 2, method) for method in ("linear", "ties")]
    two = analyse_pair(
        states_of(BASE, TUNED, GOOD), spots, names=("t", "t"), compared={}, drift=None
    ).points
    assert two[0].over_budget_limit == two[1].over_budget_limit
    assert (two[0].over_budget_limit or 0) > (one or 0)


def test_a_merge_that_keeps_none_of_the_gains_does_not_help() -> None:
    nothing_kept = "1111111110000000"
    runs = (run * 40 for run in (BASE, TUNED, nothing_kept, POOR))
    found = pair_of(states_of(*runs), 0.3, 0.6)
    assert found.points[1].within == "surely"
    assert (found.best.sure, found.best.point) == ("none", None)
    assert "No merge helps" in found.best.words
    assert "linear 0.3 keeps 0.0%" in found.best.words


def test_where_all_forget_too_much_there_is_no_best() -> None:
    found = pair_of(states_of(BASE, TUNED, POOR), 0.3)
    assert (found.best.sure, found.best.point) == ("none", None)
    assert "linear 0.3" in found.best.words


@pytest.mark.parametrize(
    ("tuned", "reason"), [("1111111111111100", "forgot nothing"),
                          ("1111000000000000", "gained nothing")],
)  # fmt: skip
def test_nothing_to_keep_or_to_recover_is_said(tuned: str, reason: str) -> None:
    found = pair_of(states_of(BASE, tuned, GOOD), 0.3)
    assert found.best.point is None
    assert reason in found.best.words
    assert found.greatest_benefit.value is None


def test_a_barrier_is_the_greatest_distance_below_the_line() -> None:
    sunk = "1000000000000000"
    many = 20
    runs = [run * many for run in (BASE, TUNED, GOOD, sunk)]
    found = pair_of(states_of(*runs), 0.3, 0.6)
    heights = {each.group: each for each in found.barriers}
    assert heights[ALL_ITEMS].height.value == pytest.approx(9 / 16 - 1 / 16)
    assert heights[ALL_ITEMS].weight == 0.6
    assert ends(heights[ALL_ITEMS].height)[0] > 0


def test_the_barrier_of_the_loss_is_above_its_line() -> None:
    loss = [[1.0] * 16, [2.0] * 16, [3.0] * 15 + [4.0]]
    found = pair_of(states_of(BASE, TUNED, GOOD, loss=loss), 0.25)
    (barrier,) = [each for each in found.barriers if each.measure == "loss"]
    assert barrier.height.value == pytest.approx(49 / 16 - 1.25)
    assert found.points[1].loss == pytest.approx(49 / 16)


def drifted(pair: PairResult, relative: float, benefit: float) -> PairResult:
    total = GroupDrift(
        name="all", tensors=1, parameters=1, relative=relative, cosine=1.0, difference=1.0,
        length=1.0, effective_rank=None, rank_share=None,
    )  # fmt: skip
    drift = WeightDrift(
        base="b", tuned="t", total=total, layers=[], kinds=[], modules=[], tensors=[], unchanged=0,
        only_base=[], only_tuned=[], other_shape=[], notices=[],
    )  # fmt: skip
    most = replace(pair.greatest_benefit, value=benefit)
    return pair.model_copy(update={"drift": drift, "greatest_benefit": most})


def test_drift_and_benefit_are_ranked_from_four_models_on() -> None:
    pair = pair_of(states_of(BASE, TUNED, GOOD), 0.3)
    pairs = [drifted(pair, 0.1 * n, 1 - 0.1 * n) for n in range(1, 6)]
    assert correlate(pairs[:3]).rank.value is None
    assert "too few" in str(correlate(pairs[:3]).rank.reason)
    found = correlate(pairs)
    assert found.rank.value == pytest.approx(-1.0)
    assert found.p == pytest.approx(2 / 120)
    assert "less merging helped" in found.words
