"""A run killed fifty times at random moments, behind a failing proxy; `make test` has four."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import forgetmap as fm
from fault_proxy import fault_proxy
from killed_runner import ask, run_and_kill
from llama_server import NAME, llama_server
from tiny_gguf import write_gguf

ITEMS, KILLS = 600, 50


def records(path: Path) -> list[list[str]]:
    run = fm.open_run(path)
    assert run.texts is not None
    tables: list[Any] = [run.scores, run.texts]
    return [
        sorted(json.dumps(row, sort_keys=True) for row in table.collect().to_arrow().to_pylist())
        for table in tables
    ]


def test_fifty_kills_lose_and_double_nothing(tmp_path: Path) -> None:
    with llama_server(write_gguf(tmp_path / "tiny.gguf")) as address:
        ask(f"{address}#{NAME}", ITEMS, tmp_path / "undisturbed")
        with fault_proxy(address, share=0.2, delay=0.1) as proxy:
            given = (f"{proxy.url}#{NAME}", ITEMS, tmp_path / "killed")
            kept = run_and_kill(*given, kills=KILLS, seed=7)
    print(f"\n{len(kept)} kills, with {kept} of {ITEMS} answers kept; the proxy: {dict(proxy.did)}")
    assert len(kept) == KILLS
    assert sum(0 < count < ITEMS for count in kept) > KILLS / 2
    assert records(tmp_path / "killed") == records(tmp_path / "undisturbed")
