"""LoRA adapters: `BASE+ADAPTER` gives the same weights as a merge by peft."""

from __future__ import annotations

import copy
import json
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import LoraConfig, get_peft_model

import merge_models
import tiny_models
from forgetmap.errors import MissingInputError, ModelError
from forgetmap.merge.api import apply_recipe
from forgetmap.merge.checkpoint import Checkpoint

pytestmark = pytest.mark.needs_torch

TARGETS = {"llama": ["q_proj", "down_proj"], "gpt2": ["c_attn", "c_proj"]}
EMBEDDING = {"llama": "embed_tokens", "gpt2": "wte"}


@pytest.fixture(scope="module")
def bases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bases")
    for kind in TARGETS:
        merge_models.save_model(folder / kind, tiny_models.tiny_model(kind))
    return folder


def adapted(kind: str, folder: Path, dtype: torch.dtype = torch.float32, **options: Any) -> Any:
    """Save an adapter with random weights; the merged weights by peft."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # peft's advice on embeddings and on patterns
        model = copy.deepcopy(tiny_models.tiny_model(kind)).to(dtype)
        targets = options.pop("targets", TARGETS[kind])
        config = LoraConfig(
            r=4, lora_alpha=7, target_modules=targets, fan_in_fan_out=kind == "gpt2",
            task_type="CAUSAL_LM", **options,
        )  # fmt: skip
        tuned = get_peft_model(model, config)
        generator = torch.Generator().manual_seed(3)
        for name, weights in tuned.named_parameters():
            trained = "lora_" in name or "modules_to_save" in name
            if trained or ("bias" in options and name.endswith(".bias")):
                noise = torch.randn(weights.shape, generator=generator)
                weights.data += (0.1 * noise).to(weights.dtype)
        tuned.save_pretrained(folder)
        return tuned.merge_and_unload().state_dict()


@pytest.mark.parametrize("kind", TARGETS)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"use_rslora": True},
        {"use_dora": True},
        {"alpha_pattern": {"q_proj": 3, "mlp.c_proj": 5}, "rank_pattern": {"q_proj": 2}},
        {"modules_to_save": ["lm_head"]},
        {"bias": "all"},
        {"targets": "embedding"},
    ],
    ids=lambda options: next(iter(options), "plain"),
)
def test_reads_as_peft_merges(kind: str, options: Any, bases: Path, tmp_path: Path) -> None:
    options = dict(options)
    if "targets" in options:
        options["targets"] = [*TARGETS[kind], EMBEDDING[kind]]
    expected = adapted(kind, tmp_path / "adapter", **options)
    base = Checkpoint.open(bases / kind)
    opened = Checkpoint.open(f"{bases / kind}+{tmp_path / 'adapter'}")
    assert opened.stamp != base.stamp
    changed = 0
    for name in opened.tensors:
        read = opened.read(name)
        torch.testing.assert_close(read, expected[name], rtol=0, atol=1e-6)
        changed += name not in base.tensors or not torch.equal(read, base.read(name))
    assert changed >= 4
    if kind == "gpt2":  # its output layer is tied unless the adapter brings one
        assert ("lm_head.weight" in opened.tensors) == ("modules_to_save" in options)
        assert opened.config["tie_word_embeddings"] == ("modules_to_save" not in options)


def test_in_bfloat16_it_is_rounded_once(tmp_path: Path) -> None:
    model = copy.deepcopy(tiny_models.tiny_model("llama")).to(torch.bfloat16)
    base = merge_models.save_model(tmp_path / "base", model)
    expected = adapted("llama", tmp_path / "adapter", torch.bfloat16)
    opened = Checkpoint.open(f"{base}+{tmp_path / 'adapter'}")
    for name in opened.tensors:
        read = opened.read(name)
        assert read.dtype == torch.bfloat16
        # peft rounds the change before it adds it, so that the last bit may differ.
        torch.testing.assert_close(read, expected[name], rtol=2**-7, atol=2**-8)


def test_an_adapter_is_merged_into_its_base_or_between_bases(bases: Path, tmp_path: Path) -> None:
    expected = adapted("llama", tmp_path / "adapter")
    model = f"{bases / 'llama'}+{tmp_path / 'adapter'}"
    recipe = merge_models.average(model)
    merged = merge_models.weights_of(apply_recipe(recipe, tmp_path / "merged"))
    halfway = apply_recipe(merge_models.average(bases / "llama", model), tmp_path / "halfway")
    base = merge_models.weights_of(bases / "llama")
    found = merge_models.weights_of(halfway)
    for name, values in merged.items():
        torch.testing.assert_close(values, expected[name], rtol=0, atol=1e-6)
        torch.testing.assert_close(found[name], (values + base[name]) / 2, rtol=0, atol=1e-6)


def test_an_adapter_by_itself_names_its_base(bases: Path, tmp_path: Path) -> None:
    expected = adapted("llama", tmp_path / "adapter")
    path = tmp_path / "adapter" / "adapter_config.json"
    told = json.loads(path.read_text())
    path.write_text(json.dumps({**told, "base_model_name_or_path": str(bases / "llama")}))
    opened = Checkpoint.open(tmp_path / "adapter")
    name = "model.layers.0.self_attn.q_proj.weight"
    torch.testing.assert_close(opened.read(name), expected[name], rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    "change",
    [
        {"peft_type": "IA3"},
        {"init_lora_weights": "pissa"},
        {"lora_bias": True},
        {"target_parameters": ["experts"]},
        {"lora_alpha": None},
    ],
    ids=lambda change: next(iter(change)),
)
def test_kinds_that_cannot_be_added_are_refused(change: Any, bases: Path, tmp_path: Path) -> None:
    adapted("llama", tmp_path / "adapter")
    path = tmp_path / "adapter" / "adapter_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(
        ModelError, match=next(iter(change)) if "peft" not in str(change) else "IA3"
    ):
        Checkpoint.open(f"{bases / 'llama'}+{tmp_path / 'adapter'}")


def test_an_adapter_of_another_base_is_refused(bases: Path, tmp_path: Path) -> None:
    adapted("gpt2", tmp_path / "adapter")
    with pytest.raises(ModelError, match="which its base does not have"):
        Checkpoint.open(f"{bases / 'llama'}+{tmp_path / 'adapter'}")


def test_an_adapter_without_weights_is_refused(bases: Path, tmp_path: Path) -> None:
    adapted("llama", tmp_path / "adapter")
    (tmp_path / "adapter" / "adapter_model.safetensors").unlink()
    with pytest.raises(MissingInputError):
        Checkpoint.open(f"{bases / 'llama'}+{tmp_path / 'adapter'}")
