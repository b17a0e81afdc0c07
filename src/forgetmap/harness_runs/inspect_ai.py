"""Inspect AI: as an eval set, which resumes an earlier attempt."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from forgetmap.errors import UsageError
from forgetmap.evaluation import KEY
from forgetmap.harness_runs.request import Driver, HarnessRequest, local_path, refuse

RESERVED = frozenset({
    "--model", "--model-base-url", "--log-dir", "--log-format", "--no-log-samples", "--no-score",
    "--limit", "--epochs", "--seed", "--temperature", "--detach", "--json", "--sample-shuffle",
    "--display", "--bundle-dir",
})  # fmt: skip
SERVICE = "forgetmap"
"""Inspect reads the key of a service from the variable with its name: FORGETMAP_API_KEY."""


def arguments(request: HarnessRequest, work: Path) -> list[str]:
    """Return arguments: one log folder, fixed decoding, and failed samples do not end the run."""
    refuse(
        "Inspect",
        {"--shots": request.shots is not None},
        hint="its tasks have their own arguments: add -- -T fewshot=N.",
    )
    arguments = ["eval-set", *map(_task, request.tasks)]
    arguments += _served(request) if request.is_served else _local(request)
    arguments += ["--log-dir", str(work / "logs"), "--display", "plain", "--no-fail-on-error"]
    arguments += ["--retry-attempts", "0", "--no-retry-immediate"]
    arguments += ["--temperature", str(request.temperature), "--seed", str(request.seed)]
    return arguments + _asking(request)


def _task(name: str) -> str:
    """Return a relative path: Inspect searches below the current folder and takes no full paths."""
    return os.path.relpath(name) if Path(name).is_absolute() else name


def _asking(request: HarnessRequest) -> list[str]:
    options = {
        "--system-message": request.system_prompt,
        "--limit": request.limit,
        "--epochs": request.repeats if request.repeats > 1 else None,
        "--top-p": request.top_p,
        "--max-tokens": request.max_new_tokens,
        "--max-connections": request.concurrency if request.is_served else request.batch,
    }
    pairs = [(name, value) for name, value in options.items() if value is not None]
    return [part for name, value in pairs for part in (name, str(value))]


def _local(request: HarnessRequest) -> list[str]:
    """Return arguments of a model loaded by transformers; folders are all called `hf/local`."""
    source = request.model
    refuse(
        "Inspect",
        {"a GGUF file": source.gguf is not None, "a revision": source.revision is not None},
        hint="pass a folder with the weights, or a server address: http://HOST/v1#MODEL.",
    )
    path = local_path(source.base)
    if "," in path:
        raise UsageError(f"Inspect cannot handle the comma in {path}", hint="rename the folder.")
    is_local = Path(path).exists()
    own = {
        "model_path": path if is_local else None,
        "device": None if request.device == "auto" else request.device,
        "dtype": request.dtype,
        "do_sample": str(request.temperature > 0).lower(),
        "use_chat_template": None if request.chat is None else str(request.chat).lower(),
        "trust_remote_code": "true" if request.trust_remote_code else None,
    }
    arguments = ["--model", "hf/local" if is_local else f"hf/{path}"]
    for name, value in own.items():
        arguments += [] if value is None else ["-M", f"{name}={value}"]
    return arguments


def _served(request: HarnessRequest) -> list[str]:
    refuse(
        "Inspect",
        {"--no-chat with a server": request.chat is False},
        hint="remove --no-chat; Inspect always uses chat with servers.",
    )
    base, model = request.server
    return ["--model", f"openai-api/{SERVICE}/{model}", "--model-base-url", base]


def environment(request: HarnessRequest) -> Mapping[str, str]:
    """Return a key, which Inspect requires even if the server does not."""
    return {KEY: os.environ.get(KEY) or "none"} if request.is_served else {}


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
