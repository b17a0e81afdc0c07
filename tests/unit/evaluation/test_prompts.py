"""The exact prompts of models."""

from __future__ import annotations

from dataclasses import replace

import pytest

from forgetmap.evaluation.backends.transformers.backend import TransformersBackend
from forgetmap.evaluation.items import Item, Task
from forgetmap.evaluation.prompts import continuations_of, prompt_of
from forgetmap.evaluation.settings import Settings, resolve
from tiny_models import tiny_model, tokenizer

pytestmark = pytest.mark.needs_torch

ITEM = Item("1", "What is it?", "dog", ("cat", "dog"))
LESSON = Item("l", "Which is 'x'?", "x", ("y", "x"))
TASK = Task("t", None, "option", lambda: (ITEM,), "Choose.", lessons=(LESSON,))
BACKEND = TransformersBackend(tiny_model("llama"), tokenizer())


def test_options_are_shown_with_letters() -> None:
    resolved = resolve(Settings(), BACKEND)
    assert prompt_of(ITEM, TASK, resolved, BACKEND) == (
        "Choose.\n\nQuestion: Which is 'x'?\nA) y\nB) x\nAnswer: B\n\n"
        "Question: What is it?\nA) cat\nB) dog\nAnswer:"
    )
    assert continuations_of(ITEM, TASK) == (" A", " B")


def test_hidden_options_are_weighed_by_their_text() -> None:
    task = replace(TASK, hides_options=True, instruction="")
    resolved = resolve(Settings(), BACKEND)
    assert prompt_of(ITEM, task, resolved, BACKEND) == (
        "Question: Which is 'x'?\nAnswer: x\n\nQuestion: What is it?\nAnswer:"
    )
    assert continuations_of(ITEM, task) == (" cat", " dog")


def test_published_few_shot_shows_reasoning() -> None:
    example = replace(LESSON, reasoning="x is x.")
    task = replace(TASK, examples=(example,))
    resolved = resolve(Settings(protocol="published", stage="base"), BACKEND)
    assert (resolved.style, resolved.repeats, resolved.by_likelihood) == ("few-shot", 3, False)
    assert (resolved.decoding.temperature, resolved.decoding.top_p) == (0.6, 0.95)
    assert prompt_of(ITEM, task, resolved, BACKEND) == (
        "Choose.\n\nQuestion: Which is 'x'?\nA) y\nB) x\nReasoning: x is x.\nAnswer: B\n\n"
        "Question: What is it?\nA) cat\nB) dog\nReasoning:"
    )


def test_a_chat_gets_the_template_and_the_form_of_the_answer() -> None:
    chatty = tokenizer().__class__(tokenizer_object=tokenizer().backend_tokenizer)
    chatty.chat_template = (
        "{% for m in messages %}[{{ m.role }}] {{ m.content }}\n{% endfor %}[assistant]"
    )
    backend = TransformersBackend(tiny_model("llama"), chatty)
    resolved = resolve(Settings(protocol="published", stage="tuned"), backend)
    assert resolved.style == "chat"
    assert prompt_of(ITEM, TASK, resolved, backend) == (
        '[user] Choose.\nThink step by step. End with a line that is nothing but "Answer: " and '
        "the letter of your choice.\n\nQuestion: What is it?\nA) cat\nB) dog\n[assistant]"
    )
