"""A separate Ray cluster: joined with its token, refused without, and lost during a run."""

from __future__ import annotations

import os
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

import forgetmap as fm
from command_line import SCRIPT, call, write
from tiny_models import tiny_model, tokenizer

pytestmark = pytest.mark.slow

ITEMS = 600
SECONDS = 120.0
RAY = Path(sys.executable).parent / "ray"


@dataclass(frozen=True)
class Cluster:
    """Where it is, what lets us in, and its first process."""

    address: str
    environment: dict[str, str]
    head: subprocess.Popen[bytes]

    def kill(self) -> None:
        """Every process of it, at once."""
        first = psutil.Process(self.head.pid)
        for process in [first, *first.children(recursive=True)]:
            try:
                process.kill()
            except psutil.NoSuchProcess:
                continue
        self.head.wait()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(what: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + SECONDS
    while not what():
        assert process.poll() is None, "it ended too early"
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.05)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One machine with two processors and a token; the last test of this module kills it."""
    port, log = free_port(), tmp_path_factory.mktemp("ray") / "log"
    token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    environment = {**os.environ, **token, "RAY_USAGE_STATS_ENABLED": "0"}
    command = [str(RAY), "start", "--head", "--block", f"--port={port}", "--num-cpus=2"]
    command += ["--include-dashboard=false", "--object-store-memory=100000000"]
    with log.open("wb") as file:
        head = subprocess.Popen(command, stdout=file, stderr=file, env=environment)
    found = Cluster(f"127.0.0.1:{port}", environment, head)
    try:
        wait_for(lambda: b"Ray runtime started" in log.read_bytes(), head)
        yield found
    finally:
        if head.poll() is None:
            found.kill()


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = tmp_path / "tiny"
    tiny_model("llama").save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    return folder


def responses(run: Path) -> list[tuple[str, str, str | None]]:
    texts = fm.open_run(run).texts
    assert texts is not None
    return sorted(
        (row["task"], row["item"], row["response"]) for row in texts.collect().rows(named=True)
    )


def test_a_cluster_is_not_joined_without_its_token(cluster: Cluster, model: Path) -> None:
    others = {**cluster.environment, "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    command = [SCRIPT, "run", model, "--suite", "basics", "--out", model.parent / "run"]
    done = subprocess.run(
        [*map(str, command), "--engine", f"ray:{cluster.address}"],
        capture_output=True, text=True, check=False, env=others,
    )  # fmt: skip
    assert done.returncode == 2, done.stderr
    assert "does not let us in" in done.stderr
    assert "RAY_AUTH_TOKEN" in done.stderr
    assert others["RAY_AUTH_TOKEN"] not in done.stderr + done.stdout


def test_a_cluster_that_goes_away_loses_nothing(
    cluster: Cluster, model: Path, tmp_path: Path
) -> None:
    rows = [
        {"question": f"Say {number}", "gold": "cat", "task": "words", "id": str(number)}
        for number in range(ITEMS)
    ]
    ask = ["run", model, "--suite", write(tmp_path / "questions.jsonl", rows)]
    ask += ["--max-new-tokens", 48]
    on_cluster = [SCRIPT, *ask, "--out", tmp_path / "run", "--engine", f"ray:{cluster.address}"]
    running = subprocess.Popen(
        [str(part) for part in on_cluster],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=cluster.environment,
    )
    journal = tmp_path / ".run.journal.jsonl"
    wait_for(lambda: journal.exists() and journal.read_bytes().count(b"\n") > 30, running)
    cluster.kill()
    _, said = running.communicate(timeout=SECONDS)
    kept = journal.read_bytes().count(b"\n") - 1
    assert running.returncode == 2, said.decode()
    assert b"was lost" in said
    assert b"--engine local" in said
    assert b"Traceback" not in said
    assert 30 <= kept < ITEMS

    done = call(*ask, "--out", tmp_path / "run")
    assert done.code == 0, done.err
    assert call(*ask, "--out", tmp_path / "local").code == 0
    assert responses(tmp_path / "run") == responses(tmp_path / "local")
