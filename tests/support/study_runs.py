"""A study of small runs whose forgetting is known, on disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from run_folders import write

SIZES = (1, 2, 4)
ITEMS = 120
FAMILIES = ("ant", "bee")
TASKS = {"sums": "maths", "proofs": "maths", "law": "texts"}


def known_loss(size: int) -> float:
    """Of what a model knew, the share that a tuned one lost: larger ones lose less."""
    return 0.4 - 0.12 * float(np.log2(size))


def write_study(folder: Path, *, logs: bool = False) -> Path:
    """Two families in three sizes, each with an instruct model; their runs are in `runs`."""
    parts = ['name = "small"\nsuite = "basics"\nmargin = 0.5\n']
    random = np.random.default_rng(5)
    for family in FAMILIES:
        for size in SIZES:
            base, tuned = f"{family}-{size}", f"{family}-{size}-it"
            knows = random.random((len(TASKS), ITEMS)) < 0.8
            kept = random.random(knows.shape) > known_loss(size)
            for name, right in ((base, knows), (tuned, knows & kept)):
                write(folder / "runs" / name, _rows(right))
            parts += [_model(base, family, size, logs), _model(tuned, family, size, logs, base)]
    (folder / "study.toml").write_text("\n".join(parts), encoding="utf-8")
    return folder / "study.toml"


def _rows(right: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> list[dict[str, Any]]:
    return [
        {"task": task, "item": f"i{item}", "score": float(flag), "category": category}
        for (task, category), flags in zip(TASKS.items(), right, strict=True)
        for item, flag in enumerate(flags)
    ]


def _model(name: str, family: str, size: int, logs: bool, parent: str | None = None) -> str:
    source = f'logs = ["runs/{name}"]' if logs else f'hub = "org/{name}"'
    lines = [f'[[model]]\nid = "{name}"\n{source}\nfamily = "{family}"\nsize = "{size}B"']
    if parent is not None:
        lines.append(f'stage = "instruction tuning"\nparent = "{parent}"')
    return "\n".join(lines) + "\n"
