"""Items that stand or fall together: against CR2 from whole matrices, and statsmodels."""

from __future__ import annotations

import math

import numpy as np
import pytest
import statsmodels.api as sm

import estimator_oracle as oracle
import forgetmap as fm
from backends import as_arrow
from estimator_oracle import Shape
from estimator_runs import every_group, passages
from forgetmap.stats.clusters import cluster_variance

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
            else:
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


def test_the_same_name_in_two_tasks_is_two_clusters() -> None:
    before, after = (oracle.random_run(8, Shape(clusters=True), s) for s in ("before", "after"))
    renamed = [
        [row | {"cluster": row["cluster"] and f"{row['task']} {row['cluster']}"} for row in rows]
        for rows in (before, after)
    ]
    one = fm.compare(as_arrow(before), as_arrow(after)).result
    other = fm.compare(as_arrow(renamed[0]), as_arrow(renamed[1])).result
    assert one.total == other.total
