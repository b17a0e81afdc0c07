"""What a model may be called, and how it is loaded."""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from forgetmap.errors import ModelError
from forgetmap.evaluation.servers.address import checked_address, is_address

Dtype = Literal["auto", "float32", "bfloat16", "float16"]
Via = Literal["transformers", "vllm", "server"]
VLLM = "vllm:"

HUB_ID = re.compile(r"[\w.-]+(/[\w.-]+)?")
HUB_TIMEOUT = 10.0
CAN_BE = (
    "give a folder with config.json and weights, a .gguf file, a hub id such as org/name, "
    "BASE+ADAPTER, or the address of a server: http://HOST/v1#MODEL."
)


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A causal language model with its tokenizer, and what it was called."""

    name: str
    model: Any
    tokenizer: Any


@dataclass(frozen=True, slots=True)
class Source:
    """Where a model comes from.

    Attributes:
        base: a folder, a hub id, or the address of a server.
        revision: branch, tag or commit on the hub.
        gguf: name of a GGUF file in the folder `base`.
        adapter: folder or hub id of a LoRA adapter to put on top.
        via: what runs it.
    """

    base: str
    revision: str | None = None
    gguf: str | None = None
    adapter: str | None = None
    via: Via = "transformers"

    def __str__(self) -> str:
        """What it can be called."""
        if self.via == "vllm":
            return f"{VLLM}{replace(self, via='transformers')}"
        base = self.base if self.gguf is None else str(Path(self.base) / self.gguf)
        revision = f"@{self.revision}" if self.revision else ""
        return f"{base}{revision}+{self.adapter}" if self.adapter else base + revision


def load_model(
    model: str | Source,
    *,
    adapter: str | None = None,
    dtype: Dtype = "auto",
    device: str = "auto",
    trust_remote_code: bool = False,
) -> LoadedModel:
    """Load a model for inference.

    Args:
        model: a folder, a GGUF file, a hub id (`org/name` or `org/name@revision`), a LoRA adapter
            (which names its base), `BASE+ADAPTER`, or what `find_model` said of one of these.
        adapter: folder or hub id of a LoRA adapter to put on top.
        dtype: `auto` is float32 on a CPU and what the weights have elsewhere.
        device: `auto` is the first accelerator, else the CPU.
        trust_remote_code: run Python code that comes with the model.

    Raises:
        ModelError: it does not exist, is not a causal language model, or may not be read.
    """
    transformers = need("transformers")
    transformers.utils.logging.disable_progress_bar()
    source = model if isinstance(model, Source) else find_model(model, adapter=adapter)
    if source.gguf is not None:
        need("gguf")
    place = _device(device)
    options: dict[str, Any] = {"trust_remote_code": trust_remote_code, "revision": source.revision}
    if source.gguf is not None:
        options["gguf_file"] = source.gguf
    name = str(model)
    with _explained(name):
        network = transformers.AutoModelForCausalLM.from_pretrained(
            source.base, dtype=_dtype(dtype, place), **options
        )
        tokenizer = transformers.AutoTokenizer.from_pretrained(source.base, **options)
    if source.adapter is not None:
        network, tokenizer = _add_adapter(name, source.adapter, network, tokenizer)
    return LoadedModel(name, network.to(place).eval(), tokenizer)


def find_model(name: str, *, adapter: str | None = None) -> Source:
    """Say what a name stands for, before anything large is read.

    Args:
        name: a folder, a GGUF file, a hub id, `BASE+ADAPTER`, any of these behind `vllm:`, or
            `http://HOST/v1#MODEL`.
        adapter: folder or hub id of a LoRA adapter to put on top.
    """
    if is_address(name):
        return Source(checked_address(name), via="server")
    if name.startswith(VLLM):
        return replace(find_model(name.removeprefix(VLLM), adapter=adapter), via="vllm")
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


def need(package: str) -> Any:
    """Import a package of the extra `run`."""
    try:
        return importlib.import_module(package)
    except ModuleNotFoundError as error:
        raise ModelError(
            f"Running models needs the package {error.name}, which is not installed.",
            hint='install it: pip install "forgetmap[run]".',
        ) from error


def _gguf(path: Path) -> Source:
    if not path.is_file():
        raise ModelError(f"There is no file {path}.", hint="check the path.")
    with path.open("rb") as file:
        magic = file.read(4)
    if magic != b"GGUF":
        raise ModelError(f"{path} is a file, but not a GGUF file.", hint=CAN_BE)
    return Source(str(path.parent), gguf=path.name)


def _folder(path: Path) -> Source:
    if (path / "config.json").is_file():
        return Source(str(path))
    if (path / "adapter_config.json").is_file():
        return replace(find_model(_base_of(path / "adapter_config.json")), adapter=str(path))
    raise ModelError(f"The folder {path} has no config.json, so it is no model.", hint=CAN_BE)


def _hub(name: str) -> Source:
    repo, _, revision = name.partition("@")
    if not HUB_ID.fullmatch(repo) or repo.startswith("."):
        raise ModelError(f"There is no model {name}.", hint=CAN_BE)
    need("huggingface_hub")
    if _on_hub(repo, "config.json", revision or None):
        return Source(repo, revision=revision or None)
    if _on_hub(repo, "adapter_config.json", revision or None):
        from huggingface_hub import hf_hub_download

        config = Path(hf_hub_download(repo, "adapter_config.json", revision=revision or None))
        return replace(find_model(_base_of(config)), adapter=repo)
    raise ModelError(f"The hub repository {name} has no config.json.", hint=CAN_BE)


def _on_hub(repo: str, file: str, revision: str | None) -> bool:
    """Whether the cache or the hub has a file; one request, as the hub's own retries take long."""
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
            f"Neither this machine nor the hub has a model {repo}"
            + (f" at {revision}." if revision else "."),
            hint="check the spelling; for a private model, log in: hf auth login.",
        ) from error
    except errors.EntryNotFoundError:
        return False
    except Exception as error:  # the hub's HTTP library is another one in other versions
        raise ModelError(
            f"{repo} is no folder here, not in the cache, and the hub cannot be reached: {error}.",
            hint="check the path or the connection, or give a folder or .gguf file.",
        ) from error
    return True


def _check_adapter(adapter: str) -> None:
    path = Path(adapter).expanduser()
    if path.is_dir():
        if not (path / "adapter_config.json").is_file():
            raise ModelError(
                f"The folder {path} has no adapter_config.json, so it is no adapter.",
                hint="give the folder that peft's save_pretrained wrote.",
            )
        return
    if not HUB_ID.fullmatch(adapter) or adapter.startswith("."):
        raise ModelError(f"There is no adapter {adapter}.", hint="check the path.")
    need("huggingface_hub")
    if not _on_hub(adapter, "adapter_config.json", None):
        raise ModelError(f"The hub repository {adapter} is no adapter.", hint="check its name.")


def _base_of(config: Path) -> str:
    try:
        base = json.loads(config.read_text(encoding="utf-8")).get("base_model_name_or_path")
    except (ValueError, AttributeError) as error:
        raise ModelError(f"{config} cannot be read: {error}.", hint="save it again.") from error
    if not isinstance(base, str) or not base:
        raise ModelError(
            f"{config} does not say which base the adapter is for.",
            hint="name the base: BASE+ADAPTER.",
        )
    return base


def _local_or_id(name: str) -> str:
    path = Path(name).expanduser()
    return str(path) if path.exists() else name


def _device(device: str) -> str:
    torch = need("torch")
    if device == "auto":
        accelerator = torch.accelerator.current_accelerator(check_available=True)
        return accelerator.type if accelerator else "cpu"
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise ModelError(
            f"The device {device} cannot be used: {reason}", hint="use cpu, or leave it to auto."
        ) from error
    return device


def _dtype(dtype: Dtype, device: str) -> Any:
    torch = need("torch")
    if dtype == "auto":
        # Most CPUs have no fast half precision, and float32 is exact to more digits.
        return torch.float32 if device == "cpu" else "auto"
    return getattr(torch, dtype)


def _add_adapter(name: str, adapter: str, model: Any, tokenizer: Any) -> tuple[Any, Any]:
    """Merge the adapter into the weights; its own tokenizer, if any, goes with it."""
    peft, transformers = need("peft"), need("transformers")
    with _explained(name):
        if (Path(adapter) / "tokenizer_config.json").is_file():
            tokenizer = transformers.AutoTokenizer.from_pretrained(adapter)
        if len(tokenizer) > model.get_input_embeddings().weight.shape[0]:
            model.resize_token_embeddings(len(tokenizer))
        return peft.PeftModel.from_pretrained(model, adapter).merge_and_unload(), tokenizer


@contextmanager
def _explained(name: str) -> Iterator[None]:
    """Turn whatever goes wrong while reading a model into one kind of error."""
    try:
        yield
    except Exception as error:  # files are read by half a dozen libraries, code of models may run
        text = " ".join(str(error).split())[:300]
        if "trust_remote_code" in str(error):
            raise ModelError(
                f"The model {name} comes with code of its own, which is not run unasked.",
                hint="read that code; if you trust it, allow it: --trust-remote-code.",
            ) from error
        raise ModelError(
            f"The model {name} cannot be loaded: {type(error).__name__}: {text}",
            hint="check that it is a causal language model and that its files are complete.",
        ) from error
