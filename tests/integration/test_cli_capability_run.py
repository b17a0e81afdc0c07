"""From two models to the drift of their capabilities: `forgetmap run`, then `forgetmap drift`."""

from __future__ import annotations

import json
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

import forgetmap as fm
from captrack_copy import SMALL, write_copy
from command_line import call, process
from forgetmap.capabilities.taxonomy import load_taxonomy
from forgetmap.evaluation.suites import catalogue
from plugin_packages import use_entry_points
from tiny_models import VOCABULARY, tokenizer

ENTRIES = {
    "capabilities": "forgetmap.capabilities.sample:capabilities_suite",
    "captrack": "forgetmap.capabilities.suite:captrack_suite",
}
INSTALLED = {point.name for point in entry_points(group=catalogue.SUITES.group)}
SHORT = ("--max-new-tokens", "3")


@pytest.fixture(autouse=True)
def _as_installed(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The suites are known even where the package is only on the path."""
    use_entry_points(monkeypatch, catalogue, "SUITES", ENTRIES)
    monkeypatch.setenv("FORGETMAP_CACHE", str(tmp_path_factory.getbasetemp() / "suite-run-cache"))


def small_model(folder: Path, seed: int) -> Path:
    """Random weights, but room for long prompts."""
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=VOCABULARY, hidden_size=16, intermediate_size=32, num_hidden_layers=1,
        num_attention_heads=2, num_key_value_heads=1, max_position_embeddings=8192,
        initializer_range=0.3, bos_token_id=0, eos_token_id=1, pad_token_id=None,
    )  # fmt: skip
    LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("small-models")
    return [small_model(folder / name, seed) for seed, name in enumerate(("base", "tuned"))]


def drift(*args: object) -> dict[str, Any]:
    done = call("drift", *args, "--draws", 100, "--processes", 1, "--json")
    assert done.code == 0, done.err
    value = json.loads(done.out)
    assert isinstance(value, dict)
    return value


def run_both(models: list[Path], out: Path, *ask: object) -> list[Path]:
    paths = [out / model.name for model in models]
    for model, path in zip(models, paths, strict=True):
        done = call("run", model, *ask, *SHORT, "--out", path)
        assert done.code == 0, done.err
        assert call("records", "check", path).code == 0
    return paths


def test_the_sample_suite(models: list[Path], tmp_path: Path) -> None:
    paths = run_both(models, tmp_path, "--suite", "capabilities")
    found = drift(*paths, "--taxonomy", "sample")
    taxonomy = load_taxonomy("sample")
    items = {task.name: task.items for task in taxonomy.tasks}
    needs = {metric.id: metric.needs for metric in taxonomy.metrics}
    cells = {cell["id"]: cell for cell in found["metrics"]}
    assert cells.keys() == needs.keys()
    for name, cell in cells.items():
        if needs[name] != "rule":
            assert cell["value"] is None, name
        elif cell["value"] is not None:
            assert cell["n"] <= (items[cell["task"]] or 0)
    assert cells["W3a.words"]["n"] == 8
    assert cells["C5a.sums"]["n"] == 8
    assert cells["H5.recall"]["n"] == 8
    shown = call("drift", *paths, "--taxonomy", "sample", "--draws", 100, "--processes", 1)
    assert "Drift from base (sample, default)" in shown.out
    assert "the taxonomy does not contain" not in shown.out
    warnings = fm.compare(paths[0], paths[1]).result.pairing.warnings
    assert not {"duplicates", "one_sided", "conflict"} & {notice.code for notice in warnings}
    run = fm.open_run(paths[0])
    assert run.texts is not None
    assert {"conversations.turn2", "conversations.turn2.first"} <= set(run.info.tasks)


def test_captrack_from_a_local_copy(models: list[Path], tmp_path: Path) -> None:
    taxonomy = load_taxonomy("captrack")
    assert SMALL.keys() == {task.name for task in taxonomy.tasks}
    root = write_copy(tmp_path / "data", SMALL)
    paths = run_both(models, tmp_path, "--suite", "captrack", "--data-root", root)
    run = fm.open_run(paths[0])
    assert len(run.info.tasks) == 39
    assert run.texts is not None
    texts = {(row["task"], row["item"]): row for row in run.texts.collect().rows(named=True)}
    assert len(texts) == sum(map(len, SMALL.values())) + 2
    assert texts["gsm8k.subset", "q1"]["prompt"] == "Please answer. What is 2 + 6?\n\n"
    said = texts["mtbench.turn2.first", "q0"]["response"]
    assert texts["mtbench.turn2", "q0"]["prompt"] == f"Name a mill.\n\n{said}\n\nWhere is it?\n\n"
    cells = {cell["id"]: cell for cell in drift(*paths, "--taxonomy", "captrack")["metrics"]}
    by_rule = {
        metric.id
        for metric in taxonomy.metrics
        if metric.needs == "rule" and metric.scorer is not None
    }
    assert {name for name, cell in cells.items() if cell["n"]} >= by_rule - NOT_ALWAYS
    assert (cells["C1.gsm8k"]["n"], cells["W3a.mtbench"]["n"]) == (2, 1)
    assert cells["H4.mtbench"]["value"] is None


NOT_ALWAYS = {"H3.bfcl.arguments", "H3.mnms.arguments", "C3.hotpotqa.evidence"}
"""Without a call there are no arguments; without an answer there is nothing to look for."""


def test_a_second_turn_alone_is_refused(models: list[Path], tmp_path: Path) -> None:
    ask = ("--suite", "capabilities", "--tasks", "conversations.turn2")
    done = call("run", models[0], *ask, "--out", tmp_path / "run")
    assert done.code == 2
    assert "continues the conversations of" in done.err
    assert "conversations.turn2.first" in done.err


@pytest.mark.skipif(not ENTRIES.keys() <= INSTALLED, reason="this tree is not installed")
def test_the_installed_command_knows_the_suites(models: list[Path], tmp_path: Path) -> None:
    ask = ("--suite", "capabilities", "--tasks", "style", *SHORT)
    done = process("run", models[0], *ask, "--out", tmp_path / "run")
    assert done.code == 0, done.err
    assert len(fm.open_run(tmp_path / "run").info.tasks) == 1
