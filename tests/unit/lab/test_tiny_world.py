"""The start model of the tiny world: an ordinary folder, clean token boundaries, training works."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from forgetmap.errors import OutputError
from forgetmap.evaluation import as_text, load_suite, new_examples, pretraining_text
from forgetmap.lab.start_store import kept_start, write_start
from forgetmap.lab.tiny_world import (
    Pretraining,
    batches,
    build_model,
    build_tokenizer,
    pretrain,
    tiny_recipe,
)

pytestmark = pytest.mark.needs_torch


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return build_tokenizer()


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Threads that wait for each other crawl on a busy machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def test_an_answer_never_changes_the_tokens_before_it(tokenizer: Any) -> None:
    tasks = [*load_suite("world").tasks, *load_suite("world-near").tasks]
    pairs = [
        (as_text(item.question), answer)
        for task in tasks
        for item in islice(task.load(), 3)
        for answer in (*item.options, item.gold)
    ]
    pairs += [(as_text(question), answer) for question, answer in new_examples()]
    for prompt, answer in pairs:
        before = tokenizer(prompt).input_ids
        whole = tokenizer(f"{prompt} {answer}").input_ids
        assert whole[: len(before)] == before
        assert tokenizer.decode(whole) == f"{prompt} {answer}"


def test_a_new_answer_is_one_token(tokenizer: Any) -> None:
    for question, answer in new_examples()[::20]:
        prompt = as_text(question)
        whole = tokenizer(f"{prompt} {answer}").input_ids
        assert len(whole) == len(tokenizer(prompt).input_ids) + 1


def test_any_text_survives_the_tokenizer(tokenizer: Any) -> None:
    text = "Wörter, 123 + «x»\t\n\n  {} 日本"
    assert tokenizer.decode(tokenizer(text).input_ids) == text


@pytest.mark.usefixtures("one_thread")
def test_a_few_steps_teach_something_and_can_be_loaded_again(
    tokenizer: Any, tmp_path: Path
) -> None:
    plan = Pretraining(steps=15, rows=16)
    torch.manual_seed(0)
    model = build_model(tokenizer)
    (unseen,) = islice(batches(pretraining_text(400, seed=9), tokenizer, plan), 1)
    untrained = loss_of(model, unseen)
    steps: list[int] = []
    texts = pretraining_text(plan.steps * plan.rows * 10)
    pretrain(model, batches(texts, tokenizer, plan), plan, lambda step, _: steps.append(step))
    assert steps == list(range(1, 16))
    assert loss_of(model, unseen) < 0.8 * untrained

    model.save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    loaded = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "model")
    again = transformers.AutoTokenizer.from_pretrained(tmp_path / "model")
    assert loss_of(loaded, unseen) == pytest.approx(loss_of(model, unseen), abs=1e-6)
    prompt = as_text("Who is older, Brofo or Filesk?")
    assert again(prompt).input_ids == tokenizer(prompt).input_ids


def loss_of(model: Any, ids: Any) -> float:
    with torch.inference_mode():
        return float(model(input_ids=ids, labels=ids).loss)


def test_rates_rise_stay_and_fall() -> None:
    plan = Pretraining(steps=100)
    rates = [plan.rate(step) for step in range(100)]
    assert rates[0] == pytest.approx(0.2)
    assert rates[4:61] == pytest.approx([1.0] * 57)
    assert rates[-1] == pytest.approx(1 / 40)
    assert sorted(rates[60:], reverse=True) == rates[60:]


def test_the_recipe_can_be_sent_to_other_processes() -> None:
    recipe = tiny_recipe("start")
    again = pickle.loads(pickle.dumps(recipe))
    assert again.new_rows(2) == recipe.new_rows(2)
    assert again.near.tasks[0].load() == recipe.near.tasks[0].load()
    measured = {row["prompt"] for row in recipe.old_rows}
    assert not measured & {row["prompt"] for row in recipe.pool}
    assert not measured & {row["prompt"] for row in recipe.new_rows(0)}


def test_a_start_is_kept_in_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORGETMAP_CACHE", str(tmp_path))
    assert kept_start() == kept_start()
    assert kept_start().parent == tmp_path / "lab"


def test_a_start_appears_only_when_it_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from forgetmap.lab import start_store

    def half(out: Path, *_: Any) -> Path:
        (out / "config.json").write_text("{}")
        raise KeyboardInterrupt

    monkeypatch.setattr(start_store, "make_start", half)
    with pytest.raises(KeyboardInterrupt):
        write_start(tmp_path / "start")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "there").write_text("")
    with pytest.raises(OutputError, match="already exists"):
        write_start(tmp_path / "there")
