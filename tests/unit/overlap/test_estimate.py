from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from enumerable_models import (
    Exact,
    all_completions,
    all_prompts,
    drawn,
    drawn_mixture,
    enumerate_exactly,
    lettered_model,
)
from forgetmap.errors import UsageError
from forgetmap.overlap.estimate import OverlapSettings, estimate_overlap, estimate_table
from forgetmap.overlap.result import OverlapGroup
from forgetmap.overlap.samples import CompletionSample, table_of_arrays

pytestmark = pytest.mark.needs_torch


@cache
def known(step: float = 0.4, scale: float = 0.2) -> list[Exact]:
    before = lettered_model(1, scale=scale)
    after = lettered_model(2, near=1, step=step, scale=scale)
    return [enumerate_exactly(before, after, prompt) for prompt in all_prompts(2)]


def many(**more: float) -> OverlapGroup:
    table = drawn(known(**more), 2000, np.random.default_rng(0))
    return estimate_table(table).groups[0]


def test_enumeration_is_complete() -> None:
    assert len(all_completions()) == 1 + 3 + 9 + 27 + 81
    for each in known():
        assert each.before.sum() == pytest.approx(1)
        assert each.after.sum() == pytest.approx(1)
        # The chain rule: sums of next-token divergences have the divergence of sequences as mean.
        assert (each.before * each.forward).sum() == pytest.approx(each.forward_kl)
        assert (each.after * each.reverse).sum() == pytest.approx(each.reverse_kl)


def test_estimates_approach_what_is_enumerated() -> None:
    found = many()
    for name, exact in {
        "overlap": "overlap",
        "total_variation": "total_variation",
        "forward_kl": "forward_kl",
        "reverse_kl": "reverse_kl",
        "misassigned_before": "misassigned",
        "misassigned_after": "misassigned",
    }.items():
        truth = np.mean([getattr(each, exact) for each in known()])
        assert getattr(found, name).value == pytest.approx(truth, rel=0.02), name
    assert found.separation == pytest.approx(np.sqrt(-8 * np.log(found.overlap.value or 0)))
    assert (found.misassigned_bound or 0) >= (found.misassigned_before.value or 1)


def test_whole_distributions_scatter_far_less_than_ratios() -> None:
    random = np.random.default_rng(1)
    widths = []
    for whole in (True, False):
        found = estimate_table(drawn(known()[:1], 64, random, whole=whole)).groups[0].forward_kl
        widths.append((found.high or 0) - (found.low or 0))
    assert widths[0] < widths[1] / 2


def test_changing_sides_changes_directions() -> None:
    table = drawn(known(), 20, np.random.default_rng(2), whole=False)
    rows = np.arange(table.ratio.size)
    zero = np.minimum(0, -np.abs(table.ratio))
    before, after = zero + np.maximum(table.ratio, 0), zero - np.minimum(table.ratio, 0)
    names = [table.prompts[place] for place in table.prompt_index]
    here = estimate_table(table_of_arrays(names, table.wrote_before, before - 9, after - 9))
    there = estimate_table(table_of_arrays(names, ~table.wrote_before, after - 9, before - 9))
    assert rows.size == here.groups[0].samples_before * 2
    one, other = here.groups[0], there.groups[0]
    assert one.overlap.value == pytest.approx(other.overlap.value)
    assert one.forward_kl == other.reverse_kl
    assert one.misassigned_before == other.misassigned_after


def test_groups_are_measured_apart() -> None:
    table = drawn(known(), 30, np.random.default_rng(3))
    names = np.array([f"p{place:02}" for place in table.prompt_index])
    groups = np.where(table.prompt_index < 4, "old", "new")
    labelled = table_of_arrays(
        names, table.wrote_before, np.full(names.size, -50.0), -50.0 - table.ratio,
        kl=table.kl, group=groups,
    )  # fmt: skip
    found = estimate_table(labelled)
    assert [group.name for group in found.groups] == ["all", "new", "old"]
    assert [group.prompts for group in found.groups] == [12, 8, 4]
    alone = estimate_table(table.of_prompts(range(4, 12))).groups[0]
    assert found.groups[1].forward_kl == alone.forward_kl
    assert found.groups[2].scope == "these prompts"
    assert found.groups[1].scope == "prompts like these"


def test_the_floor_is_never_above_what_is_kept() -> None:
    """Random events of every prompt, with the exact divergence in place of a limit of it."""
    random = np.random.default_rng(4)
    table = drawn(known(), 16, random)
    found = estimate_table(table, settings=OverlapSettings(behaviours=(0.3, 0.9)))
    right = total = given = 0
    for each, exact in zip(found.prompts, known(), strict=True):
        assert each.kl_limit is not None
        total += 1
        right += each.kl_limit >= exact.forward_kl
        worst = np.argsort(exact.after / exact.before)
        mass = np.cumsum(exact.before[worst])
        for floor, base in ((each.kept["0.3"], 0.3), (each.kept["0.9"], 0.9)):
            size = int(np.searchsorted(mass, base)) + 1
            if floor is not None and each.kl_limit >= exact.forward_kl:
                given += 1
                # An event at least as likely before, made of what fell most.
                assert exact.after[worst[:size]].sum() >= floor - 1e-12
    assert right >= total - 3
    assert given > total


def test_old_mass_of_a_mixture() -> None:
    table = drawn_mixture(known(0.5, 0.6), 0.3, 100, np.random.default_rng(5))
    found = estimate_table(table).groups[0].old_mass
    assert found.low is not None
    assert found.high is not None
    assert found.low <= 0.3 <= found.high
    assert found.high - found.low < 0.15


def test_one_model_alone_leaves_out_what_needs_the_other() -> None:
    table = drawn(known(), 8, np.random.default_rng(6))
    rows = table.wrote_before
    only = table_of_arrays(
        table.prompt_index[rows], rows[rows], np.full(rows.sum(), -50.0), -50.0 - table.ratio[rows]
    )
    result = estimate_table(only)
    total = result.groups[0]
    assert total.forward_kl.value is not None
    assert total.overlap.value is None
    assert total.reverse_kl.value is None
    assert total.effective_after is None
    assert "after" in (total.reverse_kl.reason or "")
    assert "one side" in {notice.kind for notice in result.notices}


def test_what_the_other_cannot_write_is_infinitely_far() -> None:
    before = [-1.0] * 8
    after = [-1.0] * 7 + [-np.inf]
    sides = [True] * 4 + [False] * 3 + [True]
    found = estimate_table(table_of_arrays(["p"] * 8, sides, before, after)).groups[0]
    assert found.forward_kl.value is None
    assert "Infinite" in (found.forward_kl.reason or "")
    assert found.kept == {"0.5": None, "0.9": None}
    assert found.overlap.value is not None
    assert found.reverse_kl.value == 0


def test_identical_models_do_not_move() -> None:
    same = [CompletionSample(f"p{n // 8}", side, n % 8, [-1.0, -2.0], [-1.0, -2.0], [0.0, 0.0])
            for n in range(48) for side in ("before", "after")]  # fmt: skip
    result = estimate_overlap(same)
    total = result.groups[0]
    assert (total.overlap.value, total.overlap.low, total.overlap.high) == (1, 1, 1)
    assert total.forward_kl.high == 0
    assert total.kept["0.9"] == pytest.approx(0.9, abs=1e-6)
    assert result.prompts[0].kept["0.9"] == pytest.approx(0.9, abs=1e-6)
    assert total.effective_before == pytest.approx(48)
    assert [each.tokens for each in result.lengths] == [1]
    assert result.notices == []


def test_a_single_sample_has_no_interval() -> None:
    rows = [CompletionSample("p", side, 0, [-1.0], [-2.0], [0.5]) for side in ("before", "after")]
    total = estimate_overlap(rows).groups[0]
    assert total.forward_kl.value == 0.5
    assert total.forward_kl.low is None
    assert total.kl_limit is None
    assert total.kept == {"0.5": None, "0.9": None}


def test_samples_that_are_nearly_all_the_same_certify_nothing() -> None:
    rows = [
        CompletionSample(f"p{n // 8}", side, n % 8, [-0.1], [-0.2 if n % 8 else -3.0])
        for n in range(48)
        for side in ("before", "after")
    ]
    each = estimate_overlap(rows).prompts[0]
    assert each.forward_kl.value == pytest.approx((7 * 0.1 + 2.9) / 8)
    assert each.forward_kl.low is None
    assert "nearly all samples are identical" in (each.forward_kl.reason or "")
    assert each.kl_limit is None
    assert each.kept == {"0.5": None, "0.9": None}


@pytest.mark.parametrize("wrong", [{"level": 1.0}, {"new_share": 0.0}, {"behaviours": (1.2,)}])
def test_shares_outside_their_range_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(UsageError, match="is"):
        OverlapSettings(**wrong)  # type: ignore[arg-type]


def test_the_same_numbers_in_any_order() -> None:
    rows = [
        CompletionSample(f"p{n % 6}", side, n // 6, [-1.0 - n % 5], [-1.5 - n % 3], [0.1 * (n % 7)])
        for n in range(36)
        for side in ("before", "after")
    ]
    mixed = [rows[place] for place in np.random.default_rng(0).permutation(len(rows))]
    assert estimate_overlap(rows) == estimate_overlap(mixed)
