"""SmolLM2-135M-Instruct through Inspect's driver, and through harnesses that were interrupted."""

from __future__ import annotations

import re
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import forgetmap as fm
from command_line import SCRIPT, write
from forgetmap.evaluation.api import open_model
from forgetmap.evaluation.jobs import make_jobs
from forgetmap.evaluation.prompts import messages_of
from forgetmap.evaluation.settings import Settings, resolve
from peer import Asked, environment, lm_eval_order, read_samples, run_harness, write_tasks
from real_facts import fact_rows
from ties import FOLDER, TIE, gap_where_they_part

CHAT = Settings(chat=True)
SUPPORT = Path(__file__).parent.parent / "support"
BATCH = 16

TASK = """
from inspect_ai import Task, task
from inspect_ai.dataset import json_dataset
from inspect_ai.scorer import includes
from inspect_ai.solver import generate


@task
def asked():
    return Task(dataset=json_dataset("asked.jsonl"), solver=generate(), scorer=includes())
"""


@dataclass(frozen=True)
class Said:
    """A prompt as the model saw it, and what it wrote."""

    prompt: str
    response: str


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("harnesses")


@pytest.fixture(scope="module")
def ours(folder: Path) -> dict[str, Said]:
    """One item of each task of `basics`, asked in a chat, in this process."""
    suite = fm.load_suite("basics", limit=1)
    backend, _ = open_model(FOLDER)
    resolved = resolve(CHAT, backend)
    rows = [
        {
            "id": f"{job.task.name}/{job.item.id}",
            "input": messages_of(job.item, job.task, resolved)[-1].content,
            "target": job.item.gold or "-",
        }
        for job in make_jobs(suite, resolved, backend, "")
    ]
    write(folder / "asked.jsonl", rows)
    (folder / "asked.py").write_text(TASK, "utf-8")
    run = fm.open_run(fm.evaluate(FOLDER, suite, folder / "ours", settings=CHAT))
    assert run.texts is not None
    texts = run.texts.collect().rows(named=True)
    return {
        f"{row['task']}/{row['item']}": Said(row["prompt"], row["response"])
        for row in texts
        if row["response"] is not None
    }


def inspect_order(out: Path) -> list[str]:
    order = [SCRIPT, "run", FOLDER, "--harness", "inspect", "--tasks", out.parent / "asked.py"]
    order += ["--out", out, "--device", "cpu", "--batch", BATCH, "--max-new-tokens", 64]
    return [str(part) for part in order]


def responses(run: Path) -> dict[str, str]:
    texts = fm.open_run(run).texts
    assert texts is not None
    return {row["item"]: row["response"] for row in texts.collect().rows(named=True)}


@pytest.fixture(scope="module")
def theirs(ours: dict[str, Said], folder: Path) -> dict[str, str]:
    assert ours
    run_harness(inspect_order(folder / "inspect"), folder)
    return responses(folder / "inspect")


def unexplained(ours: dict[str, Said], theirs: dict[str, str]) -> list[str]:
    """Items with another text, although no two tokens were equally likely where they part."""
    return [
        item
        for item, said in ours.items()
        if said.response != theirs[item]
        and gap_where_they_part(said.prompt, said.response, theirs[item]) >= TIE
    ]


def test_inspect_writes_the_same_texts(ours: dict[str, Said], theirs: dict[str, str]) -> None:
    equal = sum(said.response == theirs[item] for item, said in ours.items())
    print(f"\nInspect: {equal} of {len(ours)} texts equal, {len(ours) - equal} part at a tie")
    assert unexplained(ours, theirs) == []
    assert equal >= 50


def stop(order: Sequence[str], folder: Path, sign: str, how: signal.Signals) -> None:
    """Start a command and end it once what it says holds this sign."""
    with subprocess.Popen(
        order, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL, env=environment(folder)
    ) as program:
        log = Path(order[order.index("--out") + 1])
        wait_for(log.parent / f".{log.name}.{order[order.index('--harness') + 1]}", sign, program)
        program.send_signal(how)
        assert program.wait() != 0


def wait_for(work: Path, sign: str, program: subprocess.Popen[Any]) -> None:
    """Until the log of the harness shows it; its progress is drawn over in one line."""
    output = work / "output.log"
    while not (output.is_file() and re.search(sign, output.read_text(errors="replace"))):
        assert program.poll() is None, output.read_text(errors="replace")[-3000:]
        try:
            program.wait(0.1)
        except subprocess.TimeoutExpired:
            continue


def test_inspect_goes_on_where_it_was(
    ours: dict[str, Said], theirs: dict[str, str], folder: Path
) -> None:
    order = inspect_order(folder / "again")
    stop(order, folder, r"Samples: +(1[6-9]|[234]\d)/", signal.SIGTERM)
    assert not (folder / "again").exists()
    run_harness(order, folder)
    again = responses(folder / "again")
    assert again.keys() == theirs.keys()
    assert unexplained(ours, again) == []


def stop_while_held(order: Sequence[str], folder: Path) -> None:
    """Start lm-eval, which waits after a few batches, and end it there."""
    held = folder / "held"
    hold = {"PYTHONPATH": str(SUPPORT / "held_lm_eval"), "HOLD_LM_EVAL": str(held)}
    with subprocess.Popen(
        order,
        stderr=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        env=environment(folder) | hold,
    ) as program:
        while not held.exists():
            assert program.poll() is None, "lm-eval ended before it was held"
            time.sleep(0.1)
        program.send_signal(signal.SIGTERM)
        assert program.wait() != 0


def test_lm_eval_goes_on_where_it_was(folder: Path) -> None:
    rows = fact_rows()
    asked = [
        Asked(("facts", row["id"]), f"Question: {row['id']}\nAnswer:", tuple(row["options"]),
              row["options"].index(row["gold"]))
        for row in rows
    ]  # fmt: skip
    write_tasks({"facts": asked}, folder)
    order = lm_eval_order(FOLDER, ["facts"], folder / "stopped")
    stop_while_held(order, folder)
    said = run_harness(order, folder)
    kept = re.search(r"Cached requests: (\d+), Requests remaining: (\d+)", said)
    assert kept is not None
    cached, left = map(int, kept.groups())
    print(f"\nlm-eval: {cached} answers kept, {left} asked for")
    assert cached > 0
    assert left > 0
    run_harness(lm_eval_order(FOLDER, ["facts"], folder / "whole"), folder)
    stopped, whole = (read_samples("facts", folder / name) for name in ("stopped", "whole"))
    assert stopped.keys() == whole.keys()
    assert len(whole) == len(rows)
    for key, found in whole.items():
        assert stopped[key].logprobs == pytest.approx(found.logprobs, abs=TIE)
