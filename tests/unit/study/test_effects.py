"""Effects over pairs: which are compared, and which have no interval."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from forgetmap.stats import Contrast, Reals
from forgetmap.study import PairFacts, StudyTable, find_effects, tell_findings
from forgetmap.study.effects import as_share, difference, mean_effect, mean_of_these, size_trend
from forgetmap.study.findings import larger_forget_less, not_catastrophic
from forgetmap.study.words import interval
from forgetmap.text import blocks_to_text

FACT = PairFacts(
    before="b", after="a", label="l", group="g", stage="s", lineage="b", series="x", size=1.0,
    data=None, domains=0, changed_style=False,
)  # fmt: skip


def table_of(values: Reals, **facts: list[object]) -> StudyTable:
    """Pairs with these values of total forgetting; every fact is given per pair."""
    rows = [
        replace(FACT, lineage=f"b{n}", label=f"l{n}", **{k: v[n] for k, v in facts.items()})  # type: ignore[arg-type]
        for n in range(len(values))
    ]
    column = np.asarray(values, float)[:, None]
    return StudyTable(tuple(rows), ("total",), column, column / 2)


def test_a_trend_is_within_series_and_per_doubling() -> None:
    sizes: list[object] = [1.0, 2.0, 4.0, 8.0] * 2
    series: list[object] = [*"xxxxyyyy"]
    noise = np.asarray([1, -1, 1, -1, -1, 1, 1, -1]) * 1e-4
    values = np.asarray([0.2, 0.19, 0.18, 0.17, 0.1, 0.09, 0.08, 0.07]) + noise
    table = table_of(values, size=sizes, series=series)
    found = size_trend(table, "forgetting")
    assert found is not None
    assert found[0].value == pytest.approx(-0.01, abs=2e-4)
    finding = larger_forget_less(table)
    assert finding is not None
    assert finding.answer == "yes"
    assert "8 pairs of 2 series: larger models forget less" in finding.sentence


def test_series_of_one_size_and_unknown_sizes_are_in_no_trend() -> None:
    table = table_of(np.full(3, 0.1), size=[1.0, 1.0, None], series=["x", "x", "y"])
    assert size_trend(table, "forgetting") is None
    assert larger_forget_less(table) is None


def test_a_difference_is_within_blocks() -> None:
    values = np.asarray([0.10, 0.12, 0.06, 0.08, 0.5, 0.52])
    table = table_of(values, stage=["s", "s", "s", "s", "t", "t"])
    first = np.asarray([True, True, False, False, True, True])
    blocks = [fact.stage for fact in table.facts]
    found = difference(table, "forgetting", (first, ~first), within=blocks)
    assert found is not None
    contrast, (left, right) = found
    assert contrast.value == pytest.approx(0.04)
    assert (left.sum(), right.sum()) == (2, 2)
    assert difference(table, "forgetting", (first, first), within=blocks) is None


def test_items_give_an_interval_to_these_pairs_alone() -> None:
    table = table_of(np.asarray([0.1, 0.2, 0.3]))
    rows = np.ones(3, bool)
    assert mean_of_these(table, "forgetting", rows) is None
    covariance = {("forgetting", "total"): np.eye(3) * 1e-4}
    table = replace(table, covariance=covariance)  # type: ignore[arg-type]
    here, everywhere = (
        mean_of_these(table, "forgetting", rows),
        mean_effect(table, "forgetting", rows),
    )
    assert here is not None
    assert everywhere is not None
    assert here.value == pytest.approx(everywhere.value)
    assert here.error < everywhere.error


def test_one_lineage_cannot_tell() -> None:
    table = table_of(np.asarray([0.1, 0.11]))
    table = replace(table, facts=tuple(replace(fact, lineage="b") for fact in table.facts))
    finding = not_catastrophic(table, "g")
    assert finding.answer == "cannot tell"
    assert "one lineage" in finding.sentence
    (evidence,) = finding.evidence
    assert evidence.estimate.value == pytest.approx(0.105)
    assert evidence.estimate.low is None


@pytest.mark.parametrize(
    ("values", "answer"),
    [([0.05, 0.06, 0.055], "yes"), ([0.4, 0.41, 0.42], "no"), ([0.1, 0.2, 0.15], "cannot tell")],
)
def test_not_catastrophic_against_a_margin(values: list[float], answer: str) -> None:
    assert not_catastrophic(table_of(np.asarray(values)), "g", margin=0.15).answer == answer


def test_all_findings_of_a_study_as_text() -> None:
    facts: dict[str, list[object]] = {
        "data": ["low", "low", "high", "high"],
        "domains": [1, 2, 1, 2],
        "changed_style": [True, False, True, False],
        "stage": ["s from base", "s from base", "s from instruct", "s from instruct"],
    }
    table = table_of(np.asarray([0.1, 0.12, 0.2, 0.25]), **facts)
    result = find_effects(table, "mine")
    assert [finding.id for finding in result.findings] == [
        "start",
        "domains",
        "style",
        "catastrophic:g",
    ]
    text = blocks_to_text(tell_findings(result), 100)
    assert "mine: 4 pairs of 4 lineages" in text
    assert "CANNOT TELL" in text
    assert "the items are unknown" in text


def test_a_mean_below_0_keeps_its_interval() -> None:
    for value, low, high, limits in (
        (-0.2, -0.3, -0.1, (-0.3, -0.1)),
        (0.1, -0.1, 0.3, (0.0, 0.3)),
    ):
        contrast = Contrast(value, 0.05, low, high, 5.0, 4)
        estimate = as_share(contrast)
        assert (estimate.low, estimate.high) == limits
        shown = f"({100 * limits[0]:.1f} to {100 * limits[1]:.1f})".replace("-", "\N{MINUS SIGN}")
        assert interval(contrast).endswith(shown)
