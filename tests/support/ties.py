"""Detection of ties: texts of the real model that differ by equally likely tokens only."""

from __future__ import annotations

from pathlib import Path

import torch

from forgetmap.evaluation import load_model

ROOT = Path(__file__).parent.parent.parent
FOLDER, GGUF = ROOT / ".real" / "folder", ROOT / ".real" / "model.gguf"
TIE = 1e-3
"""Values closer than this may swap ranks with the order of additions in float32."""


def gap_where_they_part(prompt: str, one: str, other: str) -> float:
    """Return the gap between the two likeliest tokens at the first difference of two texts."""
    loaded = load_model(str(FOLDER))
    first, second = (loaded.tokenizer(prompt + text).input_ids for text in (one, other))
    shared = next(
        (place for place, (a, b) in enumerate(zip(first, second, strict=False)) if a != b),
        min(len(first), len(second)),
    )
    with torch.inference_mode():
        logits = loaded.model(torch.tensor([first[:shared]])).logits[0, -1]
    best, next_best = logits.topk(2).values.tolist()
    return float(best - next_best)
