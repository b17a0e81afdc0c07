"""The published values are complete and equal the numbers printed in papers."""

from __future__ import annotations

import numpy as np
import pytest

from forgetmap.study import published_pairs, published_table
from forgetmap.study.published import published_drift, published_source, published_study


def test_every_pair_of_the_study_has_its_values() -> None:
    table = published_table()
    assert (len(table.facts), len(table.categories)) == (31, 10)
    assert not np.isnan(table.forgetting).any()
    assert not np.isnan(table.backward_transfer).any()
    assert sum(fact.changed_style for fact in table.facts) == 15
    assert len({fact.lineage for fact in table.facts}) == 5


def test_printed_totals() -> None:
    table = published_table()
    totals = dict(zip((fact.label for fact in table.facts), table.forgetting[:, 0], strict=True))
    coder = [totals[f"Qwen 2.5 Coder ({size}B)"] for size in (3, 7, 14, 32)]
    assert coder == pytest.approx([0.068, 0.076, 0.080, 0.064])
    assert totals["Open Math 2 (8B)"] == pytest.approx(0.288)
    math_of_coder = table.values("forgetting", "Math")[
        [fact.label == "Qwen 2.5 Coder (14B)" for fact in table.facts]
    ]
    assert math_of_coder == pytest.approx([0.06158258])


def test_labels_of_the_study_are_those_of_the_values() -> None:
    study = published_study()
    labels = {(pair.before, pair.after): pair.label for pair in study.pairs}
    merges = {(pair.before, pair.after): pair.label for pair in study.merge_pairs}
    found = {(pair.before, pair.after): pair.label for pair in published_pairs()}
    assert labels.items() <= found.items()
    assert found.keys() - labels.keys() <= merges.keys()
    assert len(found) == 31 + 16


def test_published_drift_and_sources() -> None:
    drift = published_drift()
    assert (len(drift.models), len(drift.capabilities)) == (3, 19)
    assert drift.models["Qwen3 80B DPO"][6] == pytest.approx(-16.40856532145087)
    assert "2603.06610" in drift.source["paper"]
    assert "2510.17776" in published_source()["paper"]
