"""Too few pairs: the error states the share, the differences, and hints that work."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pyarrow as pa
import pytest

import forgetmap as fm
from forgetmap.comparison import phrases
from forgetmap.errors import TaskVersionError, TooFewPairedError, UsageError
from small_runs import codes, message, run, table


def ids(*names: str) -> pa.Table:
    return table([1.0] * len(names), item=list(names))


def questions(*texts: str) -> pa.Table:
    return table([1.0] * len(texts), question=list(texts))


def refusal(before: object, after: object) -> TooFewPairedError:
    with pytest.raises(TooFewPairedError) as caught:
        fm.compare(before, after)
    return caught.value


def test_no_overlap_at_all() -> None:
    error = refusal(ids("a", "b", "c"), ids("x", "y"))
    assert error.message == ("before and after have no item in common; 3 only before, 2 only after")
    assert "--columns names the same id column" in error.hint


def test_other_task_names_are_named() -> None:
    error = refusal(table([1, 1], task="mmlu"), table([1], task="mmlu_pro"))
    assert "tasks only before: mmlu; tasks only after: mmlu_pro;" in error.message
    assert error.hint.startswith("use the same task names on both sides; --task NAME")


def test_the_hint_on_task_names_works() -> None:
    before, after = table([1, 1], task="mmlu"), table([1, 0], task="mmlu_v2")
    refusal(before, after)
    assert fm.compare(before, after, task="mmlu").result.total.n10 == 1


def test_many_task_names_are_cut_short() -> None:
    before = pa.concat_tables([table([1], task=f"t{n}") for n in range(1_005)])
    error = refusal(before, table([1], task="other"))
    assert "tasks only before: t0, t1, t10 and 1,002 more;" in error.message


def test_a_task_on_both_sides_is_not_called_one_sided() -> None:
    assert "tasks only" not in refusal(ids("a"), ids("b")).message


def test_too_few_pairs() -> None:
    error = refusal(ids("a", "b", "c", "d"), ids("c", "d", "e", "f", "g"))
    assert error.message == (
        "only 40.0% of the scored items of after are also scored in before, less than the required "
        "80%; 2 only before, 3 only after"
    )


@pytest.mark.parametrize(("paired", "of"), [(1, 3), (79, 100), (1, 300), (2, 2999), (795, 1000)])
def test_the_least_share_in_the_hint_is_accepted_and_close(paired: int, of: int) -> None:
    before = ids(*(f"b{n}" for n in range(of - paired)), *(f"both{n}" for n in range(paired)))
    after = ids(*(f"a{n}" for n in range(of - paired)), *(f"both{n}" for n in range(paired)))
    (proposed,) = re.findall(r"--min-paired ([0-9.]+)\.$", refusal(before, after).hint)
    assert fm.compare(before, after, min_paired=float(proposed)).result.total.n == paired
    assert float(proposed) == pytest.approx(paired / of, rel=0.1)


def test_exactly_the_required_share_is_enough() -> None:
    before, after = ids("a", "b", "c", "d", "e"), ids("a", "b", "c", "d", "x")
    assert fm.compare(before, after, min_paired=0.8).result.pairing.share == 0.8
    with pytest.raises(TooFewPairedError):
        fm.compare(before, after, min_paired=0.81)


def test_the_smaller_share_of_both_sides_decides() -> None:
    for before, after in ((ids("a"), ids(*"abcdefgh")), (ids(*"abcdefgh"), ids("a"))):
        refusal(before, after)
        pairing = fm.compare(before, after, min_paired=0.125).result.pairing
        assert pairing.share == 1.0
        assert sorted([pairing.scored_before, pairing.scored_after]) == [0.125, 1.0]  # type: ignore[type-var]


@pytest.mark.parametrize("missing", ["right", "wrong"])
def test_results_missing_after_are_seen_from_before(missing: str) -> None:
    """258 of 600 are missing after, all of them right, or all of them wrong before (V21)."""
    right = [n < (258 if missing == "right" else 342) for n in range(600)]
    before = table([float(each) for each in right])
    after = before.slice(258) if missing == "right" else before.slice(0, 342)
    error = refusal(before, after)
    assert error.message.startswith(
        "only 57.0% of the scored items of before are also scored in after"
    )
    compared = fm.compare(before, after, min_paired=0.5).result
    assert (compared.total.coverage.before, compared.total.coverage.after) == (0.57, 1.0)


def test_missing_items_that_were_easier_or_harder_are_named_with_the_worst_case() -> None:
    before = table([float(n < 100 or n >= 250) for n in range(300)])
    after = before.slice(0, 250)
    compared = fm.compare(before, after)
    assert message(compared, "missing_differ") == (
        "the 50 results missing after were easier: 100.0% of them were right before, 40.0% of "
        "those compared."
    )
    total = compared.result.total
    assert total.forgetting.high is not None
    assert total.worst_case == pytest.approx((250 * total.forgetting.high + 50) / 300)


def test_missing_items_like_the_others_are_not_named() -> None:
    before = table([float(n % 2) for n in range(300)])
    compared = fm.compare(before, before.slice(0, 270))
    assert "missing_differ" not in codes(compared)
    assert fm.compare(before, before.slice(0)).result.total.worst_case is None


def test_more_repeats_on_one_side_are_not_missing_on_the_other() -> None:
    once = table([1.0] * 40)
    again = pa.concat_tables([
        once.append_column("repeat", pa.array([repeat] * 40)) for repeat in range(3)
    ])  # fmt: skip
    for before, after in ((once, again), (again, once)):
        result = fm.compare(before, after).result
        assert (result.pairing.scored_before, result.pairing.scored_after) == (1.0, 1.0)
        assert (result.total.coverage.before, result.total.coverage.after) == (1.0, 1.0)
        assert result.total.worst_case is None


def test_no_item_scored_on_both_sides_is_no_verdict() -> None:
    total = fm.compare(table([None, 1.0]), table([1.0, None])).result.total
    assert total.verdict == "cannot_tell"
    assert total.undecided == "nothing_paired"
    assert (total.coverage.before, total.coverage.after) == (0.0, 0.0)


def test_two_runs_of_one_name_are_told_apart_by_their_place() -> None:
    before, after = run(ids("a", "b", "c"), "model"), run(ids("a"), "model")
    assert "only 33.3% of the scored items of model" in refusal(before, after).message


def test_conflicts_lead_to_pairing_by_id() -> None:
    before, after = questions("1 + 1?", "2 + 2?"), questions("1 + 1 =", "2 + 2 =")
    error = refusal(before, after)
    assert "2 with the same id but different content; 0 only before, 0 only after" in error.message
    assert "--pair-by id" in error.hint
    assert fm.compare(before, after, pair_by="id").result.total.n11 == 2


def test_two_versions_of_a_task_are_refused() -> None:
    old, new = (run(table([1]), name, tasks={"t": {"version": version}})
                for name, version in (("base", "1.0"), ("tuned", "2.0")))  # fmt: skip
    with pytest.raises(TaskVersionError) as caught:
        fm.compare(old, new)
    assert caught.value.message == "task 't' is version 1.0 in base and version 2.0 in tuned"
    assert "same version" in caught.value.hint


@pytest.mark.parametrize("versions", [("1.0", "1.0"), ("1.0", None), (None, None)])
def test_equal_or_unknown_versions_are_compared(versions: tuple[str | None, str | None]) -> None:
    before, after = (run(table([1]), tasks={"t": {"version": version}}) for version in versions)
    assert fm.compare(before, after).result.total.n11 == 1


def test_another_version_of_a_task_that_only_one_side_has_does_not_matter() -> None:
    before = run(table([1]), tasks={"t": {"version": "1"}, "other": {"version": "1"}})
    after = run(table([1]), tasks={"t": {"version": "1"}})
    assert fm.compare(before, after).result.total.n11 == 1


def test_the_worst_case_is_a_warning_where_asked_for_or_where_what_is_missing_differs() -> None:
    """Of 1,000 items right and 1,000 wrong before, some are missing after."""
    rights = [1.0, 0.0] * 1000
    before = table(rights, item=[f"{n}" for n in range(2000)])
    alike = [n for n in range(2000) if n >= 100]
    only_right = [n for n in range(2000) if n >= 200 or n % 2]
    for kept, strict, shown in (
        (alike, False, False),
        (alike, True, True),
        (only_right, False, True),
    ):
        after = table([rights[n] for n in kept], item=[f"{n}" for n in kept])
        compared = fm.compare(before, after, strict=strict)
        assert ("worst_case" in codes(compared)) == shown
        total = compared.result.total
        missing = sum(rights) - sum(rights[n] for n in kept)
        assert total.forgetting.high is not None
        assert total.worst_case == pytest.approx(
            (total.n * total.forgetting.high + missing) / 2000, abs=1e-3
        )
    assert "at most 5.2% of what was scored before is lost" in message(compared, "worst_case")


def test_full_coverage_has_no_worst_case() -> None:
    compared = fm.compare(
        ids("a", "b", "c"), table([1.0, 0.0, 1.0], item=["a", "b", "c"]), strict=True
    )
    assert "worst_case" not in codes(compared)
    assert compared.result.total.worst_case is None


def answered(times: Sequence[int], right: Sequence[float], name: str = "t") -> pa.Table:
    """Return answers to items, each as often as said."""
    rows = [(n, repeat) for n, count in enumerate(times) for repeat in range(count)]
    return pa.table({
        "task": [name] * len(rows), "item": [str(n) for n, _ in rows],
        "repeat": [repeat for _, repeat in rows],
        "score": [float(repeat < right[n]) for n, repeat in rows],
    })  # fmt: skip


def test_items_are_counted_and_not_their_repeats() -> None:
    """Each item is on both sides, answered once to three times; nothing is missing."""
    size = 120
    before = answered([1 + n % 3 for n in range(size)], [n % 2 for n in range(size)])
    after = answered([1 + n // 3 % 3 for n in range(size)], [n % 2 for n in range(size)])
    result = fm.compare(before, after).result
    assert (result.total.items, result.total.coverage.before) == (size, 1.0)
    pairing = result.pairing
    assert (pairing.only_before, pairing.only_after, pairing.scored_before) == (0, 0, 1.0)
    assert not {notice.code for notice in pairing.warnings} & {"one_sided", "thin_task"}


def test_further_repeats_are_used_and_said_to_be() -> None:
    """Three answers before and two after: the third counts in the accuracy, and is not missing."""
    size = 90
    comparison = fm.compare(
        answered([3] * size, [n % 4 for n in range(size)]),
        answered([2] * size, [n % 3 for n in range(size)]),
    )
    total = comparison.result.total
    assert total.acc_before == pytest.approx(sum(n % 4 for n in range(size)) / (3 * size))
    said = phrases.counts_sentence(total)
    assert f"accuracy {total.acc_before:.1%} -> {total.acc_after:.1%}" in said
    assert "one_sided" not in codes(comparison)
    assert total.worst_case is None


def test_copies_left_out_on_one_side_are_not_missing_on_the_other() -> None:
    """Two of the three repeats before are equal; none after is."""
    size = 60
    rows = [(n, repeat) for n in range(size) for repeat in range(3)]

    def side(texts: Sequence[int]) -> pa.Table:
        return pa.table({
            "task": ["t"] * len(rows), "item": [str(n) for n, _ in rows],
            "repeat": [repeat for _, repeat in rows],
            "score": [float((n + texts[repeat]) % 3 > 0) for n, repeat in rows],
            "response": [f"a long answer {n} {texts[repeat]}" for n, repeat in rows],
        })  # fmt: skip

    comparison = fm.compare(side([0, 0, 1]), side([0, 1, 2]))
    found = codes(comparison)
    assert "copies" in found
    assert not {*found} & {"one_sided", "thin_task"}
    total = comparison.result.total
    assert f"{total.acc_before:.1%} -> {total.acc_after:.1%}" in phrases.counts_sentence(total)


def test_an_item_that_one_side_never_answered_is_missing() -> None:
    """Further answers are those to items that the other side answered too."""
    before = answered([3] * 40, [2] * 40)
    after = answered([2] * 30, [1] * 30)
    result = fm.compare(before, after, min_paired=0.5).result
    assert result.pairing.only_before == 30
    assert result.total.coverage.before == pytest.approx(30 / 40)


def test_a_share_out_of_range_is_refused_in_words() -> None:
    with pytest.raises(UsageError) as caught:
        fm.compare(ids("a"), ids("a"), min_paired=0)
    assert str(caught.value).startswith("--min-paired is 0, which is out of range")
    assert "above 0 and up to 1" in caught.value.hint
