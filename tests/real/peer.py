"""The lm-eval program on our prompts: tasks of local JSON, run in an environment of its own."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Key = tuple[str, str]
MOST_NEW_TOKENS = 64
"""What forgetmap writes at most under the protocol `same`."""
BATCH = 16


@dataclass(frozen=True)
class Asked:
    """One prompt; with continuations they are weighed, without the prompt is continued."""

    key: Key
    prompt: str
    continuations: tuple[str, ...] = ()
    gold: int = 0
    stop: tuple[str, ...] = ("\n",)


@dataclass(frozen=True)
class Found:
    """What lm-eval logged for one prompt."""

    text: str
    logprobs: tuple[float, ...]
    metrics: dict[str, float]


def run_lm_eval(
    python: Path, model: Path, asked: Mapping[str, Sequence[Asked]], folder: Path
) -> dict[str, dict[Key, Found]]:
    """Run every set of prompts as one task and read the logged samples, by key."""
    for name, items in asked.items():
        _write_task(name, items, folder)
    command = [python, "-m", "lm_eval", "run", "--model", "hf", "--device", "cpu"]
    command += ["--model_args", f"pretrained={model},dtype=float32", "--include_path", folder]
    command += ["--tasks", ",".join(asked), "--batch_size", BATCH, "--log_samples"]
    command += ["--output_path", folder / "out"]
    offline = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_CACHE": str(folder / "cache")}
    done = subprocess.run(
        [str(part) for part in command],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **offline},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return {name: _read_samples(name, folder / "out") for name in asked}


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


def _read_samples(name: str, out: Path) -> dict[Key, Found]:
    (file,) = out.rglob(f"samples_{name}_*.jsonl")
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
