"""lm-evaluation-harness, 0.4.8 or later."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from forgetmap.evaluation import KEY
from forgetmap.harness_runs.request import Driver, HarnessRequest, local_path, refuse

RESERVED = frozenset({
    "--model", "-M", "--tasks", "-t", "--output_path", "-o", "--log_samples", "-s", "--use_cache",
    "-c", "--predict_only", "-x", "--seed", "--limit", "-L", "--num_fewshot", "-f", "--samples",
    "-E",
})  # fmt: skip


def arguments(request: HarnessRequest, work: Path) -> list[str]:
    """Return arguments: log every sample, fixed seeds and decoding, and a cache of answers."""
    refuse(
        "lm-eval",
        {"--repeats": request.repeats > 1},
        hint="set `repeats` in the task instead.",
    )
    kind, model = _served(request) if request.is_served else ("hf", _local(request))
    arguments = ["--model", kind, "--model_args", json.dumps(model)]
    arguments += ["--tasks", ",".join(request.tasks), "--seed", str(request.seed)]
    arguments += ["--gen_kwargs", json.dumps(_decoding(request))]
    arguments += ["--output_path", str(work / "logs"), "--log_samples"]
    arguments += ["--use_cache", str(work / "answers")]
    return arguments + _asking(request)


def _asking(request: HarnessRequest) -> list[str]:
    arguments = ["--apply_chat_template"] if request.chat else []
    if request.system_prompt is not None:
        arguments += ["--system_instruction", request.system_prompt]
    if request.trust_remote_code:
        arguments += ["--trust_remote_code"]
    numbers = {
        "--num_fewshot": request.shots,
        "--limit": request.limit,
        "--batch_size": request.batch,
    }
    for name, value in numbers.items():
        arguments += [] if value is None else [name, str(value)]
    if not request.is_served and request.device != "auto":
        arguments += ["--device", request.device]
    return arguments


def _decoding(request: HarnessRequest) -> dict[str, Any]:
    arguments: dict[str, Any] = {
        "do_sample": request.temperature > 0,
        "temperature": request.temperature,
    }
    if request.top_p is not None:
        arguments["top_p"] = request.top_p
    if request.max_new_tokens is not None:
        arguments["max_gen_toks"] = request.max_new_tokens
    return arguments


def _local(request: HarnessRequest) -> dict[str, Any]:
    source = request.model
    arguments: dict[str, Any] = {"pretrained": local_path(source.base), "dtype": request.dtype}
    optional = {"revision": source.revision, "gguf_file": source.gguf}
    arguments |= {name: value for name, value in optional.items() if value is not None}
    if source.adapter is not None:
        arguments["peft"] = local_path(source.adapter)
    if request.trust_remote_code:
        arguments["trust_remote_code"] = True
    return arguments


def _served(request: HarnessRequest) -> tuple[str, dict[str, Any]]:
    """Return the model type and arguments for a server: chat messages, or texts to complete."""
    base, model = request.server
    kind, path = ("chat-completions", "chat/completions") if request.chat else ("completions",) * 2
    arguments = {
        "model": model,
        "base_url": f"{base}/{path}",
        "num_concurrent": request.concurrency,
        "tokenized_requests": False,
    }
    if not request.chat and not request.weighs:
        # Only needed for log-likelihoods, and the model may not be on the hub under this name.
        arguments["tokenizer_backend"] = "none"
    return f"local-{kind}", arguments


def environment(request: HarnessRequest) -> Mapping[str, str]:
    """Return the key under the name that lm-eval reads, so that no other key is sent."""
    return {"OPENAI_API_KEY": os.environ.get(KEY) or "none"} if request.is_served else {}


def needs(request: HarnessRequest) -> str:
    """Return the ability that the server needs: chat or completions."""
    return "chat" if request.chat else "completions"


def weighed(logs: Path) -> list[str]:
    """Return the tasks that used anything other than generation."""
    arguments: set[str] = set()
    for file in logs.rglob("results_*.json"):
        tasks = json.loads(file.read_bytes()).get("configs", {})
        arguments |= {
            name for name, task in tasks.items() if task.get("output_type") != "generate_until"
        }
    return sorted(arguments)


LM_EVAL = Driver(
    name="lm-eval",
    distribution="lm_eval",
    module="lm_eval",
    install='pip install "lm_eval[hf,api]"',
    reserved=RESERVED,
    arguments=arguments,
    environment=environment,
    needs=needs,
    weighed=weighed,
    merges=False,
)
