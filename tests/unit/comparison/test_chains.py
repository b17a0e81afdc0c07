"""Ordered checkpoints against a brute-force count over plain Python lists."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import permutations, product

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import forgetmap as fm
from effort import examples
from forgetmap.errors import LineageError
from small_runs import run, table

OUTCOMES = ("incorrect", "refused", "truncated", None)


@dataclass(frozen=True)
class Answer:
    """What one checkpoint did on one item; a score of None is unscored."""

    score: float | None
    outcome: str | None


answers = st.one_of(
    st.just(Answer(1.0, "correct")),
    st.just(Answer(None, "unscored")),
    st.builds(Answer, st.just(0.0), st.sampled_from(OUTCOMES)),
)


@st.composite
def histories(draw: st.DrawFn) -> list[list[Answer | None]]:
    """Checkpoints by items; None where a checkpoint was not asked. Item 0 is always there."""
    stages = draw(st.integers(3, 5))
    columns = st.lists(st.one_of(answers, st.none()), min_size=stages, max_size=stages)
    items = draw(st.lists(columns, max_size=12))
    return [[Answer(1.0, "correct")] * stages, *items]


def checkpoint(column: list[Answer | None]) -> pa.Table:
    asked = [(str(item), answer) for item, answer in enumerate(column) if answer is not None]
    return table(
        [answer.score for _, answer in asked],
        item=[item for item, _ in asked],
        outcome=[answer.outcome for _, answer in asked],
    )


def follow(items: list[list[Answer | None]]) -> list[tuple[str, list[Answer]]]:
    """Path and answers of every item that is scored everywhere."""
    followed = []
    for item in items:
        there = [answer for answer in item if answer is not None and answer.score is not None]
        if len(there) == len(item):
            followed.append(("".join("1" if answer.score else "0" for answer in there), there))
    return followed


def kind(path: str) -> str:
    """By looking at the runs of equal digits."""
    runs = "".join(d for place, d in enumerate(path) if place == 0 or path[place - 1] != d)
    names = {"1": "kept", "0": "never", "10": "lost", "01": "gained", "101": "regained"}
    return names.get(runs, "unstable")


def losses(path: str) -> list[int]:
    return [n for n in range(1, len(path)) if path[n - 1] == "1" and path[n] == "0"]


def cells(paths: list[str], earlier: int, later: int) -> dict[str, int]:
    counted = Counter(f"n{path[earlier]}{path[later]}" for path in paths)
    return {name: counted[name] for name in ("n11", "n10", "n01", "n00")}


@given(histories())
@examples(30)
def test_a_chain_is_what_a_plain_count_says(items: list[list[Answer | None]]) -> None:
    columns = [checkpoint(list(column)) for column in zip(*items, strict=True)]
    chain = fm.compare(columns[0], columns[1], *columns[2:], chain=True, min_paired=0.01)
    followed = follow(items)
    paths = [path for path, _ in followed]
    assert {(each.path, each.n, each.kind) for each in chain.paths} == {
        (path, n, kind(path)) for path, n in Counter(paths).items()
    }
    for number, stage in enumerate(chain.stages, start=1):
        for against, earlier in ((stage.against_previous, number - 1), (stage.against_first, 0)):
            expected = cells(paths, earlier, number)
            assert {name: getattr(against, name) for name in expected} == expected
            assert against.items == against.n == len(paths)
            lost = Counter(
                answers[number].outcome or "unknown"
                for path, answers in followed
                if path[earlier] == "1" and path[number] == "0"
            )
            lost["wrong"] = lost.pop("incorrect", 0)
            assert {why: n for why, n in against.reasons.items() if n} == +lost
        assert stage.first_lost == sum(losses(path)[:1] == [number] for path in paths)
        assert stage.regained == sum(
            path[number - 1 : number + 1] == "01" and any(n < number for n in losses(path))
            for path in paths
        )


@pytest.mark.parametrize("stages", [3, 4, 5])
def test_every_possible_history(stages: int) -> None:
    """One item for each path there can be."""
    paths = ["".join(digits) for digits in product("01", repeat=stages)]
    columns = [table([float(path[stage]) for path in paths]) for stage in range(stages)]
    chain = fm.compare(columns[0], columns[1], *columns[2:], chain=True)
    rows = chain.histories().to_pylist()
    assert {int(r["item"]): (r["path"], r["first_loss"], r["kind"]) for r in rows} == {
        item: (path, next(iter(losses(path)), None), kind(path)) for item, path in enumerate(paths)
    }
    assert {path.path: path.kind for path in chain.paths} == {path: kind(path) for path in paths}


def test_an_item_missing_at_one_stage_is_left_out_of_the_chain_but_not_of_first_against_last() -> (
    None
):
    full, short = table([1.0] * 10), table([1.0] * 9)
    chain = fm.compare(full, short, full, chain=True)
    assert [stage.against_first.n for stage in chain.stages] == [9, 9]
    assert chain.result.total.n == 10


def test_repeats_follow_their_own_path() -> None:
    def answered(*scores: float) -> pa.Table:
        return table(list(scores), item=["a", "a"], repeat=[0, 1])

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
    with pytest.raises(LineageError, match="at least 3 checkpoints, there are 2") as caught:
        fm.compare(table([1]), table([1]), chain=True)
    assert "leave out --chain" in caught.value.hint


def test_every_stage_tells_how_it_paired() -> None:
    base, sft = run(table([1.0, 1.0])), run(table([1.0, None]), decoding={"temperature": 1.0})
    chain = fm.compare(base, sft, run(table([1.0, 1.0])), chain=True)
    warned = [[notice.code for notice in stage.pairing.warnings] for stage in chain.stages]
    assert warned == [["sampled", "unscored", "tiny"], ["tiny"]]
