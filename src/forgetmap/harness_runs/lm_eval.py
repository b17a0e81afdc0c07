"""lm-evaluation-harness, 0.4.8 or later."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from forgetmap.evaluation import KEY
from forgetmap.harness_runs.request import Driver, Order, local_path, refuse

RESERVED = frozenset({
    "--model", "-M", "--tasks", "-t", "--output_path", "-o", "--log_samples", "-s", "--use_cache",
    "-c", "--predict_only", "-x", "--seed", "--limit", "-L", "--num_fewshot", "-f", "--samples",
    "-E",
})  # fmt: skip


def arguments(order: Order, work: Path) -> list[str]:
    """Log every sample, draw alike, decode greedily, and remember answers in case of a stop."""
    refuse(
        "lm-eval",
        {"--repeats": order.repeats > 1},
        hint="its tasks say how often they ask: set `repeats` in the task.",
    )
    kind, model = _served(order) if order.is_served else ("hf", _local(order))
    found = ["--model", kind, "--model_args", json.dumps(model)]
    found += ["--tasks", ",".join(order.tasks), "--seed", str(order.seed)]
    found += ["--gen_kwargs", json.dumps(_decoding(order))]
    found += ["--output_path", str(work / "logs"), "--log_samples"]
    found += ["--use_cache", str(work / "answers")]
    return found + _asking(order)


def _asking(order: Order) -> list[str]:
    found = ["--apply_chat_template"] if order.chat else []
    if order.system_prompt is not None:
        found += ["--system_instruction", order.system_prompt]
    if order.trust_remote_code:
        found += ["--trust_remote_code"]
    numbers = {"--num_fewshot": order.shots, "--limit": order.limit, "--batch_size": order.batch}
    for name, value in numbers.items():
        found += [] if value is None else [name, str(value)]
    if not order.is_served and order.device != "auto":
        found += ["--device", order.device]
    return found


def _decoding(order: Order) -> dict[str, Any]:
    found: dict[str, Any] = {"do_sample": order.temperature > 0, "temperature": order.temperature}
    if order.top_p is not None:
        found["top_p"] = order.top_p
    if order.max_new_tokens is not None:
        found["max_gen_toks"] = order.max_new_tokens
    return found


def _local(order: Order) -> dict[str, Any]:
    source = order.model
    found: dict[str, Any] = {"pretrained": local_path(source.base), "dtype": order.dtype}
    named = {"revision": source.revision, "gguf_file": source.gguf}
    found |= {name: value for name, value in named.items() if value is not None}
    if source.adapter is not None:
        found["peft"] = local_path(source.adapter)
    if order.trust_remote_code:
        found["trust_remote_code"] = True
    return found


def _served(order: Order) -> tuple[str, dict[str, Any]]:
    """A chat sends messages; else the server completes texts, which are sent as texts."""
    base, model = order.server
    kind, path = ("chat-completions", "chat/completions") if order.chat else ("completions",) * 2
    found = {"model": model, "base_url": f"{base}/{path}", "num_concurrent": order.concurrency}
    found |= {"tokenized_requests": False}
    if not order.chat and not order.weighs:
        # Only needed to weigh texts, and what the server calls the model need not be on the hub.
        found["tokenizer_backend"] = "none"
    return f"local-{kind}", found


def environment(order: Order) -> Mapping[str, str]:
    """The key, under the name lm-eval looks for; no other server's key goes to this one."""
    return {"OPENAI_API_KEY": os.environ.get(KEY) or "none"} if order.is_served else {}


def needs(order: Order) -> str:
    """Chats go one way, texts another."""
    return "chat" if order.chat else "completions"


def weighed(logs: Path) -> list[str]:
    """Tasks that did anything else than have text generated."""
    found: set[str] = set()
    for file in logs.rglob("results_*.json"):
        tasks = json.loads(file.read_bytes()).get("configs", {})
        found |= {
            name for name, task in tasks.items() if task.get("output_type") != "generate_until"
        }
    return sorted(found)


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
