"""lighteval, 0.11 or later, with a local model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from forgetmap.harness_runs.request import Driver, Order, local_path, refuse

RESERVED = frozenset({"--output-dir", "--save-details", "--no-save-details", "--max-samples"})


def arguments(order: Order, work: Path) -> list[str]:
    """Details of every sample; predictions are remembered beside them."""
    source = order.model
    refuse(
        "lighteval",
        {
            "a server": order.is_served,
            "a GGUF file": source.gguf is not None,
            "--repeats": order.repeats > 1,
        },
        hint="use lm-eval or inspect, or forgetmap's own suites.",
    )
    path = local_path(source.base)
    decoding = {
        "temperature": order.temperature,
        "top_p": order.top_p,
        "max_new_tokens": order.max_new_tokens,
        "seed": order.seed,
    }
    drawn = ",".join(f"{name}:{value}" for name, value in decoding.items() if value is not None)
    model = {
        "model_name": path,
        "revision": source.revision,
        "dtype": order.dtype,
        "device": None if order.device == "auto" else order.device,
        "batch_size": order.batch,
        "trust_remote_code": "true" if order.trust_remote_code else None,
        "override_chat_template": None if order.chat is None else str(order.chat).lower(),
        "system_prompt": order.system_prompt,
        "cache_dir": work / "answers",
        "generation_parameters": "{" + drawn + "}",
    }
    told = ",".join(f"{name}={value}" for name, value in model.items() if value is not None)
    tasks = [task if "|" in task else f"{task}|{order.shots or 0}" for task in order.tasks]
    found = ["accelerate", told, ",".join(tasks)]
    found += ["--output-dir", str(work / "logs"), "--save-details"]
    return found if order.limit is None else [*found, "--max-samples", str(order.limit)]


def environment(_: Order) -> Mapping[str, str]:
    """Nothing."""
    return {}


def tidy(logs: Path) -> None:
    """Undo that the path of a model is repeated below the logs, hidden folders included."""
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
