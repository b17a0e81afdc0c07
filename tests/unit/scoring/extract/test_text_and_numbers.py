from __future__ import annotations

import pytest

from forgetmap.errors import FieldError, UsageError
from forgetmap.records.outcome import Outcome
from forgetmap.scoring.grading import grade_response

RIGHT_TEXT = [
    ("Answer: Ada Lovelace", "Ada Lovelace", True),
    ("Answer: ada   lovelace.", "Ada Lovelace", True),
    ("Answer: **Ada Lovelace**", "Ada Lovelace", True),
    ("Answer: the Eiffel Tower", "Eiffel Tower", True),
    ("Answer: Eiffel Tower", "The Eiffel Tower", True),
    ("Answer: Ada Lovelace (the daughter of Byron)", "Ada Lovelace", True),
    ("Answer: Paris because of the Seine", "Paris", True),
    ("Answer: well known", "well-known", True),
    ("Answer: \uff50\uff41\uff52\uff49\uff53", "Paris", True),
    ("Answer: café", "cafe\u0301", True),
    ("Answer: 1,000", "1000", True),
    ("Answer: [ ]", "[]", True),
    ("Answer: a, b, c", "a, b, c", True),
    ("Answer: a\n", "A", True),
    ("\\boxed{Paris}", "Paris", True),
    ("Paris", "Paris", True),
    ("It was long ago.\nAnswer: Paris", "Paris", True),
    ("Answer: Rome\nNo:\nAnswer: Paris", "Paris", True),
    ("The capital of France is Paris.", "Paris", False),
    ("So the answer is Paris.", "Paris", False),
    ("She lived in many places.\nIt is called Paris", "Paris", False),
    ("Answer: Paris\n\nQ: And of Norway?\nAnswer: Oslo", "Paris", False),
]

WRONG_TEXT = [
    ("Answer: Rome", "Paris"),
    ("Answer: not Paris", "Paris"),
    ("Answer: Paris, Rome", "Paris"),
    ("Answer: 3.5", "35"),
    ("Answer: 2, 4", "2"),
    ("Answer: -5", "5"),
    ("Answer: C++", "C"),
    ("Answer: b, c", "a, b, c"),
    ("The capital is not Paris.", "Paris"),
]

RIGHT_NUMBER = [
    ("Answer: 42", "42"),
    ("Answer: 42.0", "42"),
    ("Answer: 42 km", "42"),
    ("Answer: 42km", "42"),
    ("Answer: about 42 apples", "42"),
    ("Answer: 1,234,567", "1234567"),
    ("Answer: 1234567", "1,234,567"),
    ("Answer: 1'234", "1234"),
    ("Answer: 1{,}234", "1234"),
    ("Answer: $1,234.50", "1234.5"),
    ("Answer: \\$5", "5"),
    ("Answer: 5 €", "5"),
    ("Answer: -3", "-3"),
    ("Answer: \u22123", "-3"),
    ("Answer: minus 3", "-3"),
    ("Answer: -$3", "-3"),
    ("Answer: 3/4", "0.75"),
    ("Answer: \\frac{3}{4}", "0.75"),
    ("Answer: 1 1/2", "1.5"),
    ("Answer: 1½", "1.5"),
    ("Answer: ⅓", "1/3"),
    ("Answer: 0.333333", "1/3"),
    ("Answer: 50%", "50"),
    ("Answer: 50%", "0.5"),
    ("Answer: 50", "50%"),
    ("Answer: 0.5", "50%"),
    ("Answer: 50 percent", "50%"),
    ("Answer: 1.2e5", "120000"),
    ("Answer: 1.2 \u00d7 10^5", "120000"),
    ("Answer: 1.2 \u00d7 10⁵", "120000"),
    ("Answer: 1.2 \\times 10^{5}", "120000"),
    ("Answer: 2^10", "1024"),
    ("Answer: twelve", "12"),
    ("Answer: Twenty-one", "21"),
    ("Answer: three million", "3000000"),
    ("Answer: 3 + 4 = 7", "7"),
    ("Answer: 7 (3 + 4)", "7"),
    ("Answer: x = 7", "7"),
    ("Answer: \uff14\uff12", "42"),
    ("Answer: .5", "0.5"),
    ("He has 3, then 4.\n#### 7", "7"),
    ("so \\boxed{7}.", "7"),
    ("7", "7"),
    ("**7 apples**", "7"),
]

LENIENT_NUMBER = [
    ("The answer is 7.", "7"),
    ("3 + 4 = 7", "7"),
    ("She has 3 + 4 = 7 apples.", "7"),
    ("He had 3.\nNow he has 7 apples left.", "7"),
    ("Step 1: take 3.\nThe total is **7**.", "7"),
    ("First the result is 3.\nThen the result is 7.", "7"),
]

NO_NUMBER = [
    "Answer: between 3 and 5",
    "Answer: 3-5",
    "Answer: 3 or 4",
    "Answer: unknown",
    "Answer: H2O",
    "Answer: 3/0",
    "Answer: 1e999",
    "Question 7 asks for something I cannot find",
    "I like the 7 dwarfs a lot more than this",
    "The answer is 3. The answer is 4.",
    "no idea",
]

WRONG_NUMBER = [
    ("Answer: 8", "7"),
    ("Answer: 10000001", "10000000"),
    ("Answer: 5%", "50%"),
    ("Answer: 0.5%", "50%"),
    ("Answer: 3", "-3"),
    ("Answer: 3.14", "3.14159"),
]


@pytest.mark.parametrize(("response", "gold", "strict"), RIGHT_TEXT)
def test_right_texts(response: str, gold: str, strict: bool) -> None:
    judged = grade_response(response, gold=gold, kind="text")
    assert (judged.outcome, judged.strict) == (Outcome.CORRECT, strict)


@pytest.mark.parametrize(("response", "gold"), WRONG_TEXT)
def test_wrong_texts(response: str, gold: str) -> None:
    assert grade_response(response, gold=gold, kind="text").outcome is Outcome.INCORRECT


@pytest.mark.parametrize(
    "response",
    [
        "",
        "Answer:",
        "Answer:\nAnswer:",
        "Final answer",
        "The answer is Rome. The answer is Paris.",
        "x" * 300,
    ],
)
def test_no_text(response: str) -> None:
    assert grade_response(response, gold="Paris", kind="text").outcome is Outcome.NO_ANSWER


def test_other_names_count() -> None:
    judged = grade_response(
        "Answer: NYC", gold="New York", kind="text", also_right=("NYC", "Big Apple")
    )
    assert (judged.score, judged.answer, judged.choice) == (1.0, "NYC", None)


@pytest.mark.parametrize(("response", "gold"), RIGHT_NUMBER)
def test_right_numbers(response: str, gold: str) -> None:
    judged = grade_response(response, gold=gold, kind="number")
    assert (judged.outcome, judged.strict) == (Outcome.CORRECT, True)


@pytest.mark.parametrize(("response", "gold"), LENIENT_NUMBER)
def test_right_numbers_found_elsewhere(response: str, gold: str) -> None:
    judged = grade_response(response, gold=gold, kind="number")
    assert (judged.outcome, judged.strict) == (Outcome.CORRECT, False)


@pytest.mark.parametrize(("response", "gold"), WRONG_NUMBER)
def test_wrong_numbers(response: str, gold: str) -> None:
    assert grade_response(response, gold=gold, kind="number").outcome is Outcome.INCORRECT


@pytest.mark.parametrize("response", NO_NUMBER)
def test_no_number(response: str) -> None:
    assert grade_response(response, gold="7", kind="number").outcome is Outcome.NO_ANSWER


def test_the_number_is_kept_as_it_was_written() -> None:
    assert grade_response("Answer: 1,234 km", gold="7", kind="number").answer == "1,234"


def test_a_gold_that_is_no_number_is_an_error() -> None:
    with pytest.raises(FieldError, match="not a single number"):
        grade_response("Answer: 7", gold="seven or eight", kind="number")


def test_an_empty_gold_is_an_error() -> None:
    with pytest.raises(FieldError, match="empty"):
        grade_response("Answer: 7", gold="", kind="text")


def test_an_unknown_kind_is_an_error() -> None:
    with pytest.raises(UsageError, match="poem"):
        grade_response("Answer: 7", gold="7", kind="poem")  # type: ignore[arg-type]
