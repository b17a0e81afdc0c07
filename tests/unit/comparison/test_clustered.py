"""Clustered items: checked against CR2 from whole matrices and against statsmodels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import statsmodels.api as sm

import estimator_oracle as oracle
import forgetmap as fm
from backends import as_arrow, as_frame
from estimator_oracle import Shape
from estimator_runs import every_group, passages
from forgetmap.comparison.clustered import (
    ClusterSums,
    ScoredPairs,
    score_columns,
    score_pairs,
    sum_clusters,
    sum_levels,
    total_clusters,
)
from forgetmap.comparison.result import GroupResult
from forgetmap.errors import PairingError
from forgetmap.results import Estimate
from forgetmap.stats.clusters import cluster_variance
from small_runs import table

SEED = 6
SHAPES = {
    "passages": Shape(clusters=True),
    "passages, four options": Shape(clusters=True, ks=(4,)),
    "repeats": Shape(repeats=3, items=20, missing=0.1),
    "passages with repeats": Shape(repeats=2, items=32, clusters=True),
}


@pytest.mark.parametrize("score", ["raw", "latent", "upper", "matched"])
@pytest.mark.parametrize("name", SHAPES)
def test_intervals_widen_by_cr2_with_bell_mccaffrey_freedoms(name: str, score: str) -> None:
    for group, items in every_group(SHAPES[name], SEED):
        found = group if score == "raw" else getattr(group, score)
        for own, side in ((items, "forgetting"), (oracle.swapped(items), "backward_transfer")):
            (value, low, high), affected = oracle.clustered_limits(score, own)
            if score in {"latent", "matched"}:
                value, low, high = oracle.agreeing((value, low, high), oracle.luck(score, own))
            elif score == "raw":
                low = max(low, 0.0)
            estimate = getattr(found, side)
            got = (estimate.value, estimate.low, estimate.high)
            assert got == pytest.approx((value, low, high), abs=1e-7), (group.name, side)
            assert "clustered" in estimate.method
            few = 0 < affected < 5
            assert ("fewer than 5 affected clusters" in estimate.method) == few


def test_equal_clusters_agree_with_statsmodels() -> None:
    """With clusters of one size CR2 is CR1 up to the factor that statsmodels puts on."""
    rng = np.random.default_rng(1)
    scores = rng.binomial(1, rng.beta(1, 4, size=15)[:, None], size=(15, 8)).astype(float)
    model = sm.OLS(scores.ravel(), np.ones(120)).fit(
        cov_type="cluster", cov_kwds={"groups": np.repeat(np.arange(15), 8)}
    )
    found = cluster_variance(np.full(15, 8), scores.sum(1), squares=float((scores**2).sum()))
    assert found.variance == pytest.approx(float(model.cov_params()[0, 0]))


@pytest.mark.parametrize("lost", range(8))
def test_few_affected_clusters_are_said(lost: int) -> None:
    method = fm.compare(*passages(set(range(lost)))).result.total.forgetting.method
    assert ("fewer than 5 affected clusters" in method) == (0 < lost < 5)


def test_whole_passages_lost_make_the_interval_wider() -> None:
    before, after = passages({0, 1, 2, 3, 4, 5})
    clustered = fm.compare(before, after).result.total.forgetting
    alone = fm.compare(
        before.drop_columns("cluster"), after.drop_columns("cluster")
    ).result.total.forgetting
    assert clustered.value == alone.value == 0.5
    assert clustered.low is not None
    assert alone.low is not None
    assert (0.5 - clustered.low) / (0.5 - alone.low) > math.sqrt(6) * 0.8


def test_clusters_of_one_item_change_nothing() -> None:
    before, after = passages({1, 4}, size=1, count=60)
    bare = [table.drop_columns("cluster") for table in (before, after)]
    assert fm.compare(before, after).result.total == fm.compare(bare[0], bare[1]).result.total


def test_the_same_name_in_two_tasks_is_one_cluster_of_the_total() -> None:
    before, after = (oracle.random_run(8, Shape(clusters=True), s) for s in ("before", "after"))
    renamed = [
        [row | {"cluster": row["cluster"] and f"{row['task']} {row['cluster']}"} for row in rows]
        for rows in (before, after)
    ]
    one = fm.compare(as_arrow(before), as_arrow(after)).result
    other = fm.compare(as_arrow(renamed[0]), as_arrow(renamed[1])).result
    assert one.tasks == other.tasks
    assert one.total.forgetting.value == other.total.forgetting.value
    assert width(one.total.forgetting) > width(other.total.forgetting)


def width(estimate: Estimate) -> float:
    assert estimate.low is not None
    assert estimate.high is not None
    return estimate.high - estimate.low


def twice(questions: Sequence[str], lost: set[int]) -> fm.Comparison:
    """The same questions in two tasks; a lost one is lost in both."""
    sides = [
        [
            {"task": task, "item": str(n), "question": question}
            | {"score": float(not (side and n in lost))}
            for task in "ab"
            for n, question in enumerate(questions)
        ]
        for side in (0, 1)
    ]
    return fm.compare(as_arrow(sides[0]), as_arrow(sides[1]))


def test_the_same_content_in_two_tasks_is_one_cluster_of_the_total() -> None:
    """300 questions asked twice are 300 questions: the interval is wider by the root of two."""
    lost = set(range(30))
    shared = twice([f"question {n}?" for n in range(300)], lost).result
    rows = [float(n not in lost) for n in range(300)]
    once = fm.compare(table([1.0] * 300), table(rows)).result
    assert width(shared.total.forgetting) == pytest.approx(width(once.total.forgetting), rel=0.03)
    assert "clustered" in shared.total.forgetting.method
    assert "clustered" not in shared.tasks[0].forgetting.method
    macro = shared.total_macro
    total = shared.total.headline.forgetting
    assert width(macro.headline.forgetting) == pytest.approx(width(total), rel=0.05)
    # Not only the estimator of the headline.
    assert width(macro.upper.forgetting) == pytest.approx(width(shared.total.forgetting), rel=0.05)


def test_the_same_content_with_repeats_is_one_cluster_of_the_mean_over_tasks() -> None:
    """Items that stand or fall together over two tasks are half as many."""
    lost = set(range(40))
    sides = [
        [
            {"task": task, "item": str(n), "question": f"{n}? {apart * task}", "repeat": repeat}
            | {"score": float(not (side and n in lost))}
            for task in "ab"
            for n in range(200)
            for repeat in (0, 1)
        ]
        for apart in (0, 1)
        for side in (0, 1)
    ]
    same, other = (
        fm.compare(as_arrow(one), as_arrow(two)).result.total_macro.excess.forgetting
        for one, two in (sides[:2], sides[2:])
    )
    assert width(same) == pytest.approx(width(other) * math.sqrt(2), rel=0.03)


def test_one_cluster_tells_nothing() -> None:
    """All its items may have been lost as one, so no number of them shows a loss."""
    before = table([1.0] * 200, cluster=["p"] * 200)
    after = table([float(n > 60) for n in range(200)], cluster=["p"] * 200)
    total = fm.compare(before, after).result.total
    assert total.verdict == "cannot_tell"
    assert total.forgetting.method == "raw, score interval, one cluster"
    closed = [side.append_column("k", pa.array([4] * 200)) for side in (before, after)]
    p = fm.compare(closed[0], closed[1]).result.total.p_lost
    assert p is not None
    assert 0.025 < p <= 1


def test_clustered_items_detect_less() -> None:
    clustered = passages({1, 4, 9}, size=10, count=30)
    bare = [each.drop_columns("cluster") for each in clustered]
    ours, theirs = (
        fm.compare(before, after).result.total.detectable for before, after in (clustered, bare)
    )
    assert ours is not None
    assert theirs is not None
    assert ours > 2 * theirs


def test_an_item_in_two_clusters_is_refused() -> None:
    before, after = passages({1})
    names = after["cluster"].to_pylist()
    names[3] = "another"
    after = after.set_column(after.column_names.index("cluster"), "cluster", pa.array(names))
    with pytest.raises(PairingError) as caught:
        fm.compare(before, after)
    assert caught.value.message == "an item of task 't' is in two clusters, 'another' and 'p0'"
    assert "the same cluster" in caught.value.hint


@pytest.mark.parametrize("size", [2, 5, 10])
def test_no_flip_in_clusters_leaves_as_much_open_as_that_many_clusters(size: int) -> None:
    """G clusters of which none was lost leave about 3.7 / G open, whatever the items (V2)."""
    total = fm.compare(*passages(set(), size=size, count=60)).result.total
    assert total.forgetting.high == pytest.approx(3.7 / 60, rel=0.35)


def in_passages(categories: Sequence[str], tasks: Sequence[str], every: int) -> list[oracle.Row]:
    """Passages of three items with these categories and tasks; so few answers are right."""
    return [
        {
            "task": tasks[number % 3],
            "item": str(number),
            "cluster": f"p{number // 3}",
            "category": categories[number % 3],
            "tags": "long",
            "score": float(number % every == 0),
        }
        for number in range(30)
    ]


@pytest.mark.parametrize(
    ("categories", "tasks", "apart"),
    [
        (["c", "c", "c"], ["t", "t", "t"], []),
        (["c", "c", "d"], ["t", "t", "t"], ["category"]),
        (["c", "c", "c"], ["t", "u", "u"], ["task"]),
        (["c", "d", "e"], ["t", "u", "u"], ["category", "task"]),
    ],
)
def test_levels_summed_in_one_query_are_those_summed_alone(
    categories: list[str],
    tasks: list[str],
    apart: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before, after = (
        as_frame(in_passages(categories, tasks, every), "polars", Path()) for every in (2, 4)
    )
    pairs = fm.compare(before, after).pairs
    levels = ["total", "category", "tags", "task"]
    scored = score_pairs(pairs, score_columns(pairs, {}, ()), by_content=False)
    alone = {level: sum_clusters(scored, level) for level in levels}
    queries: list[str] = []

    def noted(scored: ScoredPairs, level: str) -> dict[str, ClusterSums]:
        queries.append(level)
        return sum_clusters(scored, level)

    monkeypatch.setattr("forgetmap.comparison.clustered.sum_clusters", noted)
    assert sum_levels(scored, levels) == alone
    assert queries == apart


@pytest.mark.parametrize("noise", [False, True])
def test_a_tag_of_all_items_has_the_numbers_of_the_total(noise: bool) -> None:
    """Also where some answers of an item have no counterpart."""
    shape = Shape(repeats=3, clusters=True, items=20)
    before, after, again = (
        as_arrow([
            row | {"tags": "all"}
            for place, row in enumerate(oracle.random_run(4, shape, side))
            if side != "after" or place % 5
        ])
        for side in ("before", "after", "again")
    )  # fmt: skip
    result = fm.compare(before, after, noise=again if noise else None).result
    (tag,) = result.tags
    assert "clustered" in result.total.excess.forgetting.method
    for name in ("excess", "excess_before", "net", "noise_floor"):
        assert getattr(tag, name) == getattr(result.total, name)


def sums(**counts: int) -> ClusterSums:
    """Clusters of four items, by how many of them were lost."""
    return ClusterSums(
        ("size", "wrong_lost"), {(4.0, float(name[1:])): n for name, n in counts.items()}
    )


def test_sums_of_clusters_add_up() -> None:
    assert (sums(_0=2, _1=1) + sums(_1=3, _4=1)).counts == sums(_0=2, _1=4, _4=1).counts
    assert total_clusters([]) is None
    assert total_clusters([sums(_0=2)]) == sums(_0=2)


def test_clusters_of_one_item_have_no_variance_of_their_own() -> None:
    assert ClusterSums(("size", "wrong_lost"), {(1.0, 1.0): 9}).variance(["wrong_lost"], 9) is None


def test_what_clusters_say_of_a_sum_of_scores() -> None:
    """Two scores together are as one that is their sum."""
    names = ("size", "knowledge", "answering", "both")
    rows: dict[tuple[float, ...], int] = {
        (3.0, 1.0, 1.0, 2.0): 4,
        (3.0, 0.0, 1.0, 1.0): 2,
        (2.0, 0.0, 0.0, 0.0): 7,
    }
    found = ClusterSums(names, rows)
    one = found.variance(["both"], 14.0, ["both"])
    assert found.variance(["knowledge", "answering"], 14.0, ["knowledge", "answering"]) == one
    assert one is not None
    assert one.affected == 6
    assert one.size == pytest.approx((6 * 9 + 7 * 4) / 32)


def test_a_thousand_tasks_with_clusters() -> None:
    """An expression with a branch for each task would be too deep."""
    rows = [
        {"task": f"t{task}", "item": f"{task} {n}", "cluster": f"{task} {n // 2}"}
        for task in range(1000)
        for n in range(3)
    ]
    sides = [
        as_arrow([row | {"score": float(place % 7 > side)} for place, row in enumerate(rows)])
        for side in (0, 1)
    ]
    assert fm.compare(sides[0], sides[1]).result.total.n == 3000


def test_the_same_question_again_within_a_task_is_one_cluster() -> None:
    """Sixty questions five times are sixty questions."""
    questions = [f"question {n // 5}?" for n in range(300)]
    items = [str(n) for n in range(300)]
    before = table([1.0] * 300, question=questions, item=items)
    after = table([float(n >= 5) for n in range(300)], question=questions, item=items)
    (task,) = fm.compare(before, after).result.tasks
    assert task.verdict == "cannot_tell"
    assert task.forgetting.high == pytest.approx(0.09, abs=0.015)


def in_fives(scores: Sequence[float], *, declared: bool, repeats: int = 1) -> pa.Table:
    """Passages of five items, and their scores one repeat after the other."""
    items = len(scores) // repeats
    return as_arrow([
        {"task": "t", "item": str(place % items), "score": score}
        | ({"repeat": place // items} if repeats > 1 else {})
        | ({"cluster": str(place % items // 5)} if declared else {})
        for place, score in enumerate(scores)
    ])  # fmt: skip


def compare_fives(
    before: Sequence[float], after: Sequence[float], *, declared: bool, repeats: int = 1
) -> GroupResult:
    sides = [in_fives(scores, declared=declared, repeats=repeats) for scores in (before, after)]
    return fm.compare(sides[0], sides[1]).result.total


@pytest.mark.parametrize("name", ["symmetric_noise", "conditional_forgetting"])
def test_clusters_widen_every_rate(name: str) -> None:
    """Whole passages are lost, others gained."""
    before = [1.0] * 100 + [0.0] * 50
    after = [0.0] * 20 + [1.0] * 80 + [1.0] * 10 + [0.0] * 40
    alone, together = (
        getattr(compare_fives(before, after, declared=declared), name) for declared in (False, True)
    )
    assert together.value == pytest.approx(alone.value)
    assert width(together) > 1.5 * width(alone)


def test_clusters_widen_what_graded_scores_show() -> None:
    before = [0.75] * 150
    after = [0.25] * 30 + [0.75] * 110 + [1.0] * 10
    alone, together = (
        compare_fives(before, after, declared=declared).graded for declared in (False, True)
    )
    assert alone is not None
    assert together is not None
    assert together.value == pytest.approx(alone.value)
    assert width(together) > 1.5 * width(alone)
    assert "clustered" in together.method


def test_clusters_widen_the_noise_floor() -> None:
    steady, right, wrong = [1.0] * 100, [1.0] * 50, [0.0] * 50
    before, after = [*steady, *right, *steady, *wrong], [*steady, *wrong, *steady, *right]
    alone, together = (
        compare_fives(before, after, declared=declared, repeats=2).noise_floor
        for declared in (False, True)
    )
    assert together.value == pytest.approx(alone.value)
    assert width(together) > 1.5 * width(alone)
