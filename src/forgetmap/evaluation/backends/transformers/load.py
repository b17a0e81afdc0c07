"""Loading a causal language model with the transformers library."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from forgetmap._lazy import require
from forgetmap.errors import ModelError
from forgetmap.evaluation.backends.base import ModelSource
from forgetmap.evaluation.choices import Dtype
from forgetmap.evaluation.models import find_model

FEATURE = "Running models"


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A causal language model with its tokenizer and name."""

    name: str
    model: Any
    tokenizer: Any


def load_model(
    model: str | ModelSource,
    *,
    adapter: str | None = None,
    dtype: Dtype = "auto",
    device: str = "auto",
    trust_remote_code: bool = False,
) -> LoadedModel:
    """Load a model for inference.

    Args:
        model: a folder, a GGUF file, a hub id (`org/name` or `org/name@revision`), a LoRA adapter
            (which names its base), `BASE+ADAPTER`, or what `find_model` returned for one of these.
        adapter: folder or hub id of a LoRA adapter to put on top.
        dtype: `auto` is float32 on a CPU and the format of the weights elsewhere.
        device: `auto` is the first accelerator, or the CPU if there is none.
        trust_remote_code: run Python code that comes with the model.

    Raises:
        ModelError: the model does not exist, is not a causal language model, or cannot be read.
    """
    transformers = require("transformers", FEATURE)
    transformers.utils.logging.disable_progress_bar()
    source = model if isinstance(model, ModelSource) else find_model(model, adapter=adapter)
    if source.gguf is not None:
        require("gguf", "A GGUF file")
    target = _device(device)
    options: dict[str, Any] = {"trust_remote_code": trust_remote_code, "revision": source.revision}
    if source.gguf is not None:
        options["gguf_file"] = source.gguf
    name = str(model)
    with _load_errors(name):
        network = transformers.AutoModelForCausalLM.from_pretrained(
            source.base, dtype=_dtype(dtype, target), **options
        )
        tokenizer = transformers.AutoTokenizer.from_pretrained(source.base, **options)
    if source.adapter is not None:
        network, tokenizer = _add_adapter(name, source.adapter, network, tokenizer)
    return LoadedModel(name, network.to(target).eval(), tokenizer)


def _device(device: str) -> str:
    torch = require("torch", FEATURE)
    if device == "auto":
        accelerator = torch.accelerator.current_accelerator(check_available=True)
        return accelerator.type if accelerator else "cpu"
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise ModelError(
            f"The device {device} cannot be used: {reason}", hint="use cpu or auto."
        ) from error
    return device


def _dtype(dtype: Dtype, device: str) -> Any:
    torch = require("torch", FEATURE)
    if dtype == "auto":
        # Most CPUs have no fast half precision, and float32 is exact to more digits.
        return torch.float32 if device == "cpu" else "auto"
    return getattr(torch, dtype)


def _add_adapter(name: str, adapter: str, model: Any, tokenizer: Any) -> tuple[Any, Any]:
    """Merge the adapter into the weights; use its tokenizer if it has one."""
    peft, transformers = require("peft", "A LoRA adapter"), require("transformers", FEATURE)
    with _load_errors(name):
        if (Path(adapter) / "tokenizer_config.json").is_file():
            tokenizer = transformers.AutoTokenizer.from_pretrained(adapter)
        if len(tokenizer) > model.get_input_embeddings().weight.shape[0]:
            model.resize_token_embeddings(len(tokenizer))
        return peft.PeftModel.from_pretrained(model, adapter).merge_and_unload(), tokenizer


@contextmanager
def _load_errors(name: str) -> Iterator[None]:
    """Convert errors of loading a model into ModelError."""
    try:
        yield
    except Exception as error:  # from half a dozen libraries, and from code of the model
        text = " ".join(str(error).split())[:300]
        if "trust_remote_code" in str(error):
            raise ModelError(
                f"The model {name} contains Python code, which is not run without permission.",
                hint="review the code; if you trust it, add --trust-remote-code.",
            ) from error
        raise ModelError(
            f"The model {name} cannot be loaded: {type(error).__name__}: {text}",
            hint="check that it is a causal language model and that its files are complete.",
        ) from error
