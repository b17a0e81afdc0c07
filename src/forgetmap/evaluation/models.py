"""Names of models: folders, files, hub ids, adapters, servers, other backends."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from forgetmap._lazy import require
from forgetmap.errors import ModelError, UsageError
from forgetmap.evaluation.backends.base import BACKENDS, ModelSource
from forgetmap.evaluation.backends.servers.connection import checked_address, is_address
from forgetmap.evaluation.gguf_header import MAGIC, check_gguf

VLLM = "vllm"
HUB_ID = re.compile(r"[\w.-]+(/[\w.-]+)?")
HUB_TIMEOUT = 10.0
WEIGHT_SUFFIXES = (".safetensors", ".bin", ".gguf", ".pt", ".pth")
CAN_BE = (
    "pass a folder with config.json and weights, a .gguf file, a hub id such as org/name, "
    "BASE+ADAPTER, or a server address: http://HOST/v1#MODEL."
)


def find_model(name: str, *, adapter: str | None = None) -> ModelSource:
    """Resolve the name of a model before anything large is read.

    Args:
        name: a folder, a GGUF file, a hub id, `BASE+ADAPTER`, any of these with the prefix `vllm:`,
            `http://HOST/v1#MODEL`, or `BACKEND:NAME` for a backend of another package.
        adapter: folder or hub id of a LoRA adapter to put on top.
    """
    if is_address(name):
        return ModelSource(checked_address(name), via="server")
    backend, colon, rest = name.partition(":")
    # Listing plugins takes time, and only names with a colon need it.
    if colon and backend in {VLLM, *BACKENDS.names()} - {"transformers", "server"}:
        source = find_model(rest, adapter=adapter) if backend == VLLM else ModelSource(rest)
        return replace(source, via=backend)
    return _find_weights(name, adapter)


def _find_weights(name: str, adapter: str | None) -> ModelSource:
    path = Path(name).expanduser()
    if not path.exists() and adapter is None and "+" in name:
        base, _, adapter = name.rpartition("+")
        return find_model(base, adapter=adapter)
    if adapter is not None:
        _check_adapter(adapter)
        return replace(find_model(name), adapter=_local_or_id(adapter))
    if path.is_file() or path.suffix.lower() == ".gguf":
        return _gguf(path)
    return _folder(path) if path.is_dir() else _hub(name)


def _gguf(path: Path) -> ModelSource:
    if not path.is_file():
        raise ModelError(f"The file {path} does not exist.", hint="check the path.")
    with path.open("rb") as file:
        magic = file.read(len(MAGIC))
    if magic != MAGIC:
        raise ModelError(f"{path} is not a GGUF file.", hint=CAN_BE)
    check_gguf(path)
    return ModelSource(str(path.parent), gguf=path.name)


def _folder(path: Path) -> ModelSource:
    if (path / "config.json").is_file():
        return ModelSource(str(path))
    if (path / "adapter_config.json").is_file():
        return replace(find_model(_base_of(path / "adapter_config.json")), adapter=str(path))
    raise ModelError(f"The folder {path} has no config.json, so it is not a model.", hint=CAN_BE)


def _hub(name: str) -> ModelSource:
    repo, _, revision = name.partition("@")
    if not HUB_ID.fullmatch(repo) or repo.startswith("."):
        raise ModelError(f"There is no model {name}.", hint=CAN_BE)
    require("huggingface_hub", f"There is no folder {repo}, and a model on the hub")
    if _on_hub(repo, "config.json", revision or None):
        return ModelSource(repo, revision=revision or None)
    if _on_hub(repo, "adapter_config.json", revision or None):
        from huggingface_hub import hf_hub_download

        config = Path(hf_hub_download(repo, "adapter_config.json", revision=revision or None))
        return replace(find_model(_base_of(config)), adapter=repo)
    raise ModelError(f"The hub repository {name} has no config.json.", hint=CAN_BE)


def _on_hub(repo: str, file: str, revision: str | None) -> bool:
    """Whether the cache or the hub has a file; one request, as retries of the hub take long."""
    import huggingface_hub as hub
    from huggingface_hub import errors

    if isinstance(hub.try_to_load_from_cache(repo, file, revision=revision), str):
        return True
    try:
        hub.get_hf_file_metadata(hub.hf_hub_url(repo, file, revision=revision), timeout=HUB_TIMEOUT)
    except errors.GatedRepoError as error:
        raise ModelError(
            f"The model {repo} is gated.",
            hint="accept its terms on the hub, then log in: hf auth login.",
        ) from error
    except (errors.RepositoryNotFoundError, errors.RevisionNotFoundError) as error:
        raise ModelError(
            f"The model {repo} is neither on this machine nor on the hub"
            + (f" at {revision}." if revision else "."),
            hint="check the spelling; for a private model, log in: hf auth login.",
        ) from error
    except errors.EntryNotFoundError:
        return False
    except Exception as error:  # the hub uses different HTTP libraries in different versions
        raise ModelError(
            f"{repo} is not a local folder, not in the cache, and the hub cannot be reached: "
            f"{error}.",
            hint="check the path or the connection, or pass a folder or .gguf file.",
        ) from error
    return True


def _check_adapter(adapter: str) -> None:
    path = Path(adapter).expanduser()
    if path.is_dir():
        if not (path / "adapter_config.json").is_file():
            raise ModelError(
                f"The folder {path} has no adapter_config.json, so it is not an adapter.",
                hint="pass a folder written by peft's save_pretrained.",
            )
        return
    if not HUB_ID.fullmatch(adapter) or adapter.startswith("."):
        raise ModelError(f"There is no adapter {adapter}.", hint="check the path.")
    require("huggingface_hub", f"There is no folder {adapter}, and an adapter on the hub")
    if not _on_hub(adapter, "adapter_config.json", None):
        raise ModelError(f"The hub repository {adapter} is not an adapter.", hint="check its name.")


def _base_of(config: Path) -> str:
    try:
        base = json.loads(config.read_text(encoding="utf-8")).get("base_model_name_or_path")
    except (ValueError, AttributeError) as error:
        raise ModelError(f"{config} cannot be read: {error}.", hint="save it again.") from error
    if not isinstance(base, str) or not base:
        raise ModelError(
            f"{config} does not name the base model of the adapter.",
            hint="write BASE+ADAPTER.",
        )
    return base


def _local_or_id(name: str) -> str:
    path = Path(name).expanduser()
    return str(path) if path.exists() else name


def weights_stamp(source: ModelSource) -> str:
    """Return a text that changes when a local model is rewritten; empty for a model on the hub."""
    stamps = []
    for name in (source.base, source.adapter):
        folder = Path(name) if name else None
        if folder is None or not folder.is_dir():
            continue
        # Of a folder with several GGUF files one is the model.
        is_gguf = source.gguf is not None and name == source.base
        for file in sorted(folder.iterdir()):
            if file.name == source.gguf if is_gguf else file.suffix in WEIGHT_SUFFIXES:
                stat = file.stat()
                stamps.append(f"{file.name}:{stat.st_size}:{stat.st_mtime_ns}")
    return ";".join(stamps)


def run_names(models: Sequence[Any]) -> list[str]:
    """Return a folder name for the run of each model: its number and the name of the model."""
    names = []
    for number, model in enumerate(models):
        last = re.sub(r"[^\w.-]+", "-", _name_parts(model)[-1]).strip("-.")
        names.append(f"{number}-{last or 'model'}")
    return names


def model_labels(models: Sequence[Any]) -> list[str]:
    """Return a display name of each model: as much of the given name as makes it unique."""
    parts = [_name_parts(model) for model in models]
    depths = [1] * len(parts)
    while True:
        labels = ["/".join(part[-depth:]) for part, depth in zip(parts, depths, strict=True)]
        growing = [
            index
            for index, label in enumerate(labels)
            if labels.count(label) > 1 and depths[index] < len(parts[index])
        ]
        if not growing:
            return _numbered(labels)
        for index in growing:
            depths[index] += 1


def _name_parts(model: Any) -> list[str]:
    """Split the given name: folders of a path, owner and name of a hub id."""
    if not isinstance(model, str | Path):
        raise UsageError(
            "expected paths, hub ids or addresses",
            hint="evaluate live models one by one with fm.evaluate, then compare the runs.",
        )
    return [part for part in re.split(r"[/\\#]", str(model)) if part] or ["model"]


def _numbered(labels: Sequence[str]) -> list[str]:
    """Number the labels of models that are given twice."""
    earlier = [labels[:index].count(label) for index, label in enumerate(labels)]
    return [
        f"{label} ({count + 1})" if count else label
        for label, count in zip(labels, earlier, strict=True)
    ]
