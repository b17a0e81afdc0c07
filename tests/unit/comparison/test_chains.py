"""Ordered checkpoints: which runs form a chain, and which items are in all of them."""

from __future__ import annotations

from itertools import permutations

import pyarrow as pa
import pytest

import forgetmap as fm
from forgetmap.errors import LineageError
from small_runs import run, table


def test_an_item_missing_at_one_stage_is_left_out_of_the_chain_but_not_of_first_against_last() -> (
    None
):
    full, short = table([1.0] * 10), table([1.0] * 9)
    chain = fm.compare(full, short, full, chain=True)
    assert [stage.against_first.n for stage in chain.stages] == [9, 9]
    assert chain.result.total.n == 9
    assert chain.comparisons[-1].result.total.n == 10


def test_repeats_follow_their_own_path() -> None:
    def answered(*scores: float) -> pa.Table:
        return table(list(scores), item=["a", "a"], repeat=[0, 1], response=["one", "two"])

    chain = fm.compare(answered(1, 1), answered(0, 1), answered(1, 0), chain=True)
    assert {path.path for path in chain.paths} == {"101", "110"}
    assert (chain.stages[0].against_first.items, chain.stages[0].against_first.n) == (1, 2)


def test_items_that_share_an_id_but_not_their_content_are_two() -> None:
    twice = table([1.0, 0.0], item=["a", "a"], question=["one?", "two?"])
    chain = fm.compare(twice, twice, twice, chain=True)
    assert chain.stages[-1].against_first.items == 2
    assert {path.path: path.n for path in chain.paths} == {"111": 1, "000": 1}


def test_a_chain_over_shuffled_ids_is_followed_by_content() -> None:
    base = table([1.0, 0.0], item=["a", "b"], question=["one?", "two?"])
    moved = table([1.0, 0.0], item=["x", "y"], question=["two?", "one?"])
    chain = fm.compare(base, moved, base, chain=True)
    assert {row["item"]: row["path"] for row in chain.histories().to_pylist()} == {
        "a": "101", "b": "010",
    }  # fmt: skip


def lineage(**parents: str | None) -> dict[str, fm.Run]:
    return {
        name: run(table([1.0]), name, run_id=name, parent=parent)
        for name, parent in parents.items()
    }


def stage_names(*runs: fm.Run) -> list[str]:
    chain = fm.compare(runs[0], runs[1], *runs[2:], chain=True)
    return [chain.result.before.name, *(stage.name for stage in chain.stages)]


@pytest.mark.parametrize("order", list(permutations(("base", "sft", "dpo", "rl"), 4)))
def test_the_recorded_lineage_gives_the_order(order: tuple[str, ...]) -> None:
    runs = lineage(base=None, sft="base", dpo="sft", rl="dpo")
    assert stage_names(*(runs[name] for name in order)) == ["base", "sft", "dpo", "rl"]


def test_a_lineage_whose_root_has_a_parent_elsewhere_is_a_line_too() -> None:
    runs = lineage(rl="sft", sft="cpt", cpt="base")
    assert stage_names(*runs.values()) == ["cpt", "sft", "rl"]


@pytest.mark.parametrize("order", list(permutations(("a", "b", "c"), 3)))
def test_without_lineage_the_given_order_counts(order: tuple[str, ...]) -> None:
    runs = lineage(a=None, b=None, c=None)
    assert stage_names(*(runs[name] for name in order)) == list(order)


def test_without_run_ids_the_given_order_counts() -> None:
    runs = [run(table([1.0]), name) for name in ("z", "y", "x")]
    assert stage_names(*runs) == ["z", "y", "x"]


def test_a_checkpoint_left_out_does_not_break_the_chain() -> None:
    runs = lineage(rl="dpo", base=None, sft="base")
    assert stage_names(runs["base"], runs["sft"], runs["rl"]) == ["base", "sft", "rl"]
    assert stage_names(runs["sft"], runs["base"], runs["rl"]) == ["base", "sft", "rl"]


FORMS: dict[str, dict[str, str | None]] = {
    "tree": {"base": None, "sft": "base", "dpo": "base"},
    "ring": {"a": "c", "b": "a", "c": "b"},
    "own parent": {"a": None, "b": "a", "c": "c"},
    "line and ring": {"a": None, "b": "a", "c": "b", "d": "e", "e": "d"},
}


@pytest.mark.parametrize("form", FORMS)
def test_what_is_no_line_is_refused(form: str) -> None:
    with pytest.raises(LineageError) as caught:
        stage_names(*lineage(**FORMS[form]).values())
    last, parent = list(FORMS[form].items())[-1]
    assert f"{last} from {parent}" in caught.value.message
    assert "one branch" in caught.value.hint


def test_two_runs_are_no_chain() -> None:
    with pytest.raises(LineageError, match="at least 3 checkpoints, not 2") as caught:
        fm.compare(table([1]), table([1]), chain=True)
    assert "remove --chain" in caught.value.hint


def test_every_stage_tells_how_it_paired() -> None:
    base, sft = run(table([1.0, 1.0])), run(table([1.0, None]), decoding={"temperature": 1.0})
    chain = fm.compare(base, sft, run(table([1.0, 1.0])), chain=True, min_paired=0.5)
    warned = [[notice.code for notice in stage.pairing.warnings] for stage in chain.stages]
    assert warned == [["sampled", "unscored", "tiny"], ["tiny"]]
