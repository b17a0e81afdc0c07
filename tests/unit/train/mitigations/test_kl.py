"""KL to the start model: values, gradients, positions, memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn.functional import kl_div

from forgetmap.errors import FieldError, ModelError, UsageError
from forgetmap.train import KLToStart
from forgetmap.train.mitigations.kl import Direction, StartDistributions, answered
from forgetmap.train.mitigations.mitigation import Penalty
from forgetmap.train.mitigations.old_batches import ExampleOrder, collate, predict
from protected_training import fresh_model, nudge, pairs, prompts, protected, slope_gap

pytestmark = pytest.mark.needs_torch


def value_of(penalty: Penalty, model: Any) -> float:
    value = penalty.function(model)
    assert value is not None
    return float(value.detach())


def penalty_of(run: Any) -> Any:
    return lambda: run.penalties[0].function(run.model)


@pytest.mark.parametrize("direction", ["forward", "reverse"])
@pytest.mark.parametrize("top_k", [None, 5])
@pytest.mark.parametrize("positions", ["answer", "all"])
def test_slopes_agree_with_finite_differences(
    tmp_path: Path, direction: Any, top_k: int | None, positions: Any
) -> None:
    model = fresh_model(double=True)
    config = KLToStart(
        pairs(6), direction=direction, top_k=top_k, positions=positions, batch_size=6
    )
    run = protected(tmp_path, config, model=model)
    nudge(model)
    assert slope_gap(penalty_of(run), model) < 1e-5


@pytest.mark.parametrize("direction", ["forward", "reverse"])
def test_values_are_those_of_a_plain_computation(tmp_path: Path, direction: Direction) -> None:
    model, start = fresh_model(double=True), fresh_model(double=True)
    rows = pairs(5)
    run = protected(tmp_path, KLToStart(rows, direction=direction, batch_size=5), model=model)
    nudge(model)
    values = []
    for example in run.read(rows):
        ids = torch.tensor([example.ids])
        with torch.no_grad():
            q = model(ids).logits[0, example.begin - 1 : -1].log_softmax(-1)
            s = start(ids).logits[0, example.begin - 1 : -1].log_softmax(-1)
        one, other = (q, s) if direction == "forward" else (s, q)
        values.append(kl_div(one, other, log_target=True, reduction="none").sum(-1))
    assert float(penalty_of(run)().detach()) == pytest.approx(
        float(torch.cat(values).mean()), rel=1e-9
    )


def test_the_penalty_is_zero_at_the_start_and_buckets_bound_it_from_below(tmp_path: Path) -> None:
    model = fresh_model(double=True)
    sizes = (1, 5, 50, None)
    run = protected(tmp_path, *(KLToStart(pairs(6), top_k=size) for size in sizes), model=model)
    start = [value_of(one, model) for one in run.penalties]
    assert start == pytest.approx([0.0] * 4, abs=1e-12)
    nudge(model)
    values = [value_of(one, model) for one in run.penalties]
    assert 0 < values[0] < values[1] < values[2] < values[3]


def test_half_precision_is_close(tmp_path: Path) -> None:
    model = fresh_model()
    run = protected(tmp_path, KLToStart(pairs(6)), KLToStart(pairs(6), half=True), model=model)
    nudge(model, 0.1)
    exact, half = (value_of(one, model) for one in run.penalties)
    assert half == pytest.approx(exact, rel=0.02)


def test_prompts_get_answers_of_the_start_model(tmp_path: Path) -> None:
    run = protected(tmp_path)
    asked = run.read(prompts(6))
    greedy = answered(run, asked, max_tokens=5, temperature=0.0)
    for before, after in zip(asked, greedy, strict=True):
        assert after.ids[: after.begin] == before.ids
        for end in range(after.begin, len(after.ids)):
            logits = run.model(torch.tensor([after.ids[:end]])).logits[0, -1]
            assert int(logits.argmax()) == after.ids[end]
    sampled = answered(run, asked, max_tokens=5, seed=1)
    assert sampled == answered(run, asked, max_tokens=5, seed=1)
    assert sampled != answered(run, asked, max_tokens=5, seed=2)


def test_given_completions_are_kept_unless_the_start_is_to_answer(tmp_path: Path) -> None:
    run = protected(tmp_path)
    given = run.read(pairs(4))
    assert answered(run, given) == given
    again = answered(run, given, again=True, max_tokens=3)
    assert [one.ids[: one.begin] for one in again] == [one.ids[: one.begin] for one in given]
    assert again != given


def test_padding_changes_nothing(tmp_path: Path) -> None:
    run = protected(tmp_path, model=fresh_model(double=True))
    examples = run.read(pairs(6))
    together = predict(run.model, collate(examples))
    alone = torch.cat([predict(run.model, collate([one])) for one in examples])
    assert torch.allclose(together, alone, atol=1e-10)


def test_models_that_make_all_logits_give_the_same(tmp_path: Path) -> None:
    run = protected(tmp_path, model=fresh_model(double=True))
    batch = collate(run.read(pairs(6)))
    single = predict(run.model, batch)
    run.model._forgetmap_single_logits = False
    assert torch.allclose(single, predict(run.model, batch), atol=1e-12)


def test_every_example_comes_once_per_round_and_processes_differ() -> None:
    order = ExampleOrder(12, 4, seed=3)
    first = [at for step in range(3) for at in order.at(step)]
    assert sorted(first) == list(range(12))
    assert [at for step in range(3, 6) for at in order.at(step)] != first
    both = [at for step in range(3) for rank in range(2) for at in order.at(step, rank, 2)]
    assert sorted(both[:12]) == list(range(12))
    assert ExampleOrder(12, 4, seed=3).at(5) == order.at(5)
    assert len(ExampleOrder(3, 16, seed=0).at(0)) == 3


def test_every_second_step_counts_double(tmp_path: Path) -> None:
    run = protected(tmp_path, KLToStart(pairs(6), every=2, weight=3.0))
    (penalty,) = run.penalties
    assert penalty.weight() == 6.0
    run.trainer.state.global_step = 1
    assert penalty.function(run.model) is None


def test_a_vocabulary_that_changed(tmp_path: Path) -> None:
    run = protected(tmp_path, KLToStart(pairs(4)))
    run.model.resize_token_embeddings(410)
    with pytest.raises(ModelError, match="predicts 410 tokens, but 400 at the start"):
        run.penalties[0].function(run.model)


def test_weights_that_are_damaged(tmp_path: Path) -> None:
    model = fresh_model()
    with torch.no_grad():
        model.lm_head.weight[3] = float("nan")
    with pytest.raises(ModelError, match="not finite"):
        protected(tmp_path, KLToStart(pairs(4)), model=model)


def test_prompts_that_do_not_fit(tmp_path: Path) -> None:
    with pytest.raises(FieldError, match="context length 256"):
        protected(tmp_path, KLToStart([{"prompt": "cat " * 300}]))
    with pytest.raises(UsageError, match="exceed the context length"):
        protected(tmp_path, KLToStart([{"prompt": "cat " * 110}], max_tokens=200))


def test_memory_is_limited(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="top_k"):
        protected(tmp_path, KLToStart(pairs(6), memory_gib=1e-6))
    run = protected(tmp_path, KLToStart(pairs(6), memory_gib=1e-5, top_k=2))
    assert run.penalties


def test_log_probabilities_of_nothing_stay_numbers() -> None:
    start = StartDistributions(torch.tensor([[0.0, -1e4]]), None, [0, 1], 2)
    logits = torch.zeros(1, 2, requires_grad=True)
    value = start.divergence(logits, [0], "forward")
    torch.autograd.backward(value.sum())
    assert float(value.detach()) == pytest.approx(0.6931, abs=1e-4)
    assert logits.grad is not None
    assert torch.isfinite(logits.grad).all()


@pytest.mark.parametrize(
    "options",
    [
        {"weight": -1.0}, {"direction": "sideways"}, {"batch_size": 0}, {"top_k": 0},
        {"answers": "no"}, {"weight": float("nan")},
    ],
)  # fmt: skip
def test_options_that_make_no_sense(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        KLToStart("p.jsonl", **options)
