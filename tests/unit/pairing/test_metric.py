"""The metric to compare if a run has several."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import polars as pl
import pytest

import forgetmap as fm
from forgetmap.errors import MetricError
from forgetmap.pairing.metric import select_metric
from forgetmap.records.manifest import RunInfo, TaskInfo
from small_items import compare, item, table

ACC: dict[str, Any] = {"metric": "acc", "scorer": "strict"}
LOOSE: dict[str, Any] = {"metric": "acc", "scorer": "loose"}
F1: dict[str, Any] = {"metric": "f1", "scorer": None}


def several() -> pl.DataFrame:
    """Item a is right by the strict scorer, b by the loose one; f1 likes both."""
    return table(
        item("a", 1.0, **ACC), item("b", 0.0, **ACC), item("a", 0.0, **LOOSE),
        item("b", 1.0, **LOOSE), item("a", 1.0, **F1), item("b", 1.0, **F1),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("wanted", "right"),
    [("acc/strict", "a"), ("acc/loose", "b"), ("f1", "ab"), ("f1/default", "ab")],
)
def test_the_one_that_is_asked_for(wanted: str, right: str) -> None:
    kept = compare(several(), several(), metric=wanted).flips("kept")
    assert "".join(kept["item"].to_list()) == right


@pytest.mark.parametrize("wanted", [None, "acc", "bleu", "acc/best"])
def test_no_guess_where_several_are_left(wanted: str | None) -> None:
    with pytest.raises(MetricError) as caught:
        compare(several(), several(), metric=wanted)
    for name in ("acc/strict", "acc/loose", "f1"):
        assert name in caught.value.message
    assert "--metric acc/loose" in caught.value.hint


def test_the_main_metric_of_the_manifest() -> None:
    info = RunInfo(tasks={"t": TaskInfo(main_metric="acc", main_scorer="loose")})
    run = replace(fm.open_run(several()), info=info)
    assert select_metric(run, None).scores.collect()["score"].to_list() == [0.0, 1.0]


def test_the_only_metric_needs_no_choice() -> None:
    comparison = compare(table(item("a", 1.0, **ACC)), table(item("a", 0.0, **LOOSE)))
    assert comparison.result.total.n10 == 1
    assert "metric" in {notice.code for notice in comparison.result.pairing.warnings}


def test_rows_without_a_name_are_of_the_default_metric() -> None:
    frame = table(item("a", 1.0, metric="score"), item("b", 1.0, metric=None),
                  item("a", 0.0, metric="f1"), item("b", 0.0, metric="f1"))  # fmt: skip
    assert compare(frame, frame, metric="score").result.total.n11 == 2
    assert compare(frame, frame, metric="f1").result.total.n00 == 2


def measured(main: str, *rows: tuple[str, str, float]) -> fm.Run:
    """One item under several metrics: name, scorer, score."""
    frame = table(*(item("a", score, metric=name, scorer=by) for name, by, score in rows))
    info = RunInfo(tasks={"t": TaskInfo(main_metric=main, main_scorer=rows[0][1])})
    return replace(fm.open_run(frame), info=info)


def test_versions_of_a_harness_are_compared_by_a_metric_that_both_have() -> None:
    old = measured("bleurt_acc", ("bleurt_acc", "default", 1.0), ("bleu_acc", "default", 0.0))
    new = measured("bleu_acc", ("bleu_acc", "none", 1.0), ("bleu_max", "none", 0.2))
    comparison = fm.compare(old, new)
    assert comparison.result.total.n01 == 1
    notices = [notice.message for notice in comparison.result.pairing.warnings]
    assert any("compared t by bleu_acc, not by bleurt_acc" in text for text in notices)


def test_main_metrics_that_both_have_give_way_to_that_of_the_first() -> None:
    old = measured("strict", ("strict", "x", 1.0), ("loose", "x", 1.0))
    new = measured("loose", ("loose", "x", 1.0), ("strict", "x", 0.0))
    assert fm.compare(old, new).result.total.n10 == 1
    assert fm.compare(old, new, metric="loose").result.total.n11 == 1


def test_sides_that_share_no_metric_are_compared_with_a_warning() -> None:
    old, new = measured("em", ("em", "x", 1.0)), measured("f1", ("f1", "x", 1.0))
    warnings = fm.compare(old, new).result.pairing.warnings
    assert [notice.code for notice in warnings if notice.code == "metric"] == ["metric"]
