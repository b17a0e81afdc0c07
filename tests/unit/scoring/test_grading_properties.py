from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from effort import examples
from forgetmap.records.outcome import FAILED, Outcome
from forgetmap.scoring.grade import AnswerKind
from forgetmap.scoring.grading import grade_response

PIECES = [
    "Answer:", "answer is", "The", "A", "B", "E", "(C)", "**D**", "\\boxed{", "}", "\\frac{1}{2}",
    "<think>", "</think>", "Paris", "no", "12", "1,000", "3/0", "%", "e9", "^", "####", "Question:",
    "\n", "\n\n", " ", ".", ",", "I cannot help", "$", "\uff12", "½", "é", "让", "\u202f", "\x00",
    "\ud800",
]  # fmt: skip
RESPONSES = st.one_of(
    st.text(max_size=200), st.lists(st.sampled_from(PIECES), max_size=40).map("".join)
)
KINDS: list[tuple[AnswerKind, str]] = [("option", "Paris"), ("text", "Paris"), ("number", "12")]
OPTIONS = ("Rome", "Paris", "no", "12")
FINISHES = st.sampled_from([None, "stop", "length"])


def options_for(kind: AnswerKind) -> tuple[str, ...]:
    return OPTIONS if kind == "option" else ()


@examples(100)
@given(RESPONSES, st.sampled_from(KINDS), FINISHES)
def test_every_response_gets_a_verdict_that_makes_sense(
    response: str, asked: tuple[AnswerKind, str], finish_reason: str | None
) -> None:
    kind, gold = asked
    judged = grade_response(
        response, gold=gold, kind=kind, options=options_for(kind), finish_reason=finish_reason
    )
    answered = judged.outcome in {Outcome.CORRECT, Outcome.INCORRECT}
    assert answered or judged.outcome in FAILED
    assert judged.score == float(judged.outcome is Outcome.CORRECT)
    assert (judged.answer is not None) is (judged.strict is not None) is answered
    if kind == "option":
        assert (judged.choice in OPTIONS) is answered
        assert (judged.choice == gold) is (judged.score == 1.0)


@examples(100)
@given(RESPONSES, st.sampled_from(KINDS), st.text(" \t\n", max_size=5), st.text(" \n", max_size=5))
def test_white_space_around_a_response_does_not_matter(
    response: str, asked: tuple[AnswerKind, str], before: str, after: str
) -> None:
    kind, gold = asked
    options = options_for(kind)
    bare = grade_response(response, gold=gold, kind=kind, options=options)
    padded = grade_response(before + response + after, gold=gold, kind=kind, options=options)
    assert padded == bare


@examples(100)
@given(st.permutations(OPTIONS), st.integers(0, 3), st.text("xyz \n.", max_size=60))
def test_a_letter_names_the_option_that_stands_there(
    options: list[str], place: int, reasoning: str
) -> None:
    response = f"{reasoning}\nAnswer: {'ABCD'[place]}"
    judged = grade_response(response, gold="Paris", kind="option", options=tuple(options))
    assert (judged.choice, judged.strict) == (options[place], True)


@examples(100)
@given(st.integers(-(10**12), 10**12), st.sampled_from(["{}", "{:,}", "{}.0", "{} km", "${:,}"]))
def test_a_number_is_read_however_it_is_written(number: int, form: str) -> None:
    response = f"Answer: {form.format(number)}"
    assert grade_response(response, gold=str(number), kind="number").outcome is Outcome.CORRECT
