"""SmolLM2-135M-Instruct in process, in vLLM and behind two real servers, compared by item."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import forgetmap as fm
from command_line import process, write
from llama_server import NAME, llama_server
from real_facts import fact_rows
from ties import FOLDER, ROOT, TIE, gap_where_they_part
from vllm_server import run_in_vllm, vllm_server

WIDE = ROOT / ".real" / "model-f32.gguf"
FACTS, OPEN = 6, 6
NEW_TOKENS = 24
DIGITS = 1e-3

Rows = dict[tuple[str, str], dict[str, Any]]


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Facts to choose from, and the same as open questions."""
    rows = fact_rows()
    chosen = rows[:: len(rows) // FACTS][:FACTS]
    asked = rows[3 :: len(rows) // OPEN][:OPEN]
    bare = [{key: row[key] for key in ("id", "question", "gold")} for row in asked]
    path = tmp_path_factory.mktemp("servers") / "facts.jsonl"
    return write(path, [*chosen, *({"task": "open", **row} for row in bare)])


def settings(suite: Path, scoring: str) -> tuple[object, ...]:
    return ("--suite", suite, "--max-new-tokens", NEW_TOKENS, "--scoring", scoring)


def records(run: Path) -> Rows:
    opened = fm.open_run(run)
    assert opened.texts is not None
    texts = {(row["task"], row["item"]): row for row in opened.texts.collect().rows(named=True)}
    scores = [row for row in opened.scores.collect().rows(named=True) if row["scorer"] != "strict"]
    return {key: texts[key] | row for row in scores for key in [(row["task"], row["item"])]}


def run_as_users_do(model: object, out: Path, *options: object) -> Rows:
    done = process("run", model, "--out", out, *options)
    assert done.code == 0, done.err
    return records(out)


@pytest.fixture(scope="module")
def in_process(suite: Path) -> Callable[[str], Rows]:
    """Our own run, scored either way; each is made once."""
    made: dict[str, Rows] = {}

    def rows(scoring: str) -> Rows:
        if scoring not in made:
            out = suite.parent / f"ours-{scoring}"
            made[scoring] = run_as_users_do(FOLDER, out, *settings(suite, scoring))
        return made[scoring]

    return rows


def compare(name: str, found: Rows, ours: Rows) -> None:
    """Texts are the same, or part where two tokens are equally likely; weights agree."""
    assert found.keys() == ours.keys()
    same = 0
    for key, row in found.items():
        own = ours[key]
        if own["response"] is None:
            assert row["logprob_gold"] == pytest.approx(own["logprob_gold"], abs=DIGITS), key
            assert row["score"] == own["score"], key
        elif row["response"] != own["response"]:
            gap = gap_where_they_part(own["prompt"], own["response"], row["response"])
            print(f"{name} {key}: {row['response']!r}, not {own['response']!r}; gap {gap:.1e}")
            assert gap < TIE, key
            continue
        same += 1
    print(f"{name}: {same} of {len(found)} items are the same")


def test_vllm_in_process(suite: Path, in_process: Callable[[str], Rows], tmp_path: Path) -> None:
    done = run_in_vllm(tmp_path / "run", *settings(suite, "auto"))
    assert done.returncode == 0, done.stderr[-3000:]
    compare("vLLM in process", records(tmp_path / "run"), in_process("auto"))


def test_a_server_of_vllm(suite: Path, in_process: Callable[[str], Rows], tmp_path: Path) -> None:
    with vllm_server(tmp_path / "log") as address:
        for scoring in ("auto", "generate"):
            found = run_as_users_do(address, tmp_path / scoring, *settings(suite, scoring))
            compare(f"vLLM's server, {scoring}", found, in_process(scoring))


def test_a_server_of_llama_cpp(
    suite: Path, in_process: Callable[[str], Rows], tmp_path: Path
) -> None:
    with llama_server(WIDE) as address:
        found = run_as_users_do(f"{address}#{NAME}", tmp_path / "run", *settings(suite, "generate"))
    compare("llama.cpp's server", found, in_process("generate"))
