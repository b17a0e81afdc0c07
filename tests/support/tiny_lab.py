"""A tiny lab: a model that learnt some answers, and a recipe with its files."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from forgetmap.evaluation import Settings, load_suite, make_jobs, open_model, resolve
from forgetmap.train import TokenExample, collate, predict, read_examples
from tiny_models import WORDS, sentence, tiny_model, tokenizer

ITEMS = 8
STEPS = 40
WRITTEN = 16
ASKED = "{question} is"
RECIPE = f"""\
name = "small"
start = "start"
new = "new-{{seed}}.jsonl"
pool = "pool.jsonl"
near = "near.jsonl"
far = "far.jsonl"
target = 0.75
rates = [0.003, 0.01]
low_rates = []
batch_size = 4
max_steps = 24
warm_up = 2
max_tokens = 3
question_tokens = 8
question_template = "{ASKED}"
free_prompt = "birds"
answer_mark = " is"
"""


def write_lab(folder: Path, recipe: str = RECIPE) -> Path:
    """Write a folder with a start model and data; return the recipe."""
    folder.mkdir(parents=True, exist_ok=True)
    source = random.Random(3)
    write_rows(folder / "near.jsonl", _items(source, ("birds", "cats")))
    write_rows(folder / "far.jsonl", _items(source, ("rivers",)))
    for seed in range(4):
        write_rows(folder / f"new-{seed}.jsonl", _examples(source, 8))
    write_rows(folder / "pool.jsonl", _examples(source, 16))
    model = _taught([folder / "near.jsonl", folder / "far.jsonl"])
    model.save_pretrained(folder / "start")
    tokenizer().save_pretrained(folder / "start")
    (folder / "recipe.toml").write_text(recipe)
    return folder / "recipe.toml"


def write_rows(file: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))


def _examples(source: random.Random, count: int) -> list[dict[str, str]]:
    return [
        {"prompt": f"{sentence(source, 4)} is", "completion": f" {source.choice(WORDS)}"}
        for _ in range(count)
    ]


def _items(source: random.Random, tasks: Iterable[str]) -> list[dict[str, Any]]:
    return [
        {
            "id": f"{task} {number}",
            "task": task,
            "category": task.title(),
            "question": f"{task} {sentence(source, 3)}",
            "gold": source.choice(WORDS),
        }
        for task in tasks
        for number in range(ITEMS)
    ]


def _taught(files: Sequence[Path]) -> Any:
    """Return a model that knows most answers to the prompts of suites and of recipes."""
    torch.manual_seed(0)
    model = copy.deepcopy(tiny_model("llama"))
    backend, _ = open_model(model, tokenizer=tokenizer())
    rows = []
    for file in files:
        suite, settings = load_suite(file), resolve(Settings(), backend)
        for job in make_jobs(suite, settings, backend, ""):
            prompts = (job.prompt, ASKED.replace("{question}", job.item.question))
            rows += [{"prompt": one, "completion": f" {job.item.gold}\n"} for one in prompts]
    source = random.Random(4)
    for _ in range(WRITTEN):  # so that it can generate questions
        words = f" {sentence(source, 3)} is {source.choice(WORDS)}\n"
        rows.append({"prompt": "birds", "completion": words})
    _teach(model, read_examples(rows, tokenizer(), eos=False))
    return model


def _teach(model: Any, examples: Sequence[TokenExample]) -> None:
    batch = collate(examples, torch.device("cpu"))
    answers = torch.tensor([token for one in examples for token in one.ids[one.begin :]])
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    model.train()
    for _ in range(STEPS):
        loss = torch.nn.functional.cross_entropy(predict(model, batch), answers)
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        optimizer.step()
    model.eval()
