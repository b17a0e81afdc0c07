"""LoRA adapters, added to the weights of their base on reading."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from math import sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any

from forgetmap.errors import MissingInputError, ModelError
from forgetmap.merge.tensor_file import TensorFile, TensorInfo

if TYPE_CHECKING:
    import torch

PREFIX = "base_model.model."
PIECE = re.compile(
    r"(?P<module>.+)\.(?P<kind>lora_A|lora_B|lora_embedding_A|lora_embedding_B"
    r"|lora_magnitude_vector)(\.weight)?"
)
CHANGES_ITS_BASE = ("pissa", "olora", "corda", "loftq", "lora_ga", "kasa")
"""Initialisations of an adapter that also change the base, which then differs from the one on
disk."""
NOT_ADDED = (
    "lora_bias", "target_parameters", "layer_replication", "use_qalora", "use_bdlora",
    "alora_invocation_tokens", "trainable_token_indices", "arrow_config", "kasa_config",
    "monteclora_config",
)  # fmt: skip
"""Settings under which an adapter is more than a product added to a weight."""
MERGE_THERE = "merge it with peft's merge_and_unload and pass the merged folder."


@dataclass(frozen=True, slots=True)
class LoraAdapter:
    """A LoRA adapter for a given base.

    Attributes:
        folder: its folder.
        config: content of adapter_config.json.
        file: file of its tensors.
        pieces: for a tensor of the base, the tensors of the adapter by kind.
        replaced: for a tensor of the base, the tensor of the adapter that replaces it.
    """

    folder: Path
    config: dict[str, Any]
    file: TensorFile
    pieces: dict[str, dict[str, str]] = field(default_factory=dict)
    replaced: dict[str, str] = field(default_factory=dict)

    @classmethod
    def open(cls, folder: Path, config: dict[str, Any], base: dict[str, TensorInfo]) -> LoraAdapter:
        """Open an adapter, and check that it can be added to this base.

        Raises:
            ModelError: it is not a LoRA adapter, or not one for this base.
        """
        _check_kind(folder, config)
        path = folder / "adapter_model.safetensors"
        if not path.is_file():
            raise MissingInputError(
                "The adapter has no adapter_model.safetensors.",
                file=str(folder),
                hint="save it with peft's save_pretrained.",
            )
        adapter = cls(folder, config, TensorFile.open(path))
        for name in adapter.file.tensors:
            adapter._place(name, base)
        for target in adapter.pieces:
            adapter._check(target, base[target])
        return adapter

    @property
    def replacements(self) -> dict[str, TensorInfo]:
        """Shape and dtype of the tensors that replace those of the base."""
        return {target: self.file.tensors[name] for target, name in self.replaced.items()}

    def add(self, name: str, weight: torch.Tensor) -> torch.Tensor:
        """Add the adapter to a tensor of the base, rounded once to the dtype of the base."""
        pieces = self.pieces.get(name)
        if pieces is None:
            return weight
        low, high = self._factors(pieces)
        delta = (high @ low).mul_(self._scaling(name, low.shape[0]))
        turned = bool(self.config.get("fan_in_fan_out"))
        across = turned or "lora_embedding_A" in pieces
        summed = weight + delta.T if across else delta.add_(weight)
        if "lora_magnitude_vector" in pieces:
            magnitude = self.file.read(pieces["lora_magnitude_vector"]).float()
            summed = _rescale(summed, magnitude, axis=0 if turned else 1)
        return summed.to(weight.dtype)

    def _factors(self, pieces: dict[str, str]) -> tuple[torch.Tensor, torch.Tensor]:
        kinds = ("lora_A", "lora_B")
        if "lora_embedding_A" in pieces:
            kinds = ("lora_embedding_A", "lora_embedding_B")
        low, high = (self.file.read(pieces[kind]).float() for kind in kinds)
        return low, high

    def _scaling(self, target: str, rank: int) -> float:
        module = target.removesuffix(".weight")
        alpha = _by_pattern(self.config.get("alpha_pattern"), module, self.config["lora_alpha"])
        return float(alpha) / (sqrt(rank) if self.config.get("use_rslora") else rank)

    def _place(self, name: str, base: dict[str, TensorInfo]) -> None:
        """Assign a tensor of the adapter to its tensor of the base."""
        plain = name.removeprefix(PREFIX).replace(".base_layer.", ".")
        piece = PIECE.fullmatch(plain)
        if piece is None:
            new_head = plain == "lm_head.weight" and plain not in base
            self.replaced[plain if new_head else self._target(plain, base)] = name
            return
        target = self._target(piece["module"] + ".weight", base)
        self.pieces.setdefault(target, {})[piece["kind"]] = name

    def _target(self, target: str, base: dict[str, TensorInfo]) -> str:
        if target in base:
            return target
        # Checkpoints of a bare model lack the prefix of the model with a head.
        near = [name for name in base if target.endswith(f".{name}") or name.endswith(f".{target}")]
        if len(near) == 1:
            return near[0]
        tied = " Its output layer is tied to its input." if target == "lm_head.weight" else ""
        raise ModelError(
            f"The adapter {self.folder} changes {target}, which its base does not have.{tied}",
            hint="pass the base model of the adapter; it is named in adapter_config.json.",
        )

    def _check(self, target: str, info: TensorInfo) -> None:
        """Check that the factors are in pairs and fit the tensor."""
        pieces = self.pieces[target]
        kinds = [kind for kind in pieces if kind != "lora_magnitude_vector"]
        shapes = {kind: self.file.tensors[pieces[kind]].shape for kind in sorted(kinds)}
        match list(shapes.values()):
            case [(rank, wide), (high, same)] if rank == same:
                fits = sorted((high, wide)) == sorted(info.shape)
            case _:
                fits = False
        if not fits:
            raise ModelError(
                f"The adapter {self.folder} does not fit {target} of shape {list(info.shape)}: "
                + ", ".join(f"{kind} {list(shape)}" for kind, shape in shapes.items())
                + ".",
                hint="pass the base model of the adapter; it is named in adapter_config.json.",
            )


def _check_kind(folder: Path, config: dict[str, Any]) -> None:
    if config.get("peft_type") != "LORA":
        raise ModelError(
            f"The adapter {folder} has the type {config.get('peft_type')}, not LORA.",
            hint=MERGE_THERE,
        )
    start = str(config.get("init_lora_weights", True)).lower()
    strange = [name for name in NOT_ADDED if config.get(name)]
    if start.startswith(CHANGES_ITS_BASE):
        strange.append(f"init_lora_weights={start}")
    if strange or not isinstance(config.get("lora_alpha"), int | float):
        raise ModelError(
            f"The adapter {folder} uses {', '.join(strange) or 'no lora_alpha'}, which is not "
            "supported.",
            hint=MERGE_THERE,
        )


def _by_pattern(patterns: dict[str, Any] | None, module: str, default: Any) -> Any:
    """Return the value of the first pattern that the name of a module matches or ends with."""
    for pattern, value in (patterns or {}).items():
        if re.fullmatch(rf"(.*\.)?({pattern})", module):
            return value
    return default


def _rescale(weight: torch.Tensor, magnitude: torch.Tensor, axis: int) -> torch.Tensor:
    """Scale every output to its learned length, in place (DoRA)."""
    import torch  # heavy

    lengths: torch.Tensor = torch.linalg.vector_norm(weight, dim=axis, keepdim=True)
    return weight.mul_(magnitude.reshape(lengths.shape) / lengths)
