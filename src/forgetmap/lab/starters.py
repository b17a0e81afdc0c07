"""`lab init`: example folders with a recipe and its data."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, get_args

from forgetmap._disk import whole_file
from forgetmap.errors import OutputError, UsageError
from forgetmap.evaluation import (
    PROBE_COLUMN,
    Item,
    as_text,
    load_suite,
    new_examples,
    pool_examples,
)
from forgetmap.lab.recipe import LabRecipe

Starter = Literal["tiny", "smollm2", "gpu"]
STARTERS: tuple[Starter, ...] = get_args(Starter)
RECIPE_FILE = "recipe.toml"
SEEDS = 10
"""Number of files of new facts: one for each possible seed, and one for choosing settings."""
FACTS = 200
"""Number of new facts for a model that was trained on real text."""
SUITE, FAR = "basics", ("Dates and times", "Logic")
"""Questions for such a model, and the categories that are not available to mitigations."""

TINY = """\
# The tiny world: a model of 0.65 million parameters learns new facts about what it knows.
#   forgetmap lab start --out FOLDER/start
#   forgetmap lab compare FOLDER/recipe.toml --methods forward-kl,replay --out FOLDER/lab
name = "tiny"
start = "start"                 # written by `forgetmap lab start`
new = "new-{seed}.jsonl"        # every seed teaches other facts
pool = "pool.jsonl"             # old examples for mitigations
near = "world-near"             # the same relations, about other subjects
far = "world-far"               # other categories
target = 0.95                   # training stops when this share of the new facts is known
rates = RATES
low_rates = LOW  # for plain fine-tuning only: the baseline of equal compute
batch_size = 16
max_steps = STEPS
free_prompt = "\\n\\nQuestion:"   # prompt from which the start model generates old examples
answer_mark = "\\nAnswer:"       # end of the question in these texts
hint_template = "Hint:{privileged_context}\\n\\n{prompt}"
"""
TINY = (
    TINY.replace("RATES", f"{list(LabRecipe.rates)}  # tried with every method")
    .replace("LOW", f"{list(LabRecipe.low_rates)}")
    .replace("STEPS", f"{LabRecipe.max_steps}")
)
SMOLLM2 = """\
# SmolLM2-135M learns facts of an invented world. Allow hours on a CPU for one method, minutes on a
# GPU; begin with `--dry-run`, then `--methods forward-kl --seeds 2`.
name = "smollm2"
start = "HuggingFaceTB/SmolLM2-135M"
new = "new-{seed}.jsonl"        # 200 facts that no model can know; every seed has others
pool = "pool.jsonl"             # old examples for mitigations
near = "near.jsonl"             # the same kinds of questions, other items
far = "far.jsonl"               # dates and times, logic: none of these are in the pool
target = 0.95
rates = [1e-5, 3e-5, 1e-4]
low_rates = [5e-6]
batch_size = 16
max_steps = 1500
warm_up = 10
question_template = "Question: {question}\\nAnswer:"
question_tokens = 48
hint_template = "Hint:{privileged_context}\\n\\n{prompt}"
max_tokens = 8
"""
GPU = """\
# A template: replace model, data and questions with your own, then run
#   forgetmap lab compare recipe.toml --dry-run --out lab
# Runs use a GPU if there is one. Paths are relative to this file.
name = "mine"

# A folder, or a hub id.
start = "Qwen/Qwen3-0.6B-Base"

# New examples to learn: JSON lines with `prompt` and `completion`. With `{seed}` in the name every
# repetition learns other examples (new-0.jsonl chooses settings; new-1.jsonl, ... are reported).
new = "new.jsonl"

# Old examples for mitigations, in the same format; `forgetmap export replay` writes such rows.
pool = "pool.jsonl"

# Evaluation items: names of suites (`basics`), or files of items with `question`, `gold`, and
# optionally `options`, `task` and `category`. Near items are of the kinds in the pool, far ones are
# not.
near = "near.jsonl"
far = "basics"

# Training stops when this share of the new examples is known, word by word.
target = 0.95
max_steps = 2000
batch_size = 16
warm_up = 20

# Learning rates for every method, and lower ones for plain fine-tuning: the baseline of equal
# compute needs slow runs.
rates = [3e-6, 1e-5, 3e-5]
low_rates = [1e-6]

# How a near or far question is formatted for a plain model, and the prompt from which the start
# model generates old examples.
question_template = "Question: {question}\\nAnswer:"
# free_prompt = "Question:"
# answer_mark = "\\nAnswer:"
question_tokens = 64
max_tokens = 32

# A prompt that contains the answer, for self-distillation.
hint_template = "Hint:{privileged_context}\\n\\n{prompt}"
"""


def write_starter(kind: str, out: Path) -> list[Path]:
    """Write a recipe and its data into a folder.

    Args:
        kind: `tiny`, `smollm2` or `gpu`.
        out: the folder.

    Returns:
        The files, the recipe first.

    Raises:
        UsageError: there is no such starter.
        OutputError: the folder already has a recipe, or cannot be written.
    """
    makers: dict[str, tuple[str, Callable[[], dict[str, Iterable[Mapping[str, Any]]]]]] = {
        "tiny": (TINY, _tiny_data),
        "smollm2": (SMOLLM2, _smollm2_data),
        "gpu": (GPU, dict),
    }
    if kind not in makers:
        raise UsageError(f"there is no starter {kind!r}", hint=f"choose from {', '.join(makers)}.")
    if (out / RECIPE_FILE).exists():
        raise OutputError(f"{out / RECIPE_FILE} already exists", hint="choose another --out.")
    recipe, make_data = makers[kind]
    try:
        written = [_write(out / name, map(_line, rows)) for name, rows in make_data().items()]
        return [_write(out / RECIPE_FILE, [recipe]), *written]
    except OSError as error:
        raise OutputError(
            f"cannot write {out}: {error.strerror or error}",
            hint="choose a writable folder.",
        ) from None


def _write(file: Path, parts: Iterable[str]) -> Path:
    with whole_file(file) as partial:
        partial.write_text("".join(parts), encoding="utf-8")
    return file


def _line(row: Mapping[str, Any]) -> str:
    return json.dumps(row, ensure_ascii=False) + "\n"


def _row(question: str, answer: str) -> dict[str, str]:
    return {"prompt": as_text(question), "completion": f" {answer}"}


def _new_data(count: int | None = None) -> dict[str, Iterable[Mapping[str, Any]]]:
    return {
        f"new-{seed}.jsonl": [_row(*example) for example in new_examples(seed)[:count]]
        for seed in range(SEEDS)
    }


def _tiny_data() -> dict[str, Iterable[Mapping[str, Any]]]:
    return {**_new_data(), "pool.jsonl": [_row(*example) for example in pool_examples()]}


def _smollm2_data() -> dict[str, Iterable[Mapping[str, Any]]]:
    """Split the items: whole categories are far; of the others, half by hash are the pool."""
    parts: dict[str, list[Mapping[str, Any]]] = {"pool": [], "near": [], "far": []}
    for task in load_suite(SUITE).tasks:
        for item in task.load():
            part = "far" if task.category in FAR else _part_of(task.name, item)
            row = _row(item.question, item.gold) if part == "pool" else _asked(task.name, item)
            parts[part].append(row)
    measured = {as_text(row["question"]) for part in ("near", "far") for row in parts[part]}
    parts["pool"] = [row for row in parts["pool"] if row["prompt"] not in measured]
    return {**_new_data(FACTS), **{f"{part}.jsonl": rows for part, rows in parts.items()}}


def _part_of(task: str, item: Item) -> str:
    return ("pool", "near")[sha256(f"{task}\n{item.id}".encode()).digest()[0] % 2]


def _asked(task: str, item: Item) -> dict[str, Any]:
    """Return a row that names an item of the suite, so that its prompt is the same."""
    return {
        "task": task,
        "id": item.id,
        "question": item.question,
        "gold": item.gold,
        PROBE_COLUMN: {"suite": SUITE},
    }
