"""The first screen: losses of groups that the total hides are shown."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

import forgetmap as fm
from forgetmap.comparison import all_estimators
from forgetmap.comparison.render import View, as_text
from forgetmap.comparison.summary import Summary, summarize
from small_runs import table


def first_screen(*tasks: tuple[str, int, int], **columns: list[Any]) -> Summary:
    """Of tasks with a name, so many items, and so many of them lost; one was never right."""
    sides = []
    for lost_counts in (0, 1):
        parts = [
            table(
                [0.0] * (lost * lost_counts + 1) + [1.0] * (items - lost * lost_counts - 1),
                task=name,
                **columns,
            )
            for name, items, lost in tasks
        ]
        sides.append(pa.concat_tables(parts))
    return summarize(fm.compare(sides[0], sides[1]).result)


def test_a_task_that_lost_is_named_where_all_items_hardly_did() -> None:
    summary = first_screen(("large", 20_000, 0), ("small", 100, 30))
    assert summary.badge == "SMALL LOSS"
    assert summary.tasks == "1 of 2 tasks lost something: small."
    assert fact(summary, "means").startswith("Mean over tasks: lost, at least ")
    assert first_screen(("large", 1000, 300), ("small", 100, 30)).tasks == ""


def fact(summary: Summary, label: str) -> str:
    (words,) = (each.words for each in summary.facts if each.label == label)
    return words


def test_the_interval_is_said_once() -> None:
    """In the sentence, or where it is about accuracy on a line of its own."""
    summary = first_screen(("only", 1000, 300))
    assert summary.sentence.startswith("Lost at least 2")
    assert summary.sentence.endswith(", by the drop in accuracy (95%; margin 2%).")
    assert summary.interval == ""
    held = [float(n % 2) for n in range(4000)]
    flipped = [1 - score if n < 400 else score for n, score in enumerate(held)]
    summary = summarize(fm.compare(table(held), table(flipped)).result)
    assert summary.interval == "Loss: between 0% and 5.7% of all items (95%; margin 2%)"
    assert "margin" not in summary.sentence


def test_a_gain_is_told_like_a_loss() -> None:
    held = [float(n % 2) for n in range(4000)]
    rose = [1.0 if n < 400 else score for n, score in enumerate(held)]
    summary = summarize(fm.compare(table(held), table(rose)).result)
    assert summary.gained.startswith("Gained at least ")
    assert "gained" not in [each.label for each in summary.facts]


def test_every_estimate_is_listed_with_its_formula() -> None:
    """Also those that the data do not allow, with the reason."""
    comparison = fm.compare(table([1.0] * 99 + [0.0]), table([0.0] * 9 + [1.0] * 91))
    lines = as_text(comparison.result, View(details=True), width=200).splitlines()
    for row in all_estimators():
        (line,) = (line for line in lines if line.startswith(f"{row.name} "))
        assert line.endswith(row.formula)
    (line,) = (line for line in lines if line.startswith("matched "))
    assert "- forgotten (open-ended items have no options to match)" in line


def test_one_task_is_all_there_is() -> None:
    assert first_screen(("only", 100, 30)).tasks == ""


def test_clusters_are_counted_in_what_it_rests_on() -> None:
    passages = [f"passage {number // 5}" for number in range(100)]
    summary = first_screen(("only", 100, 30), cluster=passages)
    assert summary.facts[0].words.startswith("100 items in 20 clusters")


def test_a_proven_gain_is_told_on_the_first_screen() -> None:
    """By whatever limit; and beside it, nobody says that gains cannot show."""
    before, after = [1.0] * 1960 + [0.0] * 40, [1.0] * 2000
    result = fm.compare(table(before), table(after)).result
    assert (result.total.gain.low or 0) > 0
    assert result.total.gain.carried_by == "drop"
    assert summarize(result).gained.startswith("Gained at least ")
    assert "ceiling" not in [notice.code for notice in result.pairing.warnings]
    same = fm.compare(table(before), table(before)).result
    assert "ceiling" in [notice.code for notice in same.pairing.warnings]
    assert summarize(same).gained == ""
