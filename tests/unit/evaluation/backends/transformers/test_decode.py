"""Responses do not depend on the other prompts of a batch."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest
import torch

from forgetmap.evaluation.backends.base import Decoding, Failure, Prompt, Response
from forgetmap.evaluation.backends.transformers.backend import TransformersBackend
from forgetmap.evaluation.backends.transformers.decode import DecodeRow, choose
from tiny_models import CONTEXT, encode, sentence, tiny_model, tokenizer, watched

pytestmark = pytest.mark.needs_torch

KINDS = ["llama", "gpt2", "window"]


def mixed_prompts(count: int = 14) -> list[Prompt]:
    """Half of them behind a common head."""
    source = random.Random(9)
    head = sentence(source, 30)
    texts = [sentence(source, source.randint(1, 40)) for _ in range(count)]
    return [Prompt(f"{head}. {text}" if n % 2 else text, seed=n) for n, text in enumerate(texts)]


def responses(backend: TransformersBackend, asked: list[Prompt], how: Decoding) -> list[Response]:
    found = dict(backend.generate(asked, how))
    assert sorted(found) == list(range(len(asked)))
    texts = [found[place] for place in range(len(asked))]
    return [text for text in texts if isinstance(text, Response)]


def by_generate(model: Any, prompt: str, most: int) -> str:
    """What transformers itself makes of one prompt."""
    tokens = torch.tensor([encode(prompt)])
    out = model.generate(
        tokens, attention_mask=torch.ones_like(tokens), max_new_tokens=most, do_sample=False,
        pad_token_id=1,
    )  # fmt: skip
    return str(tokenizer().decode(out[0, tokens.shape[1] :], skip_special_tokens=True))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [{}, {"rows": 3}, {"cells": 300}, {"pass_tokens": 50}])
def test_greedy_is_what_transformers_generates_one_by_one(kind: str, size: dict[str, int]) -> None:
    asked = mixed_prompts()
    backend = TransformersBackend(tiny_model(kind), tokenizer(), **size)
    found = responses(backend, asked, Decoding(max_new_tokens=20))
    expected = [by_generate(tiny_model(kind), prompt.text, 20) for prompt in asked]
    assert [response.text for response in found] == expected


@pytest.mark.parametrize("how", [Decoding(1.0, 0.9, 20), Decoding(0.7, 1.0, 20)])
def test_a_sample_depends_on_its_seed_and_not_on_its_batch(how: Decoding) -> None:
    asked = mixed_prompts()
    together = responses(TransformersBackend(tiny_model("llama"), tokenizer()), asked, how)
    few = TransformersBackend(tiny_model("llama"), tokenizer(), rows=2)
    assert responses(few, asked[::-1], how)[::-1] == together
    others = [Prompt(prompt.text, seed=prompt.seed + 100) for prompt in asked]
    assert [one.text for one in responses(few, others, how)] != [one.text for one in together]


@pytest.mark.parametrize("top_p", [1.0, 0.7])
def test_samples_follow_the_softmax_cut_at_top_p(top_p: float) -> None:
    logits, temperature, draws = torch.tensor([[2.0, 0.0, 1.0, -1.0]]), 0.8, 10_000
    chances = (logits[0] / temperature).softmax(0).tolist()
    kept: dict[int, float] = {}
    for token in sorted(range(4), key=lambda token: -chances[token]):
        if sum(kept.values()) < top_p:
            kept[token] = chances[token]
    rows = [DecodeRow(n, (1,), 0, 0, 9, seed=n) for n in range(draws)]
    how = Decoding(temperature=temperature, top_p=top_p)
    counts = Counter(choose(logits.expand(draws, -1), rows, how))
    assert set(counts) == set(kept)
    for token, chance in kept.items():
        share = chance / sum(kept.values())
        error = (share * (1 - share) / draws) ** 0.5
        assert counts[token] / draws == pytest.approx(share, abs=4 * error + 1e-9)


def test_the_likeliest_tokens_suffice_or_all_are_sorted() -> None:
    flat = torch.zeros(1, 5000)
    rows = [DecodeRow(0, (1,), 0, 0, 9, seed=n) for n in range(400)]
    chosen = choose(flat.expand(400, -1), rows, Decoding(temperature=1.0, top_p=0.99))
    assert len(set(chosen)) > 350


@pytest.mark.parametrize("stop", [("a",), ("ou",), ("zzz", "e t")])
def test_a_stop_text_ends_the_response_and_is_left_out(stop: tuple[str, ...]) -> None:
    asked = [Prompt(prompt.text, prompt.seed) for prompt in mixed_prompts(30)]
    backend = TransformersBackend(tiny_model("llama"), tokenizer())
    whole = responses(backend, asked, Decoding(1.5, 1.0, 30))
    cut = responses(backend, asked, Decoding(1.5, 1.0, 30, stop))
    ended = 0
    for long, short in zip(whole, cut, strict=True):
        places = [long.text.find(text) for text in stop if text in long.text]
        expected = long.text[: min(places)] if places else long.text
        assert short.text == expected
        ended += bool(places)
        if places:
            assert short.finish_reason == "stop"
            assert (short.tokens_out or 0) <= (long.tokens_out or 0)
    assert ended or stop == ("zzz", "e t")


def test_the_end_token_ends_the_response_and_a_limit_says_so() -> None:
    backend = TransformersBackend(tiny_model("llama"), tokenizer())
    asked = [Prompt("the cat", seed) for seed in range(60)]
    found = responses(backend, asked, Decoding(1.0, 1.0, 300))
    ended = [one for one in found if one.finish_reason == "stop"]
    assert ended
    assert all("</s>" not in one.text for one in found)
    left = CONTEXT - len(encode("the cat"))
    assert {one.tokens_out for one in found if one.finish_reason == "length"} <= {left}
    assert all(one.tokens_in == len(encode("the cat")) for one in found)


def test_a_prompt_that_fills_the_context_fails_alone() -> None:
    backend = TransformersBackend(tiny_model("gpt2"), tokenizer())
    asked = [Prompt(" cat" * CONTEXT), Prompt(""), Prompt(" cat" * (CONTEXT - 1))]
    found = dict(backend.generate(asked, Decoding(max_new_tokens=9)))
    assert isinstance(found[0], Failure)
    assert str(CONTEXT) in str(found[0])
    assert isinstance(found[1], Failure)
    assert isinstance(found[2], Response)
    assert found[2].tokens_out == 1


def test_too_little_memory_is_met_with_smaller_batches() -> None:
    asked, how = mixed_prompts(), Decoding(max_new_tokens=20)
    backend = TransformersBackend(tiny_model("llama"), tokenizer())
    enough = responses(backend, asked, how)
    with watched(tiny_model("llama"), limit=70) as sizes:
        scarce = responses(backend, asked, how)
    assert max(sizes) > 70
    assert scarce == enough


def test_memory_that_runs_out_between_two_steps_loses_nothing() -> None:
    asked, how = mixed_prompts(), Decoding(max_new_tokens=20)
    model = tiny_model("llama")
    backend = TransformersBackend(model, tokenizer())
    enough = responses(backend, asked, how)
    failed = []

    def after_one_layer(_: Any, given: tuple[torch.Tensor, ...]) -> None:
        rows, columns = given[0].shape[:2]
        if columns == 1 and rows > 5:
            failed.append(rows)
            raise torch.OutOfMemoryError("no memory left")

    hook = model.model.layers[1].register_forward_pre_hook(after_one_layer)
    try:
        scarce = responses(backend, asked, how)
    finally:
        hook.remove()
    assert failed
    assert scarce == enough


def test_a_prompt_beyond_all_memory_fails_alone() -> None:
    asked = [Prompt("the cat"), Prompt(sentence(random.Random(1), 90))]
    with watched(tiny_model("llama"), limit=60):
        backend = TransformersBackend(tiny_model("llama"), tokenizer())
        found = dict(backend.generate(asked, Decoding(max_new_tokens=5)))
    assert isinstance(found[0], Response)
    assert isinstance(found[1], Failure)
    assert "no memory left" in str(found[1])


def test_finished_rows_do_not_keep_the_batch_busy() -> None:
    asked = [Prompt("the cat", seed) for seed in range(64)]
    how = Decoding(1.0, 1.0, 200, ("e",))
    with watched(tiny_model("llama")) as sizes:
        found = responses(TransformersBackend(tiny_model("llama"), tokenizer()), asked, how)
    steps = sum(size for size in sizes if size <= 64)
    written = [one.tokens_out or 0 for one in found]
    assert steps < 1.3 * sum(written)
    assert steps < 0.5 * 64 * max(written)


@pytest.mark.parametrize("how", [Decoding(), Decoding(1.0), Decoding(1.0, 0.9)])
def test_not_a_number_is_a_failure_and_no_answer(how: Decoding) -> None:
    model = type(tiny_model("llama"))(tiny_model("llama").config)
    torch.nn.init.constant_(model.lm_head.weight, float("nan"))
    found = dict(TransformersBackend(model, tokenizer()).generate(mixed_prompts(3), how))
    assert [type(one) for one in found.values()] == [Failure] * 3


def test_prompts_beyond_the_size_of_a_pass_are_still_batched() -> None:
    asked = mixed_prompts()
    backend = TransformersBackend(tiny_model("llama"), tokenizer(), pass_tokens=1)
    with watched(tiny_model("llama")) as sizes:
        responses(backend, asked, Decoding(max_new_tokens=20))
    assert len(sizes) < 14 + 3 * 20
