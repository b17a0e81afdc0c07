"""Ordered checkpoints against a brute-force count over plain Python lists."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import product

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import forgetmap as fm
from effort import examples
from small_runs import table

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
    names = {"1": "kept", "0": "never", "10": "forgotten", "01": "gained", "101": "regained"}
    return names.get(runs, "unstable")


def losses(path: str) -> list[int]:
    return [n for n in range(1, len(path)) if path[n - 1] == "1" and path[n] == "0"]


def cells(paths: list[str], earlier: int, later: int) -> dict[str, int]:
    counted = Counter(f"n{path[earlier]}{path[later]}" for path in paths)
    return {name: counted[name] for name in ("n11", "n10", "n01", "n00")}


@given(histories())
@examples(15, long=300)
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
        assert stage.first_forgotten == sum(losses(path)[:1] == [number] for path in paths)
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
