"""Intervals of items that stand or fall together cover the rate they share."""

from __future__ import annotations

import random

import forgetmap as fm
from estimator_runs import passages


def test_clustered_intervals_cover_the_rate_that_all_passages_share() -> None:
    dice = random.Random(3)
    covered = {"clustered": 0, "alone": 0}
    for _ in range(40):
        lost = {passage for passage in range(30) if dice.random() < 0.3}
        before, after = passages(lost, size=4, count=30)
        bare = [table.drop_columns("cluster") for table in (before, after)]
        for name, tables in (("clustered", (before, after)), ("alone", bare)):
            found = fm.compare(tables[0], tables[1]).result.total.forgetting
            assert found.low is not None
            assert found.high is not None
            covered[name] += found.low <= 0.3 <= found.high
    assert covered["clustered"] >= 35
    assert covered["alone"] < 35
