"""The rank of a pair among the published ones."""

from __future__ import annotations

import pytest

from forgetmap.study import place_pair, place_values, tell_placement
from forgetmap.text import blocks_to_text
from run_folders import results, run_of


def test_a_pair_is_counted_among_31() -> None:
    placement = place_values({"forgetting": {"total": 0.095}, "backward_transfer": {"total": 0.0}})
    forgetting, transfer = placement.values
    assert (forgetting.more_than, forgetting.of) == (22, 31)
    assert (transfer.more_than, transfer.nearest) == (0, "INTELLECT-2 (32B)")
    assert (
        "more forgetting than 22 of 31 and more backward transfer than 0 of 31"
        in placement.sentence
    )


def test_runs_are_placed_by_category() -> None:
    before = run_of(results([1.0] * 8 + [0.0] * 2, category="Math", k=4))
    after = run_of(results([1.0] * 5 + [0.0] * 5, category="Math", k=4))
    placement = place_pair(before, after)
    by_name = {(one.category, one.effect): one for one in placement.values}
    assert by_name["Math", "forgetting"].value == pytest.approx(0.3 - 0.2 * 0.5 / 3)
    assert by_name["Math", "forgetting"].of == 31
    assert not placement.notices
    assert "Math" in blocks_to_text(tell_placement(placement), 100)


def test_other_tasks_are_said() -> None:
    before, after = run_of(results([1.0] * 10)), run_of(results([0.0] * 10))
    (notice,) = place_pair(before, after).notices
    assert notice.code == "other_tasks"
