"""Writers of small logs in the formats of harnesses."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from forgetmap.records.run import Run
from forgetmap.sources.logs import Reading
from forgetmap.sources.open import open_run

STAMP = "2026-01-01T00-00-00.000000"


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def lm_eval_row(
    number: int,
    score: object,
    *,
    doc: Mapping[str, Any] | None = None,
    target: object = None,
    metric: str = "exact_match",
    filter_name: str | None = "none",
    prompt: str | None = None,
    response: str = "so",
    **more: Any,
) -> dict[str, Any]:
    """Return a line of lm-eval's samples, 0.4.7 and later (0.4.3 to 0.4.6 without filter)."""
    doc = doc or {"question": f"What is {number} and {number}?", "answer": f"It is {2 * number}."}
    target = doc.get("answer", "") if target is None else target
    prompt = prompt or f"Question: {doc.get('question')}\nAnswer:"
    row: dict[str, Any] = {
        "doc_id": number,
        "doc": dict(doc),
        "target": str(target),
        "arguments": {"gen_args_0": {"arg_0": prompt, "arg_1": {"until": ["\n"]}}},
        "resps": [[response]],
        "filtered_resps": [response],
    }
    if filter_name is not None:
        row |= {"filter": filter_name, "metrics": [metric]}
    row |= {
        "doc_hash": digest(json.dumps(doc, indent=2, ensure_ascii=False)),
        "prompt_hash": digest(prompt),
        "target_hash": digest(str(target)),
        metric: score,
    }
    return row | more


def opened(path: Path) -> Run:
    """Open a run without the cache."""
    return open_run(path, reading=Reading(cached=False))


def write_lines(path: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def write_lm_eval(
    folder: Path, rows: Sequence[Mapping[str, Any]], *, task: str = "sums", stamp: str = STAMP
) -> Path:
    """Write the samples of one task with lm-eval's file name; return the folder."""
    write_lines(folder / "model" / f"samples_{task}_{stamp}.jsonl", rows)
    return folder


def write_lm_eval_results(folder: Path, *, stamp: str = STAMP, **parts: Any) -> Path:
    """Write the results document next to the samples; return the folder."""
    path = folder / "model" / f"results_{stamp}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    base = {"results": {}, "configs": {}, "versions": {}, "n-shot": {}, "config": {"model": "hf"}}
    path.write_text(json.dumps(base | {"lm_eval_version": "0.4.9"} | parts), encoding="utf-8")
    return folder


def inspect_sample(number: int, value: object, *, epoch: int = 1, **more: Any) -> dict[str, Any]:
    return {
        "id": number,
        "epoch": epoch,
        "input": f"What is {number} and {number}?",
        "target": f"It is {2 * number}.",
        "messages": [],
        "output": {"model": "m", "choices": [], "completion": "so"},
        "scores": {"match": {"value": value, "answer": "so"}},
    } | more


def write_inspect(path: Path, samples: Sequence[Mapping[str, Any]], *, task: str = "sums") -> Path:
    """Write a log of Inspect as one JSON document."""
    path.parent.mkdir(parents=True, exist_ok=True)
    log = {
        "version": 2,
        "status": "success",
        "eval": {
            "created": "2026-01-01T00:00:00+00:00",
            "task": task,
            "task_id": "t1",
            "task_version": 0,
            "model": "provider/model",
            "dataset": {"name": "sums", "samples": len(samples)},
            "config": {"epochs": 1},
            "scorers": [{"name": "match"}],
        },
        "results": {"scores": [{"name": "match", "scorer": "match", "metrics": {}}]},
        "samples": list(samples),
    }
    path.write_text(json.dumps(log), encoding="utf-8")
    return path
