"""One training run: known items, its cost, and when it stops."""

from __future__ import annotations

import copy
import math
import random
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

import forgetmap as fm
from forgetmap.evaluation import Suite
from forgetmap.lab.recipe import LabRecipe
from forgetmap.lab.training import (
    ComputeCounter,
    PadRight,
    StopAtScore,
    are_right,
    is_finite,
    share_right,
    supervised_trainer,
)
from forgetmap.train import EMAWeights, TokenExample, read_examples
from forgetmap.train.examples import Place
from protected_training import fresh_model, padding_tokenizer
from tiny_models import encode, sentence, tiny_model, tokenizer

pytestmark = pytest.mark.needs_torch
EMPTY = Suite("empty", ())


def generated(ids: list[int], count: int) -> list[int]:
    """What the model goes on with, by its own generate."""
    prompt = torch.tensor([ids])
    out = tiny_model("llama").generate(
        prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=count,
        min_new_tokens=count, do_sample=False, pad_token_id=1,
    )  # fmt: skip
    return list(map(int, out[0, len(ids) :]))


def test_known_is_what_greedy_generation_writes() -> None:
    source = random.Random(5)
    examples, expected = [], []
    for number in range(12):
        prompt = encode(sentence(source, source.randint(1, 6)))
        answer = generated(prompt, 1 + number % 4)
        if number % 3 == 0:  # one wrong token is enough, wherever it stands
            answer[number % len(answer)] ^= 1
        examples.append(TokenExample((*prompt, *answer), len(prompt), Place("test", number)))
        expected.append(generated(prompt, len(answer)) == answer)
    assert expected == [number % 3 != 0 for number in range(12)]
    model = tiny_model("llama")
    assert are_right(model, examples) == expected
    assert share_right(model, examples) == pytest.approx(8 / 12)


def test_taking_the_score_leaves_the_mode_of_the_model() -> None:
    model = fresh_model()
    examples = read_examples([{"prompt": "the cat", "completion": " sat"}], tokenizer(), eos=False)
    model.train()
    share_right(model, examples)
    assert model.training


def test_compute_is_counted_exactly() -> None:
    model = fresh_model()
    counter = ComputeCounter(model)
    ids = torch.ones((2, 7), dtype=torch.long)
    model(input_ids=ids)
    assert counter.tokens == 3 * 14  # a forward and a backward pass
    with torch.no_grad():
        model(ids)
    assert counter.tokens == 3 * 14 + 14
    with counter.paused():
        model(input_ids=ids)
    assert counter.tokens == 4 * 14
    teacher = copy.deepcopy(model)
    with torch.no_grad():
        teacher(input_ids=ids)
    assert counter.tokens == 5 * 14  # copies are counted in the same place
    other = fresh_model()
    counter.add(other)
    with torch.no_grad():
        other(input_ids=ids)
    assert counter.tokens == 6 * 14


def small_recipe(target: float, steps: int) -> LabRecipe:
    source = random.Random(7)
    rows = [{"prompt": f"{sentence(source, 3)} is", "completion": " cat"} for _ in range(8)]
    return LabRecipe(
        "small", "start", lambda _: rows, [], EMPTY, EMPTY, [],
        target=target, batch_size=4, max_steps=steps, warm_up=0,
    )  # fmt: skip


def test_training_stops_at_the_score(tmp_path: Path) -> None:
    recipe, model = small_recipe(0.75, 60), fresh_model()
    counter = ComputeCounter(model)
    trainer = supervised_trainer(
        recipe, model, padding_tokenizer(), rate=5e-3, seed=1, folder=tmp_path
    )
    stop = StopAtScore.of(recipe, 1, padding_tokenizer())
    stop.counter = counter
    trainer.add_callback(stop)
    trainer.train()
    assert stop.score >= 0.75
    assert trainer.state.global_step == stop.step < 60
    # Taking the score is no part of the compute: 4 rows of one length a step, three times each.
    lengths = {len(row["input_ids"]) for row in trainer.train_dataset}
    low, high = (3 * 4 * bound * stop.step for bound in (min(lengths), max(lengths)))
    assert low <= counter.tokens <= high
    assert share_right(model, stop.examples) == stop.score


def test_an_average_of_weights_is_scored_as_it_would_end(tmp_path: Path) -> None:
    """The weights that are trained know enough long before their average does."""
    recipe = small_recipe(0.75, 60)
    trainer = supervised_trainer(
        recipe, fresh_model(), padding_tokenizer(), rate=5e-3, seed=1, folder=tmp_path
    )
    fm.protect(trainer, EMAWeights(0.9))
    stop = StopAtScore.of(recipe, 1, padding_tokenizer())
    stop.trainer = trainer
    trainer.add_callback(stop)
    trainer.train()
    assert stop.step < 60
    assert share_right(trainer.model, stop.examples) == stop.score >= 0.75


def looked(stop: StopAtScore, steps: int, most: int = 1000) -> list[int]:
    """Steps at which the score was taken."""
    taken: list[int] = []
    model = fresh_model()
    control = SimpleNamespace(should_training_stop=False)
    for step in range(1, steps + 1):
        before = stop.score
        state = SimpleNamespace(global_step=step, max_steps=most)
        stop.on_step_end(None, state, control, model=model)
        if stop.score is not before:
            taken.append(step)
    return taken


def test_far_from_the_target_the_score_is_taken_rarely(monkeypatch: pytest.MonkeyPatch) -> None:
    from forgetmap.lab import training

    scores = iter([0.1, 0.5, 0.88, 0.94, 0.941, 0.942])
    monkeypatch.setattr(training, "share_right", lambda *_: next(scores))
    stop = StopAtScore([], 0.95)
    assert looked(stop, 34) == [10, 20, 30, 32, 33, 34]
    assert math.isclose(stop.score, 0.942)


def test_weights_that_are_no_numbers_end_training() -> None:
    model = fresh_model()
    assert is_finite(model)
    with torch.no_grad():
        next(model.parameters())[0] = math.inf
    assert not is_finite(model)
    stop = StopAtScore([], 0.95)
    control = SimpleNamespace(should_training_stop=False)
    stop.on_step_end(None, SimpleNamespace(global_step=10, max_steps=20), control, model=model)
    assert control.should_training_stop


def test_rows_are_padded_at_the_end() -> None:
    batch = PadRight(9)(
        [{"input_ids": [1, 2, 3], "labels": [-100, 2, 3]}, {"input_ids": [4], "labels": [4]}]
    )
    assert batch["input_ids"].tolist() == [[1, 2, 3], [4, 9, 9]]
    assert batch["labels"].tolist() == [[-100, 2, 3], [4, -100, -100]]
    assert batch["attention_mask"].tolist() == [[1, 1, 1], [1, 0, 0]]
