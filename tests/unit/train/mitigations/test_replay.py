"""Replay of old rows among new ones: how many, which, and when mixing is refused."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn.functional import cross_entropy
from transformers import default_data_collator

from forgetmap.errors import UsageError
from forgetmap.train import Replay, SyntheticReplay
from forgetmap.train.mitigations.replay import MixedRows
from protected_training import (
    fresh_model,
    logged,
    make_trainer,
    nudge,
    pairs,
    prompts,
    protected,
    slope_gap,
    token_rows,
)

pytestmark = pytest.mark.needs_torch


@pytest.mark.parametrize(("share", "old"), [(0.1, 2), (0.25, 5), (0.5, 16), (0.75, 48)])
def test_the_share_is_of_all_rows(tmp_path: Path, share: float, old: int) -> None:
    run = protected(tmp_path, Replay(pairs(40, seed=8), share=share))
    mixed = run.trainer.train_dataset
    assert len(mixed) == 16 + old
    new = token_rows(pairs(16))
    assert [mixed[at] for at in range(16)] == new
    assert all(mixed[at] not in new for at in range(16, 16 + old))


def test_other_old_rows_come_in_each_epoch_until_all_have_come() -> None:
    mixed = MixedRows(list(range(8)), [f"old {at}" for at in range(6)], 0.2, seed=4)
    seen = Counter()  # type: Counter[str]
    for epoch in range(3):
        mixed.set_epoch(epoch)
        seen.update(mixed[at] for at in range(8, len(mixed)))
    assert len(mixed) == 10
    assert set(seen.values()) == {1}
    assert len(seen) == 6


def test_epochs_advance_in_training(tmp_path: Path) -> None:
    run = protected(
        tmp_path, Replay(pairs(40, seed=8)), max_steps=-1, num_train_epochs=3,
        per_device_train_batch_size=16,
    )  # fmt: skip
    mixed = run.trainer.train_dataset
    first = [mixed[at] for at in range(16, len(mixed))]
    run.trainer.train()
    assert [mixed[at] for at in range(16, len(mixed))] != first
    assert run.trainer.state.global_step == 6


def test_rows_are_chosen_by_the_seed(tmp_path: Path) -> None:
    def rows(seed: int) -> list[Any]:
        run = protected(tmp_path, Replay(pairs(40, seed=8), share=0.5, rows=4, seed=seed))
        mixed = run.trainer.train_dataset
        return [mixed[at] for at in range(16, 32)]

    assert rows(1) == rows(1)
    assert rows(1) != rows(2)
    assert len({str(row) for row in rows(1)}) == 4


def test_two_replays_mix_with_each_other(tmp_path: Path) -> None:
    run = protected(tmp_path, Replay(pairs(9, seed=8)), SyntheticReplay(rows=4, max_tokens=5))
    run.trainer.train()
    assert len(run.trainer.train_dataset) == 16 + 5 + 7


def test_rows_of_one_length_and_tensors(tmp_path: Path) -> None:
    width = 24
    new = [
        {
            "input_ids": torch.tensor(row["input_ids"] + [0] * (width - len(row["input_ids"]))),
            "labels": torch.tensor(row["labels"] + [-100] * (width - len(row["labels"]))),
        }
        for row in token_rows(pairs(8))
    ]
    given = {"train_dataset": new, "data_collator": default_data_collator}
    run = protected(tmp_path, Replay(pairs(9, seed=8)), trainer=given)
    old = run.trainer.train_dataset[9]
    assert old["input_ids"].shape == old["labels"].shape == (width,)
    assert set(old) == {"input_ids", "labels"}
    run.trainer.train()
    with pytest.raises(
        UsageError, match="18 tokens longer than the fixed length of the new rows, 24"
    ):
        protected(tmp_path, Replay([{"prompt": "cat " * 40, "completion": "a"}]), trainer=given)


def test_a_loss_instead(tmp_path: Path) -> None:
    model = fresh_model(double=True)
    config = Replay(pairs(6, seed=8), share=0.2, how="loss", batch_size=6)
    run = protected(tmp_path, config, model=model)
    (penalty,) = run.penalties
    assert penalty.weight() == pytest.approx(0.25)
    nudge(model)
    logits, targets = [], []
    for row in token_rows(pairs(6, seed=8)):
        made = model(torch.tensor([row["input_ids"]])).logits[0, :-1]
        kept = torch.tensor(row["labels"][1:]) != -100
        logits.append(made[kept])
        targets.append(torch.tensor(row["labels"][1:])[kept])
    plain = cross_entropy(torch.cat(logits), torch.cat(targets))
    value = penalty.function(model)
    assert value is not None
    assert float(value.detach()) == pytest.approx(float(plain.detach()), rel=1e-9)
    assert slope_gap(lambda: penalty.function(model), model) < 1e-5  # type: ignore[arg-type,return-value]
    run.trainer.train()
    assert len(logged(run, "protect/replay")) == 4


def test_data_that_cannot_be_mixed(tmp_path: Path) -> None:
    packed = [{"input_ids": [1, 2], "labels": [1, 2], "seq_lengths": [2]}]
    with pytest.raises(UsageError, match="seq_lengths"):
        protected(tmp_path, Replay(pairs(4)), trainer={"train_dataset": packed})
    trainer = make_trainer(tmp_path)
    trainer.train_dataset = [{"prompt": "a"}]
    import forgetmap as fm

    with pytest.raises(UsageError, match='how="loss"'):
        fm.protect(trainer, Replay(pairs(4), how="mix"))
    assert fm.protect(trainer, Replay(pairs(4))).penalties  # `auto` sees it
    with pytest.raises(UsageError, match="without completion"):
        fm.protect(trainer, Replay(prompts(3)))


def test_texts_of_the_start_model(tmp_path: Path) -> None:
    run = protected(tmp_path)
    free = SyntheticReplay(rows=6, max_tokens=7, seed=3).write(run)
    assert len(free) == 6
    assert all(one.ids[0] == 0 and one.begin == 1 and len(one.ids) <= 8 for one in free)
    assert free == SyntheticReplay(rows=6, max_tokens=7, seed=3).write(run)
    assert free != SyntheticReplay(rows=6, max_tokens=7, seed=4).write(run)
    begun = SyntheticReplay(rows=2, max_tokens=3, prompt="the cat").write(run)
    assert all(run.tokenizer.decode(one.ids[: one.begin]) == "the cat" for one in begun)
    asked = SyntheticReplay(rows=3, prompts=prompts(8), max_tokens=4).write(run)
    assert len(asked) == 3
    assert all(one.is_answered for one in asked)


@pytest.mark.parametrize(
    "options", [{"share": 0.0}, {"share": 1.0}, {"how": "soon"}, {"rows": 0}, {"weight": -1.0}]
)
def test_options_that_make_no_sense(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        Replay("r.jsonl", **options)
    with pytest.raises(UsageError):
        SyntheticReplay(**options)
