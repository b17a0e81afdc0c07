"""Inspect AI: as an eval set, which goes on where an earlier attempt ended."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from forgetmap.errors import UsageError
from forgetmap.evaluation import KEY
from forgetmap.harness_runs.request import Driver, Order, local_path, refuse

RESERVED = frozenset({
    "--model", "--model-base-url", "--log-dir", "--log-format", "--no-log-samples", "--no-score",
    "--limit", "--epochs", "--seed", "--temperature", "--detach", "--json", "--sample-shuffle",
    "--display", "--bundle-dir",
})  # fmt: skip
SERVICE = "forgetmap"
"""Inspect takes the key of a service from the variable of that name: FORGETMAP_API_KEY."""


def arguments(order: Order, work: Path) -> list[str]:
    """One log folder, decode greedily, and let a sample that fails be missing, not end it all."""
    refuse(
        "Inspect",
        {"--shots": order.shots is not None},
        hint="its tasks have arguments of their own: add -- -T fewshot=N.",
    )
    found = ["eval-set", *map(_task, order.tasks)]
    found += _served(order) if order.is_served else _local(order)
    found += ["--log-dir", str(work / "logs"), "--display", "plain", "--no-fail-on-error"]
    found += ["--retry-attempts", "0", "--no-retry-immediate"]
    found += ["--temperature", str(order.temperature), "--seed", str(order.seed)]
    return found + _asking(order)


def _task(name: str) -> str:
    """Inspect looks for files below the current folder and takes no full paths."""
    return os.path.relpath(name) if Path(name).is_absolute() else name


def _asking(order: Order) -> list[str]:
    asked = {
        "--system-message": order.system_prompt,
        "--limit": order.limit,
        "--epochs": order.repeats if order.repeats > 1 else None,
        "--top-p": order.top_p,
        "--max-tokens": order.max_new_tokens,
        "--max-connections": order.concurrency if order.is_served else order.batch,
    }
    given = [(name, value) for name, value in asked.items() if value is not None]
    return [part for name, value in given for part in (name, str(value))]


def _local(order: Order) -> list[str]:
    """Loaded by transformers; folders are all called `hf/local`."""
    source = order.model
    refuse(
        "Inspect",
        {"a GGUF file": source.gguf is not None, "a revision": source.revision is not None},
        hint="give a folder with the weights, or the address of a server: http://HOST/v1#MODEL.",
    )
    path = local_path(source.base)
    if "," in path:
        raise UsageError(
            f"Inspect takes the comma in {path} for the end of a name", hint="rename the folder."
        )
    is_local = Path(path).exists()
    own = {
        "model_path": path if is_local else None,
        "device": None if order.device == "auto" else order.device,
        "dtype": order.dtype,
        "do_sample": str(order.temperature > 0).lower(),
        "use_chat_template": None if order.chat is None else str(order.chat).lower(),
        "trust_remote_code": "true" if order.trust_remote_code else None,
    }
    found = ["--model", "hf/local" if is_local else f"hf/{path}"]
    for name, value in own.items():
        found += [] if value is None else ["-M", f"{name}={value}"]
    return found


def _served(order: Order) -> list[str]:
    refuse(
        "Inspect",
        {"--no-chat with a server": order.chat is False},
        hint="it always chats with servers: leave out --no-chat.",
    )
    base, model = order.server
    return ["--model", f"openai-api/{SERVICE}/{model}", "--model-base-url", base]


def environment(order: Order) -> Mapping[str, str]:
    """Inspect asks for a key even where the server does not."""
    return {KEY: os.environ.get(KEY) or "none"} if order.is_served else {}


INSPECT = Driver(
    name="inspect",
    distribution="inspect_ai",
    module="inspect_ai",
    install="pip install inspect_ai openai",
    reserved=RESERVED,
    arguments=arguments,
    environment=environment,
    needs=lambda _: "chat",
    weighed=lambda _: (),
    merges=True,
)
