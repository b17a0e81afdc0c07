"""The same samples in `inspect view` and in `forgetmap serve`, in a headless Chromium.

    python benchmarks/explorer_beside_inspect.py --peers PYTHON [--samples N]

PYTHON is the interpreter of an environment with inspect_ai, which writes two .eval logs (a model
before and after). Both servers are started on that folder. Measured are the seconds until the list
of samples is shown (for us: the first comparison of both logs, including the import, and again
after a restart of the server), until the result of a text filter is shown, and the peak resident
size of the server. `inspect view` shows one log at a time and filters the questions in the browser
(`input_contains`); ours searches questions and responses of both.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
from explorer_speed import RESULTS, WORDS, Memory
from playwright.sync_api import Browser, Page, sync_playwright

PATIENCE = 300_000
"""Timeout of a page in milliseconds."""
WRITER = """
import random, sys
from inspect_ai.log import EvalConfig, EvalDataset, EvalLog, EvalSample, EvalSpec, write_eval_log
from inspect_ai.model import ChatMessageAssistant, ChatMessageUser, ModelOutput
from inspect_ai.scorer import Score

folder, count, *words = sys.argv[1:]
count = int(count)
for name, seed in (("base", 1), ("tuned", 2)):
    ask, say, samples = random.Random(7), random.Random(seed), []
    for number in range(1, count + 1):
        question = " ".join(ask.choices(words, k=14)) + f" {number}?"
        gold = "ABCD"[number % 4]
        got = gold if say.random() < 0.7 else say.choice("ABCD")
        response = " ".join(say.choices(words, k=26)) + f".\\nANSWER: {got}"
        samples.append(EvalSample(
            id=number, epoch=1, input=question, target=gold,
            choices=[f"option {place}" for place in range(4)],
            messages=[ChatMessageUser(content=question), ChatMessageAssistant(content=response)],
            output=ModelOutput.from_content("mock", response),
            scores={"choice": Score(value="C" if got == gold else "I", answer=got)}))
    spec = EvalSpec(created=f"2026-01-0{seed}T00:00:00+00:00", task="words",
        dataset=EvalDataset(name="made up", samples=count), model=f"mockllm/{name}",
        config=EvalConfig())
    log = EvalLog(eval=spec, status="success", samples=samples)
    write_eval_log(log, f"{folder}/2026-01-0{seed}T00-00-00+00-00_words_{name}.eval")
"""


@contextmanager
def server(call: list[str], address: str, env: dict[str, str]) -> Iterator[Memory]:
    """Start a server at this address; yield its memory."""
    print("$", shlex.join(call), flush=True)
    quiet = subprocess.DEVNULL
    with subprocess.Popen(call, stdout=quiet, stderr=quiet, env=env) as process:
        memory = Memory(process.pid)
        memory.start()
        try:
            _wait_for(address)
            yield memory
        finally:
            process.terminate()


def _wait_for(address: str) -> None:
    for _ in range(1200):
        try:
            httpx.get(address)
        except httpx.HTTPError:
            time.sleep(0.1)
        else:
            return
    raise TimeoutError(address)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def theirs(browser: Browser, peers: str, logs: Path, samples: int) -> dict[str, float]:
    """Measure one log in `inspect view`."""
    port = free_port()
    address = f"http://127.0.0.1:{port}/"
    inspect = str(Path(peers).with_name("inspect"))
    call = [inspect, "view", "start", "--log-dir", str(logs), "--port", str(port)]
    with server(call, address, dict(os.environ)) as memory:
        page = browser.new_page()
        start = time.perf_counter()
        page.goto(f"{address}#/logs/{max(logs.iterdir()).name}")
        page.get_by_text(f"{samples} Samples", exact=True).wait_for(timeout=PATIENCE)
        shown = time.perf_counter() - start
        box = page.locator(".cm-content").first
        box.click()
        start = time.perf_counter()
        page.keyboard.insert_text(f'input_contains(" {samples}")')
        page.get_by_text(re.compile(r"^1 Samples?$")).wait_for(timeout=PATIENCE)
        found = time.perf_counter() - start
    return {"shown_s": shown, "search_s": found, "memory_mib": memory.highest / 2**20}


def ours(browser: Browser, logs: Path, samples: int, cache: Path) -> dict[str, float]:
    """Measure both logs in `forgetmap serve`."""
    port = free_port()
    address = f"http://127.0.0.1:{port}/"
    forgetmap = str(Path(sys.executable).with_name("forgetmap"))
    names = [str(path) for path in sorted(logs.iterdir())]
    call = [forgetmap, "serve", *names, "--port", str(port), "--no-token"]
    launched = time.perf_counter()
    with server(call, address, {**os.environ, "FORGETMAP_CACHE": str(cache)}) as memory:
        started = time.perf_counter() - launched
        page = browser.new_page()
        start = time.perf_counter()
        page.goto(address)
        _listed(page, f"{samples:,} items")
        shown = time.perf_counter() - start
        start = time.perf_counter()
        page.locator("#filter-q").fill(f" {samples}")
        _listed(page, f"1 of {samples:,} items.")
        found = time.perf_counter() - start
    sizes = {"memory_mib": memory.highest / 2**20}
    return {"started_s": started, "shown_s": shown, "search_s": found, **sizes}


def _listed(page: Page, words: str) -> None:
    page.locator("#flips .found", has_text=words).wait_for(timeout=PATIENCE)


def measure(peers: str, samples: int) -> dict[str, dict[str, float]]:
    """Measure both, one after the other, on the same two files."""
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        logs, cache = Path(name) / "logs", Path(name) / "cache"
        logs.mkdir()
        subprocess.run([peers, "-c", WRITER, str(logs), str(samples), *WORDS], check=True)
        print(f"{sum(file.stat().st_size for file in logs.iterdir()) / 2**20:.0f} MiB of logs")
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        return {
            "inspect view": theirs(browser, peers, logs, samples),
            "forgetmap serve": ours(browser, logs, samples, cache),
            "forgetmap serve, again": ours(browser, logs, samples, cache),
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peers", required=True, metavar="PYTHON")
    parser.add_argument("--samples", type=int, default=10_000)
    given = parser.parse_args()
    found = measure(given.peers, given.samples)
    for who, figures in found.items():
        print(f"{who:24}", "  ".join(f"{name} {value:,.2f}" for name, value in figures.items()))
    RESULTS.mkdir(exist_ok=True)
    named = {"samples": given.samples, **found}
    (RESULTS / "explorer_beside_inspect.json").write_text(json.dumps(named, indent=2) + "\n")


if __name__ == "__main__":
    main()
