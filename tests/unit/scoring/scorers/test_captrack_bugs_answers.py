"""Bugs of CapTrack's published scorers that ours must not have; the numbers are those of the
list of its bugs in this project."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from forgetmap.errors import FieldError
from forgetmap.records.outcome import Outcome
from forgetmap.scoring.scorer import RuleScorer, ScorerInput
from forgetmap.scoring.scorers.aliases import alias, short_answer
from forgetmap.scoring.scorers.answers import maths, number, option, yes_no
from forgetmap.scoring.scorers.refusal import refusal
from forgetmap.scoring.scorers.retrieval import retrieval


def score(
    scorer: RuleScorer, response: str, gold: object, field: str = "acc", **rest: object
) -> float | None:
    return scorer.score(ScorerInput(response, gold, **rest))[field].score  # type: ignore[arg-type]


@pytest.mark.parametrize("gold", ["2", 2, "B", "b", "Oslo", "B: Oslo"])
@pytest.mark.parametrize(
    "response", ["B", "b", "2", "Answer: B", "Answer: 2", "Oslo", "Option 2", "B. Oslo"]
)
def test_bug_04_the_right_one_of_two_by_number_or_by_letter(gold: object, response: str) -> None:
    assert score(option, response, gold, options=("Rome", "Oslo")) == 1.0


@pytest.mark.parametrize("response", ["A", "1", "Answer: 1", "Rome"])
def test_bug_04_the_wrong_one_of_two(response: str) -> None:
    assert score(option, response, "2", options=("Rome", "Oslo")) == 0.0


def test_bug_04_a_number_counted_from_zero_must_be_said_to_be_one() -> None:
    zero_based = {"count_from": 0}
    assert score(option, "Answer: B", "1", options=("Rome", "Oslo"), material=zero_based) == 1.0
    with pytest.raises(FieldError, match="the right answer '0' is invalid"):
        score(option, "Answer: B", "0", options=("Rome", "Oslo"))


@pytest.mark.parametrize("gold", ["1200", "1,200", "#### 1,200", 1200, 1200.0])
@pytest.mark.parametrize(
    "response", ["Answer: 1,200", "Answer: 1200", "#### 1,200", "1 200", "$1,200.00"]
)
def test_bug_08_separators_of_thousands(gold: object, response: str) -> None:
    assert score(number, response, gold) == 1.0


def test_bug_08_the_rest_of_a_number_is_not_left_out() -> None:
    assert score(number, "Answer: 2,999", "2,125") == 0.0
    assert score(number, "Answer: 1", "1,200") == 0.0


@pytest.mark.parametrize(
    ("response", "gold"),
    [
        ("Answer: 5\nNo, I forgot one.\nAnswer: 6", "6"),
        ("**Answer:** 18 dollars over 2 days", "18"),
        ("**Answer: 18**", "18"),
        ("Respuesta: 1.200", "1200"),
        ("Answer: 1.200", "1.2"),
    ],
)
def test_bug_09_the_last_answer_counts_and_all_of_it(response: str, gold: str) -> None:
    assert score(number, response, gold) == 1.0


@pytest.mark.parametrize(
    ("response", "gold"),
    [
        ("1/2", "3/2"),
        (r"\frac{1}{2}", r"\frac{5}{2}"),
        ("3√2", "5√2"),
        ("(1,2)", "(7,2)"),
        ("2", "1/2"),
        ("word 42", "42 words"),
    ],
)
def test_bug_10_formulas_that_end_alike_differ(response: str, gold: str) -> None:
    assert score(maths, f"Answer: {response}", gold) == 0.0


@pytest.mark.parametrize(
    ("response", "gold"),
    [("1/2", "0.5"), ("50%", "0.5"), ("3√2", r"3\sqrt{2}"), ("0.5", r"\frac12")],
)
def test_bug_10_equal_values_are_equal(response: str, gold: str) -> None:
    assert score(maths, f"Answer: {response}", gold) == 1.0


@pytest.mark.parametrize(
    "spelling",
    [
        r"\frac{3}{4}", r"$\frac{3}{4}$", r"\(\frac{3}{4}\)", r"\[\frac{3}{4}\]",
        r"$$\frac{3}{4}$$",
        r"**3/4**", r"\boxed{\frac{3}{4}}", r"$\boxed{\dfrac34}$", "0.75", r"75\%", "x = 3/4", "¾",
        r"\frac{6}{8}", r"$\tfrac{3}{4}$.",
    ],
)  # fmt: skip
def test_bug_11_three_quarters_in_latex_and_markdown(spelling: str) -> None:
    assert score(maths, f"Step 1: divide.\nAnswer: {spelling}", r"so \boxed{\frac{3}{4}}") == 1.0
    assert score(maths, f"Step 1: divide.\nAnswer: {spelling}", r"so \boxed{\frac{5}{4}}") == 0.0


@pytest.mark.parametrize("gold", [False, "false", "False", "no", 0])
def test_bug_15_false_is_a_right_answer_like_any_other(gold: object) -> None:
    assert score(yes_no, "Answer: No", gold) == 1.0
    assert score(yes_no, "Answer: Yes", gold) == 0.0


@pytest.mark.parametrize("gold", [None, "", "maybe", []])
def test_bug_15_no_right_answer_is_an_error_and_not_a_wrong_response(gold: object) -> None:
    with pytest.raises(FieldError):
        score(yes_no, "Answer: No", gold)


def test_bug_15_evidence_depends_on_the_answer() -> None:
    material = {"context": ["Paris is the capital of France.", "It lies on the Seine."]}
    for response, hit in (("Paris", 1.0), ("Answer: the Seine", 1.0), ("Rome", 0.0), ("", 0.0)):
        found = score(short_answer, response, "Paris", "evidence", material=material)
        assert found == hit, response
    assert "evidence" not in short_answer.score(ScorerInput("Paris", "Paris"))
    assert "evidence" not in short_answer.score(ScorerInput("Yes", "yes", material=material))
    assert "evidence" not in yes_no.fields


@pytest.mark.parametrize(
    ("response", "gold"),
    [
        ("a", "Paris"),
        ("It is northern Ireland.", "no"),
        ("the party", "art"),
        ("Answer: not Paris", "Paris"),
        ("Paris or Rome", "Paris"),
        ("Paris, Rome, Berlin, Oslo, Madrid", "Paris"),
        ("- Paris\n- Rome\n- Berlin", "Paris"),
    ],
)
def test_bug_16_parts_of_words_and_lists_are_no_answers(response: str, gold: str) -> None:
    assert score(alias, response, [gold]) == 0.0
    assert score(short_answer, response, {"answer": gold}) == 0.0


@pytest.mark.parametrize(
    "response",
    ["It is Paris.", "Paris, France", "Answer: the city of Paris", "C'est Paris, bien sûr."],
)
def test_bug_16_whole_names_in_a_sentence_are(response: str) -> None:
    assert score(alias, response, ["Paris", "Lutetia"]) == 1.0


def test_bug_22_numbers_that_lost_their_quotes() -> None:
    assert score(option, "A", 1, options=("Rome", "Oslo")) == 1.0
    assert score(retrieval, "The number is 1234567.", [1234567]) == 1.0
    assert score(retrieval, "1234567", 1234567.0) == 1.0
    assert score(refusal, "1234567", 1234567, "complied") == 1.0
    assert score(alias, "1984", json.loads("1984")) == 1.0


@pytest.mark.parametrize(
    "payload",
    [
        "__import__('pathlib').Path({0!r}).touch()",
        "open({0!r}, 'w')",
        "(lambda: open({0!r}, 'w'))()",
        "$open({0!r}, 'w')$",
        "\\boxed{{open({0!r}, 'w')}}",
        "\\operatorname{{open}}({0!r}, 'w')",
        "1 + open({0!r}, 'w')",
        "exec(\"open({0!r}, 'w')\")",
        "().__class__.__bases__[0].__subclasses__()",
    ],
)
def test_bug_24_nothing_a_model_writes_is_executed(payload: str, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    written = payload.format(str(trace))
    for scorer, gold in ((maths, "7"), (number, "7"), (alias, "7"), (short_answer, "7")):
        for response in (written, f"Answer: {written}", f"\\boxed{{{written}}}"):
            assert score(scorer, response, gold) == 0.0
    assert not trace.exists()


def test_bug_24_nothing_in_a_gold_is_executed(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    gold = f"[open({str(trace)!r}, 'w')]"
    assert score(alias, "Paris", gold) == 0.0
    assert score(option, "A", "Rome", material={"choices": "['Rome', 'Oslo']"}) == 1.0
    assert not trace.exists()


def test_bug_25_an_empty_response_is_neither_compliance_nor_a_refusal() -> None:
    fields = refusal.score(ScorerInput(""))
    assert [fields[name].score for name in ("complied", "refused", "evaded")] == [0.0, 0.0, 0.0]
    assert fields["complied"].outcome is Outcome.NO_ANSWER


@pytest.mark.parametrize(
    ("response", "gold", "right"),
    [
        ("首都是巴黎。", "巴黎", 1.0),
        ("你好世界 再见", "世界", 1.0),
        ("東京タワー", "京", 0.0),
        ("กรุงเทพมหานคร", "กรุงเทพ", 1.0),
    ],
)
def test_bug_29_words_of_scripts_without_spaces(response: str, gold: str, right: float) -> None:
    assert score(alias, response, [gold]) == right
