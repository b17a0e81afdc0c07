"""Distance between the weights of two models, by tensor, layer and kind of module.

Two tensors are in memory at a time, as they are stored, and their difference in float32; sums are
computed in float64 by blocks. So the peak is that of the largest tensor, whatever the model.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from forgetmap.errors import ModelError

if TYPE_CHECKING:
    import torch

    from forgetmap.merge.checkpoint import Checkpoint

DRIFT_VERSION = 1
BLOCK = 1 << 20
"""Number of values that are summed at a time, in float64."""
KINDS: dict[str, re.Pattern[str]] = {
    "norm": re.compile(r"norm|(^|\.)ln_"),
    "attention": re.compile(r"att(e)?n"),
    "mlp": re.compile(r"mlp|experts|feed_forward|(^|\.)ffn|(^|\.)fc\d"),
    "embedding": re.compile(r"embed|(^|\.)w[tp]e\."),
    "head": re.compile(r"lm_head|score|classifier"),
}
"""Kinds of modules by names of tensors; the first match counts."""
OTHER = "other"


class WeightDistance(BaseModel):
    """Distance of one tensor, or several together. Unknown is null, never 0."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    parameters: int
    relative: float | None = Field(
        description="Norm of the difference divided by the norm of the base; null if the base is 0."
    )
    cosine: float | None = Field(description="Cosine of base and tuned; null if one is 0.")
    difference: float = Field(description="L2 norm of the difference.")
    length: float = Field(description="L2 norm of the base.")


class TensorDrift(WeightDistance):
    """Distance of one tensor."""

    name: str
    shape: list[int]
    layer: int | None
    kind: str
    module: str = Field(description="The name with * for the layer.")
    effective_rank: float | None = Field(
        description="exp of the entropy of the singular values of the difference; null for "
        "vectors and if nothing changed."
    )
    estimated: bool = Field(
        description="Whether the rank is an estimate (within 5%) instead of exact."
    )


class GroupDrift(WeightDistance):
    """Distance of several tensors; ranks are means over its matrices that changed."""

    name: str
    tensors: int
    effective_rank: float | None
    rank_share: float | None = Field(
        description="Mean effective rank divided by the smaller side; 1 for a difference "
        "without preferred direction."
    )


class WeightDrift(BaseModel):
    """The distance in weight space between two checkpoints."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    drift_version: int = DRIFT_VERSION
    base: str
    tuned: str
    total: GroupDrift
    layers: list[GroupDrift] = Field(
        description="Layers in order; tensors outside layers are left out."
    )
    kinds: list[GroupDrift]
    modules: list[GroupDrift]
    tensors: list[TensorDrift] = Field(description="Largest relative change first.")
    unchanged: int = Field(description="Number of tensors that are bit-for-bit identical.")
    only_base: list[str] = Field(description="Tensors that the tuned model does not have.")
    only_tuned: list[str]
    other_shape: list[str] = Field(
        description="Tensors with different shapes, which are not compared."
    )
    notices: list[str]


class _Sums(NamedTuple):
    base: float
    tuned: float
    product: float
    difference: float

    def __add__(self, other: tuple[float, ...]) -> _Sums:  # type: ignore[override]
        return _Sums(*(one + two for one, two in zip(self, other, strict=True)))


OnTensor = Callable[[int, int], None]
"""Called with the number of tensors done, and of all tensors."""


def weight_drift(
    base: str | Path,
    tuned: str | Path,
    *,
    ranks: bool = True,
    on_progress: OnTensor | None = None,
) -> WeightDrift:
    """Measure the weight difference between two models.

    Args:
        base: the model before: a folder with safetensors, a hub id, or `BASE+ADAPTER`.
        tuned: the model after.
        ranks: compute the effective rank of each difference, which takes most of the time.
        on_progress: called after every tensor.

    Raises:
        ModelError: the models have no tensor in common.

    Example:
        >>> import forgetmap as fm
        >>> fm.weight_drift("models/base", "models/tuned").total.relative  # doctest: +SKIP
    """
    from forgetmap.merge.checkpoint import Checkpoint  # torch

    return drift_between(
        Checkpoint.open(base), Checkpoint.open(tuned), ranks=ranks, on_progress=on_progress
    )


def drift_between(
    base: Checkpoint, tuned: Checkpoint, *, ranks: bool = True, on_progress: OnTensor | None = None
) -> WeightDrift:
    """Measure the same for opened checkpoints."""
    shared = [name for name in base.tensors if name in tuned.tensors]
    alike = [name for name in shared if _shape(base, name) == _shape(tuned, name)]
    if not alike:
        raise ModelError(
            f"{base.name} and {tuned.name} have no tensor with the same name and shape",
            hint="pass two checkpoints of the same architecture.",
        )
    drifts, sums = [], []
    for index, name in enumerate(alike, start=1):
        drift, parts = _compare(name, base.read(name), tuned.read(name), ranks=ranks)
        drifts.append(drift)
        sums.append(parts)
        if on_progress is not None:
            on_progress(index, len(alike))
    missing = [name for name in base.tensors if name not in tuned.tensors]
    extra = [name for name in tuned.tensors if name not in base.tensors]
    other = [name for name in shared if name not in set(alike)]
    return WeightDrift(
        base=base.name,
        tuned=tuned.name,
        total=_group("all", drifts, sums),
        layers=_groups(drifts, sums, lambda drift: drift.layer, lambda key: f"layer {key}"),
        kinds=_groups(drifts, sums, lambda drift: drift.kind, str),
        modules=_groups(drifts, sums, lambda drift: drift.module, str),
        tensors=sorted(drifts, key=lambda drift: (-(drift.relative or 0.0), drift.name)),
        unchanged=sum(not drift.difference for drift in drifts),
        only_base=missing,
        only_tuned=extra,
        other_shape=other,
        notices=_notices(missing, extra, other),
    )


def layer_number(name: str) -> int | None:
    """Return the first number that is a part of the name of a tensor."""
    return next((int(part) for part in name.split(".") if part.isdecimal()), None)


def kind_of(name: str) -> str:
    """Return the kind of module of a tensor, by its name."""
    return next((kind for kind, pattern in KINDS.items() if pattern.search(name)), OTHER)


def _module_of(name: str) -> str:
    return re.sub(r"(^|\.)\d+(?=\.)", r"\1*", name)


def _shape(checkpoint: Checkpoint, name: str) -> tuple[int, ...]:
    return tuple(checkpoint.tensors[name].shape)


def _compare(
    name: str, base: torch.Tensor, tuned: torch.Tensor, *, ranks: bool
) -> tuple[TensorDrift, _Sums]:
    from forgetmap.merge.spectrum import effective_rank  # torch

    sums = _sums(name, base, tuned)
    rank = None
    if ranks and sums.difference and base.dim() > 1:
        rank = effective_rank(tuned.float() - base.float())
    drift = TensorDrift(
        name=name,
        shape=list(base.shape),
        layer=layer_number(name),
        kind=kind_of(name),
        module=_module_of(name),
        parameters=base.numel(),
        effective_rank=None if rank is None else rank.value,
        estimated=rank is not None and rank.estimated,
        **_distances(sums),
    )
    return drift, sums


def _sums(name: str, base: torch.Tensor, tuned: torch.Tensor) -> _Sums:
    """Return sums of squares and products."""
    total = _Sums(0.0, 0.0, 0.0, 0.0)
    for start in range(0, base.numel(), BLOCK):
        first, second = (drift.reshape(-1)[start : start + BLOCK] for drift in (base, tuned))
        one, two = first.double(), second.double()
        apart = two - one
        total += (float(one @ one), float(two @ two), float(one @ two), float(apart @ apart))
    if not all(map(math.isfinite, total)):
        raise ModelError(
            f"the tensor {name} contains NaN or infinite weights",
            hint="use another checkpoint; this one is broken.",
        )
    return total


def _distances(sums: _Sums) -> dict[str, Any]:
    lengths = math.sqrt(sums.base) * math.sqrt(sums.tuned)
    return {
        "relative": math.sqrt(sums.difference / sums.base) if sums.base else None,
        "cosine": max(-1.0, min(1.0, sums.product / lengths)) if lengths else None,
        "difference": math.sqrt(sums.difference),
        "length": math.sqrt(sums.base),
    }


def _groups(
    drifts: Sequence[TensorDrift],
    sums: Sequence[_Sums],
    key: Callable[[TensorDrift], int | str | None],
    label: Callable[[int | str], str],
) -> list[GroupDrift]:
    indices: dict[int | str, list[int]] = {}
    for index, drift in enumerate(drifts):
        group = key(drift)
        if group is not None:
            indices.setdefault(group, []).append(index)
    order = sorted(indices) if all(isinstance(one, int) for one in indices) else list(indices)
    return [
        _group(label(one), [drifts[n] for n in indices[one]], [sums[n] for n in indices[one]])
        for one in order
    ]


def _group(name: str, drifts: Sequence[TensorDrift], sums: Iterable[_Sums]) -> GroupDrift:
    total = _Sums(0.0, 0.0, 0.0, 0.0)
    for drift in sums:
        total += drift
    ranked = [(drift.effective_rank, _smaller_side(drift)) for drift in drifts]
    known = [(rank, side) for rank, side in ranked if rank is not None]
    return GroupDrift(
        name=name,
        tensors=len(drifts),
        parameters=sum(drift.parameters for drift in drifts),
        effective_rank=sum(rank for rank, _ in known) / len(known) if known else None,
        rank_share=sum(rank / side for rank, side in known) / len(known) if known else None,
        **_distances(total),
    )


def _smaller_side(drift: TensorDrift) -> int:
    return min(drift.shape[0], math.prod(drift.shape[1:])) if drift.shape else 1


def _notices(missing: Sequence[str], extra: Sequence[str], other: Sequence[str]) -> list[str]:
    sentences = {
        "only the base has": missing,
        "only the tuned model has": extra,
        "not compared because of different shapes:": other,
    }
    return [
        f"{words} {', '.join(names[:3])}{f' and {len(names) - 3:,} more' if len(names) > 3 else ''}"
        for words, names in sentences.items()
        if names
    ]
