"""The same small quiz as tasks of lm-eval and of Inspect."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from command_line import write

WORDS = ("cat", "dog", "bird", "mat")
ITEMS = 12
MOST_NEW_TOKENS = 8

INSPECT_TASK = """
from inspect_ai import Task, task
from inspect_ai.dataset import Sample, json_dataset
from inspect_ai.scorer import match
from inspect_ai.solver import generate


def as_sample(row):
    return Sample(input=row["question"], target=row["options"][row["gold"]], id=row["question"])


@task
def quiz():
    return Task(dataset=json_dataset("quiz.jsonl", as_sample), solver=generate(), scorer=match())
"""


def write_tasks(folder: Path) -> Path:
    """Write `tiny_choice` and `tiny_write` for lm-eval, `quiz.py` for Inspect."""
    rows = [
        {"question": f"Which is {place}?", "options": WORDS, "gold": place % len(WORDS)}
        for place in range(ITEMS)
    ]
    data = write(folder / "quiz.jsonl", rows)
    (folder / "quiz.py").write_text(INSPECT_TASK, "utf-8")
    common = {
        "dataset_path": "json",
        "dataset_kwargs": {"data_files": {"test": str(data)}},
        "test_split": "test",
        "doc_to_text": "{{question}}\nAnswer:",
    }
    # JSON is YAML.
    for name, own in {"tiny_choice": _choice(), "tiny_write": _writing()}.items():
        (folder / f"{name}.yaml").write_text(json.dumps({"task": name, **common, **own}), "utf-8")
    return folder


def lm_eval_without_tasks(folder: Path) -> Path:
    """Link the installed lm-eval into a folder for PYTHONPATH, without its tasks.

    At every start it reads its 14,000 tasks, which takes longer than the rest of the test.
    """
    spec = find_spec("lm_eval")
    assert spec is not None
    assert spec.origin is not None
    installed, tasks = Path(spec.origin).parent, folder / "lm_eval" / "tasks"
    tasks.mkdir(parents=True)
    for file in installed.iterdir():
        if file.name != tasks.name:
            (tasks.parent / file.name).symlink_to(file)
    for file in (installed / tasks.name).glob("*.py"):
        (tasks / file.name).symlink_to(file)
    return folder


def _choice() -> dict[str, Any]:
    return {
        "output_type": "multiple_choice",
        "doc_to_choice": "options",
        "doc_to_target": "gold",
        "metric_list": [{"metric": "acc"}],
    }


def _writing() -> dict[str, Any]:
    # The task sets a temperature, which must be overridden.
    return {
        "output_type": "generate_until",
        "doc_to_target": "{{options[gold]}}",
        "generation_kwargs": {
            "until": ["\n"],
            "max_gen_toks": MOST_NEW_TOKENS,
            "do_sample": True,
            "temperature": 1.0,
        },
        "metric_list": [{"metric": "exact_match"}],
    }
