"""lighteval, 0.11 or later, with a local model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from forgetmap.harness_runs.request import Driver, HarnessRequest, local_path, refuse

RESERVED = frozenset({"--output-dir", "--save-details", "--no-save-details", "--max-samples"})


def arguments(request: HarnessRequest, work: Path) -> list[str]:
    """Return arguments: details of every sample, with cached predictions beside them."""
    source = request.model
    refuse(
        "lighteval",
        {
            "a server": request.is_served,
            "a GGUF file": source.gguf is not None,
            "--repeats": request.repeats > 1,
        },
        hint="use lm-eval or inspect, or forgetmap's own suites.",
    )
    path = local_path(source.base)
    decoding = {
        "temperature": request.temperature,
        "top_p": request.top_p,
        "max_new_tokens": request.max_new_tokens,
        "seed": request.seed,
    }
    settings = ",".join(f"{name}:{value}" for name, value in decoding.items() if value is not None)
    model = {
        "model_name": path,
        "revision": source.revision,
        "dtype": request.dtype,
        "device": None if request.device == "auto" else request.device,
        "batch_size": request.batch,
        "trust_remote_code": "true" if request.trust_remote_code else None,
        "override_chat_template": None if request.chat is None else str(request.chat).lower(),
        "system_prompt": request.system_prompt,
        "cache_dir": work / "answers",
        "generation_parameters": "{" + settings + "}",
    }
    model_args = ",".join(f"{name}={value}" for name, value in model.items() if value is not None)
    tasks = [task if "|" in task else f"{task}|{request.shots or 0}" for task in request.tasks]
    arguments = ["accelerate", model_args, ",".join(tasks)]
    arguments += ["--output-dir", str(work / "logs"), "--save-details"]
    return arguments if request.limit is None else [*arguments, "--max-samples", str(request.limit)]


def environment(_: HarnessRequest) -> Mapping[str, str]:
    """Return no variables."""
    return {}


def tidy(logs: Path) -> None:
    """Move logs out of folders that repeat the path of the model, including hidden ones."""
    for file in [*logs.rglob("details_*.parquet"), *logs.rglob("results_*.json")]:
        kind, *_, last = file.parent.relative_to(logs).parts
        folder = logs / kind / "model" / (last if kind == "details" else "")
        folder.mkdir(parents=True, exist_ok=True)
        file.rename(folder / file.name)


LIGHTEVAL = Driver(
    name="lighteval",
    distribution="lighteval",
    module="lighteval",
    install="pip install lighteval",
    reserved=RESERVED,
    arguments=arguments,
    environment=environment,
    needs=lambda _: "chat",
    weighed=lambda _: (),
    merges=True,
    litters=True,
    tidy=tidy,
)
