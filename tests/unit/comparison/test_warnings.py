"""Every warning: present with its reason if there is a cause, else absent."""

from __future__ import annotations

from typing import Any

import polars as pl
import pyarrow as pa
import pytest

import forgetmap as fm
from forgetmap.comparison import summarize
from small_runs import codes, message, run, table

ONE = table([1.0, 0.0])

DIFFERENCES: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "template": (
        {"template_hash": "abc"}, {"template_hash": "def"},
        "chat templates differ: the format alone can change scores (abc before, def after).",
    ),
    "system_prompt": (
        {"system_prompt_hash": "1"}, {"system_prompt_hash": "2"},
        "system prompts differ: this alone can change scores (1 before, 2 after).",
    ),
    "protocol": (
        {"protocol": "chat"}, {"protocol": "completion"},
        "protocols differ: this alone can change scores (chat before, completion after).",
    ),
    "harness": (
        {"harness": {"name": "a", "version": "1.0"}}, {"harness": {"name": "a", "version": "1.1"}},
        "harness or its version differs: extraction may differ (a 1.0 before, a 1.1 after).",
    ),
    "decoding": (
        {"decoding": {"top_k": 5}}, {"decoding": {"top_k": 50}},
        "top_k is 5 before and 50 after: part of the change may be decoding, not the model.",
    ),
    "n_shot": (
        {"tasks": {"t": {"n_shot": 5}}}, {"tasks": {"t": {"n_shot": 0}}},
        "few-shot examples differ in t (5 before, 0 after): this alone can change scores.",
    ),
}  # fmt: skip


@pytest.mark.parametrize("code", DIFFERENCES)
def test_a_difference_in_the_way_of_asking_is_warned_about(code: str) -> None:
    before, after, said = DIFFERENCES[code]
    comparison = fm.compare(run(ONE, **before), run(ONE, **after))
    assert codes(comparison) == [code]
    assert message(comparison, code) == said


@pytest.mark.parametrize("code", DIFFERENCES)
def test_what_is_the_same_or_unknown_is_not_warned_about(code: str) -> None:
    info, _, _ = DIFFERENCES[code]
    assert codes(fm.compare(run(ONE, **info), run(ONE, **info))) == []
    assert codes(fm.compare(run(ONE, **info), run(ONE))) == []
    assert codes(fm.compare(run(ONE), run(ONE, **info))) == []


def test_an_unknown_version_of_the_same_harness_is_no_difference() -> None:
    before = run(ONE, harness={"name": "lm-eval"})
    after = run(ONE, harness={"name": "lm-eval", "version": "0.4.9"})
    assert codes(fm.compare(before, after)) == []


def test_long_conditions_that_differ_at_the_end_still_differ() -> None:
    before, after = run(ONE, protocol="x" * 60 + "a"), run(ONE, protocol="x" * 60 + "b")
    assert codes(fm.compare(before, after)) == ["protocol"]


def test_every_decoding_parameter_has_its_own_warning() -> None:
    before = run(ONE, decoding={"top_p": 1.0, "stop": ["a"], "seed": 1, "only": 1})
    after = run(ONE, decoding={"top_p": 0.9, "stop": ["b"], "seed": 1})
    warnings = fm.compare(before, after).result.pairing.warnings
    found = [each.message.split()[0] for each in warnings if each.code == "decoding"]
    assert found == ["stop", "top_p"]


def test_many_tasks_with_another_number_of_examples_are_cut_short() -> None:
    names = [f"t{n}" for n in range(5)]
    results = pa.concat_tables([table([1], task=name) for name in names])
    before, after = (run(results, tasks={n: {"n_shot": shots} for n in names}) for shots in (5, 0))
    said = message(fm.compare(before, after), "n_shot")
    assert "t0 (5 before, 0 after), t1" in said
    assert " and 2 more tasks: this alone" in said


def test_another_metric() -> None:
    comparison = fm.compare(table([1.0], metric=["acc"]), table([1.0], metric=["exact_match"]))
    assert message(comparison, "metric") == (
        "the metric differs in t (acc before, exact_match after): the scores are not comparable."
    )
    same = table([1.0], metric=["acc"])
    assert codes(fm.compare(same, same)) == []


def test_another_scorer_is_another_metric() -> None:
    strict = table([1.0], metric=["acc"], scorer=["strict"])
    flexible = table([1.0], metric=["acc"], scorer=["flexible"])
    comparison = fm.compare(strict, flexible)
    assert "(acc/strict before, acc/flexible after)" in message(comparison, "metric")


@pytest.mark.parametrize(("temperature", "found"), [(0.7, ["sampled"]), (0.0, []), (None, [])])
def test_sampled_answers(temperature: float | None, found: list[str]) -> None:
    side = run(ONE, decoding={"temperature": temperature})
    assert codes(fm.compare(side, side)) == found


def test_another_number_of_repeats() -> None:
    twice = table([1.0, 0.0], item=["a", "a"], repeat=[0, 1])
    comparison = fm.compare(table([1.0], item=["a"]), twice)
    assert message(comparison, "repeats") == "1 answer per item before and 2 after."
    assert codes(fm.compare(twice, twice)) == []


def test_one_sided_results() -> None:
    one, three = table([1.0], item=["a"]), table([1.0] * 3, item=["a", "b", "c"])
    comparison = fm.compare(one, three, min_paired=0.3)
    assert (
        message(comparison, "one_sided") == "0 results only before and 2 only after: not compared."
    )
    assert "one_sided" not in codes(fm.compare(ONE, ONE))


def test_unscored_pairs() -> None:
    comparison = fm.compare(table([1.0, 1.0]), table([None, 1.0]), min_paired=0.5)
    assert message(comparison, "unscored") == (
        "1 pair without a score on one or both sides: neither right nor wrong."
    )
    assert comparison.result.total.n == 1


def test_prompts_that_differ() -> None:
    def asked(*prompts: str) -> pa.Table:
        asks = [f"question {n}?" for n in range(len(prompts))]
        return table([1.0] * len(prompts), question=asks, prompt=list(prompts))

    comparison = fm.compare(asked("Q: a", "Q: b", "c"), asked("Q: a", "<user> b", "<user> c"))
    assert message(comparison, "prompts") == (
        "2 of 3 pairs have different prompts on the two sides: the format alone can change scores."
    )
    assert codes(fm.compare(asked("Q: a"), asked("Q:  a"))) == []


def test_conflicts_and_content_that_moved() -> None:
    before = table([1.0] * 10, question=[f"q{n}?" for n in range(10)])
    after = table([1.0] * 10, question=[f"q{n}?" for n in range(9)] + ["another?"])
    comparison = fm.compare(before, after)
    assert message(comparison, "conflict") == (
        "1 result with the same id but different content on the two sides: not compared."
    )
    assert (comparison.result.pairing.only_before, comparison.result.total.n) == (0, 9)


def test_twins_told_apart_by_id_or_by_order() -> None:
    before = table([1.0, 0.0], question=["same?"] * 2, item=["a", "b"])
    by_id = fm.compare(before, before)
    assert "told apart" not in message(by_id, "duplicates")
    by_order = fm.compare(before, table([1.0, 0.0], question=["same?"] * 2, item=["x", "y"]))
    assert message(by_order, "duplicates").endswith(
        "duplicate questions; 2 of them distinguished only by their order."
    )


def test_a_thin_task_among_well_paired_ones() -> None:
    def results(thin: list[str]) -> pa.Table:
        full = table([1.0] * 100, task="full")
        return pa.concat_tables([full, table([1.0] * len(thin), task="thin", item=thin)])

    shared = [f"s{n}" for n in range(79)]
    before = results([*shared, *(f"b{n}" for n in range(21))])
    comparison = fm.compare(before, results([*shared, *(f"a{n}" for n in range(21))]))
    assert message(comparison, "thin_task") == "fewer than 80% paired in thin (79 of 100)."
    assert "thin_task" not in codes(fm.compare(before, results([*shared, "b0", "x"])))


def test_a_task_on_one_side_only_is_one_sided_not_thin() -> None:
    extra = pa.concat_tables([ONE, table([1.0], task="extra")])
    assert codes(fm.compare(ONE, extra, min_paired=0.6)) == ["one_sided"]


def test_a_clean_comparison_has_no_warning() -> None:
    assert codes(fm.compare(ONE, table([0.0, 1.0]))) == []


def test_the_metric_that_was_compared_is_said() -> None:
    tables = [
        pl.DataFrame(
            {
                "task": ["a", "a", "b", "b", "c", "c"],
                "item": ["1", "2"] * 3,
                "metric": ["acc", "acc", "acc", "acc", "f1", "f1"],
                "score": [1.0, 1.0, 1.0, score, 1.0, 1.0],
            }
        )
        for score in (1.0, 0.0)
    ]
    compared = fm.compare(tables[0], tables[1])
    assert compared.result.measures == {"a": "acc", "b": "acc", "c": "f1"}
    words = "Compared by acc; c by f1."
    assert words in [fact.words for fact in summarize(compared.result).facts]
    unnamed = [table.drop("metric") for table in tables]
    facts = summarize(fm.compare(unnamed[0], unnamed[1]).result).facts
    assert not [fact for fact in facts if fact.words.startswith("Compared by")]
