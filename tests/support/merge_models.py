"""Small model folders to merge: real tiny models, and bare tensors where only bytes matter."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

import tiny_models
from forgetmap.merge.recipe.model import Recipe


def save_model(folder: Path, model: Any, *, shards: str = "60KB") -> Path:
    """Write a model folder with a tokenizer and several weight files."""
    model.save_pretrained(folder, max_shard_size=shards)
    tiny_models.tokenizer().save_pretrained(folder)
    return folder


def moved(model: Any, seed: int) -> Any:
    """Return a copy of the model with slightly different weights."""
    other = copy.deepcopy(model)
    generator = torch.Generator().manual_seed(seed)
    for weights in other.parameters():
        weights.data += 0.1 * torch.randn(weights.shape, generator=generator)
    return other


def save_tensors(folder: Path, tensors: dict[str, torch.Tensor], **config: Any) -> Path:
    """Write a folder with only weights and a configuration."""
    folder.mkdir(parents=True)
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    (folder / "config.json").write_text(json.dumps({"model_type": "llama", **config}))
    return folder


def weights_of(folder: Path) -> dict[str, torch.Tensor]:
    """Return all tensors of a folder, read by safetensors."""
    found: dict[str, torch.Tensor] = {}
    for path in sorted(folder.glob("*.safetensors")):
        found |= load_file(path)
    return found


def average(*models: Path | str, weights: tuple[float, ...] | None = None, **more: Any) -> Recipe:
    """Return a recipe for a weighted mean."""
    shares = weights or (1.0,) * len(models)
    parts = [
        {"model": str(model), "parameters": {"weight": weight}}
        for model, weight in zip(models, shares, strict=True)
    ]
    return Recipe.model_validate({"method": "linear", "models": parts, **more})
