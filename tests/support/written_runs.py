"""Content of a run folder, to compare two runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import forgetmap as fm


def records(path: Path) -> list[dict[str, Any]]:
    """Return scores and texts; log-probabilities are rounded, as they depend on the batch."""
    run = fm.open_run(path)
    assert run.texts is not None
    key = ["task", "item", "repeat", "scorer"]
    scores = run.scores.collect().sort(*key).rows(named=True)
    texts = {
        (row["task"], row["item"], row["repeat"]): row
        for row in run.texts.collect().rows(named=True)
    }
    found = []
    for row in scores:
        for name in ("logprob_answer", "logprob_gold", "logprob_next"):
            row[name] = None if row[name] is None else round(row[name], 3)
        found.append(texts[row["task"], row["item"], row["repeat"]] | row)
    return found
