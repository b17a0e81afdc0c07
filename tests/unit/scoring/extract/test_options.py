from __future__ import annotations

import pytest

from forgetmap.errors import FieldError
from forgetmap.records.outcome import Outcome
from forgetmap.scoring.grading import grade_response

CITIES = ("Rome", "Paris", "Berlin", "Oslo")
YES_NO = ("Yes", "No")
COUNTS = tuple(str(count) for count in range(1, 20))

DEMANDED = [
    ("Answer: B", "Paris"),
    ("answer: b", "Paris"),
    ("Answer:B", "Paris"),
    ("Answer: (B)", "Paris"),
    ("Answer: [B]", "Paris"),
    ("Answer: B.", "Paris"),
    ("Answer: **B**", "Paris"),
    ("**Answer:** B", "Paris"),
    ("**Answer: B**", "Paris"),
    ("### Answer: B", "Paris"),
    ("> Answer: B", "Paris"),
    ("Answer: $B$", "Paris"),
    ("Answer: `B`", "Paris"),
    ('Answer: "B"', "Paris"),
    ("Answer: \\text{B}", "Paris"),
    ("Answer: \\textbf{(B)}", "Paris"),
    ("Answer: Option B", "Paris"),
    ("Answer: B) Paris", "Paris"),
    ("Answer: B. Paris", "Paris"),
    ("Answer: B: Paris", "Paris"),
    ("Answer: B - Paris", "Paris"),
    ("Answer: B \u2014 Paris", "Paris"),
    ("Answer: B, because the Seine flows there", "Paris"),
    ("Answer: B because the Seine flows there", "Paris"),
    ("Answer: B is the only one in France", "Paris"),
    ("Answer: Paris", "Paris"),
    ("Answer: paris.", "Paris"),
    ("Answer: Paris, because the Seine flows there", "Paris"),
    ("Answer: Paris (on the Seine)", "Paris"),
    ("Answer: 2", "Paris"),
    ("Answer: (2)", "Paris"),
    ("Answer: option 2", "Paris"),
    ("Answer: B<|im_end|>", "Paris"),
    ("\uff21\uff4e\uff53\uff57\uff45\uff52\uff1a\uff22", "Paris"),
    ("Answer: \uff12", "Paris"),
    ("Answer:\nB", "Paris"),
    ("**Final Answer**\n\nB", "Paris"),
    ("The final answer: B", "Paris"),
    ("So the answer is: B", "Paris"),
    ("Final Answer: \\boxed{B}", "Paris"),
    ("Therefore \\boxed{\\text{B}}.", "Paris"),
    ("#### B", "Paris"),
    ("It cannot be A or C.\nAnswer: B", "Paris"),
    ("A) Rome\nB) Paris\nC) Berlin\nD) Oslo\n\nAnswer: B", "Paris"),
    ("Answer: A\nWait, that is wrong.\nAnswer: B", "Paris"),
    ("Answer: B\r\n", "Paris"),
    ("B", "Paris"),
    ("b", "Paris"),
    ("(B)", "Paris"),
    ("**B**", "Paris"),
    ("B.", "Paris"),
    ("B) Paris", "Paris"),
    ("B Paris", "Paris"),
    ("Option B", "Paris"),
    ("Paris", "Paris"),
    (" Paris.\n", "Paris"),
]

LENIENT = [
    ("The answer is B.", "Paris"),
    ("the answer is (B)", "Paris"),
    ("So the answer is **B**, which is Paris.", "Paris"),
    ("The correct answer is option B: Paris.", "Paris"),
    ("The correct option is B.", "Paris"),
    ("The answer is most likely B.", "Paris"),
    ("The answer is Paris.", "Paris"),
    ("The answer is B, not C.", "Paris"),
    ("There is no doubt that the answer is B.", "Paris"),
    ("Rome is not in France so the answer is B.", "Paris"),
    ("I choose B.", "Paris"),
    ("B. Paris is the capital of France.", "Paris"),
    ("B. Paris is the capital of France.\n\nIt lies on the Seine.", "Paris"),
    ("B) The capital of France, on the Seine", "Paris"),
    ("(B) because of the Seine", "Paris"),
    ("The correct answer is B) Paris, as everybody knows.", "Paris"),
    ("Paris, because the Seine flows there.", "Paris"),
    ("I'd go with (B).", "Paris"),
    ("I\u2019d go with B.", "Paris"),
    ("B is the correct answer.", "Paris"),
    ("Option B is correct.", "Paris"),
    ("It's B.", "Paris"),
    ("I cannot say it is A; it is B", "Paris"),
    ("I think it must be **B**", "Paris"),
    ("Based on the map, (B) fits best.", "Paris"),
    ("The capital of France is Paris.", "Paris"),
    ("It lies on the Seine.\n\nB", "Paris"),
    ("It lies on the Seine.\n\n**B) Paris**\n\nThat is all.", "Paris"),
    ("At first the answer is A it seems.\nOn reflection, the answer is B.", "Paris"),
    ("Answer: B\nThe Seine flows through it.", "Paris"),
    ("Answer: B\n\nQuestion: What is the capital of Norway?\nAnswer: D", "Paris"),
    ("Answer: Let me think about France first.\nSo the answer is (B).", "Paris"),
]

NO_ANSWER = [
    "",
    "   \n ",
    "A man walks into a bar.",
    "And then nothing.",
    "A: It depends on the map.",
    "A. Smith wrote a book on this.",
    "C. S. Lewis never went there.",
    "(A) is wrong.",
    "B-cells fight off infections.",
    "Answer",
    "Answer:",
    "Answer: A man who sells bread",
    "Answer: E",
    "Answer: (Z)",
    "E",
    "The answer is E.",
    "Answer: 5",
    "Answer: 0",
    "Answer: A or B",
    "Answer: A, B",
    "Answer: both A and B",
    "Answer: Rome, Paris",
    "Answer: B) Rome",
    "Answer: none of the above",
    "The answer is A. The answer is B.",
    "The answer is A.\nOr perhaps not.\nThe answer is B.\nHard to say.",
    "A\nB\nC\nD",
    "A) Rome\nB) Paris\nC) Berlin\nD) Oslo",
    "Is the answer B?",
    "If the answer is B then France is meant.",
    "The answer isn't B.",
    "The wrong answer is B.",
    "So (B) is wrong.",
    "Vitamin C and vitamin D are good for you.",
    "I do not know.",
    "I doubt that it is Paris",
    "Б",
    "答案",
    "Ⅳ",
    "Answer: \uff5a",
]


def outcome_of(response: str, options: tuple[str, ...] = CITIES) -> tuple[str | None, bool | None]:
    judged = grade_response(response, gold=options[0], kind="option", options=options)
    return judged.choice, judged.strict


@pytest.mark.parametrize(("response", "choice"), DEMANDED)
def test_an_answer_in_the_demanded_form(response: str, choice: str) -> None:
    assert outcome_of(response) == (choice, True)


@pytest.mark.parametrize(("response", "choice"), LENIENT)
def test_an_answer_found_elsewhere(response: str, choice: str) -> None:
    assert outcome_of(response) == (choice, False)


@pytest.mark.parametrize("response", NO_ANSWER)
def test_no_answer(response: str) -> None:
    judged = grade_response(response, gold="Rome", kind="option", options=CITIES)
    assert (judged.score, judged.outcome, judged.choice) == (0.0, Outcome.NO_ANSWER, None)


@pytest.mark.parametrize(
    ("response", "options", "choice"),
    [
        ("Answer: 7", COUNTS, "7"),
        ("Answer: G", COUNTS, "7"),
        ("There are 7 of them. Answer: 7", COUNTS, "7"),
        ("Answer: 3", ("3", "1", "2"), "3"),
        ("Answer: 1", ("3", "1", "2"), "1"),
        ("Answer: 4", ("3", "1", "2"), None),
        ("Answer: No. He never left.", YES_NO, "No"),
        ("Answer: No, he never left.", YES_NO, "No"),
        ("Answer: Yes and no", YES_NO, None),
        ("There is no way to tell", YES_NO, None),
        ("Answer: A dog", ("A cat", "A dog"), "A dog"),
        ("Answer: A", ("A cat", "A dog"), "A cat"),
        ("Answer: C", ("B", "C", "A"), "A"),
        ("Answer: E", ("I", "E", "O"), "E"),
        ("Answer: the first", ("U.S.", "us"), None),
        ("Answer: US", ("U.S.", "us"), None),
        ("Answer: C++", ("C", "C++"), "C++"),
        ("Answer: x > y", ("x < y", "x > y"), "x > y"),
        ("Answer: -5", ("5", "-5"), "-5"),
        ("Answer: 1.5", ("15", "1.5"), "1.5"),
        ("The sentence is not plausible.", ("plausible", "not plausible"), "not plausible"),
        ("Answer: K", tuple("nopqrstuvwx"), "x"),
        ("Answer: un perro", ("un gato", "un perro"), "un perro"),
        ("Answer: 東京", ("京都", "東京"), "東京"),
    ],
)
def test_what_an_answer_names_depends_on_the_options(
    response: str, options: tuple[str, ...], choice: str | None
) -> None:
    assert outcome_of(response, options)[0] == choice


@pytest.mark.parametrize("article", ["A", "An", "And", "Also", "Because", "Can", "Do", "Come"])
def test_a_stray_capital_is_never_an_answer(article: str) -> None:
    assert outcome_of(f"{article} long story without an end")[0] is None


def test_right_and_wrong_and_what_was_said() -> None:
    right = grade_response("Answer: B", gold="Paris", kind="option", options=CITIES)
    wrong = grade_response("Answer: C", gold="Paris", kind="option", options=CITIES)
    assert (right.score, right.outcome, right.answer) == (1.0, Outcome.CORRECT, "B")
    assert (wrong.score, wrong.outcome, wrong.answer) == (0.0, Outcome.INCORRECT, "C")


def test_every_right_option_counts() -> None:
    judged = grade_response(
        "Answer: C", gold="Paris", kind="option", options=CITIES, also_right=("Berlin",)
    )
    assert judged.score == 1.0


def test_options_with_the_same_text_are_equally_right() -> None:
    assert (
        grade_response("Answer: C", gold="x", kind="option", options=("x", "y", "x")).score == 1.0
    )


@pytest.mark.parametrize("options", [(), ("Rome", "Oslo")])
def test_gold_must_be_an_option(options: tuple[str, ...]) -> None:
    with pytest.raises(FieldError, match=f"'Paris' is not among the {len(options)} options"):
        grade_response("Answer: A", gold="Paris", kind="option", options=options)
