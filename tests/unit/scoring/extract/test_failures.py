from __future__ import annotations

import random

import pytest

from forgetmap.records.outcome import Outcome
from forgetmap.scoring.extract.failures import _ELSEWHERE, _REFUSAL, is_loop, is_refusal
from forgetmap.scoring.extract.thinking import without_thinking
from forgetmap.scoring.grade import Grade
from forgetmap.scoring.grading import grade_response

CITIES = ("Rome", "Paris", "Berlin", "Oslo")


def of_option(response: str, finish_reason: str | None = None) -> Grade:
    return grade_response(
        response, gold="Paris", kind="option", options=CITIES, finish_reason=finish_reason
    )


@pytest.mark.parametrize(
    ("response", "aloud", "thought_out"),
    [
        ("plain", "plain", True),
        ("<think>hm</think>said", "said", True),
        ("<THINK>hm</Think>said", "said", True),
        ("<thinking>hm</thinking>said", "said", True),
        ("<reasoning>hm</reasoning>said", "said", True),
        ("<|begin_of_thought|>hm<|end_of_thought|>said", "said", True),
        ("before<think>hm</think>after", "beforeafter", True),
        ("<think>a</think>b<think>c</think>d", "bd", True),
        ("hm, begun in the prompt</think>said", "said", True),
        ("begun in the prompt</think>", "", True),
        ("<think>a <think> b</think> c</think>said", "said", True),
        ("<think>a</think>said</think>", "said", True),
        ("<think>never ends", "", False),
        ("said<think>never ends", "said", False),
        ("<think>a</think>said<think>again", "said", False),
        ("1 < 2 and <b>bold</b>", "1 < 2 and <b>bold</b>", True),
    ],
)
def test_thinking_is_removed(response: str, aloud: str, thought_out: bool) -> None:
    assert without_thinking(response) == (aloud, thought_out)


@pytest.mark.parametrize(
    ("response", "finish_reason", "outcome"),
    [
        ("<think>Answer: C</think>\nAnswer: B", "stop", Outcome.CORRECT),
        ("<think>Answer: B</think>\nAnswer: C", "stop", Outcome.INCORRECT),
        ("<think>Answer: B</think>", "stop", Outcome.NO_ANSWER),
        ("<think>Answer: B", "length", Outcome.TRUNCATED),
        ("<think>Answer: B", None, Outcome.TRUNCATED),
        ("The capital lies on the", "length", Outcome.TRUNCATED),
        ("The capital lies on the", "stop", Outcome.NO_ANSWER),
        ("", "length", Outcome.TRUNCATED),
        ("So the answer is B. But wait", "length", Outcome.TRUNCATED),
        ("Answer: B", "length", Outcome.CORRECT),
        ("B", "length", Outcome.CORRECT),
        ("Answer: Paris", "length", Outcome.TRUNCATED),
        ("Answer: Paris\n", "length", Outcome.CORRECT),
        ("Answer: B\nThe Seine flows through the", "length", Outcome.CORRECT),
        ("\\boxed{B} The Seine flows through the", "length", Outcome.CORRECT),
        ("\\boxed{B", "length", Outcome.TRUNCATED),
        ("Answer: B\n\nQuestion: what", "length", Outcome.CORRECT),
    ],
)
def test_a_cut_response_counts_only_with_a_complete_answer(
    response: str, finish_reason: str | None, outcome: Outcome
) -> None:
    assert of_option(response, finish_reason).outcome is outcome


@pytest.mark.parametrize(
    ("response", "outcome"),
    [
        ("Answer: 12", Outcome.TRUNCATED),
        ("Answer: 12\n", Outcome.CORRECT),
        ("12", Outcome.TRUNCATED),
    ],
)
def test_a_cut_number_may_lack_digits(response: str, outcome: Outcome) -> None:
    assert (
        grade_response(response, gold="12", kind="number", finish_reason="length").outcome
        is outcome
    )


REFUSALS = [
    "I'm sorry, but I can't help with that.",
    "I\u2019m sorry, but I can\u2019t assist with that request.",
    "Sorry, I cannot answer this question.",
    "I cannot provide instructions for that.",
    "I can't help you with this.",
    "I am unable to assist with this request.",
    "I'm not able to help with that.",
    "As an AI language model, I cannot have opinions.",
    "I must decline this request.",
    "I won't discuss this.",
    "I will not answer that.",
    "I apologize, but I can't do that.",
]

NO_REFUSALS = [
    "I do not know.",
    "I'm not sure about this one.",
    "I cannot find an error in the statement.",
    "I can't decide between them.",
    "It cannot be determined from the passage.",
    "I cannot provide a definitive reading of this passage.",
    "Sorry, let me start again.",
    "The man said that he could not help his brother.",
    "She is unable to answer the phone.",
    "I'm sorry, but I can't tell which.",
]


@pytest.mark.parametrize("response", REFUSALS)
@pytest.mark.parametrize("kind", ["option", "text", "number"])
def test_refusals(response: str, kind: str) -> None:
    options = CITIES if kind == "option" else ()
    gold = "7" if kind == "number" else "Paris"
    judged = grade_response(response, gold=gold, kind=kind, options=options)  # type: ignore[arg-type]
    assert (judged.score, judged.outcome, judged.answer) == (0.0, Outcome.REFUSED, None)


@pytest.mark.parametrize("response", NO_REFUSALS)
def test_near_misses_are_no_refusals(response: str) -> None:
    assert not is_refusal(response)
    assert of_option(response).outcome is Outcome.NO_ANSWER


@pytest.mark.parametrize(
    ("response", "choice"),
    [
        ("I cannot say it is B; it is C", "Berlin"),
        ("I can't help thinking of the Seine. Answer: B", "Paris"),
        ("I'm sorry, but I can't help with travel plans.\nAnswer: B", "Paris"),
    ],
)
def test_whoever_answers_has_not_refused(response: str, choice: str) -> None:
    assert of_option(response).choice == choice


def test_an_option_may_be_a_refusal() -> None:
    options = ("Sure, here is how.", "I'm sorry, but I can't help with that.")
    judged = grade_response(options[1], gold=options[1], kind="option", options=options)
    assert judged.outcome is Outcome.CORRECT


def sentences(seed: int, count: int) -> str:
    words = [
        "red",
        "tall",
        "river",
        "stone",
        "runs",
        "under",
        "cold",
        "night",
        "bird",
        "far",
        "old",
    ]
    chance = random.Random(seed)
    return " ".join(" ".join(chance.choices(words, k=9)) + "." for _ in range(count))


LOOPS = {
    "sentence": "Let me see. " + "Wait, let me check that again. " * 40,
    "word": "the " * 200,
    "character": "So " + "!" * 500,
    "cut in the middle": ("Wait, let me check that again. " * 40)[:-11],
    "paragraph": sentences(1, 20) + "\n" + (sentences(2, 30) + "\n") * 5,
    "rules between": ("Once more from the start.\n" + "-" * 80 + "\n") * 12,
    "counter": "".join(f"Step {n}: wait, let me think about this again.\n" for n in range(40)),
    "chinese": "让我再想一想。" * 80,
    "few phrases in any order": "".join(
        random.Random(5).choices(
            ["Wait, let me check that again. ", "Hmm, let me check this again. "], k=200
        )
    ),
}

NO_LOOPS = {
    "short": "no " * 20,
    "prose": sentences(3, 200),
    "numbers": "\n".join(map(str, range(2000))),
    "times table": "\n".join(f"{n} times 7 is {7 * n}" for n in range(300)),
    "table": "| n | even |\n|---|---|\n" + "\n".join(f"| {n} | {n % 2 == 0} |" for n in range(300)),
    "table with a constant column": "\n".join(f"| {n} | yes | 0 |" for n in range(400)),
    "squares": "\n".join(f"The square of {n} is {n * n}." for n in range(200)),
    "zeros": "\n".join(["0,0,0,0,0,0,0,0"] * 20),
    "loop left behind": "Wait, let me check again. " * 40 + sentences(4, 10),
    "code": "".join(f"def f_{w}(x):\n    return x + {len(w)}\n\n" for w in sentences(6, 9).split()),
}


@pytest.mark.parametrize("name", LOOPS)
def test_loops_are_degenerate(name: str) -> None:
    assert is_loop(LOOPS[name])
    assert of_option(LOOPS[name], "length").outcome is Outcome.DEGENERATE
    assert of_option(f"<think>{LOOPS[name]}", "length").outcome is Outcome.DEGENERATE


@pytest.mark.parametrize("name", NO_LOOPS)
def test_lists_tables_and_code_are_no_loops(name: str) -> None:
    assert not is_loop(NO_LOOPS[name])


def test_an_answer_before_a_loop_counts_unless_it_wavers() -> None:
    assert of_option("Answer: B\n" + LOOPS["sentence"], "length").outcome is Outcome.CORRECT
    assert of_option("Answer: B\n" * 100, "length").outcome is Outcome.CORRECT
    assert of_option("Answer: B\nAnswer: C\n" * 100, "length").outcome is Outcome.DEGENERATE


DECLINING = """
    i we I'm i am sorry, as an AI apologize but can not cannot can't won't will not could couldn't
    unable to able must have decline refuse respectfully allowed going help assist answer provide a
    definite comply fulfil do that this don't say no puedo ayudar je ne peux suis pas vous aider ich
    kann dir nicht helfen non posso rispondere yardimci olamam siwezi kusaidia the . ,
"""


def test_texts_are_passed_over_only_where_no_pattern_fits() -> None:
    draw, words = random.Random(3), DECLINING.split()
    outcomes = set()
    for _ in range(5_000):
        text = " ".join(draw.choices(words, k=draw.randint(2, 7)))
        text = draw.choice((text, text.upper(), text.replace("sorry", "\u017forry")))
        fits = bool(_REFUSAL.search(text) or _ELSEWHERE.search(text))
        assert is_refusal(text) == fits, text
        outcomes.add(fits)
    assert outcomes == {True, False}


@pytest.mark.parametrize(
    "text", ["yardimci olamam", "Je ne peux pas vous aider.", "WE CAN NOT HELP"]
)
def test_each_language_in_ascii_declines(text: str) -> None:
    assert is_refusal(text)


def test_a_counter_in_any_digits_is_a_loop() -> None:
    line = "this sentence comes back with the number {} and nothing new at all. "
    for digits in ("0123456789", "\u0660\u0661\u0662\u0663\u0664\u0665\u0666\u0667\u0668\u0669"):
        assert is_loop("".join(line.format(digits[number % 10]) for number in range(30)))
