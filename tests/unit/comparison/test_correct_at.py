"""What counts as right: the threshold, partial scores, and metrics where lower is better."""

from __future__ import annotations

import math

import pytest

import forgetmap as fm
from forgetmap.errors import MetricError, UsageError
from small_runs import run, table


@pytest.mark.parametrize("threshold", [0.1, 0.3, 0.5, 1.0])
def test_a_score_on_the_threshold_is_right_and_one_just_below_is_not(threshold: float) -> None:
    below = math.nextafter(threshold, 0)
    result = fm.compare(
        table([threshold, below]), table([below, threshold]), correct_at=threshold
    ).result
    assert (result.total.n10, result.total.n01) == (1, 1)
    assert result.rule.correct_at == threshold


def test_the_default_is_one_half_and_is_stored_with_the_result() -> None:
    result = fm.compare(table([0.5, 0.49]), table([1, 1])).result
    assert (result.total.n11, result.total.n01) == (1, 1)
    assert result.rule.correct_at == 0.5


def test_partial_scores_flip_with_the_threshold() -> None:
    before, after = table([0.9, 0.6, 0.2]), table([0.7, 0.3, 0.2])
    lost = {at: fm.compare(before, after, correct_at=at).result.total.n10 for at in (0.1, 0.5, 0.8)}
    assert lost == {0.1: 0, 0.5: 1, 0.8: 1}


def test_accuracy_is_the_share_of_right_answers_not_the_mean_score() -> None:
    result = fm.compare(table([0.6, 0.6]), table([0.6, 0.6])).result
    assert result.total.acc_before == 1


@pytest.mark.parametrize("wrong", [{"correct_at": math.nan}, {"min_paired": 0}, {"min_paired": 2}])
def test_a_senseless_rule_is_refused_by_the_name_of_its_option(wrong: dict[str, float]) -> None:
    (name,) = wrong
    with pytest.raises(UsageError, match=f"--{name.replace('_', '-')} is"):
        fm.compare(table([1]), table([1]), **wrong)  # type: ignore[call-overload]


@pytest.mark.parametrize("side", ["before", "after"])
def test_a_metric_that_falls_as_models_improve_is_refused(side: str) -> None:
    scores = table([3.0, 4.0], metric=["perplexity"] * 2)
    falling = {"perplexity": {"low": 0, "high": None, "higher_is_better": False}}
    rising = {"perplexity": {"low": 0, "high": None}}
    infos = [falling if name == side else rising for name in ("before", "after")]
    with pytest.raises(MetricError, match="lower perplexity is better"):
        fm.compare(*(run(scores, metrics=info) for info in infos))


def test_a_falling_metric_beside_the_chosen_one_does_no_harm() -> None:
    scores = table([1.0, 9.0], item=["a", "a"], metric=["acc", "perplexity"])
    info = {"perplexity": {"high": None, "higher_is_better": False}}
    both = run(scores, metrics=info)
    assert fm.compare(both, both, metric="acc").result.total.n11 == 1
