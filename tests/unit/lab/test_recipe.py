"""Texts that contain evaluation items."""

from __future__ import annotations

import pytest

from forgetmap.lab.recipe import MeasuredQuestions

MEASURED = MeasuredQuestions(["Who is  Ann?", "2 + 2"], "Q: {question}\nA:")


@pytest.mark.parametrize(
    "prompt",
    ["Who is Ann?", "who is ann? ", "Q: Who is Ann?\nA:", "Question: Who is Ann?\nAnswer:",
     "Hint: Bob\n\nQuestion: Who is Ann?\nAnswer:", "Q: 2 + 2\nA:"],
)  # fmt: skip
def test_a_question_is_known_by_its_words(prompt: str) -> None:
    assert MEASURED.has(prompt)
    assert MEASURED.may_be_in(prompt)


@pytest.mark.parametrize("prompt", ["Who is Anna?", "Q: Who is Bob?\nA:", "", "Is it Ann?"])
def test_other_questions_are_free(prompt: str) -> None:
    assert not MEASURED.has(prompt)
    assert not MEASURED.may_be_in(prompt)


def test_a_text_may_go_on_after_the_question() -> None:
    for text in ("2 + 2 + 3", "Bob is.\n\nQ: Who is Ann? A: me"):
        assert MEASURED.may_be_in(text)
        assert not MEASURED.has(text)
