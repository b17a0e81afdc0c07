"""A run from the first prompt to the run folder: equal results after any interruption."""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import signal
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import forgetmap as fm
from command_line import write
from forgetmap.errors import OutputError, UsageError
from forgetmap.evaluation import ModelIdentity, Step, estimate_run, run_model
from forgetmap.evaluation.backends.transformers.backend import TransformersBackend
from forgetmap.evaluation.items import Item, Suite, Task
from forgetmap.evaluation.journal import SYNC_SECONDS, Answer, Journal
from forgetmap.evaluation.settings import Settings
from small_suites import choice_items, small_suite
from tiny_models import CONTEXT, tiny_model, tokenizer
from written_runs import records

pytestmark = pytest.mark.needs_torch

WHO = ModelIdentity("tiny")
SHORT = Settings(max_new_tokens=6)


def backend(**options: Any) -> TransformersBackend:
    return TransformersBackend(tiny_model("llama"), tokenizer(), **options)


def run(out: Path, settings: Settings = SHORT, suite: Suite | None = None, **options: Any) -> Path:
    return run_model(backend(), suite or small_suite(), out, WHO, settings, **options)


def test_every_item_has_its_records_and_they_can_be_compared(tmp_path: Path) -> None:
    steps: list[Step] = []
    rows = records(run(tmp_path / "a", on_progress=steps.append))
    assert len(rows) == 2 * 8 + 2 * 8 * 2  # weighed once; written scored leniently and strictly
    assert [step.done for step in steps] == list(range(1, 33))
    weighed = [row for row in rows if row["task"] == "hidden"]
    assert all(row["k"] == 3 and row["choice"] in row["options"] for row in weighed)
    assert all(row["logprob_gold"] <= row["logprob_answer"] + 1e-6 for row in weighed)
    assert all((row["score"] == 1) == (row["choice"] == row["gold"]) for row in weighed)
    run(tmp_path / "b")
    comparison = fm.compare(tmp_path / "a", tmp_path / "b")
    assert comparison.result.total.n == 32
    assert comparison.result.total.verdict in ("no_net_loss", "cannot_tell")


def test_the_manifest_says_how_to_ask_again(tmp_path: Path) -> None:
    """A suite without a name is not written down, nor is a live model."""
    file = write(tmp_path / "items.jsonl", [{"q": "One?", "gold": "1"}, {"q": "Two?", "gold": "2"}])
    suite = fm.load_suite(file, column_map={"question": "q"})
    named = ModelIdentity("tiny", stamp="a:1", source="models/tiny")
    out = run_model(backend(), suite, tmp_path / "a", named, SHORT)
    asked = fm.open_run(out).info.asked
    assert asked is not None
    assert (asked.model, asked.suite, asked.columns) == (
        "models/tiny", str(file), {"question": "q"},
    )  # fmt: skip
    assert Settings(**asked.settings) == SHORT
    assert asked.weights
    nameless = fm.open_run(run_model(backend(), small_suite(), tmp_path / "b", named, SHORT))
    assert nameless.info.asked is not None
    assert nameless.info.asked.suite is None
    assert fm.open_run(run_model(backend(), suite, tmp_path / "c", WHO, SHORT)).info.asked is None


def test_greedy_answers_do_not_flip(tmp_path: Path) -> None:
    total = fm.compare(run(tmp_path / "a"), run(tmp_path / "b")).result.total
    assert (total.n10, total.n01) == (0, 0)


def test_running_it_again_does_nothing(tmp_path: Path) -> None:
    before = run(tmp_path / "a").stat().st_mtime_ns
    steps: list[Step] = []
    run(tmp_path / "a", on_progress=steps.append)
    assert steps == []
    assert (tmp_path / "a").stat().st_mtime_ns == before
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_another_setting_does_not_overwrite_a_run(tmp_path: Path) -> None:
    run(tmp_path / "a")
    with pytest.raises(OutputError, match="another model, suite or setting"):
        run(tmp_path / "a", Settings(max_new_tokens=7))
    run(tmp_path / "a", Settings(max_new_tokens=7), overwrite=True)
    assert fm.open_run(tmp_path / "a").info.decoding["max_new_tokens"] == 7


class StoppedError(Exception):
    """Stands for whatever ends a run early."""


def stop_after(n: int) -> Any:
    def report(step: Step) -> None:
        if step.done >= n:
            raise StoppedError

    return report


@pytest.mark.parametrize("cut", [0, 1, 25])
def test_a_stopped_run_goes_on_where_it_was(tmp_path: Path, cut: int) -> None:
    whole = records(run(tmp_path / "whole"))
    with pytest.raises(StoppedError):
        run(tmp_path / "a", on_progress=stop_after(11))
    assert not (tmp_path / "a").exists()
    journal = tmp_path / ".a.journal.jsonl"
    journal.write_bytes(journal.read_bytes()[: -cut or None])
    steps: list[Step] = []
    assert records(run(tmp_path / "a", on_progress=steps.append)) == whole
    assert len(steps) == 32 - 11 + bool(cut)
    assert not journal.exists()


def test_only_what_a_damaged_line_held_is_asked_again(tmp_path: Path) -> None:
    whole = records(run(tmp_path / "whole"))
    with pytest.raises(StoppedError):
        run(tmp_path / "a", on_progress=stop_after(11))
    journal = tmp_path / ".a.journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    lines[4] = b"{" + lines[4][2:]
    journal.write_bytes(b"".join(lines))
    steps: list[Step] = []
    assert records(run(tmp_path / "a", on_progress=steps.append)) == whole
    assert len(steps) == 32 - 10
    assert {step.damaged for step in steps} == {1}
    assert (tmp_path / ".a.journal.jsonl.damaged-1").exists()


def test_a_run_that_is_being_written_is_not_written_twice(tmp_path: Path) -> None:
    refused: list[OutputError] = []

    def run_again(step: Step) -> None:
        if step.done == 3:
            with pytest.raises(OutputError, match="already being written") as raised:
                run(tmp_path / "a")
            refused.append(raised.value)

    run(tmp_path / "a", on_progress=run_again)
    assert f"(process {os.getpid()}, since 20" in str(refused[0])
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_journal_of_another_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoppedError):
        run(tmp_path / "a", on_progress=stop_after(3))
    with pytest.raises(OutputError, match="belongs to a run with another"):
        run(tmp_path / "a", Settings(max_new_tokens=9))


def killed(out: Path, seconds: float) -> None:
    """Run in a process of its own and kill it."""
    child = os.fork()
    if not child:
        try:
            run(out, suite=small_suite(24))
        finally:
            os._exit(0)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def test_a_run_killed_again_and_again_loses_and_repeats_nothing(tmp_path: Path) -> None:
    started = time.perf_counter()
    whole = records(run(tmp_path / "whole", suite=small_suite(24)))
    usual = time.perf_counter() - started
    dice = random.Random(3)
    kills, out = 0, tmp_path / "a"
    while kills < 20:
        if out.exists():
            out = tmp_path / f"a{kills}"
        killed(out, dice.uniform(0, usual))
        kills += 1
    assert records(run(out, suite=small_suite(24))) == whole


def test_samples_are_seeded_and_differ_between_models_and_repeats(tmp_path: Path) -> None:
    sampled = replace(SHORT, temperature=1.0, repeats=2)
    rows = records(run(tmp_path / "a", sampled))
    assert rows == records(run(tmp_path / "b", sampled))
    other = run_model(
        backend(), small_suite(), tmp_path / "c", ModelIdentity("tiny", salt="2"), sampled
    )
    responses = [[row["response"] for row in each] for each in (rows, records(other))]
    assert responses[0] != responses[1]
    by_repeat = [[r["response"] for r in rows if r["repeat"] == n] for n in (0, 1)]
    assert by_repeat[0] != by_repeat[1]
    assert {row["seed"] for row in rows} == {0, 1}


def test_one_item_that_fails_is_an_error_and_the_others_go_on(tmp_path: Path) -> None:
    model = LlamaThatBreaks()
    suite = Suite("s", (small_suite().tasks[1],))
    out = run_model(model, suite, tmp_path / "a", WHO, SHORT)
    rows = records(out)
    assert [row["outcome"] == "error" for row in rows] == [i == 3 for i in range(8)]
    assert rows[3]["score"] is None
    assert rows[3]["error"] == "broken on purpose"


class LlamaThatBreaks(TransformersBackend):
    """Fails on one question, which no real model does on command."""

    def __init__(self) -> None:
        super().__init__(tiny_model("llama"), tokenizer())

    def loglikelihood(self, questions: Any) -> Iterator[tuple[int, Any]]:
        from forgetmap.evaluation.backends.base import Failure

        for place, found in super().loglikelihood(questions):
            yield place, Failure("broken on purpose") if place == 3 else found


def test_an_estimate_counts_every_answer() -> None:
    found = estimate_run(backend(), small_suite(), SHORT)
    assert found.answers == 32
    assert found.most_tokens_out == 16 * 6
    assert found.seconds > 0


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (Settings(chat=True), "no chat template"),
        (Settings(system_prompt="Be brief."), "needs a chat"),
        (Settings(repeats=2), "greedy answers"),
        (Settings(protocol="published"), "whether the model is a base or a tuned model"),
        (Settings(protocol="published", stage="base"), "no worked examples"),
        (Settings(protocol="published", stage="tuned"), "no chat template"),
    ],
)
def test_a_way_of_asking_that_cannot_be_is_refused(
    tmp_path: Path, settings: Settings, said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        run(tmp_path / "a", settings)
    assert list(tmp_path.iterdir()) == []


def one_task(*items: Item, kind: Any = "option") -> Suite:
    return Suite("s", (Task("t", None, kind, lambda: items),))


@pytest.mark.parametrize(
    ("suite", "said"),
    [
        (one_task(Item("1", "long " * CONTEXT, "a"), kind="text"), "exceed the context length"),
        (one_task(Item("1", "q", "z", ("a", "b"))), "gold"),
        (one_task(Item("1", "q", "", ()), kind="text"), "gold|right answer"),
        (one_task(*choice_items(1), *choice_items(1)), "two items '0'"),
        (one_task(), "no items"),
    ],
)
def test_bad_items_are_refused_before_anything_is_asked(
    tmp_path: Path, suite: Suite, said: str
) -> None:
    with pytest.raises((UsageError, ValueError), match=said):
        run(tmp_path / "a", suite=suite)
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_said_so_and_nothing_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import shutil

    real = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: real._replace(free=10))
    with pytest.raises(OutputError, match="MiB left"):
        run(tmp_path / "a")
    full = Path("/dev/full")
    if full.exists():
        journal = Journal(tmp_path / "j", "f", Answer)
        journal.close()
        journal._file = io.FileIO(full, "a")
        with pytest.raises(OutputError, match="No space left"):
            journal.add(Answer("t", "i", 0, 1.0, "correct"))
        with contextlib.suppress(OSError):
            journal._file.close()


def test_the_journal_is_plain_lines(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j", "f", Answer)
    journal.add(Answer("t", "i", 0, 1.0, "correct"))
    journal.close()
    lines = [json.loads(line) for line in (tmp_path / "j").read_text().splitlines()]
    assert lines[0]["fingerprint"] == "f"
    assert (lines[1]["task"], lines[1]["score"]) == ("t", 1.0)
    again = Journal(tmp_path / "j", "f", Answer)
    again.close()
    assert again.done.keys() == {("t", "i", 0)}


def test_a_live_model_and_a_folder_answer_alike(tmp_path: Path) -> None:
    tiny_model("llama").save_pretrained(tmp_path / "model")
    tokenizer().save_pretrained(tmp_path / "model")
    torch.manual_seed(0)
    suite = small_suite()
    fm.evaluate(str(tmp_path / "model"), suite, tmp_path / "folder", settings=SHORT)
    fm.evaluate(
        tiny_model("llama"), suite, tmp_path / "live", tokenizer=tokenizer(), settings=SHORT
    )
    assert records(tmp_path / "folder") == records(tmp_path / "live")


def test_a_module_without_tokenizer_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="needs its tokenizer"):
        fm.evaluate(torch.nn.Linear(1, 1), "basics", tmp_path / "a")


def test_the_journal_is_on_the_disk_in_time_and_not_line_by_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every line is synced at most 50 ms after it was written, many with one sync.

    Not timed, as a busy machine keeps a thread waiting for longer than that.
    """
    assert SYNC_SECONDS < 0.05
    synced: list[float] = []
    monkeypatch.setattr(os, "fsync", lambda _: synced.append(time.monotonic()))
    journal = Journal(tmp_path / "j", "f", Answer)
    begun = []
    for place in range(400):
        begun.append(time.monotonic())
        journal.add(Answer("t", str(place), 0, 1.0, "correct"))
        time.sleep(0.001)
    while not synced or synced[-1] < begun[-1]:
        assert time.monotonic() < begun[-1] + 60
        time.sleep(0.001)
    syncs = len(synced)
    journal.close()
    assert syncs <= (synced[syncs - 1] - begun[0]) / SYNC_SECONDS + 2


def test_a_journal_without_an_answer_is_not_left_behind(tmp_path: Path) -> None:
    Journal(tmp_path / "j", "f", Answer).close()
    assert list(tmp_path.iterdir()) == []
