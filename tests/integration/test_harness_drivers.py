"""Real runs of lm-eval and Inspect, on a model folder and on the same model behind a server."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import forgetmap as fm
from command_line import Done, call
from forgetmap.evaluation.api import open_model
from forgetmap.evaluation.backends.base import (
    Backend,
    Decoding,
    Likelihoods,
    Message,
    Prompt,
    Question,
)
from harness_tasks import ITEMS, MOST_NEW_TOKENS, WORDS, lm_eval_without_tasks, write_tasks
from llama_server import NAME, llama_server
from tiny_gguf import ascii_tokenizer, served_model, write_gguf

KEY = "a-key-that-nobody-may-see"
LOCAL = ("--device", "cpu", "--batch", ITEMS)

Row = dict[str, Any]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tasks(tmp_path_factory.mktemp("harness"))


@pytest.fixture(scope="module")
def model(folder: Path) -> Path:
    served_model().save_pretrained(folder / "model")
    ascii_tokenizer().save_pretrained(folder / "model")
    return folder / "model"


@pytest.fixture(scope="module")
def backend(model: Path) -> Backend:
    return open_model(model)[0]


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    with (
        pytest.MonkeyPatch.context() as patch,
        llama_server(write_gguf(folder / "model.gguf"), KEY) as base,
    ):
        patch.setenv("FORGETMAP_API_KEY", KEY)
        yield f"{base}#{NAME}"


@pytest.fixture(autouse=True, scope="module")
def offline(folder: Path) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_HUB_OFFLINE", "1")
        patch.setenv("HF_DATASETS_CACHE", str(folder / "cache"))
        patch.setenv("OMP_NUM_THREADS", "1")
        own = lm_eval_without_tasks(folder / "own")
        patch.setenv("PYTHONPATH", str(own), prepend=os.pathsep)
        yield


def lm_eval(model: object, out: Path, tasks: str, *more: object) -> Done:
    given = ("run", model, "--harness", "lm-eval", "--tasks", tasks, "--out", out, *more)
    return call(*given, "--", "--include_path", out.parent)


def inspect(model: object, out: Path, *more: object) -> Done:
    return call(
        "run", model, "--harness", "inspect", "--tasks", out.parent / "quiz.py", "--out", out,
        "--max-new-tokens", MOST_NEW_TOKENS, *more,
    )  # fmt: skip


@pytest.fixture(scope="module")
def by_lm_eval(model: Path, folder: Path) -> Path:
    done = lm_eval(model, folder / "lm", "tiny_choice,tiny_write", *LOCAL)
    assert done.code == 0, done.err
    assert done.out == f"Written to {folder / 'lm'}\n"
    assert "tiny_choice" in done.err, "what the harness prints is shown"
    return folder / "lm"


@pytest.fixture(scope="module")
def by_inspect(model: Path, folder: Path) -> Path:
    done = inspect(model, folder / "inspect", *LOCAL)
    assert done.code == 0, done.err
    return folder / "inspect"


def rows(run: Path, task: str) -> list[Row]:
    opened = fm.open_run(run)
    assert opened.texts is not None
    joined = opened.scores.join(opened.texts, on=["task", "item", "repeat"], how="left")
    return [row for row in joined.collect().rows(named=True) if row["task"] == task]


def written(backend: Backend, prompts: list[str], stop: tuple[str, ...] = ()) -> list[str]:
    """What the model writes in this process."""
    decoding = Decoding(max_new_tokens=MOST_NEW_TOKENS, stop=stop)
    found = dict(backend.generate([Prompt(prompt) for prompt in prompts], decoding))
    return [getattr(found[place], "text", "") for place in range(len(prompts))]


def chats(backend: Backend, questions: list[str]) -> list[str]:
    return written(backend, [backend.chat([Message("user", each)]) for each in questions])


def test_lm_eval_answers_as_the_model_here(by_lm_eval: Path, backend: Backend) -> None:
    asked = rows(by_lm_eval, "tiny_write")
    assert len(asked) == ITEMS
    said = written(backend, [row["prompt"] for row in asked], stop=("\n",))
    assert [row["response"] for row in asked] == said
    weighed = rows(by_lm_eval, "tiny_choice")
    options = tuple(f" {word}" for word in WORDS)
    questions = [Question(row["prompt"], options) for row in weighed]
    for place, found in backend.loglikelihood(questions):
        assert isinstance(found, Likelihoods)
        gold = WORDS.index(weighed[place]["gold"])
        assert weighed[place]["logprob_gold"] == pytest.approx(found.logprobs[gold], abs=1e-3)


def test_the_manifest_says_what_was_run(by_lm_eval: Path, model: Path) -> None:
    info = fm.open_run(by_lm_eval).info
    assert (info.run_id, info.model.name, info.harness.name) == ("lm", str(model), "lm-eval")
    assert info.harness.version
    assert info.decoding["temperature"] == 0
    assert info.seeds == [0]
    command = shlex.split(info.command or "")
    assert command[1:3] == ["-m", "lm_eval"]
    assert "--log_samples" in command
    assert command[-2:] == ["--include_path", str(by_lm_eval.parent)]
    assert list((by_lm_eval / "logs").rglob("samples_tiny_write_*.jsonl"))
    assert "tiny_choice" in (by_lm_eval / "logs" / "output.log").read_text()
    assert call("records", "check", by_lm_eval).code == 0


def test_what_is_there_is_not_run_again(by_lm_eval: Path, model: Path) -> None:
    stamp = by_lm_eval.stat().st_mtime_ns
    again = lm_eval(model, by_lm_eval, "tiny_choice,tiny_write", *LOCAL)
    assert (again.code, again.err) == (0, "")
    other = lm_eval(model, by_lm_eval, "tiny_choice", *LOCAL)
    assert other.code == 2
    assert "another model, suite or setting" in other.err
    assert by_lm_eval.stat().st_mtime_ns == stamp


def test_inspect_answers_as_the_model_here(by_inspect: Path, backend: Backend) -> None:
    asked = rows(by_inspect, "quiz")
    assert len(asked) == ITEMS
    assert [row["response"] for row in asked] == chats(backend, [row["item"] for row in asked])
    info = fm.open_run(by_inspect).info
    assert info.harness.name == "inspect"
    assert info.decoding["do_sample"] is False


@pytest.mark.slow
def test_a_server_answers_inspect_alike(address: str, by_inspect: Path) -> None:
    out = by_inspect.parent / "served"
    done = inspect(address, out)
    assert done.code == 0, done.err
    here = {row["item"]: row["response"] for row in rows(by_inspect, "quiz")}
    there = {row["item"]: row["response"] for row in rows(out, "quiz")}
    assert there == here
    info = fm.open_run(out).info
    assert info.model.name == address
    assert info.service is not None
    assert info.service.abilities["chat"]
    refuse_key(out, done)


@pytest.mark.slow
def test_a_server_answers_lm_eval_alike(address: str, by_lm_eval: Path) -> None:
    out = by_lm_eval.parent / "completed"
    done = lm_eval(address, out, "tiny_write")
    assert done.code == 0, done.err
    assert "Note: The log-likelihoods of the server are unreliable" in done.err
    here = {row["item"]: row["response"] for row in rows(by_lm_eval, "tiny_write")}
    there = {row["item"]: row["response"] for row in rows(out, "tiny_write")}
    assert there == here
    refuse_key(out, done)


def refuse_key(out: Path, done: Done) -> None:
    """The key is in nothing that was written or said."""
    files = [file for file in out.rglob("*") if file.is_file()]
    assert files
    assert KEY not in done.out + done.err
    assert not [file for file in files if KEY.encode() in file.read_bytes()]
