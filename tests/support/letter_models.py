"""Models that answer with a letter, with a given probability for each letter."""

from __future__ import annotations

from collections.abc import Mapping
from math import log, sqrt
from pathlib import Path
from typing import Any

import torch

from tiny_models import encode, tiny_model, tokenizer

FEW = -30.0


def save_letter_model(folder: Path, chances: Mapping[str, float]) -> Path:
    """Write a model that uses only the last token: a blank, then a letter, then a line end.

    Args:
        folder: model folder to write.
        chances: probability of each letter.
    """
    model = tiny_model("llama").__class__(tiny_model("llama").config).eval()
    blank, end = encode(" ")[-1], encode("\n")[-1]
    letters = {encode(letter)[-1]: chance for letter, chance in chances.items()}
    after: dict[int, dict[int, float]] = {blank: letters}
    after |= {letter: {end: 1.0} for letter in letters}
    _set_weights(model, after, usual={blank: 1.0})
    model.save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    return folder


def _set_weights(
    model: Any, after: Mapping[int, dict[int, float]], usual: dict[int, float]
) -> None:
    """Set weights so that the last token alone decides the next one."""
    width = model.config.hidden_size
    embedding, head = model.get_input_embeddings().weight, model.get_output_embeddings().weight
    with torch.no_grad():
        for layer in model.model.layers:
            layer.self_attn.o_proj.weight.zero_()
            layer.mlp.down_proj.weight.zero_()
        model.model.norm.weight.fill_(1.0)
        embedding.zero_()
        embedding[:, 0] = 1.0
        head.fill_(0.0)
        for place, (token, chances) in enumerate([(None, usual), *after.items()]):
            if token is not None:
                embedding[token] = 0.0
                embedding[token, place] = 1.0
            head[:, place] = FEW / sqrt(width)
            for following, chance in chances.items():
                head[following, place] = log(max(chance, 1e-9)) / sqrt(width)
