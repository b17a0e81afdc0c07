"""lm-eval on our prompts: tasks from local JSON, run by its driver."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from command_line import SCRIPT

Key = tuple[str, str]
MOST_NEW_TOKENS = 64
"""Maximum number of new tokens of the protocol `same`."""
BATCH = 16


@dataclass(frozen=True)
class Asked:
    """One prompt, with continuations to score; without any, the prompt is continued."""

    key: Key
    prompt: str
    continuations: tuple[str, ...] = ()
    gold: int = 0
    stop: tuple[str, ...] = ("\n",)


@dataclass(frozen=True)
class Found:
    """Logged result of lm-eval for one prompt."""

    text: str
    logprobs: tuple[float, ...]
    metrics: dict[str, float]


def run_lm_eval(
    model: Path, asked: Mapping[str, Sequence[Asked]], folder: Path
) -> dict[str, dict[Key, Found]]:
    """Run every set of prompts as one task and read the logged samples, by key."""
    write_tasks(asked, folder)
    run_harness(lm_eval_order(model, asked, folder / "run"), folder)
    return {name: read_samples(name, folder / "run") for name in asked}


def lm_eval_order(model: Path, asked: Iterable[str], out: Path) -> list[str]:
    """Return the command for these tasks, whose files are next to the run folder."""
    order = [SCRIPT, "run", model, "--harness", "lm-eval", "--tasks", ",".join(asked)]
    order += ["--out", out, "--device", "cpu", "--batch", BATCH, "--", "--include_path", out.parent]
    return [str(part) for part in order]


def run_harness(order: Sequence[str], folder: Path) -> str:
    """Run the command and return its standard error."""
    done = subprocess.run(
        order, capture_output=True, text=True, check=False, env=environment(folder)
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stderr


def environment(folder: Path) -> dict[str, str]:
    """Return environment variables without a hub, and with a separate cache of data sets."""
    return {**os.environ, "HF_HUB_OFFLINE": "1", "HF_DATASETS_CACHE": str(folder / "cache")}


def write_tasks(asked: Mapping[str, Sequence[Asked]], folder: Path) -> None:
    """Write one task of lm-eval for each set of prompts."""
    for name, items in asked.items():
        _write_task(name, items, folder)


def _write_task(name: str, items: Sequence[Asked], folder: Path) -> None:
    data = folder / f"{name}.jsonl"
    data.write_text("".join(json.dumps(_document(item)) + "\n" for item in items), "utf-8")
    task: dict[str, Any] = {
        "task": name,
        "dataset_path": "json",
        "dataset_kwargs": {"data_files": {"test": str(data)}},
        "test_split": "test",
        "doc_to_text": "prompt",
        "num_fewshot": 0,
    }
    task |= _weighing() if items[0].continuations else _writing(items[0].stop)
    # JSON is YAML.
    (folder / f"{name}.yaml").write_text(json.dumps(task), "utf-8")


def _document(item: Asked) -> dict[str, Any]:
    task, name = item.key
    document: dict[str, Any] = {"task_name": task, "item": name, "prompt": item.prompt}
    if item.continuations:
        return document | {"choices": item.continuations, "gold": item.gold}
    return document | {"gold": ""}


def _weighing() -> dict[str, Any]:
    metrics = [{"metric": "acc"}, {"metric": "acc_norm"}]
    return {
        "output_type": "multiple_choice",
        "doc_to_choice": "choices",
        "doc_to_target": "gold",
        "metric_list": metrics,
    }


def _writing(stop: Sequence[str]) -> dict[str, Any]:
    return {
        "output_type": "generate_until",
        "doc_to_target": "gold",
        "generation_kwargs": {
            "until": list(stop),
            "max_gen_toks": MOST_NEW_TOKENS,
            "do_sample": False,
        },
        "metric_list": [{"metric": "bypass"}],
    }


def read_samples(name: str, run: Path) -> dict[Key, Found]:
    """Read the samples that lm-eval logged, from the run folder."""
    (file,) = (run / "logs").rglob(f"samples_{name}_*.jsonl")
    found = {}
    for line in file.read_text("utf-8").splitlines():
        sample = json.loads(line)
        document = sample["doc"]
        found[document["task_name"], document["item"]] = _read(sample)
    return found


def _read(sample: dict[str, Any]) -> Found:
    responses = [response[0] for response in sample["resps"]]
    if isinstance(responses[0], str):
        return Found(responses[0], (), {})
    logprobs = tuple(float(value) for value, _ in responses)
    metrics = {name: sample[name] for name in ("acc", "acc_norm")}
    return Found("", logprobs, metrics)
