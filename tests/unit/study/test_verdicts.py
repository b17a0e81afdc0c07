"""Verdicts on pairs of a study: those of `compare`, corrected for the number of pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest

import forgetmap as fm
from forgetmap.comparison import GroupResult
from forgetmap.records import Contradiction
from forgetmap.sources import open_run
from forgetmap.study import compare_study, parse_study, tell_study
from forgetmap.study.result import PairResults, StudyResult
from forgetmap.text import blocks_to_text

Frames = tuple[pl.DataFrame, pl.DataFrame]
NAMES = ["one"] * 60 + ["two"] * 240


def study(*after: str, more: str = "") -> Any:
    models = "".join(
        f'[[model]]\nid = "{name}"\nlogs = ["x"]\nparent = "b"\nstage = "s"\n' for name in after
    )
    return parse_study(f'name = "s"\n{more}\n[[model]]\nid = "b"\nlogs = ["x"]\n{models}', "x")


def compared(before: Any, *after: Any, more: str = "") -> StudyResult:
    names = [f"a{number}" for number in range(len(after))]
    runs = {name: [run] for name, run in zip(["b", *names], [before, *after], strict=True)}
    return compare_study(study(*names, more=more), runs)


def frames(right: Sequence[np.ndarray], tasks: Sequence[str], **columns: Sequence[Any]) -> Frames:
    """Return both models; columns hold one value per item."""
    both = []
    for given in right:
        repeats, items = np.atleast_2d(given).shape
        table: dict[str, Any] = {
            "task": list(tasks) * repeats,
            "item": [f"i{number:03}" for number in range(items)] * repeats,
            "repeat": np.repeat(np.arange(repeats), items),
            "score": np.atleast_2d(given).astype(float).ravel(),
        }
        both.append(pl.DataFrame(table | {name: [*v] * repeats for name, v in columns.items()}))
    return both[0], both[1]


def flipped(seed: int, items: int = 300, *, repeats: int = 1, lost: float = 0.15) -> Any:
    random = np.random.default_rng(seed)
    before = random.random((repeats, items)) < 0.8
    return before, before & (random.random((repeats, items)) >= lost)


def in_passages(items: int, size: int) -> Any:
    """Return two models of which the second one lost few passages as a whole."""
    before, after = np.ones(items, bool), np.ones(items, bool)
    before[::9] = after[::9] = False
    after[: 2 * size] = False
    return before, after


def of_tasks() -> Any:
    """Return two models of which the second one lost in some tasks and gained in the others."""
    random = np.random.default_rng(5)
    before = random.random(600) < 0.5
    falls = np.repeat(np.arange(12) % 2 == 0, 50)
    return before, np.where(falls, before & (random.random(600) < 0.3), before | ~falls)


CASES: dict[str, Frames] = {
    "plain": frames(flipped(1), ["t"] * 300),
    "clustered": frames(
        in_passages(300, 20), ["t"] * 300, cluster=[f"p{n // 20}" for n in range(300)]
    ),
    "equal content in two tasks": frames(
        flipped(2, lost=0.05),
        ["one"] * 150 + ["two"] * 150,
        question=[f"question {n % 150}" for n in range(300)],
        gold=[f"gold {n % 150}" for n in range(300)],
    ),
    "repeats": frames(flipped(3, repeats=3), ["t"] * 300),
    "copied repeats": frames([np.tile(one, (3, 1)) for one in flipped(4)], ["t"] * 300),
    "options": frames(
        flipped(5), ["t"] * 300, k=[4] * 300, gold=["abcd"[n % 4] for n in range(300)]
    ),
    "tasks by id": frames(of_tasks(), [f"t{n // 50}" for n in range(600)]),
    "tasks by content": frames(
        of_tasks(), [f"t{n // 50}" for n in range(600)],
        question=[f"question {n}" for n in range(600)], gold=["g"] * 600,
    ),
    "tasks with clusters": frames(
        of_tasks(), [f"t{n // 50}" for n in range(600)], cluster=[f"p{n // 5}" for n in range(600)]
    ),
    "nothing right": frames([np.zeros(60), np.ones(60)], ["t"] * 60),
    "selected": frames([np.ones(300), np.arange(300) > 60], ["t"] * 300),
}  # fmt: skip


def assert_same(found: PairResults, group: GroupResult) -> None:
    assert found.verdict == group.verdict
    assert found.undecided == group.undecided
    assert found.loss.carried_by == group.loss.carried_by
    if group.loss.low is None:
        assert found.loss.low is None
        return
    assert group.loss.high is not None
    assert (found.loss.low, found.loss.high) == pytest.approx((group.loss.low, group.loss.high))


@pytest.mark.parametrize("case", CASES)
def test_a_single_pair_has_the_verdict_of_compare(case: str) -> None:
    before, after = CASES[case]
    (found,) = compared(before, after).pairs
    assert_same(found, fm.compare(before, after).result.total)
    assert found.loss.q is None


def test_the_cases_differ() -> None:
    found = {name: fm.compare(*case).result.total for name, case in CASES.items()}
    assert found["clustered"].verdict == "cannot_tell"
    assert found["tasks with clusters"].loss.carried_by == "tasks"
    assert found["repeats"].loss.carried_by in {"drop", "repeats"}
    assert {one.undecided for one in found.values()} >= {"all_right", "nothing_right"}


@pytest.mark.parametrize("repeats", [1, 3])
def test_tasks_of_different_sizes_are_judged_as_the_mean_over_tasks(repeats: int) -> None:
    before, after = frames(flipped(1, repeats=repeats), NAMES)
    (found,) = compared(before, after).pairs
    macro = fm.compare(before, after).result.total_macro
    assert macro.verdict == "lost"
    assert_same(found, macro)


def test_several_models_have_the_verdicts_of_compare() -> None:
    before, first = frames(flipped(6), ["t"] * 300)
    more = [frames([flipped(6)[0], flipped(6, lost=lost)[1]], ["t"] * 300)[1] for lost in (0, 0.03)]
    found = compared(before, first, *more).pairs
    together = fm.compare(before, first, more[0], more[1])
    for pair, one in zip(found, together, strict=True):
        assert_same(pair, one.result.total)
        assert pair.loss.q == pytest.approx(one.result.total.loss.q)


def test_one_loss_among_many_pairs_must_be_larger() -> None:
    random = np.random.default_rng(2)
    before = np.arange(300) % 30 > 0
    lost = before.copy()
    lost[1:9] = lost[61:66] = False
    same = [before ^ (random.random(300) < 0.01) for _ in range(30)]
    tables = [frames([before, one], NAMES)[1] for one in (before, lost, *same)]
    (alone,) = compared(*tables[:2]).pairs
    found = compared(*tables).pairs
    assert alone.loss.low is not None
    assert found[0].loss.low is not None
    assert found[0].loss.low < alone.loss.low
    assert not any(one.verdict == "lost" for one in found[1:])


def test_tasks_in_several_logs_are_one_run() -> None:
    before, after = CASES["tasks by id"]
    parts = [
        [table.filter(pl.col("task").is_in(names)) for names in (["t0", "t1"], ["t2", "t3"])]
        for table in (before, after)
    ]
    found = compare_study(study("a"), {"b": parts[0], "a": parts[1]}).pairs[0]
    whole = [pl.concat(part) for part in parts]
    assert_same(found, fm.compare(whole[0], whole[1]).result.total)


def test_a_log_that_contradicts_itself_decides_nothing() -> None:
    before, after = CASES["plain"]
    words = "t: the log states 0.2, its results give 0.9."
    fact = Contradiction("total_contradicted", "t", "acc", stated=0.2, found=0.9, message=words)
    run = replace(open_run(after), contradictions=(fact,))
    result = compared(before, run)
    (found,) = result.pairs
    assert (found.verdict, found.undecided) == ("cannot_tell", "contradicted")
    assert "the log states 0.2" in found.reason
    text = blocks_to_text(tell_study(result), 200)
    assert "b -> a0: cannot tell: a0: t: the log states 0.2, its results give 0.9." in text
    explained = replace(run, contradictions=(replace(fact, is_explained=True),))
    assert compared(before, explained).pairs[0].verdict == "lost"


def test_a_selected_set_decides_nothing_unless_the_study_says_otherwise() -> None:
    before, after = CASES["selected"]
    (found,) = compared(before, after).pairs
    assert (found.verdict, found.loss.low) == ("cannot_tell", None)
    assert found.undecided == "all_right"
    (easy,) = compared(before, after, more="selected = false").pairs
    assert easy.verdict == "lost"
    plain = CASES["plain"]
    assert compared(*plain, more="selected = true").pairs[0].undecided == "selected"


def test_runs_that_cannot_be_compared_say_why() -> None:
    before, after = CASES["plain"]
    one = [table.with_columns(cluster=pl.lit("all")) for table in (before, after)]
    result = compared(*one)
    (found,) = result.pairs
    assert (found.verdict, found.undecided) == ("cannot_tell", None)
    assert "puts all items into one cluster" in found.reason
    assert "undecided" in {notice.code for notice in result.findings.notices}


def test_ignored_tasks_are_not_judged() -> None:
    before, after = CASES["plain"]
    ignored = pl.lit("bbh:dyck_languages").alias("task")
    more = [pl.concat([table, table.with_columns(ignored)]) for table in (before, after)]
    found = compared(*more, more='task_table = "as-run"').pairs[0]
    assert_same(found, fm.compare(before, after, task_table="as-run").result.total)


def test_the_verdict_is_told_in_the_words_of_compare() -> None:
    knows = np.arange(3000) % 2 > 0
    before, after = frames([knows, knows ^ (np.arange(3000) // 2 % 20 < 1)], ["t"] * 3000)
    result = compared(before, after)
    text = blocks_to_text(tell_study(result), 200)
    assert result.pairs[0].verdict == "no_net_loss"
    assert "accuracy held" in text
    assert "net loss" not in text
