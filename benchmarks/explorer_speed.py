"""How fast is the explorer? A real server over runs with millions of items, asked over HTTP.

    .venv/bin/python benchmarks/explorer_speed.py                    5 million items
    .venv/bin/python benchmarks/explorer_speed.py --items 200000 --clients 10
    .venv/bin/python benchmarks/explorer_speed.py --load             200 clients, 50 requests each

Two run folders with questions and responses are generated once. The first comparison builds tables
and is reported separately, as is the next start, which reuses them; then one client filters by a
column and reads the first page, searches for new texts, opens items, and many clients request all
of that at once. Memory is the peak resident size of the server process.

With `--load`, all clients send requests at once, each over its own connection, beside 300
connections that send half a request. One request in ten is a search, for more texts than the cache
holds. The resident size of the server is measured after each fifth of the requests.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import duckdb
import httpx
import psutil

HERE = Path(__file__).parent
DATA = HERE / "data"
RESULTS = HERE / "results"
TASKS = 100
LOAD_ITEMS, LOAD_CLIENTS, LOAD_REQUESTS, LOAD_ROUNDS = 50_000, 200, 50, 5
LOAD_TEXTS, HALF_OPEN = 500, 300
LOAD_BARS = {"errors": 0, "growth": 1.1}
BARS = {"filter_p95_ms": 200, "search_max_s": 3.0, "errors": 0, "memory_mib": 1024}
WORDS = [
    "the", "a", "of", "river", "stone", "light", "number", "answer", "which",
    "city", "model", "because", "therefore", "small", "green", "follow", "water", "second",
    "energy", "between", "theory", "history", "measure", "person", "question", "under", "letter",
    "simple", "orange", "matter", "planet", "music", "table", "window", "doctor", "market",
    "winter", "garden", "silver", "castle", "engine", "forest", "bridge", "island", "mirror",
    "pocket", "ticket", "yellow",
]  # fmt: skip
RARE = ("castle 4999", "Silver Castle Engine", "zebra", "mirror mirror mirror", "123456?")


def sentence(seed: int, words: int) -> str:
    """Return SQL for a text that depends on the item and the seed."""
    listed = ", ".join(f"'{word}'" for word in WORDS)
    picked = f"[{listed}][1 + (hash(i, {seed}, j) % {len(WORDS)})::BIGINT]"
    return f"array_to_string([{picked} FOR j IN range({words})], ' ')"


def write_run(folder: Path, items: int, seed: int, parent: str | None) -> None:
    """Write a run folder; about one item in ten differs from that of another seed."""
    folder.mkdir(parents=True)
    right = (
        f"(CASE WHEN hash(i, 7) % 100 < 60 THEN hash(i, {seed}, 8) % 100 < 95 "
        f"ELSE hash(i, {seed}, 9) % 100 < 30 END)"
    )
    task = f"printf('task_%03d', i * {TASKS} // {items}) AS task"
    key = f"{task}, printf('q%07d', i) AS item, 0 AS repeat"
    scores = f"""SELECT {key}, 'acc' AS metric, 'default' AS scorer,
        CASE WHEN {right} THEN 1.0 ELSE 0.0 END::DOUBLE AS score,
        CASE WHEN {right} THEN 'correct' WHEN hash(i, {seed}, 3) % 20 = 0 THEN 'no_answer'
             WHEN hash(i, {seed}, 4) % 30 = 0 THEN 'truncated' ELSE 'incorrect' END AS outcome,
        4 AS k, printf('category %d', (i * {TASKS} // {items}) % 10) AS category,
        printf('option %d', hash(i, 5) % 4) AS gold,
        printf('option %d', (hash(i, 5) % 4 + CASE WHEN {right} THEN 0
               ELSE 1 + hash(i, {seed}, 6) % 3 END) % 4) AS answer, answer AS choice,
        (hash(i, 11) >> 1)::BIGINT AS question_hash, (hash(i, 13) >> 1)::BIGINT AS gold_hash
        FROM range({items}) t(i)"""
    texts = f"""SELECT {key}, {sentence(21, 14)} || ' ' || i || '?' AS question,
        ['option 0', 'option 1', 'option 2', 'option 3'] AS options,
        'Question: ' || question || ' Answer:' AS prompt,
        {sentence(30 + seed, 26)} || '.' AS response, NULL::VARCHAR AS error
        FROM range({items}) t(i)"""
    engine = duckdb.connect(config={"memory_limit": "3GB", "threads": 2})
    for name, sql in (("scores", scores), ("texts", texts)):
        engine.execute(
            f"COPY ({sql}) TO '{folder / name}.parquet' (COMPRESSION zstd, ROW_GROUP_SIZE 100000)"
        )
    manifest = {"schema_version": 1, "run_id": folder.name, "parent": parent}
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")


def make_runs(items: int) -> Path:
    """Write the two runs, once."""
    folder = DATA / f"explorer-{items}"
    if not (folder / "tuned" / "manifest.json").is_file():
        write_run(folder / "base", items, seed=1, parent=None)
        write_run(folder / "tuned", items, seed=2, parent="base")
    return folder


class Memory(threading.Thread):
    """Peak resident size of a process, sampled."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self._process = psutil.Process(pid)
        self.highest = 0

    def mib(self) -> float:
        """Return the current resident size."""
        return float(self._process.memory_info().rss) / 2**20

    def run(self) -> None:
        """Sample twenty times a second."""
        while self._process.is_running():
            try:
                self.highest = max(self.highest, self._process.memory_info().rss)
            except psutil.NoSuchProcess:
                return
            time.sleep(0.05)


@contextmanager
def serving(folder: Path, cache: Path) -> Iterator[tuple[str, Memory]]:
    """Start the installed command with an empty cache; yield its address and memory."""
    code = "from forgetmap.cli.main import script; script()"
    call = [sys.executable, "-c", code, "serve", str(folder)]
    env = {**os.environ, "FORGETMAP_CACHE": str(cache)}
    with subprocess.Popen(call, stdout=subprocess.PIPE, text=True, env=env) as server:
        assert server.stdout is not None
        address = server.stdout.readline().split()[-1]
        memory = Memory(server.pid)
        memory.start()
        try:
            yield address, memory
        finally:
            server.terminate()


def known_to(address: str) -> dict[str, Any]:
    """Return client options with the token of the printed address."""
    home, _, token = address.partition("?token=")
    return {"base_url": home, "headers": {"Authorization": f"Bearer {token}"}}


def timed(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def quantile(seconds: list[float], share: float) -> float:
    return sorted(seconds)[min(int(share * len(seconds)), len(seconds) - 1)]


def filters(dice: random.Random) -> dict[str, str]:
    """Return a selection by columns, as a reader would make it."""
    return dice.choice(
        [
            {"transition": dice.choice(["forgotten", "gained", "kept", "never"])},
            {"task": f"task_{dice.randrange(TASKS):03d}"},
            {"category": f"category {dice.randrange(10)}", "transition": "forgotten"},
            {"reason": dice.choice(["wrong", "no_answer", "truncated"])},
            {
                "task": f"task_{dice.randrange(TASKS):03d}",
                "transition": "gained",
                "sort": "longest",
            },
        ]
    )


def measure_one(client: httpx.Client, pair: dict[str, str], rounds: int) -> dict[str, float]:
    """Measure one client: filters, searches, items."""

    def ask(path: str, **given: str) -> Any:
        answer = client.get(path, params={**pair, **given})
        answer.raise_for_status()
        return answer.json()

    dice = random.Random(5)
    found = ask("api/items", limit="50")["rows"]
    seconds = [timed(lambda: ask("api/items", **filters(dice))) for _ in range(rounds)]
    searches = [timed(lambda text=text: ask("api/items", q=text)) for text in RARE]  # type: ignore[misc]
    opened = []
    for row in found[:20]:
        key = f"{row['task']}/{row['item']}/{row['repeat']}"
        opened.append(timed(lambda key=key: ask("api/item", key=key)))  # type: ignore[misc]
    return {
        "filter_p50_ms": 1e3 * statistics.median(seconds),
        "filter_p95_ms": 1e3 * quantile(seconds, 0.95),
        "search_median_s": statistics.median(searches),
        "search_max_s": max(searches),
        "item_p95_ms": 1e3 * quantile(opened, 0.95),
    }


async def measure_many(
    address: str, pair: dict[str, str], clients: int, each: int
) -> dict[str, float]:
    """Measure many clients at once: nine filters to one search, with ten texts in all."""
    seconds: dict[str, list[float]] = {"filter": [], "search": []}
    errors = 0

    async def use(client: httpx.AsyncClient, number: int) -> None:
        nonlocal errors
        dice = random.Random(number)
        for turn in range(each):
            is_search = turn == number % each
            wanted = {"q": f"{WORDS[number % 10]} 77"} if is_search else filters(dice)
            start = time.perf_counter()
            try:
                answer = await client.get("api/items", params={**pair, **wanted})
                errors += answer.status_code != 200 or "rows" not in answer.json()
            except httpx.HTTPError:
                errors += 1
            seconds["search" if is_search else "filter"].append(time.perf_counter() - start)

    limits = httpx.Limits(max_connections=clients)
    async with httpx.AsyncClient(**known_to(address), timeout=600, limits=limits) as client:
        waiting: list[Awaitable[None]] = [use(client, number) for number in range(clients)]
        await asyncio.gather(*waiting)
    return {
        "clients": clients,
        "requests": sum(map(len, seconds.values())),
        "errors": errors,
        "many_filter_p50_ms": 1e3 * statistics.median(seconds["filter"]),
        "many_filter_p95_ms": 1e3 * quantile(seconds["filter"], 0.95),
        "many_search_p95_s": quantile(seconds["search"], 0.95),
    }


def measure(items: int, rounds: int, clients: int) -> dict[str, float]:
    """Measure everything with one server, and the same comparison after a restart."""
    folder = make_runs(items)
    with tempfile.TemporaryDirectory(dir=DATA) as cache:
        with serving(folder, Path(cache)) as (address, memory):
            pair, built = first_comparison(address)
            found = {"items": items, "first_comparison_s": built}
            with httpx.Client(**known_to(address), timeout=1800) as client:
                found |= measure_one(client, pair, rounds)
            show(found)
            found |= asyncio.run(measure_many(address, pair, clients, each=10))
            found["memory_mib"] = memory.highest / 2**20
        with serving(folder, Path(cache)) as (address, _):
            return found | {"second_start_s": first_comparison(address)[1]}


def measure_load(items: int, clients: int, each: int) -> dict[str, float]:
    """Measure many clients and many requests: errors, times, and memory over time."""
    folder = make_runs(items)
    with (
        tempfile.TemporaryDirectory(dir=DATA) as cache,
        serving(folder, Path(cache)) as (address, memory),
        ExitStack() as stack,
    ):
        pair, _ = first_comparison(address)
        where = urlsplit(address)
        for _ in range(HALF_OPEN):
            line = stack.enter_context(socket.create_connection((where.hostname, where.port)))
            line.sendall(b"GET /api/runs HTTP/1.1\r\nHost:")
        return {"items": items, "half_open": HALF_OPEN} | asyncio.run(
            load(address, pair, memory, clients, each)
        )


async def load(
    address: str, pair: dict[str, str], memory: Memory, clients: int, each: int
) -> dict[str, float]:
    """Send this many requests per client, in rounds; a client waits for each answer."""
    seconds: list[float] = []
    errors = 0

    async def use(client: httpx.AsyncClient, dice: random.Random, requests: int) -> None:
        nonlocal errors
        for _ in range(requests):
            is_search = dice.random() < 0.1
            text = f"{dice.choice(WORDS)} {dice.randrange(LOAD_TEXTS)}"
            start = time.perf_counter()
            try:
                wanted = {"q": text} if is_search else filters(dice)
                answer = await client.get("api/items", params={**pair, **wanted})
                errors += answer.status_code != 200 or "rows" not in answer.json()
            except httpx.HTTPError:
                errors += 1
            seconds.append(time.perf_counter() - start)

    limits = httpx.Limits(max_connections=clients, max_keepalive_connections=clients)
    sizes = []
    start = time.perf_counter()
    async with httpx.AsyncClient(**known_to(address), timeout=600, limits=limits) as client:
        dices = [random.Random(number) for number in range(clients)]
        for _ in range(LOAD_ROUNDS):
            await asyncio.gather(*(use(client, dice, each // LOAD_ROUNDS) for dice in dices))
            sizes.append(memory.mib())
    found = {
        "clients": clients,
        "requests": len(seconds),
        "errors": errors,
        "requests_per_s": len(seconds) / (time.perf_counter() - start),
        "p50_ms": 1e3 * statistics.median(seconds),
        "p95_ms": 1e3 * quantile(seconds, 0.95),
        "max_ms": 1e3 * max(seconds),
    }
    found |= {f"memory_{place}_mib": size for place, size in enumerate(sizes, 1)}
    return found | {"growth": sizes[-1] / sizes[1]}


def first_comparison(address: str) -> tuple[dict[str, str], float]:
    """Return the ids of the two runs, and the seconds until they are compared."""
    with httpx.Client(**known_to(address), timeout=1800) as client:
        runs = {each["name"]: each["id"] for each in client.get("api/runs").json()}
        pair = {"before": runs["base"], "after": runs["tuned"]}
        ask = partial(client.get, "api/comparison", params=pair)
        return pair, timed(lambda: ask().raise_for_status())


def show(found: dict[str, float], bars: dict[str, float] = BARS) -> None:
    """Print the measurements beside their limits."""
    for name, value in found.items():
        bar = f"   bar {bars[name]:,}" if name in bars else ""
        print(f"{name:20} {value:14,.2f}{bar}", flush=True)
    print()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--items", type=int)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--clients", type=int)
    parser.add_argument("--load", action="store_true")
    parser.add_argument("--requests", type=int, default=LOAD_REQUESTS, help="of each, for --load")
    given = parser.parse_args()
    if given.load:
        items, clients = given.items or LOAD_ITEMS, given.clients or LOAD_CLIENTS
        found, bars = measure_load(items, clients, given.requests), LOAD_BARS
    else:
        items, clients = given.items or 5_000_000, given.clients or 50
        found, bars = measure(items, given.rounds, clients), BARS
    show(found, bars)
    missed = [name for name, bar in bars.items() if found[name] > bar]
    RESULTS.mkdir(exist_ok=True)
    named = {"machine": platform.platform(), "cpus": psutil.cpu_count(), **found}
    file = RESULTS / ("explorer_load.json" if given.load else "explorer_speed.json")
    file.write_text(json.dumps(named, indent=2) + "\n")
    if missed:
        sys.exit(f"missed: {', '.join(missed)}")


if __name__ == "__main__":
    main()
