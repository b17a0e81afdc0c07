"""A model split by vLLM over two processes, in place of GPUs, compared with a single one."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

import forgetmap as fm
from command_line import write
from ties import FOLDER
from tiny_models import CONTEXT, VOCABULARY, WORDS, sentence, tokenizer
from vllm_server import run_in_vllm

ITEMS = 40
CORES = "0|1"
"""The cores of each process. Without, vLLM wants a NUMA node for each and ends."""
DIGITS = 1e-4


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Llama of four heads, as large as vLLM's attention on a CPU must have them."""
    torch.manual_seed(3)
    config = LlamaConfig(
        vocab_size=VOCABULARY, hidden_size=128, intermediate_size=256, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=CONTEXT,
        initializer_range=0.2, bos_token_id=0, eos_token_id=1,
    )  # fmt: skip
    folder = tmp_path_factory.mktemp("parallel") / "model"
    LlamaForCausalLM(config).eval().save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Questions to choose from, and open ones."""
    source = random.Random(5)
    rows: list[dict[str, Any]] = []
    for number in range(ITEMS):
        options = source.sample(WORDS, 4)
        asked = {"id": number, "question": sentence(source, 6), "gold": options[number % 4]}
        rows += [{"task": "open", **asked}, {"task": "choose", "options": options, **asked}]
    return write(tmp_path_factory.mktemp("parallel") / "items.jsonl", rows)


def rows_of(run: Path) -> dict[tuple[str, str, str], dict[str, Any]]:
    opened = fm.open_run(run)
    assert opened.texts is not None
    texts = {(row["task"], row["item"]): row for row in opened.texts.collect().rows(named=True)}
    scores = opened.scores.collect().rows(named=True)
    return {
        (*key, row["scorer"]): texts[key] | row
        for row in scores
        for key in [(row["task"], row["item"])]
    }


def test_two_processes_answer_as_one(model: Path, suite: Path, tmp_path: Path) -> None:
    settings = ("--suite", suite, "--shots", 0, "--max-new-tokens", 8)
    for parts in (1, 2):
        done = run_in_vllm(
            tmp_path / str(parts), *settings, "--tensor-parallel", parts,
            model=model, **({"VLLM_CPU_OMP_THREADS_BIND": CORES} if parts > 1 else {}),
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-3000:]
    one, two = rows_of(tmp_path / "1"), rows_of(tmp_path / "2")
    assert one.keys() == two.keys()
    weighed = [key for key, row in one.items() if row["logprob_gold"] is not None]
    assert len(weighed) >= ITEMS
    gaps = [abs(one[key]["logprob_gold"] - two[key]["logprob_gold"]) for key in weighed]
    same = sum(one[key]["response"] == two[key]["response"] for key in one)
    print(
        f"two processes: log-probabilities within {max(gaps):.1e}, {same} of {len(one)} texts same"
    )
    assert max(gaps) < DIGITS
    assert [row["score"] for row in one.values()] == [row["score"] for row in two.values()]
    assert same == len(one)


def test_without_cores_of_their_own_it_says_what_to_set(
    model: Path, suite: Path, tmp_path: Path
) -> None:
    """Where the machine has a single NUMA node, as most have."""
    nodes = list(Path("/sys/devices/system/node").glob("node[0-9]*"))
    if len(nodes) > 1:
        pytest.skip("this machine has several NUMA nodes")
    settings = ("--suite", suite, "--tensor-parallel", 2)
    done = run_in_vllm(tmp_path / "run", *settings, model=model)
    assert done.returncode == 2
    assert "Not enough allowed NUMA nodes to bind threads" in done.stderr
    assert "VLLM_CPU_OMP_THREADS_BIND='0-3|4-7'" in done.stderr


def test_it_must_divide_the_attention_heads(suite: Path, tmp_path: Path) -> None:
    """The real model has nine."""
    settings = ("--suite", suite, "--tensor-parallel", 2)
    done = run_in_vllm(tmp_path / "run", *settings, model=FOLDER)
    assert done.returncode == 2
    assert "attention heads (9) must be divisible by tensor parallel size (2)" in done.stderr
    assert "that this number divides its attention heads" in done.stderr
