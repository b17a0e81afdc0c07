"""The estimator of the headline and its explanation: one case per kind of data."""

from __future__ import annotations

import math
import re
from statistics import NormalDist
from typing import Any

import pyarrow as pa
import pytest

import forgetmap as fm
from forgetmap.comparison.result import ComparisonResult, GroupResult, Headline
from forgetmap.comparison.verdict import decide
from forgetmap.errors import UsageError
from forgetmap.results import Estimate
from small_runs import run


def sides(
    n11: int, n10: int, n01: int, n00: int, *, k: int | None = None, **how: Any
) -> tuple[pa.Table, pa.Table]:
    """Two tables with these cells.

    `different` of n00 chose different wrong options, where any are recorded; `repeats` says how
    often each answer was given; `task` names the task.
    """
    different, repeats = how.get("different"), how.get("repeats", (1, 1))
    moves = ["11"] * n11 + ["10"] * n10 + ["01"] * n01 + ["00"] * n00
    tables = []
    for side in (0, 1):
        rows = []
        for place, move in enumerate(moves):
            row: dict[str, Any] = {
                "task": how.get("task", "t"),
                "item": str(place),
                "score": float(move[side]),
            }
            if "k" not in how.get("leave_out", ()):
                row["k"] = k
            if different is not None:
                moved = side and place >= len(moves) - different
                row["choice"] = "gold" if move[side] == "1" else "x" if moved else "y"
            rows += [row | {"repeat": repeat} for repeat in range(repeats[side])]
        tables.append(pa.Table.from_pylist(rows, schema=_schema(rows[0])))
    return tables[0], tables[1]


def _schema(row: dict[str, Any]) -> pa.Schema:
    kinds = {"score": pa.float64(), "k": pa.int64(), "repeat": pa.int64()}
    return pa.schema([(name, kinds.get(name, pa.string())) for name in row])


def headline(*cells: int, **how: Any) -> Headline:
    return fm.compare(*sides(*cells, **how)).result.total.headline


@pytest.mark.parametrize(
    ("how", "estimator"),
    [
        ({"k": None}, "raw"),
        ({"k": 2}, "bracket"),
        ({"k": 2, "different": 0}, "bracket"),
        ({"k": 4}, "bracket"),
        ({"k": 3, "different": 10}, "matched"),
        ({"k": 4, "different": 10}, "matched"),
        ({"k": None, "different": 10}, "raw"),
        ({"k": 4, "repeats": (2, 2)}, "excess"),
        ({"k": 4, "different": 10, "repeats": (2, 3)}, "excess"),
        ({"k": None, "repeats": (2, 2)}, "excess"),
        ({"k": 4, "different": 10, "repeats": (2, 1)}, "excess_before"),
        ({"k": 4, "different": 10, "repeats": (1, 2)}, "matched"),
    ],
)
def test_the_data_choose_the_estimator(how: dict[str, Any], estimator: str) -> None:
    assert headline(60, 20, 10, 40, **how).estimator == estimator


def test_two_options_among_others_leave_a_range() -> None:
    pairs = [sides(60, 20, 10, 40, k=k, different=10, task=f"k={k}") for k in (2, 4)]
    before, after = (pa.concat_tables(side) for side in zip(*pairs, strict=True))
    result = fm.compare(before, after).result
    assert result.total.headline.estimator == "bracket"
    found = {task.name: task.headline.estimator for task in result.tasks}
    assert found == {"k=2": "bracket", "k=4": "matched"}


def at_least(n: int, n10: int, *, z: float = 1.959964) -> float:
    """Lower limit of a share that may be quoted: three quarters of a loss are taken off first."""
    theta = (n10 - 0.75) / n
    alpha, beta, gamma = 1 + z * z / n, 2 * theta + z * z / n, theta**2 - z * z / 4 / n**2
    return (beta - math.sqrt(beta**2 - 4 * alpha * gamma)) / (2 * alpha)


def test_at_least_is_the_lower_limit_and_at_most_the_upper() -> None:
    """The noise floor that is assumed lowers "at least", never "at most"."""
    total = fm.compare(*sides(90, 10, 0, 0)).result.total
    loss = total.headline.forgetting
    assert loss.value == total.forgetting.value == 0.1
    assert loss.low == pytest.approx(at_least(100, 10) - 0.005, abs=1e-6)
    assert loss.high == total.forgetting.high
    assert total.noise_assumed == 0.005
    assert f"at least {loss.low:.1%}" in total.headline.words
    assert f"at most {loss.high:.1%}" in total.headline.words
    assert "a noise floor of at most 0.5%" in total.headline.words


@pytest.mark.parametrize("floor", [0.0, 0.03])
def test_the_noise_floor_can_be_another_or_none(floor: float) -> None:
    total = fm.compare(*sides(90, 10, 0, 0), noise_floor=floor).result.total
    assert total.headline.forgetting.low == pytest.approx(at_least(100, 10) - floor, abs=1e-6)
    assert ("noise floor" in total.headline.words) == (floor > 0)


def test_the_level_is_that_of_all_limits() -> None:
    total = fm.compare(*sides(90, 10, 0, 0), level=0.9, noise_floor=0.0).result.total
    assert total.headline.forgetting.low == pytest.approx(at_least(100, 10, z=1.644854), abs=1e-6)


def test_the_headline_of_matched_is_its_estimate() -> None:
    total = fm.compare(*sides(60, 20, 10, 40, k=4, different=10)).result.total
    loss, matched = total.headline.forgetting, total.matched.forgetting
    assert (loss.value, loss.high) == (matched.value, matched.high)
    assert loss.low is not None
    assert matched.low is not None
    assert loss.low < matched.low - 0.005
    assert total.headline.backward_transfer == total.matched.backward_transfer
    assert matched.value is not None
    known = 4 / 3 * (80 / 130 - 1 / 4)
    assert total.headline.of_known.value == pytest.approx(matched.value / known)


LIMITS = {
    (-0.01, 0.019): "no_material_loss",
    (0.0, 0.019): "no_material_loss",
    (-0.02, -0.01): "no_material_loss",
    (0.001, 0.019): "small_loss",
    (0.001, 0.02): "lost",
    (0.03, 0.5): "lost",
    (0.0, 0.02): "cannot_tell",
    (-0.1, 0.3): "cannot_tell",
}


@pytest.mark.parametrize("limits", LIMITS)
def test_the_first_line_of_four_that_applies(limits: tuple[float, float]) -> None:
    loss = Estimate(value=sum(limits) / 2, low=limits[0], high=limits[1], method="m")
    assert decide(loss, 0.02) == LIMITS[limits]


@pytest.mark.parametrize("high", [None, math.nan])
def test_without_limits_there_is_no_verdict(high: float | None) -> None:
    assert decide(Estimate(value=0.1, low=0.05, high=high, method="m"), 0.02) == "cannot_tell"


@pytest.mark.parametrize(
    ("margin", "verdict"), [(0.02, "lost"), (0.1, "lost"), (0.18, "small_loss")]
)
def test_the_margin_decides_what_matters(margin: float, verdict: str) -> None:
    """10 of 100 lost: at least 4.4%, at most 17.5%."""
    total = fm.compare(*sides(90, 10, 0, 0), margin=margin).result.total
    assert (total.verdict, total.headline.verdict, total.margin) == (verdict, verdict, margin)
    more = f"more than the margin of {100 * margin:g}%"
    within = f"within the margin of {100 * margin:g}%"
    assert (more in total.headline.words) == (margin < 0.044)
    assert (within in total.headline.words) == (verdict == "small_loss")
    assert total.decides is None


def test_a_loss_in_words() -> None:
    found = headline(300, 80, 10, 60, k=4, different=20)
    lost = 4 / 3 * (80 - 20 / 2) / 450
    assert found.verdict == "lost"
    assert found.forgetting.low is not None
    assert found.words.startswith(f"lost at least {found.forgetting.low:.1%} of all items")
    assert f"estimate {lost:.1%}" in found.words


def family(*parts: tuple[pa.Table, pa.Table], **options: Any) -> ComparisonResult:
    before, after = (pa.concat_tables(side) for side in zip(*parts, strict=True))
    result: ComparisonResult = fm.compare(before, after, **options).result
    return result


def test_tasks_are_a_family() -> None:
    parts = [
        sides(100, 50, 0, 20, k=4, different=5, task="worse"),
        sides(100, 5, 5, 60, k=4, different=10, task="same"),
        sides(100, 40, 0, 20, k=4, different=5, task="worse too"),
    ]
    result = family(*parts)
    assert {task.name: task.verdict for task in result.tasks} == {
        "worse": "lost", "same": "cannot_tell", "worse too": "lost"
    }  # fmt: skip
    for task in result.tasks:
        assert task.family is not None
        assert (task.family.name, task.family.size) == ("tasks", 3)
    assert result.total.family is None
    assert result.headline == f"after: {result.total.headline.words}."


def test_selection_makes_at_least_smaller() -> None:
    """Of three tasks two are called lost: their "at least" is that of the level 1 - .05 * 2/3."""
    parts = [sides(170 - lost, lost, 0, 0, task=f"{lost} lost") for lost in (0, 40, 50)]
    result = family(*parts)
    called = [task for task in result.tasks if task.verdict == "lost"]
    assert [task.name for task in called] == ["40 lost", "50 lost"]
    z = NormalDist().inv_cdf(1 - 0.05 * 2 / 3 / 2)
    for task in called:
        expected = at_least(170, task.n10, z=z) - 0.005
        assert task.headline.forgetting.low == pytest.approx(expected, abs=1e-6)
        assert task.headline.forgetting.high == task.forgetting.high
        assert "; significant among 3 tasks (q = " in task.headline.words


def test_a_loss_that_is_not_significant_among_many_tasks_is_put_aside() -> None:
    """Three of 60 lost is a loss by itself, not as the largest of 40 tasks."""
    alone = fm.compare(*sides(57, 3, 0, 0)).result.total
    assert alone.verdict == "lost"
    parts = [sides(60, 0, 0, 0, task=f"{n:02}") for n in range(39)]
    result = family(sides(57, 3, 0, 0, task="worst"), *parts)
    (worst,) = (task for task in result.tasks if task.name == "worst")
    assert worst.verdict == "cannot_tell"
    assert worst.headline.forgetting.low == 0.0
    assert re.search(r"not significant among 40 tasks \(q = 0\.\d+\)", worst.headline.words)


def test_a_family_of_one_is_a_single_claim() -> None:
    result = fm.compare(*sides(90, 10, 0, 0)).result
    (task,) = result.tasks
    assert task.family is None
    assert task.headline.forgetting == result.total.headline.forgetting


def test_models_of_a_fan_out_are_a_family() -> None:
    before, worse = sides(90, 10, 0, 0)
    same = before
    found = fm.compare(before, worse, same.slice(0))
    totals = [comparison.total for comparison in found.result.comparisons]
    assert [total.verdict for total in totals] == ["lost", "cannot_tell"]
    for total in totals:
        assert total.family is not None
        assert (total.family.name, total.family.size) == ("models", 2)
    z = NormalDist().inv_cdf(1 - 0.05 / 2 / 2)
    expected = at_least(100, 10, z=z) - 0.005
    assert totals[0].headline.forgetting.low == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    ("n", "how", "verdict"),
    [
        (100, {"k": None}, "cannot_tell"),
        (500, {"k": None}, "no_material_loss"),
        (500, {"k": 4, "different": 0}, "no_material_loss"),
        (100, {"k": 4, "different": 0}, "cannot_tell"),
        (500, {"k": 2}, "no_material_loss"),
        (5, {"k": None}, "cannot_tell"),
        (20, {"k": None}, "cannot_tell"),
    ],
)
def test_an_identical_greedy_model_lost_nothing_that_matters_where_items_suffice(
    n: int, how: dict[str, Any], verdict: str
) -> None:
    """That no flip is seen is no special case: the upper limit decides (V6)."""
    found = headline(n * 6 // 10, 0, 0, n * 4 // 10, **how)
    assert found.verdict == verdict
    assert found.forgetting.high is not None
    if verdict == "no_material_loss":
        assert found.words.startswith(f"no loss beyond 2%: at most {found.forgetting.high:.1%}")
    else:
        assert f"between 0.0% and {found.forgetting.high:.1%}" in found.words


def test_an_open_verdict_says_what_would_decide() -> None:
    total = fm.compare(*sides(60, 0, 0, 40)).result.total
    loss = total.headline.forgetting
    assert loss.low is not None
    assert loss.high is not None
    error = (loss.high - loss.low) / 3.92
    needed = 100 * (2.80 * error / 0.02) ** 2
    assert total.decides is not None
    assert total.decides.items == pytest.approx(needed, rel=0.01)
    assert f"about {total.decides.items:,} items would decide" in total.headline.words


def test_more_items_do_not_decide_a_range() -> None:
    total = fm.compare(*sides(60, 12, 10, 40, k=2)).result.total
    assert total.decides is not None
    assert total.decides.items is None


def sampled(*cells: int, temperature: float = 0.7, **how: Any) -> GroupResult:
    before, after = sides(*cells, **how)
    runs = (
        run(before, "base", decoding={"temperature": 0.0}),
        run(after, "tuned", decoding={"temperature": temperature}),
    )
    return fm.compare(*runs, estimator=how.get("estimator", "auto")).result.total


def test_sampled_answers_without_repeats_tell_nothing() -> None:
    found = sampled(60, 20, 10, 40, k=4, different=10).headline
    assert found.verdict == "cannot_tell"
    assert found.words.startswith(
        "cannot tell: noise and forgetting cannot be separated without repeats"
    )
    assert "(260 in total)" in found.words


def test_sampled_answers_with_repeats_or_greedy_ones_tell() -> None:
    assert sampled(60, 40, 0, 20, k=4, repeats=(2, 2)).headline.verdict == "lost"
    assert sampled(60, 40, 0, 20, k=4, different=2, temperature=0).headline.verdict == "lost"


def test_too_few_items_in_words() -> None:
    total = fm.compare(*sides(40, 15, 12, 33, k=4, different=20)).result.total
    assert total.headline.verdict == "cannot_tell"
    assert total.detectable is not None
    assert total.headline.words.endswith(
        f"100 items cannot detect a loss below {total.detectable:.1%}"
    )


def test_a_model_that_only_guessed_has_no_share_of_what_it_knew() -> None:
    found = headline(8, 18, 18, 56, k=4, different=37)
    assert found.verdict == "cannot_tell"
    assert found.of_known.reason == "it knew no more before than by guessing"


def test_a_range_that_contains_nothing_lost() -> None:
    found = headline(60, 12, 10, 40, k=2)
    assert found.verdict == "cannot_tell"
    assert "more items would not narrow the range" in found.words
    assert found.forgetting.value is None
    assert found.forgetting.reason


def test_a_range_above_nothing_lost() -> None:
    """From the lower limit of the lower end to the upper limit of the upper end."""
    total = fm.compare(*sides(100, 60, 0, 10, k=2)).result.total
    found = total.headline
    assert found.verdict == "lost"
    assert found.forgetting.value is None
    assert found.forgetting.high == total.bracket_high.forgetting.high
    low = total.bracket_low.forgetting.low
    assert low is not None
    assert found.forgetting.low is not None
    assert low - 0.03 < found.forgetting.low < low - 0.005
    assert found.words.startswith(f"lost at least {found.forgetting.low:.1%} of all items")


def test_no_right_answer_before() -> None:
    assert headline(0, 0, 5, 20, k=4).words == "cannot tell: no answer was right before"


def test_raw_losses_say_so_if_nobody_recorded_how_many_options_there_are() -> None:
    said = "assumes no lucky guesses (the number of options is not recorded)"
    assert said in headline(90, 10, 0, 0, leave_out=("k",)).words
    assert said not in headline(90, 10, 0, 0, k=4).words


@pytest.mark.parametrize(
    ("estimator", "how"),
    [
        ("matched", {"k": 2}),
        ("matched", {"k": 4}),
        ("excess", {"k": 4}),
        ("net", {"k": 4}),
        ("excess_before", {"k": 4}),
        ("net", {"k": 4, "repeats": (2, 2)}),
    ],
)
def test_an_estimator_that_cannot_be_had_says_why(estimator: Any, how: dict[str, Any]) -> None:
    total = fm.compare(*sides(60, 20, 10, 40, **how), estimator=estimator).result.total
    assert total.headline.estimator == estimator
    assert total.headline.verdict == "cannot_tell"
    assert total.headline.words.startswith(f"cannot tell: {estimator} is not available: ")
    assert total.headline.forgetting.value is None
    assert total.headline.forgetting.reason


@pytest.mark.parametrize("estimator", ["raw", "latent", "upper", "published", "matched", "net"])
def test_an_estimator_that_is_asked_for_makes_the_headline(estimator: Any) -> None:
    both = sides(60, 20, 10, 40, k=4, different=10, repeats=(2, 2))
    total = fm.compare(*both, estimator=estimator).result.total
    assert total.headline.estimator == estimator
    expected = total.forgetting if estimator == "raw" else getattr(total, estimator).forgetting
    assert total.headline.forgetting.value == expected.value


def test_the_published_adjustment_never_concludes() -> None:
    total = fm.compare(*sides(60, 20, 10, 40, k=4), estimator="published").result.total
    a, b = 80 / 130, 70 / 130
    value = 20 / 130 - (1 - a) * (1 - b) / 3
    assert total.headline.verdict == "cannot_tell"
    assert f"gives {value:.1%} of all items, without an interval" in total.headline.words


def test_an_unknown_estimator_is_refused() -> None:
    with pytest.raises(UsageError):
        fm.compare(*sides(1, 1, 1, 1), estimator="best")


def test_with_repeats_limits_and_test_are_one_procedure() -> None:
    """Four of twenty items go from always to never right: the test rejects, the interval is wide.

    A loss is claimed only where its lower limit is above 0 (V4).
    """
    total = fm.compare(*sides(16, 4, 0, 0, repeats=(2, 2))).result.total
    assert total.p_lost is not None
    assert total.p_lost < 0.001
    assert total.headline.forgetting.low is not None
    assert total.headline.forgetting.low < 0
    assert total.verdict == "cannot_tell"
    more = fm.compare(*sides(160, 40, 0, 0, repeats=(2, 2))).result.total
    assert more.verdict == "lost"
    assert more.headline.words.startswith("lost at least ")
    assert "of all answers beyond the noise floor" in more.headline.words


def test_where_the_test_does_not_reject_the_lower_limit_is_not_above_nothing() -> None:
    for n10 in range(40):
        total = fm.compare(*sides(100, n10, 5, 30, k=4, different=20)).result.total
        low, p = total.headline.forgetting.low, total.p_lost
        assert low is not None
        assert p is not None
        assert p <= 0.025 or low <= 0
        assert (total.verdict in {"lost", "small_loss"}) == (low > 0)


def test_fewer_flips_than_luck_would_make_is_no_verdict() -> None:
    """The same greedy guesses on both sides, one item lost: `latent` lies far below 0."""
    found = fm.compare(*sides(100, 1, 0, 99, k=4), estimator="latent").result.total.headline
    assert found.verdict == "cannot_tell"
    assert "not as blind as assumed" in found.words


def test_a_small_loss() -> None:
    found = headline(40_000, 400, 0, 160, k=4, different=16)
    assert found.verdict == "small_loss"
    assert "within the margin of 2%" in found.words


def test_a_rise_of_all_items_is_no_loss_beyond_noise() -> None:
    """Every answer gets likelier: `excess` is negative, and that is no sign of a wrong model."""
    rows = [
        [
            {"task": "t", "item": str(n), "repeat": r, "score": float(r < right)}
            for n in range(200)
            for r in range(4)
        ]
        for right in (2, 3)
    ]
    before, after = map(pa.Table.from_pylist, rows)
    total = fm.compare(before, after).result.total
    assert total.headline.forgetting.high is not None
    assert total.headline.forgetting.high < 0
    assert total.verdict == "no_material_loss"


def unanswered(lost: int, none: int, *, k: int | None = 4) -> GroupResult:
    """400 known items, of which `lost` are answered wrongly after and `none` not at all."""
    sides = []
    for side in (0, 1):
        rows = []
        for n in range(600):
            known, failed = n < 400, side and (n < none or 400 <= n < 400 + none // 3)
            wrong = not known or (side and none <= n < none + lost)
            row: dict[str, Any] = {"task": "t", "item": str(n), "k": k}
            outcome = "no_answer" if failed else "incorrect" if wrong else "correct"
            row |= {"score": float(not (failed or wrong)), "outcome": outcome}
            row["choice"] = None if failed else "y" if wrong else "gold"
            rows.append(row)
        sides.append(pa.Table.from_pylist(rows, schema=_schema(rows[0])))
    return fm.compare(sides[0], sides[1]).result.total


def test_what_is_no_longer_answered_is_not_called_forgotten_knowledge() -> None:
    total = unanswered(0, 60)
    assert total.verdict == "lost"
    assert (total.knowledge.verdict, total.answering.verdict) == ("no_material_loss", "lost")
    assert total.knowledge.value == 0.0
    assert total.answering.value == pytest.approx((60 - 20 / 3) / 600)
    assert "it no longer answers" in total.headline.words
    assert "it no longer knows" not in total.headline.words
    assert "no loss of knowledge is shown" in total.headline.words


def test_both_parts_make_the_loss() -> None:
    total = unanswered(90, 60)
    assert (total.knowledge.verdict, total.answering.verdict) == ("lost", "lost")
    assert total.knowledge.value == pytest.approx(4 / 3 * 90 / 600)
    parts = (total.knowledge.value or 0) + (total.answering.value or 0)
    assert total.headline.forgetting.value == pytest.approx(parts)
    assert total.matched.forgetting.value == pytest.approx(parts)
    assert "it no longer knows" in total.headline.words
    assert "it no longer answers" in total.headline.words


def test_open_ended_answers_are_split_too() -> None:
    total = unanswered(30, 60, k=None)
    assert (total.knowledge.value, total.answering.value) == pytest.approx((0.05, 0.1))


def test_how_much_luck_would_explain_a_loss_away() -> None:
    """The test values of the design: N 300, k = 4; guesses redrawn, and read off the options."""
    latent = fm.compare(*sides(150, 60, 0, 90, k=4)).result.total
    assert latent.headline.estimator == "bracket"
    assert latent.guess_rate_needed == pytest.approx(0.3254, abs=5e-5)
    matched = fm.compare(*sides(150, 60, 0, 90, k=4, different=60)).result.total
    assert matched.luck_ratio_needed == pytest.approx(1.4136, abs=5e-5)
    assert matched.guess_rate_needed == pytest.approx(0.2928, abs=5e-5)
    words = "holds unless more than 29.3% of the guesses were lucky (blind guesses: 25.0%)"
    assert words in matched.headline.words


def test_the_luck_that_is_needed_agrees_with_the_claim() -> None:
    for n10 in (20, 25, 30, 35, 40, 60):
        both = sides(150, n10, 0, 60, k=4, different=40)
        total = fm.compare(*both, noise_floor=0.0).result.total
        low, ratio = total.headline.forgetting.low, total.luck_ratio_needed
        assert low is not None
        assert (ratio is not None and ratio > 1) == (low > 0)


def test_open_ended_items_need_no_luck() -> None:
    total = fm.compare(*sides(90, 10, 0, 0)).result.total
    assert (total.guess_rate_needed, total.luck_ratio_needed) == (None, None)


def test_mixed_items_have_a_ratio_and_no_rate() -> None:
    parts = [sides(60, 40, 0, 20, k=k, different=4, task=f"k={k}") for k in (3, 4)]
    total = family(*parts).total
    assert total.luck_ratio_needed is not None
    assert total.guess_rate_needed is None


def test_noise_of_any_size_that_flips_both_ways_alike() -> None:
    """At least the lower limit of the losses less the gains, at most that of the losses."""
    total = fm.compare(*sides(300, 60, 20, 20)).result.total
    noise = total.symmetric_noise
    assert noise.value == pytest.approx(0.1)
    assert noise.high == total.headline.forgetting.high
    assert noise.low is not None
    assert 0.05 < noise.low < 0.1
    even = fm.compare(*sides(300, 40, 40, 20)).result.total.symmetric_noise
    assert even.low is not None
    assert even.low < 0


def test_a_measured_noise_floor_replaces_the_assumed_one() -> None:
    """`raw` asked for beside repeats: both limits are lowered by what repeats show."""
    both = sides(300, 60, 0, 40, repeats=(2, 2))
    total = fm.compare(*both, estimator="raw").result.total
    assert total.noise_assumed is None
    assert total.noise_floor.value == 0.0
    assert total.noise_floor.high is not None
    assert total.forgetting.high is not None
    assert total.headline.forgetting.high == pytest.approx(total.forgetting.high, abs=1e-9)
