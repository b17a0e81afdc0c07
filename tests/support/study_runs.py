"""Studies of small runs with known forgetting."""

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
    """Return the share of known items that a tuned model forgets: less for larger models."""
    return 0.4 - 0.12 * float(np.log2(size))


def write_study(folder: Path, *, logs: bool = False) -> Path:
    """Write a study of two families in three sizes, each with an instruct model, and its runs."""
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


HOSTILE = "<img src=x onerror=alert(1)>"


def write_told_study(folder: Path, *, repeats: int = 1) -> Path:
    """Write a study of one family with texts, a merge, hostile names, and a model without run."""
    random = np.random.default_rng(7)
    parts = [f'name = "told"\ntitle = "{HOSTILE}"\n']
    known = random.random((len(TASKS), 20)) < 0.7
    for name, parent, lost, stage, data in (
        ("base", None, 0.0, "", ""),
        ("tuned", "base", 0.4, "tuning", ""),
        ("few", "tuned", 0.1, "reasoning", "low"),
        ("many", "tuned", 0.3, "reasoning", "high"),
        ("missing", "tuned", None, "reasoning", "high"),
    ):
        parts.append(f'[[model]]\nid = "{name}"\nhub = "o/{name}"\nfamily = "ant"\nsize = "1B"')
        if parent:
            parts.append(f'parent = "{parent}"\nstage = "{stage}"')
        if data:
            parts.append(f'data = "{data}"')
        if lost is not None:
            _write_told(folder / "runs" / name, name, known, lost, repeats)
    parts.append(
        '[[merge]]\nid = "mix"\nmethod = "linear"\nmodels = ["base", "tuned"]\nweight = 0.5'
    )
    _write_told(folder / "runs" / "mix", "mix", known, 0.2, repeats)
    (folder / "study.toml").write_text("\n".join(parts), encoding="utf-8")
    return folder / "study.toml"


def _write_told(
    folder: Path,
    model: str,
    known: np.ndarray[tuple[int, ...], np.dtype[np.bool_]],
    lost: float,
    repeats: int,
) -> None:
    random = np.random.default_rng(len(model))
    rows: list[dict[str, Any]] = []
    for repeat in range(repeats):
        kept = random.random(known.shape) >= lost
        for (task, category), flags in zip(TASKS.items(), known & kept, strict=True):
            rows += [
                {
                    "task": task, "item": f"{task}-{n}", "repeat": repeat, "category": category,
                    "question": f"{HOSTILE} What is {task} {n}?", "gold": f"gold {n}", "k": 4,
                    "score": float(flag), "answer": f"gold {n}" if flag else "=cmd()",
                    "outcome": "correct" if flag else "incorrect",
                    "response": f"{model} says {n}{' again' * repeat} </script>",
                }
                for n, flag in enumerate(flags)
            ]  # fmt: skip
    write(folder, rows)
