"""Log-likelihoods equal those of a plain pass per continuation."""

from __future__ import annotations

import random
from typing import Any

import pytest
import torch

from forgetmap.evaluation.backends.base import Failure, Likelihoods, Question
from forgetmap.evaluation.backends.transformers.backend import TransformersBackend
from tiny_models import CONTEXT, encode, sentence, tiny_model, tokenizer, watched

pytestmark = pytest.mark.needs_torch

KINDS = ["llama", "eager", "gpt2", "window"]
OPTIONS = (" cat", " the lazy dog ran", " the lazy bird", " under a tree")


def plain(model: Any, text: str, continuation: str) -> tuple[float, int]:
    """Everything in one row, nothing shared; the split is where the stripped text ends."""
    tokens, start = encode(text + continuation), len(encode(text.rstrip()))
    if not start:
        tokens, start = [0, *tokens], 1
    with torch.no_grad():
        logits = model(torch.tensor([tokens])).logits[0].double().log_softmax(-1)
    places = range(start, len(tokens))
    return sum(logits[n - 1, tokens[n]].item() for n in places), len(places)


def mixed_questions() -> list[Question]:
    """Few-shot heads, passages with two questions, and texts of their own."""
    source = random.Random(2)
    head, passage = sentence(source, 40), sentence(source, 30)
    texts = [f"{head}. {sentence(source, source.randint(1, 20))} is" for _ in range(7)]
    texts += [f"{passage}. {sentence(source, 5)}:", f"{passage}. {sentence(source, 9)}:"]
    texts += [sentence(source, source.randint(1, 60)) for _ in range(6)]
    texts += ["", "the cat ", "the dog\n"]
    return [Question(text, OPTIONS[: source.randint(1, 4)]) for text in texts]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("pass_tokens", [4096, 150])
def test_equal_to_one_plain_pass_per_continuation(kind: str, pass_tokens: int) -> None:
    model, asked = tiny_model(kind), mixed_questions()
    backend = TransformersBackend(model, tokenizer(), pass_tokens=pass_tokens)
    found = dict(backend.loglikelihood(asked))
    assert sorted(found) == list(range(len(asked)))
    for place, question in enumerate(asked):
        result = found[place]
        assert isinstance(result, Likelihoods)
        expected = [plain(model, question.text, end) for end in question.continuations]
        assert result.logprobs == pytest.approx([value for value, _ in expected], abs=1e-4)
        assert result.tokens == tuple(count for _, count in expected)


def test_a_shared_head_is_computed_once() -> None:
    source = random.Random(6)
    head = sentence(source, 60)
    asked = [Question(f"{head}. {sentence(source, 4)} is", OPTIONS) for _ in range(20)]
    with watched(tiny_model("llama")) as sizes:
        list(TransformersBackend(tiny_model("llama"), tokenizer()).loglikelihood(asked))
    behind = max(len(encode(one.text)) for one in asked) - len(encode(head))
    most = behind + sum(len(encode(option)) for option in OPTIONS)
    assert sum(sizes) <= len(encode(head)) + 2 + 20 * most


def test_too_little_memory_is_met_with_smaller_batches() -> None:
    asked = mixed_questions()[:9]
    backend = TransformersBackend(tiny_model("llama"), tokenizer())
    enough = dict(backend.loglikelihood(asked))
    with watched(tiny_model("llama"), limit=100) as sizes:
        scarce = dict(backend.loglikelihood(asked))
    assert max(sizes) > 100
    for place, result in enough.items():
        other = scarce[place]
        assert isinstance(result, Likelihoods)
        assert isinstance(other, Likelihoods)
        assert other.logprobs == pytest.approx(result.logprobs, abs=1e-4)


def test_a_question_beyond_all_memory_fails_alone() -> None:
    asked = [Question(sentence(random.Random(1), words), OPTIONS) for words in (3, 90)]
    with watched(tiny_model("llama"), limit=60):
        found = dict(TransformersBackend(tiny_model("llama"), tokenizer()).loglikelihood(asked))
    assert isinstance(found[0], Likelihoods)
    assert isinstance(found[1], Failure)
    assert "no memory left" in str(found[1])


@pytest.mark.parametrize(
    ("question", "reason"),
    [
        (Question("the cat", ()), "no continuations"),
        (Question("the cat", (" sat", "")), "Continuation 2"),
        (Question("cat " * 2 * CONTEXT, (" sat",)), f"context length {CONTEXT}"),
    ],
)
def test_unusable_questions_fail_alone(question: Question, reason: str) -> None:
    backend = TransformersBackend(tiny_model("llama"), tokenizer())
    found = dict(backend.loglikelihood([question, Question("the dog", OPTIONS)]))
    assert isinstance(found[0], Failure)
    assert reason in str(found[0])
    assert isinstance(found[1], Likelihoods)


def test_the_context_can_be_filled_to_the_last_token() -> None:
    text = " cat" * CONTEXT
    assert len(encode(text)) == CONTEXT
    backend = TransformersBackend(tiny_model("gpt2"), tokenizer())
    fits, beyond = (dict(backend.loglikelihood([Question(text + extra, (" dog",))]))[0]
                    for extra in ("", " cat"))  # fmt: skip
    assert isinstance(fits, Likelihoods)
    assert isinstance(beyond, Failure)


def test_not_a_number_is_a_failure_and_no_answer() -> None:
    model = type(tiny_model("llama"))(tiny_model("llama").config)
    torch.nn.init.constant_(model.lm_head.weight, float("nan"))
    found = dict(TransformersBackend(model, tokenizer()).loglikelihood([Question("a", (" b",))]))
    assert isinstance(found[0], Failure)
