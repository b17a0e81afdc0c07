"""KL to the start model, exact and with rare tokens merged into one."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from forgetmap.evaluation import Network, Settings, TransformersBackend, make_jobs, resolve
from forgetmap.train import divergence
from forgetmap.train.divergence import (
    AnswerPath,
    answer_paths,
    keep_start,
    mean_kl,
    measure_kl,
    read_start,
    write_start,
)
from small_suites import small_suite
from tiny_models import encode, tiny_model, tokenizer, watched

pytestmark = pytest.mark.needs_torch


def moved_model() -> Any:
    model = copy.deepcopy(tiny_model("llama"))
    with torch.no_grad():
        model.get_output_embeddings().weight.mul_(0.7)
    return model


def paths() -> list[AnswerPath]:
    shared = "the lazy dog ran over the river and under a mountain " * 8
    texts = [
        ("the cat sat", " on the mat"), ("a dog", " ran"), ("the quick brown", " bird flew"),
        (f"{shared} cat", " is"), (f"{shared} quick bird", " in the house"),
    ]  # fmt: skip
    return [
        AnswerPath(("task", str(number)), tuple(encode(prompt + answer)), len(encode(prompt)))
        for number, (prompt, answer) in enumerate(texts)
    ]


def log_probabilities(model: Any, path: AnswerPath) -> torch.Tensor:
    with torch.no_grad():
        logits = model(torch.tensor([path.tokens])).logits[0, path.start - 1 : -1]
    rows: torch.Tensor = logits.double().log_softmax(-1)
    return rows


def expected(path: AnswerPath) -> tuple[float, float]:
    """From all log-probabilities at once, one answer at a time."""
    before = log_probabilities(tiny_model("llama"), path)
    now = log_probabilities(moved_model(), path)
    return (
        float((now.exp() * (now - before)).sum(-1).mean()),
        float((before.exp() * (before - now)).sum(-1).mean()),
    )


def test_the_kl_of_a_small_vocabulary_is_exact_and_survives_the_disk(tmp_path: Path) -> None:
    start = keep_start(Network(tiny_model("llama")), paths())
    assert start.is_exact
    write_start(start, tmp_path)
    kept = read_start(tmp_path, paths())
    assert kept is not None
    found = measure_kl(Network(moved_model()), kept, {path.key for path in paths()})
    for path in paths():
        assert found[path.key] == pytest.approx(expected(path), rel=1e-3)
    means = mean_kl(found, {"task": "words"})
    assert means["total"] == means["words"]
    assert means["total"].to_start == pytest.approx(np.mean([one for one, _ in found.values()]))
    same = measure_kl(Network(tiny_model("llama")), kept, {("task", "0")})
    assert same == {("task", "0"): pytest.approx((0, 0), abs=1e-6)}


def test_what_prompts_begin_with_is_read_once() -> None:
    model = copy.deepcopy(tiny_model("llama"))
    with watched(model) as sizes:
        keep_start(Network(model), paths())
    assert sum(sizes) < 0.7 * sum(len(path.tokens) for path in paths())


def test_rare_tokens_as_one_give_a_lower_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(divergence, "KEPT_TOKENS", 20)
    start = keep_start(Network(tiny_model("llama")), paths())
    assert not start.is_exact
    found = measure_kl(Network(moved_model()), start, {path.key for path in paths()})
    for path in paths():
        for lower, whole in zip(found[path.key], expected(path), strict=True):
            assert 0 < lower < whole


def test_logits_that_are_not_numbers_give_no_kl() -> None:
    start = keep_start(Network(tiny_model("llama")), paths())
    broken = moved_model()
    with torch.no_grad():
        broken.get_output_embeddings().weight.fill_(float("nan"))
    assert measure_kl(Network(broken), start, {path.key for path in paths()}) == {}


def test_distributions_of_other_answers_are_not_used(tmp_path: Path) -> None:
    assert read_start(tmp_path, paths()) is None
    write_start(keep_start(Network(tiny_model("llama")), paths()), tmp_path)
    assert read_start(tmp_path, paths()[:2]) is None
    longer = [AnswerPath(path.key, (*path.tokens, 5), path.start) for path in paths()]
    assert read_start(tmp_path, longer) is None


def test_answers_are_those_that_are_right() -> None:
    backend = TransformersBackend(tiny_model("llama"), tokenizer())
    settings = resolve(Settings(), backend)
    jobs = make_jobs(small_suite(2), settings, backend, "")
    found = {path.key: path for path in answer_paths(backend, jobs, settings)}
    answers = {
        key: tokenizer().decode(path.tokens[path.start :]).strip() for key, path in found.items()
    }
    assert answers == {
        ("shown", "0"): "B", ("shown", "1"): "B", ("hidden", "0"): "cat", ("hidden", "1"): "dog",
        ("text", "0"): "cat", ("text", "1"): "dog", ("number", "0"): "1", ("number", "1"): "3",
    }  # fmt: skip
