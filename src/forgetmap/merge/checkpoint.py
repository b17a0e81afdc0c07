"""Weights of a model on disk, opened lazily and read tensor by tensor."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from forgetmap._lazy import require
from forgetmap.errors import TRUNCATED_HINT, MissingInputError, ModelError, UnreadableError
from forgetmap.merge.adapter import LoraAdapter
from forgetmap.merge.tensor_file import TensorFile, TensorInfo

if TYPE_CHECKING:
    import torch

SINGLE = "model.safetensors"
INDEX = "model.safetensors.index.json"
HUB_ID = re.compile(r"[\w-][\w.-]*(/[\w.-]+)?(@[\w./-]+)?")
HUB_FILES = ["*.safetensors", "*.json", "*.txt", "*.model", "*.jinja", "*.tiktoken"]
MODEL_HINT = (
    "pass a folder with config.json and *.safetensors, a hub id such as org/name, or BASE+ADAPTER."
)
MAX_NAMES = 3

TensorChange = Callable[["torch.Tensor"], "torch.Tensor"]


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A model on disk, possibly with a LoRA adapter.

    Attributes:
        name: name of the model as given.
        folder: folder of the weights; for `BASE+ADAPTER` that of the base.
        config: content of its config.json.
        tensors: shape and dtype of every tensor.
        stamp: identifier that changes with its files.
        adapter: adapter that is added on reading, if any.
        changes: other changes of tensors on reading, by name.
    """

    name: str
    folder: Path
    config: dict[str, Any]
    tensors: dict[str, TensorInfo]
    stamp: str
    adapter: LoraAdapter | None = None
    changes: Mapping[str, TensorChange] = field(default_factory=dict)
    _files: dict[str, TensorFile] = field(default_factory=dict, repr=False)

    @classmethod
    def open(cls, model: str | Path) -> Checkpoint:
        """Find a model and check the headers of all its files.

        Args:
            model: a folder, a hub id (`org/name` or `org/name@revision`), `BASE+ADAPTER`, or the
                folder of an adapter, which names its base.

        Raises:
            ModelError: there is no such model, or no weights that can be merged.
            MissingInputError: a file is missing.
            UnreadableError: a file is truncated or otherwise broken.
        """
        base, adapter = _parts(str(model))
        folder = _folder_of(base)
        config = _json(folder / "config.json")
        files = _weights(folder)
        tensors = {name: file.tensors[name] for name, file in files.items()}
        stamp = _stamp(folder, config, files)
        opened = cls(str(model), folder, config, tensors, stamp, _files=files)
        return opened if adapter is None else opened._with(_folder_of(adapter))

    def read(self, name: str) -> torch.Tensor:
        """Read the values of one tensor; thread-safe."""
        weight = self._read(name)
        return self.changes[name](weight) if name in self.changes else weight

    def _read(self, name: str) -> torch.Tensor:
        if self.adapter is None:
            return self._files[name].read(name)
        stands = self.adapter.replaced.get(name)
        weight = self._files[name].read(name) if stands is None else self.adapter.file.read(stands)
        return self.adapter.add(name, weight)

    def with_changes(
        self, changes: Mapping[str, TensorChange], rows: int, config: dict[str, Any]
    ) -> Self:
        """Return the checkpoint with tensors that are changed on reading, to this many rows."""
        resized = {
            name: TensorInfo((rows, *self.tensors[name].shape[1:]), self.tensors[name].dtype)
            for name in changes
        }
        return replace(self, changes=changes, tensors=self.tensors | resized, config=config)

    def can_read_in_parts(self, name: str) -> bool:
        """Return whether a tensor can be read in parts."""
        if self.adapter is not None and name in self.adapter.pieces | self.adapter.replaced:
            return False
        return name not in self.changes

    def read_into(self, values: torch.Tensor, name: str, start: int) -> None:
        """Fill a row with values of a tensor that can be read in parts."""
        self._files[name].read_into(values, name, start)

    @property
    def tokenizer_folder(self) -> Path:
        """Folder of its tokenizer; an adapter may have its own."""
        if self.adapter is not None and (self.adapter.folder / "tokenizer_config.json").is_file():
            return self.adapter.folder
        return self.folder

    def _with(self, folder: Path) -> Self:
        adapter = LoraAdapter.open(folder, _json(folder / "adapter_config.json"), self.tensors)
        extra = _stamp(folder, adapter.config, {"": adapter.file})
        config = dict(self.config)
        if adapter.replaced.keys() - self.tensors.keys():
            config["tie_word_embeddings"] = False  # the adapter has an output layer
        stamp = hashlib.sha256(f"{self.stamp} {extra}".encode()).hexdigest()
        tensors = self.tensors | adapter.replacements
        return replace(self, config=config, tensors=tensors, stamp=stamp, adapter=adapter)


def _parts(model: str) -> tuple[str, str | None]:
    """Split the name of a model into base and adapter."""
    path = Path(model).expanduser()
    if not path.exists() and "+" in model:
        base, _, adapter = model.rpartition("+")
        if "+" in base and not Path(base).expanduser().exists():
            raise ModelError(f"{model} names more than one adapter.", hint="merge the first one.")
        return base, adapter
    if (path / "adapter_config.json").is_file() and not (path / "config.json").is_file():
        base_name = _json(path / "adapter_config.json").get("base_model_name_or_path")
        if not base_name:
            raise ModelError(
                f"The adapter {path} does not name its base.", hint="write BASE+ADAPTER."
            )
        return str(base_name), model
    return model, None


def _folder_of(model: str) -> Path:
    path = Path(model).expanduser()
    if path.is_dir():
        return path
    if path.exists() or not HUB_ID.fullmatch(model):
        raise ModelError(f"There is no model {model}.", hint=MODEL_HINT)
    return _from_hub(model)


def _from_hub(model: str) -> Path:
    """Return the copy of the hub, from the cache if it is there."""
    hub = require("huggingface_hub", "A model on the hub")
    from huggingface_hub import errors

    repo, _, revision = model.partition("@")
    options: dict[str, Any] = {"revision": revision or None, "allow_patterns": HUB_FILES}
    try:
        return Path(hub.snapshot_download(repo, local_files_only=True, **options))
    except (errors.LocalEntryNotFoundError, errors.HFValidationError):
        pass
    try:
        return Path(hub.snapshot_download(repo, **options))
    except Exception as error:  # the HTTP library of the hub depends on its version
        raise ModelError(
            f"{model} is not a local folder, not in the cache, and cannot be downloaded: {error}.",
            hint="check the spelling and the connection; log in for private models: hf auth login.",
        ) from error


def _json(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise ModelError(f"The folder {path.parent} has no {path.name}.", hint=MODEL_HINT)
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise UnreadableError(f"Not JSON: {error}.", file=str(path), hint=TRUNCATED_HINT) from error
    if not isinstance(content, dict):
        raise UnreadableError("Not a JSON object.", file=str(path), hint=TRUNCATED_HINT)
    return content


def _weights(folder: Path) -> dict[str, TensorFile]:
    """Return the file of every tensor."""
    if (folder / SINGLE).is_file():
        file = TensorFile.open(folder / SINGLE)
        return dict.fromkeys(file.tensors, file)
    if (folder / INDEX).is_file():
        return _shard_files(folder)
    others = sorted(path.name for path in folder.glob("*.bin")) or ["no weights"]
    raise ModelError(
        f"The folder {folder} has {others[0]} instead of {SINGLE} or {INDEX}.",
        hint="save the model with transformers' save_pretrained, which writes safetensors.",
    )


def _shard_files(folder: Path) -> dict[str, TensorFile]:
    index = folder / INDEX
    shard_of = _json(index).get("weight_map")
    if not isinstance(shard_of, dict) or not all(
        _is_file_name(shard) for shard in shard_of.values()
    ):
        raise UnreadableError(
            "The index has no weight_map from tensors to files.",
            file=str(index),
            hint=TRUNCATED_HINT,
        )
    shards = sorted(set(shard_of.values()))
    missing = [shard for shard in shards if not (folder / shard).is_file()]
    if missing:
        raise MissingInputError(
            f"{len(missing)} of {len(shards)} shards are missing: {_some(missing)}.",
            file=str(index),
            hint="download the missing files.",
        )
    files = {shard: TensorFile.open(folder / shard) for shard in shards}
    lost = [name for name, shard in shard_of.items() if name not in files[shard].tensors]
    if lost:
        raise UnreadableError(
            f"{len(lost)} tensors are not in the shard named by the index: {_some(lost)}.",
            file=str(index),
            hint="download the index and the shards again; they do not match.",
        )
    unlisted = {name: file for file in files.values() for name in file.tensors}
    return unlisted | {name: files[shard] for name, shard in shard_of.items()}


def _is_file_name(shard: Any) -> bool:
    """Return whether a name is a file in the same folder."""
    return isinstance(shard, str) and shard not in {"", ".."} and Path(shard).name == shard


def _some(names: list[str]) -> str:
    more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
    return ", ".join(names[:MAX_NAMES]) + more


def _stamp(folder: Path, config: dict[str, Any], files: dict[str, TensorFile]) -> str:
    """Return a hash of names, sizes, times and headers of the weights, and of the configuration."""
    digest = hashlib.sha256(json.dumps(config, sort_keys=True).encode())
    for file in sorted({file.path: file for file in files.values()}.values(), key=lambda f: f.path):
        status = file.path.stat()
        name = file.path.relative_to(folder).as_posix()
        digest.update(f"{name} {status.st_size} {status.st_mtime_ns}\n".encode())
        digest.update(file.header)
    return digest.hexdigest()
