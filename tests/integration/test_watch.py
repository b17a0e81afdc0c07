"""Real trainings with `watch`: histories match saved checkpoints, and weights do not change."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import torch

import forgetmap as fm
from forgetmap.records import SCORES, read_run
from forgetmap.train import ForgettingCallback, read_history
from small_suites import small_suite
from tiny_trainers import IGNORED, make_trainer, save_start, trained_tokenizer

pytestmark = [pytest.mark.needs_torch, *(pytest.mark.filterwarnings(one) for one in IGNORED)]

FAST = [("plain", False), ("sft", True), ("dpo", False), ("grpo", False)]
SLOW = [
    (name, lora)
    for name in ("sft", "dpo", "grpo", "rloo", "kto", "cpo", "orpo", "online-dpo", "sdft")
    for lora in (False, True)
    if (name, lora) not in FAST
]
SUITE = small_suite(6)
EXACT = ("task", "item", "metric", "scorer", "score", "outcome", "answer", "choice")
WATCH_TWO = Path(__file__).parent.parent / "support" / "watch_two_processes.py"


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_start(tmp_path_factory.mktemp("start"))


def weights(trainer: Any) -> dict[str, torch.Tensor]:
    return {name: value.clone() for name, value in trainer.model.state_dict().items()}


def equal(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def lines(trainer: Any) -> list[dict[str, Any]]:
    """What the trainer itself logged, but for times."""
    return [
        {name: value for name, value in line.items() if "time" not in name}
        for line in trainer.state.log_history
        if "loss" in line
    ]


def rows(folder: Path) -> list[tuple[Any, ...]]:
    table = pq.read_table(folder / SCORES, columns=list(EXACT)).to_pylist()
    return sorted(tuple(str(row[name]) for name in EXACT) for row in table)


def logprobs(folder: Path) -> list[float]:
    table = pq.read_table(folder / SCORES).sort_by([("task", "ascending"), ("item", "ascending")])
    return [value for value in table["logprob_gold"].to_pylist() if value is not None]


@pytest.mark.parametrize(
    ("name", "lora"), [*FAST, *(pytest.param(*case, marks=pytest.mark.slow) for case in SLOW)]
)
def test_a_look_is_an_evaluation_of_the_saved_checkpoint_and_leaves_no_trace(
    start: Path, tmp_path: Path, name: str, lora: bool
) -> None:
    more = {"gradient_accumulation_steps": 2} if name == "plain" else {}
    alone = make_trainer(name, start, tmp_path / "alone", lora=lora, save_strategy="no", **more)
    alone.train()
    trainer = make_trainer(name, start, tmp_path / "out", lora=lora, **more)
    seen = fm.watch(trainer, SUITE, every=2, quiet=True)
    trainer.train()
    assert equal(weights(alone), weights(trainer))
    assert str(lines(alone)) == str(lines(trainer))
    history = read_history(tmp_path / "out")
    assert history == seen.history
    assert [look.step for look in history.curve] == [0, 2, 4]
    assert not history.gaps
    for step in (0, 2, 4):
        saved = tmp_path / "out" / f"checkpoint-{step}" if step else start
        model = f"{start}+{saved}" if lora and step else str(saved)
        offline = fm.evaluate(model, SUITE, tmp_path / f"offline-{step}", salt="")
        live = tmp_path / "out" / "forgetting" / f"step-{step:06d}"
        assert rows(offline) == rows(live)
        assert logprobs(offline) == pytest.approx(logprobs(live), abs=1e-4)
    info = read_run(tmp_path / "out" / "forgetting" / "step-000004").info
    assert info.training is not None
    assert info.training.step == 4
    assert info.training.loss is not None
    assert info.parent == "step-000002"


def test_runs_of_looks_are_read_as_a_chain_and_values_are_logged(
    start: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trainer = make_trainer("plain", start, tmp_path / "out", report_to=["tensorboard"], max_steps=6)
    seen = fm.watch(trainer, SUITE, every=2)
    trainer.train()
    chain = fm.chain(*sorted(seen.folder.glob("step-*"), reverse=True))
    found = [(stage.against_first.n10, stage.against_first.n01) for stage in chain.stages]
    curve = seen.history.curve[1:]
    assert found == [
        (round((look.total.forgotten or 0) * 24), round((look.total.gained or 0) * 24))
        for look in curve
    ]
    last = curve[-1]
    logged = [line for line in trainer.state.log_history if "forgetting/total" in line]
    assert [line["step"] for line in logged] == [0, 2, 4, 6]
    assert logged[-1]["forgetting/total"] == last.total.forgotten
    assert logged[-1]["forgetting/choice"] == last.categories["choice"].forgotten
    assert logged[-1]["kl_to_start/total"] > 0
    assert read_tensorboard(tmp_path, "train/forgetting/total") == [0, 2, 4, 6]
    assert "step 6: forgot" in capsys.readouterr().err


def test_a_plain_callback_reports_to_the_same_places(start: Path, tmp_path: Path) -> None:
    trainer = make_trainer("plain", start, tmp_path / "out", report_to=["tensorboard"])
    callback = ForgettingCallback(SUITE, every=2, quiet=True, kl=False)
    trainer.add_callback(callback)
    trainer.train()
    assert [look.step for look in callback.history.curve] == [0, 2, 4]
    assert read_tensorboard(tmp_path, "train/forgetting/total") == [0, 2, 4]
    assert read_tensorboard(tmp_path, "train/loss") == [2, 4]


def read_tensorboard(folder: Path, tag: str) -> list[int]:
    from tensorboard.backend.event_processing.event_file_loader import EventFileLoader

    files = sorted(folder.rglob("events.out.tfevents*"))
    events = [event for file in files for event in EventFileLoader(str(file)).Load()]
    return sorted(
        event.step for event in events for value in event.summary.value if value.tag == tag
    )


def test_a_resumed_training_goes_on_with_its_history(start: Path, tmp_path: Path) -> None:
    whole = make_trainer("plain", start, tmp_path / "whole", max_steps=8)
    expected = fm.watch(whole, SUITE, every=2, quiet=True)
    whole.train()
    first = make_trainer("plain", start, tmp_path / "out", max_steps=8, save_steps=4)
    fm.watch(first, SUITE, every=2, quiet=True)
    first.add_callback(stop_after(6))
    first.train()
    assert [look.step for look in read_history(tmp_path / "out").curve] == [0, 2, 4, 6]
    second = make_trainer("plain", start, tmp_path / "out", max_steps=8)
    seen = fm.watch(second, SUITE, every=2, quiet=True)
    second.train(resume_from_checkpoint=str(tmp_path / "out" / "checkpoint-4"))
    history = seen.history
    assert [look.step for look in history.curve] == [0, 2, 4, 6, 8]
    assert [look.look for look in history.curve] == [0, 1, 2, 4, 5]  # step 6 was looked at twice
    assert [look.step for look in history.looks if look.abandoned] == [6]
    for step in (0, 2, 4, 6, 8):
        name = f"step-{step:06d}"
        assert rows(seen.folder / name) == rows(expected.folder / name)
    own = [look.total.kl_to_start for look in history.curve]
    assert own == pytest.approx([look.total.kl_to_start for look in expected.history.curve])
    assert history.curve[-1].probed_seconds > history.curve[2].probed_seconds


def stop_after(step: int) -> Any:
    from transformers import TrainerCallback

    class Stop(TrainerCallback):  # type: ignore[misc]
        def on_step_end(self, _: Any, state: Any, control: Any, **__: Any) -> None:
            control.should_training_stop = state.global_step >= step
            control.should_save = control.should_save and state.global_step < step

    return Stop()


def test_two_processes_train_and_look_as_one_history(start: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(WATCH_TWO), str(start), str(tmp_path)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"},
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    history = read_history(tmp_path / "out")
    assert [look.step for look in history.curve] == [0, 2, 4]
    assert done.stdout.count("same weights") == 2
    assert done.stdout.count("logged [2, 4] and looks [0, 2, 4]") == 2
    for step in (2, 4):
        saved = tmp_path / "out" / f"checkpoint-{step}"
        offline = fm.evaluate(str(saved), SUITE, tmp_path / f"offline-{step}", salt="")
        assert rows(offline) == rows(tmp_path / "out" / "forgetting" / f"step-{step:06d}")


@pytest.mark.slow
def test_mixed_precision_is_left_as_it_was(start: Path, tmp_path: Path) -> None:
    alone = make_trainer("plain", start, tmp_path / "alone", bf16=True, save_strategy="no")
    alone.train()
    trainer = make_trainer("plain", start, tmp_path / "out", bf16=True, save_strategy="no")
    seen = fm.watch(trainer, SUITE, every=2, quiet=True)
    trainer.train()
    assert equal(weights(alone), weights(trainer))
    assert [look.step for look in seen.history.curve] == [0, 2, 4]
    assert not seen.history.gaps


def test_the_tokenizer_of_the_trainer_is_used(start: Path, tmp_path: Path) -> None:
    trainer = make_trainer("plain", start, tmp_path / "out")
    trainer.processing_class = trainer.callback_handler.processing_class = None
    seen = fm.watch(trainer, SUITE, every=4, quiet=True, tokenizer=trained_tokenizer(), kl=False)
    trainer.train()
    assert len(seen.history.curve) == 2
