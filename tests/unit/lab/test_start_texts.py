"""Texts of the start model contain no evaluation item."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from forgetmap.errors import EmptyInputError, UnreadableError
from forgetmap.evaluation import Item, Suite, Task
from forgetmap.lab import METHODS, start_texts
from forgetmap.lab.methods import ArmSetting
from forgetmap.lab.recipe import LabRecipe
from forgetmap.lab.start_texts import free_texts, make_pool, usable_prompts
from protected_training import fresh_model, padding_tokenizer
from tiny_models import encode

pytestmark = pytest.mark.needs_torch
ITEMS = [Item(id=name, question=f"the {name} sat", gold="mat") for name in ("cat", "dog")]
SUITE = Suite("near", (Task(name="near", category="Near", kind="text", load=lambda: ITEMS),))
NEW = [{"prompt": "the tree is", "completion": " a"}]
RECIPE = LabRecipe(
    "small", "start", lambda _: NEW, [], SUITE, Suite("far", ()), [],
    question_template="{question} is", free_prompt="the", answer_mark=" is", max_tokens=3,
)  # fmt: skip


def test_a_made_up_question_that_is_measured_is_left_out() -> None:
    """Though `old_rows`, a sample of what is measured, has none of them."""
    texts = ["the cat sat is mat", "the bird sat is on", "the tree is a", "the bird sat is in",
             "the dog sat is mat", "no mark"]  # fmt: skip
    assert usable_prompts(RECIPE, texts) == ["the bird sat is"]


class Writing:
    """In place of the model: what it writes, again and again."""

    def __init__(self, *texts: str) -> None:
        self.texts, self.asked = texts, 0

    def __call__(self, _: Any, prompts: Sequence[Any], *__: Any, **___: Any) -> list[list[int]]:
        first, self.asked = self.asked, self.asked + len(prompts)
        chosen = [self.texts[at % len(self.texts)] for at in range(first, self.asked)]
        return [encode(text) for text in chosen]


def test_texts_that_ask_what_is_measured_are_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    writing = Writing(" cat sat is mat", " bird ran")
    monkeypatch.setattr(start_texts, "sample_answers", writing)
    rows = free_texts(RECIPE, None, padding_tokenizer(), count=6, max_tokens=4, seed=3)
    assert {padding_tokenizer().decode(row["input_ids"]) for row in rows} == {"the bird ran"}
    assert len(rows) == 6
    assert writing.asked > 6
    begin = len(encode("the"))
    assert all(row["labels"] == [-100] * begin + row["input_ids"][begin:] for row in rows)
    monkeypatch.setattr(start_texts, "sample_answers", Writing(" dog sat"))
    with pytest.raises(EmptyInputError, match=r"only 0 of 6 texts"):
        free_texts(RECIPE, None, padding_tokenizer(), count=6, max_tokens=4, seed=3)


@pytest.mark.parametrize("name", ["free-kl", "synthetic-replay"])
def test_methods_without_old_data_see_nothing_that_is_measured(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(start_texts, "sample_answers", Writing(" cat sat is mat", " bird ran"))
    seen: list[str] = []
    model, tokenizer = fresh_model(), padding_tokenizer()
    model.register_forward_pre_hook(
        lambda _, __, given: seen.extend(tokenizer.batch_decode(given["input_ids"])),
        with_kwargs=True,
    )
    setting = ArmSetting(RECIPE, 0.5, 1e-3, 1, tmp_path)
    trainer = METHODS[name].make_trainer(setting, model, tokenizer)
    trainer.args.max_steps = 2
    trainer.train()
    assert any("the bird" in text for text in seen)
    assert not any("cat sat" in text for text in seen)


def test_a_pool_that_cannot_be_read(tmp_path: Path) -> None:
    file = tmp_path / "pool.jsonl"
    file.write_text("{")
    with pytest.raises(UnreadableError, match="not a file of examples"):
        make_pool(RECIPE, file, 5)
    file.write_text("")
    with pytest.raises(EmptyInputError, match="wrote no question"):
        make_pool(RECIPE, file, 5)
