"""The recipe of the demo's models: ordinary folders, clean token boundaries, training works."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
import transformers

from forgetmap.evaluation.suites.world import as_text, narrow_text, suite, training_text

pytestmark = pytest.mark.needs_torch


RECIPE = Path(__file__).parents[4] / "examples" / "demo" / "train.py"


@pytest.fixture(scope="module")
def recipe() -> ModuleType:
    spec = importlib.util.spec_from_file_location("demo_train", RECIPE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def tokenizer(recipe: ModuleType) -> Any:
    return recipe.build_tokenizer(recipe.rows_of(chain(training_text(60_000), narrow_text(3_000))))


def test_an_option_never_changes_the_tokens_before_it(tokenizer: Any) -> None:
    for task in suite().tasks:
        for item in islice(task.load(), 3):
            prompt = as_text(item.question)
            before = tokenizer(prompt).input_ids
            for answer in (*item.options, item.gold):
                whole = tokenizer(f"{prompt} {answer}").input_ids
                assert whole[: len(before)] == before
                assert tokenizer.decode(whole) == f"{prompt} {answer}"


def test_any_text_survives_the_tokenizer(tokenizer: Any) -> None:
    text = "Wörter, 123 + «x»\t\n\n  {} 日本"
    assert tokenizer.decode(tokenizer(text).input_ids) == text


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Threads that wait for each other crawl on a busy machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.mark.usefixtures("one_thread")
def test_a_few_steps_teach_something_and_can_be_loaded_again(
    recipe: ModuleType, tokenizer: Any, tmp_path: Path
) -> None:
    torch.manual_seed(0)
    model = recipe.build_model(tokenizer)
    (unseen,) = islice(recipe.batches(training_text(400, seed=9), tokenizer), 1)
    untrained = loss_of(model, unseen)
    phase = recipe.Phase("test", steps=25, peak=6e-3)
    texts = training_text(25 * recipe.ROWS * recipe.DOCUMENTS)
    recipe.train(model, recipe.batches(texts, tokenizer), phase)
    assert loss_of(model, unseen) < 0.8 * untrained

    recipe.save(model, tokenizer, tmp_path / "model")
    loaded = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "model")
    again = transformers.AutoTokenizer.from_pretrained(tmp_path / "model")
    assert loss_of(loaded, unseen) == pytest.approx(loss_of(model, unseen), abs=1e-6)
    prompt = as_text("Who is older, Brofo or Filesk?")
    assert again(prompt).input_ids == tokenizer(prompt).input_ids


def loss_of(model: Any, ids: Any) -> float:
    with torch.inference_mode():
        return float(model(input_ids=ids, labels=ids).loss)
