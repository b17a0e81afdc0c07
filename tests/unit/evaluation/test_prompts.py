"""What a model is shown, to the letter."""

from __future__ import annotations

from dataclasses import replace

import pytest

from forgetmap.evaluation.items import Item, Task
from forgetmap.evaluation.prompts import continuations_of, prompt_of
from forgetmap.evaluation.settings import Settings, settle
from forgetmap.evaluation.transformers_backend import TransformersBackend
from tiny_models import tiny_model, tokenizer

pytestmark = pytest.mark.needs_torch

ITEM = Item("1", "What is it?", "dog", ("cat", "dog"))
LESSON = Item("l", "Which is 'x'?", "x", ("y", "x"))
TASK = Task("t", None, "option", lambda: (ITEM,), "Choose.", lessons=(LESSON,))
BACKEND = TransformersBackend(tiny_model("llama"), tokenizer())


def test_options_are_shown_with_letters() -> None:
    manner = settle(Settings(), BACKEND)
    assert prompt_of(ITEM, TASK, manner, BACKEND) == (
        "Choose.\n\nQuestion: Which is 'x'?\nA) y\nB) x\nAnswer: B\n\n"
        "Question: What is it?\nA) cat\nB) dog\nAnswer:"
    )
    assert continuations_of(ITEM, TASK) == (" A", " B")


def test_hidden_options_are_weighed_by_their_text() -> None:
    task = replace(TASK, hides_options=True, instruction="")
    manner = settle(Settings(), BACKEND)
    assert prompt_of(ITEM, task, manner, BACKEND) == (
        "Question: Which is 'x'?\nAnswer: x\n\nQuestion: What is it?\nAnswer:"
    )
    assert continuations_of(ITEM, task) == (" cat", " dog")


def test_published_few_shot_shows_reasoning() -> None:
    example = replace(LESSON, reasoning="x is x.")
    task = replace(TASK, examples=(example,))
    manner = settle(Settings(protocol="published"), BACKEND)
    assert (manner.style, manner.repeats, manner.by_likelihood) == ("few-shot", 3, False)
    assert (manner.decoding.temperature, manner.decoding.top_p) == (0.6, 0.95)
    assert prompt_of(ITEM, task, manner, BACKEND) == (
        "Choose.\n\nQuestion: Which is 'x'?\nA) y\nB) x\nReasoning: x is x.\nAnswer: B\n\n"
        "Question: What is it?\nA) cat\nB) dog\nReasoning:"
    )


def test_a_chat_gets_the_template_and_the_form_of_the_answer() -> None:
    chatty = tokenizer().__class__(tokenizer_object=tokenizer().backend_tokenizer)
    chatty.chat_template = (
        "{% for m in messages %}[{{ m.role }}] {{ m.content }}\n{% endfor %}[assistant]"
    )
    backend = TransformersBackend(tiny_model("llama"), chatty)
    manner = settle(Settings(protocol="published"), backend)
    assert manner.style == "chat"
    assert prompt_of(ITEM, TASK, manner, backend) == (
        '[user] Choose.\nThink step by step. End with a line that is nothing but "Answer: " and '
        "the letter of your choice.\n\nQuestion: What is it?\nA) cat\nB) dog\n[assistant]"
    )
