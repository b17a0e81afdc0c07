"""A repeated prompt gets the current response of the model; only changes are generated."""

from __future__ import annotations

import copy
import random
from typing import Any

import pytest
import torch

from forgetmap.evaluation.backends.base import Decoding, Prompt, Response
from forgetmap.evaluation.backends.transformers.backend import TransformersBackend
from forgetmap.evaluation.backends.transformers.repeating import RepeatingBackend
from tiny_models import sentence, tiny_model, tokenizer

pytestmark = pytest.mark.needs_torch

GREEDY = Decoding(max_new_tokens=12)


def prompts() -> list[Prompt]:
    """Half of them behind a common head, as few-shot prompts are."""
    source = random.Random(4)
    head = sentence(source, 25)
    texts = [sentence(source, source.randint(1, 20)) for _ in range(12)]
    return [Prompt(f"{head}. {text}" if n % 2 else text, seed=n) for n, text in enumerate(texts)]


def responses(backend: TransformersBackend, how: Decoding = GREEDY) -> list[Response]:
    found = dict(backend.generate(prompts(), how))
    return [one for one in (found[n] for n in range(len(found))) if isinstance(one, Response)]


def move(model: Any, size: float) -> None:
    """Change all weights a little."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(size * torch.randn(weight.shape, generator=generator))


class CountedPasses(RepeatingBackend):
    """Counts the rows that are written token by token."""

    written = 0

    def _unchanged(self, rows: Any, decoding: Decoding) -> Any:
        same = super()._unchanged(rows, decoding)
        self.written = len(rows) - len(same)
        return same


@pytest.mark.parametrize("kind", ["llama", "gpt2", "window"])
@pytest.mark.parametrize("size", [0.0, 0.003, 0.3])
def test_a_model_that_moved_gets_what_it_would_write_now(kind: str, size: float) -> None:
    model = copy.deepcopy(tiny_model(kind))
    backend = CountedPasses(model, tokenizer())
    first = responses(backend)
    assert backend.written == len(prompts())
    assert first == responses(TransformersBackend(model, tokenizer()))
    move(model, size)
    again = responses(backend)
    assert again == responses(TransformersBackend(model, tokenizer()))
    changed = sum(one != other for one, other in zip(first, again, strict=True))
    assert backend.written == changed
    assert (changed == 0) == (size == 0.0)
    # What was written anew is the draft of the next time.
    assert responses(backend) == again
    assert backend.written == 0


def test_stop_texts_and_limits_have_drafts_of_their_own() -> None:
    backend = RepeatingBackend(tiny_model("llama"), tokenizer())
    for how in (GREEDY, Decoding(max_new_tokens=5), Decoding(max_new_tokens=12, stop=("e",))):
        expected = responses(TransformersBackend(tiny_model("llama"), tokenizer()), how)
        assert responses(backend, how) == expected
        assert responses(backend, how) == expected


def test_samples_are_drawn_anew() -> None:
    how = Decoding(temperature=1.0, max_new_tokens=8)
    backend = RepeatingBackend(tiny_model("llama"), tokenizer())
    first = responses(backend, how)
    assert responses(backend, how) == first
    assert first == responses(TransformersBackend(tiny_model("llama"), tokenizer()), how)
