"""Small runs with known drift, with scores and texts."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

from forgetmap.capabilities.api import DriftOptions, DriftWithRuns, drift_with_runs
from forgetmap.capabilities.taxonomy import Metric, parse_taxonomy
from forgetmap.records.manifest import MetricInfo, RunInfo
from forgetmap.records.run import Run
from forgetmap.records.tables import build_run

ITEMS = 120
TAXONOMY = b"""
name = "small"
groups = [{ id = "CAN", title = "What it can do" }, { id = "WILL", title = "What it does" }]
tasks = [{ name = "sums" }, { name = "facts" }, { name = "chat" }, { name = "tools" }]
capabilities = [
  { id = "maths", group = "CAN", title = "Mathematics" },
  { id = "facts", group = "CAN", title = "Knowledge" },
  { id = "tools", group = "CAN", title = "Tool use" },
  { id = "style", group = "WILL", title = "Style" },
]

[[metrics]]
id = "maths.sums"
capability = "maths"
task = "sums"
name = "Sums"
scorer = "number"
field = "acc"
strict = "acc_strict"

[[metrics]]
id = "facts.facts"
capability = "facts"
task = "facts"
name = "Facts"

[[metrics]]
id = "tools.calls"
capability = "tools"
task = "tools"
name = "Calls"

[[metrics]]
id = "style.words"
capability = "style"
task = "chat"
name = "Words"
scorer = "style"
field = "words"
polarity = "both"
scale = "count"

[[metrics]]
id = "style.emoji"
capability = "style"
task = "chat"
name = "Emoji"
scorer = "style"
field = "emoji"
polarity = "both"
"""
"""No metric measures `tools`."""


def lost(model: int) -> int:
    """Return the number of sums that a model gets wrong: 12 before, 24 more after each training."""
    return 12 + 24 * model


def small_run(model: int, *, hostile: str = "") -> Run:
    """Return the run of a model; 0 is the model before."""
    rows = []
    for number in range(ITEMS):
        right = number >= lost(model)
        rows += [
            _row("sums", number, "acc", right, hostile),
            _row("sums", number, "acc_strict", right and (not model or number % 2 == 0), hostile),
            _row("facts", number, "acc", (number + 3 * model) % 5 > 0, hostile),
            _row("law", number, "acc", number % 4 < 1 + model, hostile),
            _row("chat", number, "words", 40 - 10 * model + number % 7, hostile),
        ]
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    info = RunInfo(metrics={"words": MetricInfo(high=None)})
    return build_run(columns, info, f"model-{model}")


def _row(task: str, number: int, metric: str, score: float, hostile: str) -> dict[str, Any]:
    said = f"The answer to {task} {number} is {int(score)}. {hostile}"
    if task == "chat":
        said = " ".join(["word"] * int(score))
    return {
        "task": task, "item": f"{number:03d}", "repeat": 0, "metric": metric, "scorer": "s",
        "score": float(score), "outcome": "correct" if score else "incorrect",
        "answer": str(int(score)), "gold": "1",
        "question": f"What about {task} {number}? {hostile}",
        "response": said,
    }  # fmt: skip


@cache
def drifted(models: int = 2, *, hostile: str = "", noise: int | None = None) -> DriftWithRuns:
    """Return the drift of several models after, against the same model before.

    Args:
        models: number of models after.
        hostile: text to insert into every text.
        noise: model to use as a repeat of the model before.
    """
    runs = [small_run(model, hostile=hostile) for model in range(models + 1)]
    settings: DriftOptions = {
        "taxonomy": parse_taxonomy(TAXONOMY, origin="small.toml"),
        "draws": 100,
        "target": ["law"],
        "processes": 1,
        "noise": None if noise is None else runs[noise],
    }
    return drift_with_runs(runs, settings)


DEEP_DIVE = (
    Metric("style_DD.characters", "style", "chat", "Characters", "style", "characters", None,
           "both", "count"),
    Metric("maths_DD.steps", "maths", "steps", "Steps", "style", "words", None, "both", "count"),
)  # fmt: skip
"""The runs have no `steps`."""


@cache
def deep_chain(models: int = 2) -> DriftWithRuns:
    """Return a chain of a trained model and the first model again, with a deep dive of each.

    Args:
        models: number of models after the first; with 1 there is no chain.
    """
    found = drifted(2)
    settings: DriftOptions = {
        "taxonomy": replace(found.taxonomy, deep_dive=DEEP_DIVE),
        "draws": 100,
        "processes": 1,
        "chain": models > 1,
        "deep_dive": True,
    }
    return drift_with_runs([*found.runs[:2], ("model-2", found.runs[0])][: models + 1], settings)
