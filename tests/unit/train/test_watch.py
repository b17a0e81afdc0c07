"""If something fails while a training is watched, it continues and the gap is recorded."""

from __future__ import annotations

import copy
import errno
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import TrainerCallback

import forgetmap as fm
from forgetmap.errors import FieldError, ForgetmapError, ModelError, OutputError, UsageError
from forgetmap.evaluation import Item, Suite, Task
from forgetmap.records import read_run
from forgetmap.train import history, read_history, watcher
from forgetmap.train.live_probe import LiveProbe, read_scores
from small_suites import small_suite
from tiny_models import tiny_model
from tiny_trainers import IGNORED, plain_trainer, trained_tokenizer

pytestmark = [pytest.mark.needs_torch, *(pytest.mark.filterwarnings(one) for one in IGNORED)]

SUITE = small_suite(6)


def trainer_of(out: Path, **more: Any) -> Any:
    torch.manual_seed(0)
    model = copy.deepcopy(tiny_model("llama"))
    model.config.pad_token_id = model.generation_config.pad_token_id = 1
    return plain_trainer(model, out, **{"save_strategy": "no"} | more)


def watched(trainer: Any, **options: Any) -> Any:
    return fm.watch(trainer, SUITE, **{"every": 2, "quiet": True, "kl": False} | options)


class At(TrainerCallback):  # type: ignore[misc]
    """Does something before the look of a step."""

    def __init__(self, step: int, act: Callable[[Any], None]) -> None:
        self.step, self.act = step, act

    def on_step_end(self, _: Any, state: Any, __: Any, model: Any = None, **___: Any) -> None:
        if state.global_step == self.step:
            self.act(model)


def fail_at(
    monkeypatch: pytest.MonkeyPatch, step: int, error: BaseException, name: str = "answer"
) -> None:
    usual = getattr(LiveProbe, name)

    def answer(self: LiveProbe, training: Any, parent: Any) -> str:
        if training.step == step:
            raise error
        return str(usual(self, training, parent))

    monkeypatch.setattr(LiveProbe, name, answer)


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("no memory left"),
        OSError(errno.ENOSPC, "No space left on device"),
        ModelError("the model is gone", hint="find it."),
        KeyError("task"),
    ],
)
def test_a_probe_that_fails_leaves_a_gap_and_training_goes_on(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
    caplog: pytest.LogCaptureFixture,
) -> None:
    fail_at(monkeypatch, 2, error)
    trainer = trainer_of(tmp_path)
    seen = watched(trainer)
    trainer.train()
    assert trainer.state.global_step == 4
    assert [look.step for look in read_history(tmp_path).curve] == [0, 4]
    (gap,) = seen.history.gaps
    assert (gap.step, gap.kind) == (2, "probe")
    assert type(error).__name__ in gap.message
    assert "no look at step 2" in caplog.text


def test_who_wants_to_end_the_process_ends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail_at(monkeypatch, 2, KeyboardInterrupt())
    trainer = trainer_of(tmp_path)
    watched(trainer)
    with pytest.raises(KeyboardInterrupt):
        trainer.train()


def test_a_probe_that_fails_at_the_start_ends_training_before_its_first_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail_at(monkeypatch, 0, RuntimeError("no such device"))
    trainer = trainer_of(tmp_path)
    watched(trainer)
    with pytest.raises(ModelError, match="failed at the start of training: RuntimeError: no such"):
        trainer.train()
    assert trainer.state.global_step == 0


def test_weights_that_are_not_numbers_make_items_missing_not_wrong(tmp_path: Path) -> None:
    def spoil(model: Any) -> None:
        with torch.no_grad():
            model.get_output_embeddings().weight.fill_(float("nan"))

    trainer = trainer_of(tmp_path)
    seen = watched(trainer, kl=True)
    trainer.callback_handler.callbacks.insert(0, At(2, spoil))
    trainer.train()
    look = seen.history.curve[1]
    assert (look.total.items, look.total.missing) == (0, 24)
    assert look.total.forgotten is None
    assert look.total.kl_to_start is None
    assert not look.total.alarm
    assert [gap.kind for gap in seen.history.gaps][:1] == ["items"]
    assert set(read_scores(seen.folder / "step-000002").values()) == {None}


def test_a_loss_that_is_not_a_number_is_a_gap(tmp_path: Path) -> None:
    class Spoil(TrainerCallback):  # type: ignore[misc]
        def on_log(self, *_: Any, logs: dict[str, Any], **__: Any) -> None:
            if "loss" in logs:
                logs["loss"] = float("nan")

    trainer = trainer_of(tmp_path)
    trainer.add_callback(Spoil())
    seen = watched(trainer)
    trainer.train()
    assert [gap.kind for gap in seen.history.gaps] == ["loss"]
    assert seen.history.curve[-1].loss is None


def test_a_full_disk_under_the_history_is_made_up_for_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    usual, full = history.write_history, []

    def write(kept: Any, folder: Path) -> None:
        if len(kept.looks) == 2:
            full.append(folder)
            raise OSError(errno.ENOSPC, "No space left on device")
        usual(kept, folder)

    monkeypatch.setattr(watcher, "write_history", write)
    trainer = trainer_of(tmp_path)
    watched(trainer)
    trainer.train()
    assert full
    assert "watch.json could not be written" in caplog.text
    assert [look.step for look in read_history(tmp_path).curve] == [0, 2, 4]


def test_a_gap_that_could_not_be_written_is_written_when_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same gap again is not recorded again, and was then never written."""
    usual = history.write_history
    full: list[Path] = []

    def write(kept: Any, folder: Path) -> None:
        if kept.gaps and not full:
            full.append(folder)
            raise OSError(errno.ENOSPC, "No space left on device")
        usual(kept, folder)

    def answer(probe: LiveProbe, training: Any, parent: str | None) -> str:
        if training.step:
            raise OSError(errno.ENOSPC, "No space left on device")
        return asked(probe, training, parent)

    asked = LiveProbe.answer
    monkeypatch.setattr(watcher, "write_history", write)
    monkeypatch.setattr(LiveProbe, "answer", answer)
    trainer = trainer_of(tmp_path)
    watched(trainer)
    trainer.train()
    assert full
    assert [(gap.step, gap.kind) for gap in read_history(tmp_path).gaps] == [(2, "probe")]


def test_a_full_disk_under_the_kept_checkpoint_is_a_gap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer = trainer_of(tmp_path, learning_rate=0.0)
    seen = watched(trainer, keep_best=True)
    usual = trainer.model.save_pretrained

    def save(folder: Path, **_: Any) -> None:
        usual(folder)
        if seen.history.curve[-1].step == 4:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(trainer.model, "save_pretrained", save)
    trainer.train()
    assert [(gap.step, gap.kind) for gap in seen.history.gaps] == [(4, "save")]
    assert seen.history.best.step == 2
    assert (seen.folder / "best" / "model.safetensors").is_file()


def test_a_logger_that_is_down_is_a_gap(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    class Down(TrainerCallback):  # type: ignore[misc]
        def on_log(self, *_: Any, logs: dict[str, Any], **__: Any) -> None:
            if "forgetting/total" in logs:
                raise ConnectionError("the server does not answer")

    trainer = trainer_of(tmp_path)
    trainer.add_callback(Down())
    seen = watched(trainer)
    trainer.train()
    assert [look.step for look in seen.history.curve] == [0, 2, 4]
    assert seen.history.gaps[0].kind == "logger"
    assert "the server does not answer" in seen.history.gaps[0].message
    assert "a logger rejected" in caplog.text


def test_items_without_a_right_answer_are_refused_at_once(tmp_path: Path) -> None:
    bad = Suite("mine", (Task("riddles", None, "text", lambda: [Item("1", "What?", "")]),))
    with pytest.raises(FieldError, match="no right answer"):
        fm.watch(trainer_of(tmp_path), bad)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"cost": 2}, "not a share"),
        ({"margin": 1.2}, "margin is 1.2"),
        ({"on_alarm": "panic"}, "no action"),
        ({"often": 5}, "no option 'often'"),
    ],
)
def test_options_that_make_no_sense_are_refused_at_once(
    tmp_path: Path, options: dict[str, Any], words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        fm.watch(trainer_of(tmp_path), SUITE, **options)


def test_something_else_than_a_trainer_is_refused() -> None:
    with pytest.raises(UsageError, match="does not accept callbacks"):
        fm.watch(object(), SUITE)


def half_trained(out: Path) -> None:
    trainer = trainer_of(out, save_strategy="steps", save_steps=2)
    watched(trainer, kl=True)
    trainer.train()


def resume(out: Path, suite: Suite = SUITE, tokenizer: Any = None) -> Any:
    trainer = trainer_of(out, max_steps=6)
    seen = fm.watch(trainer, suite, every=2, quiet=True, tokenizer=tokenizer)
    trainer.train(resume_from_checkpoint=str(out / "checkpoint-2"))
    return seen


def other_tokenizer() -> Any:
    other = copy.deepcopy(trained_tokenizer())
    other.add_tokens(["Question"])
    return other


@pytest.mark.parametrize(
    ("suite", "tokenizer", "words"),
    [
        (small_suite(5), None, "other items"),
        (replace(SUITE, tasks=SUITE.tasks[1:]), None, "other items"),
        (SUITE, other_tokenizer, "another tokenizer"),
    ],
)
def test_a_training_is_resumed_with_the_same_items_and_tokenizer_only(
    tmp_path: Path, suite: Suite, tokenizer: Any, words: str
) -> None:
    half_trained(tmp_path)
    with pytest.raises(UsageError, match=words):
        resume(tmp_path, suite, tokenizer and tokenizer())


def test_a_training_is_not_resumed_without_its_start(tmp_path: Path) -> None:
    half_trained(tmp_path)
    (tmp_path / "forgetting" / "step-000000").rename(tmp_path / "elsewhere")
    with pytest.raises(OutputError, match="what the model knew at the start"):
        resume(tmp_path)
    (tmp_path / "forgetting").rename(tmp_path / "forgotten")
    with pytest.raises(OutputError, match="contains no history"):
        resume(tmp_path)


def test_another_training_in_the_same_folder_is_refused_or_put_aside(tmp_path: Path) -> None:
    half_trained(tmp_path)
    trainer = trainer_of(tmp_path)
    watched(trainer)
    with pytest.raises(OutputError, match="history of another training"):
        trainer.train()
    trainer = trainer_of(tmp_path, max_steps=2)
    seen = watched(trainer, overwrite=True)
    trainer.train()
    assert [look.step for look in seen.history.looks] == [0, 2]
    assert (seen.folder / "abandoned" / "step-000004").is_dir()
    assert not (seen.folder / "step-000004").exists()


def know_everything(monkeypatch: pytest.MonkeyPatch, forget_from: int) -> None:
    """All items are right at the start, and half of them wrong from a step on."""

    def scores(folder: Path) -> dict[tuple[str, str], bool | None]:
        step = int(folder.name.rpartition("-")[2])
        return {(task.name, item.id): step < forget_from or int(item.id) % 2 == 0
                for task in SUITE.tasks for item in task.load()}  # fmt: skip

    monkeypatch.setattr(watcher, "read_scores", scores)


def test_an_alarm_stops_the_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    know_everything(monkeypatch, 4)
    trainer = trainer_of(tmp_path, max_steps=20)
    seen = watched(trainer, on_alarm="stop", keep_best=True)
    trainer.train()
    assert trainer.state.global_step == 4
    (alarm,) = seen.history.alarms
    assert (alarm.step, alarm.action) == (4, "training was stopped")
    assert "total" in alarm.groups
    assert seen.history.best.step == 2


def test_an_alarm_lowers_the_learning_rate_once_until_it_gets_worse(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    know_everything(monkeypatch, 4)
    rates = {}
    for name in ("usual", "lowered"):
        trainer = trainer_of(tmp_path / name, max_steps=8, logging_steps=1)
        if name == "lowered":
            seen = watched(trainer, on_alarm="lower-lr", lr_factor=0.1)
        trainer.train()
        rates[name] = [line["learning_rate"] for line in trainer.state.log_history
                       if "learning_rate" in line]  # fmt: skip
    factors = [low / usual for low, usual in zip(rates["lowered"], rates["usual"], strict=True)]
    assert factors == pytest.approx([1] * 4 + [0.1] * 4)
    assert [alarm.action for alarm in seen.history.alarms] == [
        "the learning rate was multiplied by 0.1", "none", "none"
    ]  # fmt: skip


def test_items_are_left_out_where_the_cost_allows_too_few_looks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watcher, "LEAST_ITEMS", 12)
    trainer = trainer_of(tmp_path, max_steps=8)
    seen = fm.watch(trainer, SUITE, cost=0.0001, quiet=True)
    trainer.train()
    kept = read_history(tmp_path)
    assert (kept.items, kept.items_of_suite) == (12, 24)
    assert len(read_scores(seen.folder / "step-000000")) == 12
    run = read_run(seen.folder / "step-000000")
    assert run.texts is not None
    assert len(run.texts.collect()) <= 24
    assert [gap.kind for gap in kept.gaps] == ["budget"]


def test_a_training_that_ends_early_is_looked_at_once_more(tmp_path: Path) -> None:
    class Stop(TrainerCallback):  # type: ignore[misc]
        def on_step_end(self, _: Any, state: Any, control: Any, **__: Any) -> None:
            control.should_training_stop = state.global_step >= 3

    trainer = trainer_of(tmp_path, max_steps=8)
    trainer.add_callback(Stop())
    seen = watched(trainer)
    trainer.train()
    assert [look.step for look in seen.history.curve] == [0, 2, 3]


def test_errors_of_a_start_are_typed(tmp_path: Path) -> None:
    trainer = trainer_of(tmp_path)
    watched(trainer)
    trainer.callback_handler.processing_class = None
    with pytest.raises(ForgetmapError, match="has no tokenizer"):
        trainer.train()
