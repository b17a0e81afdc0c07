"""The folder in which commands of the docs are run: runs, logs, tables and models."""

from __future__ import annotations

import csv
import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from forgetmap import SimulatedTask, simulate, write_run
from log_writers import inspect_sample, lm_eval_row, write_inspect, write_lines, write_lm_eval
from run_folders import write
from scripted_server import usual

TASKS = {"gsm8k.subset": "Maths", "arc_easy": "Science", "law": "Texts"}
ITEMS = 60
KNOWN = 0.7
LOST = {
    "base": 0.0, "tuned": 0.3, "sft": 0.2, "dpo": 0.1, "rl": 0.3, "main": 0.0, "candidate": 0.2,
    "base-again": 0.01, "2026-03": 0.1, "2026-04": 0.2, "q0": 0.0, "q1": 0.1, "l0": 0.0,
    "l1": 0.2, "ift": 0.1, "ift-dpo": 0.2,
}  # fmt: skip
"""Run -> share of known items that are forgotten in it."""
STUDY = """name = "mine"
suite = "questions.jsonl"

[[model]]
id = "base-7b"
path = "models/base"
family = "ours"
size = "7B"
logs = ["runs/base"]

[[model]]
id = "tuned-7b"
path = "models/tuned"
family = "ours"
size = "7B"
stage = "instruction tuning"
parent = "base-7b"
logs = ["runs/tuned"]

[[model]]
id = "tuned-14b"
path = "models/tuned"
family = "ours"
size = "14B"
stage = "reasoning"
parent = "base-7b"
logs = ["runs/rl"]
"""
POLICY = """[[rule]]
margin = 0.02

[[rule]]
name = "maths"
scope = "category"
groups = ["Maths"]
margin = 0.05
tier = "warning"
"""
RECIPE = """method: linear
models:
  - model: models/base
    parameters: {weight: 0.8}
  - model: models/tuned
    parameters: {weight: 0.2}
"""


def rows_of(run: str) -> list[dict[str, Any]]:
    """Return the results of a run: the same items for all runs, some of them forgotten."""
    dice = random.Random(run)
    rows = []
    for task, category in TASKS.items():
        for number in range(ITEMS):
            known = random.Random(f"{task} {number}").random() < KNOWN
            right = known and dice.random() >= LOST[run]
            options = None if task == "gsm8k.subset" else ["ash", "birch", "cedar", "elm"]
            gold = options[number % 4] if options else str(number + 7)
            said = gold if right else (options[(number + 1) % 4] if options else str(number))
            rows.append(
                {
                    "task": task, "item": f"{task}-{number}", "category": category,
                    "k": 4 if options else None, "options": options, "gold": gold,
                    "question": f"What is answer {number} of the exercise on {category.lower()}, "
                    f"where {number} birds sit on {number % 9 + 2} trees by a river?",
                    "score": float(right), "answer": said, "choice": said if options else None,
                    "outcome": "correct" if right else "incorrect",
                    "prompt": f"Question {number}:", "response": f"I think that it is {said}.",
                }
            )  # fmt: skip
    return rows


def make_folder(folder: Path) -> Path:
    """Write everything except models."""
    folder.mkdir()
    for run in LOST:
        write(folder / "runs" / run, rows_of(run))
    example = simulate([SimulatedTask("capitals", items=60), SimulatedTask("sums", 60, k=None)])
    write_run(example.before, folder / "example" / "before")
    write_run(example.after, folder / "example" / "after")
    for name, run in (("main", "base"), ("candidate", "sft")):
        write(folder / "evals" / name, rows_of(run))
    for step, run in enumerate(("base", "2026-03", "sft")):
        write(folder / "forgetting" / f"step-{40 * step:06d}", rows_of(run))
    for name in ("base", "tuned"):
        _write_logs(folder, name)
        _write_tables(folder, name)
        write(folder / "responses" / name, rows_of(name))
    _write_answers(folder)
    _write_training_data(folder)
    for name, text in (("study.toml", STUDY), ("policy.toml", POLICY), ("recipe.yaml", RECIPE),
                       ("forgetmap-policy.toml", POLICY)):  # fmt: skip
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def _write_logs(folder: Path, name: str) -> None:
    rows = [row for row in rows_of(name) if row["task"] != "law"]
    for task in ("arc_easy", "gsm8k.subset"):
        samples = [
            lm_eval_row(
                number, row["score"], response=row["response"], target=row["gold"],
                doc={"question": row["question"], "answer": row["gold"]},
            )
            for number, row in enumerate(each for each in rows if each["task"] == task)
        ]  # fmt: skip
        write_lm_eval(folder / "logs" / name, samples, task=task.partition(".")[0])
    samples = [
        inspect_sample(number, row["score"], input=row["question"], target=row["gold"])
        for number, row in enumerate(each for each in rows if each["task"] == "arc_easy")
    ]
    write_inspect(folder / "inspect" / f"{name}.json", samples, task="arc_easy")


def _write_tables(folder: Path, name: str) -> None:
    rows = rows_of(name)
    columns = ["task", "item", "score", "k", "category"]
    for file, head in ((f"{name}.csv", columns),
                       (f"odd-{name}.csv", ["bench", "qid", "is_right", "n", "kind"])):  # fmt: skip
        with (folder / file).open("w", newline="", encoding="utf-8") as out:
            writer = csv.writer(out)
            writer.writerow(head)
            writer.writerows([row[column] for column in columns] for row in rows)


def _write_answers(folder: Path) -> None:
    both = {name: {row["item"]: row for row in rows_of(name)} for name in ("base", "tuned")}
    answers = [
        {"question_id": item, "base": both["base"][item]["score"], "tuned": row["score"]}
        for item, row in both["tuned"].items()
    ]
    (folder / "answers.json").write_text(json.dumps(answers), encoding="utf-8")
    with (folder / "answers.csv").open("w", newline="", encoding="utf-8") as out:
        writer = csv.DictWriter(out, ["question_id", "base", "tuned"])
        writer.writeheader()
        writer.writerows(answers)


def _write_training_data(folder: Path) -> None:
    dice = random.Random(1)
    words = ["river", "birds", "trees", "law", "court", "sum", "water", "science", "contract"]
    pool = [
        {"prompt": " ".join(dice.choices(words, k=9)) + f" {n}?", "completion": dice.choice(words)}
        for n in range(200)
    ]
    for file in ("train.jsonl", "old.jsonl"):
        write_lines(folder / file, pool)
    pq.write_table(pa.Table.from_pylist(pool[:50]), folder / "more.parquet")
    write_lines(folder / "prompts.jsonl", [{"prompt": f"the {word} is"} for word in words[:3]])
    questions = [{"question": f"What is {n} and {n}?", "gold": str(2 * n)} for n in range(3)]
    write_lines(folder / "questions.jsonl", questions)


def any_model(path: str, body: dict[str, Any], headers: dict[str, str]) -> tuple[int, Any]:
    """Reply as a server with the models of the pages, which always answer yes."""
    if path.endswith("/models"):
        return 200, {"data": [{"id": "base"}, {"id": "tuned"}, {"id": "org/tuned-80b"}]}
    return usual(path, body, headers)


def add_models(folder: Path) -> None:
    """Write two tiny models with random weights, and an adapter."""
    import copy

    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import LlamaConfig, LlamaForCausalLM

    from tiny_trainers import trained_tokenizer

    config = LlamaConfig(
        vocab_size=400, hidden_size=16, intermediate_size=16, num_hidden_layers=1,
        num_attention_heads=2, num_key_value_heads=2, max_position_embeddings=4096,
        bos_token_id=0, eos_token_id=1, pad_token_id=1,
    )  # fmt: skip
    torch.manual_seed(1)
    base = LlamaForCausalLM(config)
    for name in ("base", "tuned", "checkpoint-100", "sft-1e5", "sft-5e5", "sft-2e4", "dpo"):
        model = copy.deepcopy(base)
        if name != "base":
            for weight in model.parameters():
                weight.data += 0.02 * torch.randn_like(weight)
        model.save_pretrained(folder / "models" / name)
        trained_tokenizer().save_pretrained(folder / "models" / name)
    lora = get_peft_model(copy.deepcopy(base), LoraConfig(r=2, target_modules=["q_proj"]))
    lora.save_pretrained(folder / "adapters" / "sft")
