# ruff: noqa: RUF001  # other scripts are what is tested
from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import examples
from forgetmap.errors import FieldError
from forgetmap.records.outcome import FAILED, MISSING, Outcome
from forgetmap.scoring.extract.golds import (
    final_texts,
    option_texts,
    passage_of,
    right_indices,
    right_texts,
    truth,
)
from forgetmap.scoring.extract.wording import find_mentions, fold, occurs, split_words
from forgetmap.scoring.scorer import RuleScorer, ScorerInput
from forgetmap.scoring.scorers.aliases import alias, short_answer
from forgetmap.scoring.scorers.answers import maths, number, option, yes_no
from forgetmap.scoring.scorers.reasoning_steps import equations, reasoning_steps, steps
from forgetmap.scoring.scorers.refusal import refusal
from forgetmap.scoring.scorers.retrieval import retrieval

ALL: list[tuple[RuleScorer, ScorerInput]] = [
    (option, ScorerInput("", "B", options=("Rome", "Paris", "Oslo"))),
    (number, ScorerInput("", "#### 12")),
    (alias, ScorerInput("", ["Paris", "Lutetia"])),
    (short_answer, ScorerInput("", {"answer": "Paris"}, material={"context": ["Paris is big."]})),
    (yes_no, ScorerInput("", gold=True)),
    (retrieval, ScorerInput("", ["1234567", "apple"])),
    (refusal, ScorerInput("", ["1234567"])),
    (reasoning_steps, ScorerInput("")),
]
NAMES = [scorer.name for scorer, _ in ALL]


def answering(sample: ScorerInput, response: str, finish_reason: str | None = None) -> ScorerInput:
    return ScorerInput(
        response, sample.gold, sample.question, sample.options, sample.material, finish_reason
    )


PIECES = [
    "Answer:", "answer is", "yes", "No", "not", "A", "B", "(C)", "**D**", "\\boxed{", "}", "{",
    "Paris",
    "or", "Rome", ",", "12", "1,000", "1.000,5", "3/0", "%", "e9", "^", "####", "Step 1:", "1.",
    "=",
    "+", "(", ")", "*", "/", "-", "\n", " ", "?", "you", "I cannot help", "please clarify", "$",
    "<think>", "</think>", "½", "é", "e\u0301", "答案", "是", "巴黎", "উত্তর", "১২", "कि",
    "ที่", "\u202f", "\x00",
    "\ud800", "1234567", "apple", "'", "’s", "√2", "\\frac{1}{0}", "minus", "two hundred", "三十",
]  # fmt: skip
RESPONSES = st.one_of(
    st.text(max_size=200), st.lists(st.sampled_from(PIECES), max_size=40).map(" ".join),
    st.lists(st.sampled_from(PIECES), max_size=40).map("".join),
)  # fmt: skip


@pytest.mark.parametrize(("scorer", "sample"), ALL, ids=NAMES)
@examples(100)
@given(response=RESPONSES, finish_reason=st.sampled_from([None, "stop", "length"]))
def test_no_response_raises_and_every_value_is_on_its_scale(
    scorer: RuleScorer, sample: ScorerInput, response: str, finish_reason: str | None
) -> None:
    fields = scorer.score(answering(sample, response, finish_reason))
    assert fields
    for name, judged in fields.items():
        scale = scorer.fields[name]
        assert judged.score is not None
        assert judged.outcome not in MISSING
        assert scale.low <= judged.score <= (scale.high or judged.score)
        assert not scale.binary or judged.score in {scale.low, scale.high}
        assert judged.outcome not in FAILED or judged.score == 0.0
    if "acc_strict" in fields:
        assert (fields["acc_strict"].score or 0) <= (fields["acc"].score or 0)


LONG = [
    "1",
    "1,",
    "a ",
    "?",
    "((1",
    "Paris or Rome ",
    "- Paris\n- Rome\n",
    "答案是",
    "\\boxed{",
    "Answer: 7\n",
]


@pytest.mark.parametrize("unit", LONG)
def test_time_grows_no_faster_than_the_response(unit: str) -> None:
    def seconds(length: int) -> float:
        response = (unit * length)[:length]
        start = time.process_time()
        for scorer, sample in ALL:
            scorer.score(answering(sample, response))
        return time.process_time() - start

    seconds(500)
    # The best of three: a collection of garbage in between takes longer than a short response.
    assert min(seconds(16_000) for _ in range(3)) < 20 * max(seconds(4_000), 0.02)


@pytest.mark.parametrize(
    ("gold", "texts"),
    [
        ("Paris", ("Paris",)),
        (["Paris", "Lutetia", "Paris"], ("Paris", "Lutetia")),
        ({"text": ["Paris"], "answer_start": [3]}, ("Paris",)),
        ({"answer": "Paris", "supporting_facts": {"title": ["x"], "sent_id": [0]}}, ("Paris",)),
        ({"answers": {"text": ["a", "b"]}}, ("a", "b")),
        ({"value": "Paris", "aliases": ["Lutetia"]}, ("Paris", "Lutetia")),
        ('["Paris", "Lutetia"]', ("Paris", "Lutetia")),
        ("['Paris', 'Lutetia']", ("Paris", "Lutetia")),
        ('{"text": ["Paris"]}', ("Paris",)),
        ("[sic] is what he wrote", ("[sic] is what he wrote",)),
        (4, ("4",)),
        (4.0, ("4",)),
        (0.5, ("0.5",)),
        (True, ("true",)),
    ],
)
def test_right_answers_in_any_shape(gold: object, texts: tuple[str, ...]) -> None:
    assert right_texts(gold) == texts


@pytest.mark.parametrize(
    "gold", [None, "", " ", [], {}, {"text": []}, float("nan"), float("inf"), [None]]
)
def test_no_right_answer_is_an_error(gold: object) -> None:
    with pytest.raises(FieldError) as raised:
        right_texts(gold)
    assert raised.value.field == "gold"


@pytest.mark.parametrize(
    ("gold", "texts"),
    [
        ("#### 4", ("4",)),
        ("2+2=4\n#### 2,125", ("2,125",)),
        ("4", ("4",)),
        ("so \\boxed{\\frac{1}{2}}", ("\\frac{1}{2}",)),
        ("first \\boxed{1}, then \\boxed{2}", ("2",)),
        ("[1,2]", ("[1,2]",)),
        (["1/2", "0.5"], ("1/2", "0.5")),
    ],
)
def test_of_a_solution_only_the_final_answer_counts(gold: object, texts: tuple[str, ...]) -> None:
    assert final_texts(gold) == texts


@pytest.mark.parametrize(
    ("choices", "options"),
    [
        (["x", "y"], ("x", "y")),
        (("x", "y"), ("x", "y")),
        ([3, 4], ("3", "4")),
        ("A: x B: y", ("x", "y")),
        ("A) x y\nB) C: z\nC) w", ("x y", "C: z", "w")),
        ("(A) x (B) y", ("x", "y")),
        ("['x', 'y']", ("x", "y")),
        ('["x", "y"]', ("x", "y")),
        (["A: x", "B: y"], ("x", "y")),
        (["A. x", "C. y"], ("A. x", "C. y")),
        ({"A": "x", "B": "y"}, ("x", "y")),
        ({"text": ["x", "y"], "label": ["A", "B"]}, ("x", "y")),
        ("nothing here", ()),
        (None, ()),
    ],
)
def test_options_in_any_shape(choices: object, options: tuple[str, ...]) -> None:
    assert option_texts(choices) == options


@pytest.mark.parametrize(
    ("gold", "options", "places"),
    [
        ("B", ("x", "y"), (1,)),
        ("b", ("x", "y"), (1,)),
        ("(B)", ("x", "y"), (1,)),
        ("B. y", ("x", "y"), (1,)),
        ("2", ("x", "y"), (1,)),
        (2, ("x", "y"), (1,)),
        ("y", ("x", "y"), (1,)),
        ("4", ("3", "4"), (1,)),
        ("1", ("3", "4"), (0,)),
        ("2", ("1", "2", "3"), (1,)),
        (["A", "C"], ("x", "y", "z"), (0, 2)),
        (True, ("True", "False"), (0,)),
        ("A", ("A", "B"), (0,)),
    ],
)
def test_where_the_right_option_stands(
    gold: object, options: tuple[str, ...], places: tuple[int, ...]
) -> None:
    assert right_indices(gold, options) == places


@pytest.mark.parametrize("gold", ["E", "w", "3", "0", None])
def test_a_right_answer_that_is_no_option_is_an_error(gold: object) -> None:
    with pytest.raises(FieldError):
        right_indices(gold, ("x", "y"))


def test_a_letter_that_is_another_options_text_is_an_error_unless_its_place_is_known() -> None:
    with pytest.raises(FieldError, match="'A'"):
        right_indices("A", ("B", "A"))
    sample = ScorerInput("Answer: B", "A", options=("B", "A"), material={"gold_index": 1})
    assert option.score(sample)["acc"].score == 1.0


def test_options_may_be_unknown() -> None:
    assert option.score(ScorerInput("Reasons.\nAnswer: B", "B"))["acc"].score == 1.0
    assert option.score(ScorerInput("Reasons.\nAnswer: (C)", "B"))["acc"].score == 0.0
    for gold in ("Paris", "é", "ß"):
        with pytest.raises(FieldError):
            option.score(ScorerInput("Answer: B", gold))


@pytest.mark.parametrize("gold", [True, "TRUE", "yes", 1, "1", ["yes"], {"answer": True}])
def test_truth(gold: object) -> None:
    assert truth(gold) is True


@pytest.mark.parametrize(
    ("scorer", "response", "gold", "options"),
    [
        (option, "I would go with (B).", "B", ("Rome", "Paris")),
        (number, "So the answer is 12.", "12", ()),
        (alias, "It is called Paris.", "Paris", ()),
        (yes_no, "Yes, it does.", True, ()),
        (retrieval, "The number is 1234567.", ["1234567"], ()),
    ],
)
def test_an_answer_in_another_form_counts_leniently_only(
    scorer: RuleScorer, response: str, gold: object, options: tuple[str, ...]
) -> None:
    fields = scorer.score(ScorerInput(response, gold, options=options))
    assert (fields["acc"].score, fields["acc"].outcome) == (1.0, Outcome.CORRECT)
    assert (fields["acc_strict"].score, fields["acc_strict"].outcome) == (0.0, Outcome.NO_ANSWER)
    assert fields["acc_strict"].answer == fields["acc"].answer


@pytest.mark.parametrize("scorer", [alias, short_answer])
def test_what_the_response_calls_its_answer_beats_what_it_mentions(scorer: RuleScorer) -> None:
    assert scorer.score(ScorerInput("Paris is nice.\nAnswer: Rome", "Paris"))["acc"].score == 0.0
    assert scorer.score(ScorerInput("The answer is Rome, not Paris.", "Paris"))["acc"].score == 0.0


@pytest.mark.parametrize(
    "response",
    ["No es París.", "Ce n'est pas París.", "Es ist nicht París.", "Это не París.", "不是 París。"],
)
def test_a_denied_name_does_not_count_in_other_languages(response: str) -> None:
    assert alias.score(ScorerInput(response, "París"))["acc"].score == 0.0


def test_alias_looks_everywhere_and_short_answer_where_answers_stand() -> None:
    response = "Paris has two million people.\nThat is quite a lot of people for one place."
    assert alias.score(ScorerInput(response, "Paris"))["acc"].score == 1.0
    assert short_answer.score(ScorerInput(response, "Paris"))["acc"].score == 0.0


@pytest.mark.parametrize(
    ("response", "outcome"),
    [
        ("", Outcome.NO_ANSWER),
        ("I'm sorry, but I can't help with that.", Outcome.REFUSED),
        ("<think>Paris", Outcome.TRUNCATED),
        ("Wait, let me check that again. " * 40, Outcome.DEGENERATE),
    ],
)
def test_why_there_is_no_answer(response: str, outcome: Outcome) -> None:
    for scorer, gold in ((alias, "Paris"), (short_answer, "Paris"), (retrieval, ["1234567"])):
        assert scorer.score(ScorerInput(response, gold))["acc"].outcome is outcome
    assert yes_no.score(ScorerInput(response, gold=True))["acc"].outcome is outcome


def test_supporting_sentences_are_looked_up_by_title_and_number() -> None:
    context = {
        "title": ["France", "Italy"],
        "sentences": [["It is big.", "Paris is there."], ["Rome."]],
    }
    gold = {"answer": "Paris", "supporting_facts": {"title": ["France"], "sent_id": [1]}}
    assert passage_of({"context": context}, gold) == "Paris is there."
    assert "Rome" in passage_of({"ctx": context})
    sample = ScorerInput("Answer: Rome", gold, material={"context": context})
    assert short_answer.score(sample)["evidence"].score == 0.0


@pytest.mark.parametrize(
    ("response", "hit"),
    [("The capital is Rome.", 1.0), ("It is called Lyon.", 0.0), ("Answer: Rome (in Italy)", 1.0)],
)
def test_evidence_looks_for_what_a_sentence_says(response: str, hit: float) -> None:
    sample = ScorerInput(response, "Paris", material={"context": "Rome and Paris are old."})
    assert short_answer.score(sample)["evidence"].score == hit


@pytest.mark.parametrize(
    "response",
    [
        "| Capital | Paris |",
        "Paris; it is big.",
        "A capital é o Paris.",
        "Is it Rome or Paris? It is Paris.",
    ],
)
def test_names_beside_others_that_are_no_alternatives(response: str) -> None:
    assert alias.score(ScorerInput(response, "Paris"))["acc"].score == 1.0


@pytest.mark.parametrize(
    ("passage", "answer", "found"),
    [
        ("It cost 1,200 francs.", "1200", True),
        ("He lived in Sao Paulo.", "São Paulo", True),
        ("the party", "art", False),
        ("In 1984 it began", "19", False),
        ("Paris and Rome", "Rome, Paris", False),
    ],
)
def test_whether_a_text_has_an_answer(passage: str, answer: str, found: bool) -> None:
    assert occurs(answer, fold(passage)) is found


@pytest.mark.parametrize(
    ("answer", "text", "found"),
    [
        ("Paris", "答案是Paris的", True),
        ("파리", "파리는 도시다", True),
        ("파", "파리는", False),
        ("القاهرة", "بالقاهرة", True),
        ("दिल", "दिल्ली", False),
        ("ローマ", "ローマン", False),
        ("Paris", "Paris'te", True),
        ("Orsay", "Musée d'Orsay", True),
        ("Don", "I don't", False),
        ("The Beatles", "by Beatles", True),
        ("University of Arts", "the University of the Arts", True),
        ("vitamin A", "vitamin A deficiency", True),
        ("3", "3.5", False),
        ("3.5", "3.50", True),
        ("C", "C++", False),
        ("5", "-5", False),
        ("", "anything", False),
        ("...", "a ... b", False),
    ],
)
def test_an_answer_among_words(answer: str, text: str, found: bool) -> None:
    assert (next(find_mentions(answer, split_words(fold(text))), None) is not None) is found


@pytest.mark.parametrize(
    ("response", "acc", "recall"),
    [
        ("1234567 and 2345678", 1.0, 1.0),
        ("Answer: 2345678, 1234567", 1.0, 1.0),
        ("1234567", 0.0, 0.5),
        ("1234567, 2345678, 3456789", 0.0, 1.0),
        ("It is not 3456789 but 1234567 and 2345678.", 1.0, 1.0),
        ("12345678 and 2345678", 0.0, 0.5),
        ("nothing", 0.0, 0.0),
    ],
)
def test_all_needles_and_no_other(response: str, acc: float, recall: float) -> None:
    fields = retrieval.score(ScorerInput(response, ["1234567", "2345678"]))
    assert (fields["acc"].score, fields["recall"].score) == (acc, recall)


@pytest.mark.parametrize(
    ("response", "kind"),
    [
        ("I cannot help with that.", "refused"),
        ("Lo siento, no puedo ayudar con eso.", "refused"),
        ("抱歉，我无法提供帮助。", "refused"),
        ("Could you please clarify which number you mean?", "evaded"),
        ("I'm sorry. Which number do you mean? Could you send the text?", "evaded"),
        ("There is not enough information to answer.", "evaded"),
        ("Please provide the passage. Once you do, I can help.", "evaded"),
        ("The number is 1234567.", "complied"),
        ("Is it? Really? Yes: 1234567?", "complied"),
        ("Why does it rain? Warm air rises. Isn't that neat? Want more?", "complied"),
        ("The question is ambiguous, but the likely number is 12.", "complied"),
        ("Here is a plan: buy eggs. Could you tell me if you like them?", "complied"),
        ("I cannot provide a link, but the number is 7654321.", "complied"),
        ("Not enough information is given.\nAnswer: 12", "complied"),
    ],
)
def test_complied_refused_or_evaded(response: str, kind: str) -> None:
    fields = refusal.score(ScorerInput(response, ["7654321"]))
    assert {name for name, judged in fields.items() if judged.score} == {kind}


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("Step 1: add.\nStep 2: divide by 3. Then stop.\nAnswer: 4", 2),
        ("1. Take three.\n2. Add four.\n3. Done.", 3),
        ("We add two. Then we halve it.\n#### 4", 2),
        ("第一步：加二。\n第二步：除以三。\n答案：4", 2),
        ("Dr. Smith has 3.5 apples. He eats one.", 2),
        ("Answer: 4", 0),
        ("4", 0),
        ("", 0),
    ],
)
def test_steps(text: str, count: int) -> None:
    from forgetmap.scoring.extract.wording import simplify

    assert len(steps(simplify(text))) == count


def test_steps_that_reason_and_sums_that_are_right() -> None:
    fields = reasoning_steps.score(
        ScorerInput("Step 1: so 2+2=4.\nStep 2: 4*3 = 13.\nStep 3: nice weather.\nAnswer: 13")
    )
    values = {name: judged.score for name, judged in fields.items()}
    assert values == {"steps": 3.0, "step_validity": pytest.approx(2 / 3), "arithmetic": 0.5}
    assert set(reasoning_steps.score(ScorerInput("4"))) == {"steps"}


@pytest.mark.parametrize(
    ("text", "hold"),
    [
        ("1+1=2", [True]),
        ("1 + 1 = 3", [False]),
        ("so 1,000 + 234 = 1,234 in all", [True]),
        ("$3 \\times 4 = 12$ and \\frac{1}{2}+\\frac{1}{2}=1", [True, True]),
        ("(2+3)*4 = 20 = 40/2", [True]),
        ("10/3 = 3.33", [True]),
        ("-3 + 5 = 2", [True]),
        ("1/0 = 5", []),
        ("x + 1 = 2", []),
        ("2x = 4", []),
        ("x = 3", []),
        ("7 = 7", []),
        ("((((1 = 2", []),
    ],
)
def test_equations_of_numbers(text: str, hold: list[bool]) -> None:
    assert list(equations(text)) == hold


def test_worked_solutions_are_scored_by_their_end() -> None:
    assert (
        maths.score(ScorerInput("so \\boxed{2}", "thus \\boxed{\\frac{4}{2}}"))["acc"].score == 1.0
    )
