"""Weighted means of whole models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from forgetmap._lazy import LazyModule
from forgetmap.errors import UsageError
from forgetmap.merge.method import One, PerModel, Share, Tensors, merge_method

if TYPE_CHECKING:
    import torch
else:
    torch = LazyModule("torch")


@merge_method(
    "linear",
    summary="weighted mean of the models",
    direction="Each `weight` is the share of its model, divided by the sum of all.",
    paper="Wortsman et al. 2022, Model soups, arXiv:2203.05482",
    elementwise=True,
)
def linear(tensors: Tensors, *, weight: PerModel, normalize: bool = True) -> torch.Tensor:
    """Sum `weight` times tensor, divided by the sum of the weights if `normalize` is set."""
    return weighted_sum(tensors, shares(weight) if normalize else weight)


@merge_method(
    "ema",
    summary="exponential moving average of checkpoints in the order they are listed",
    direction="The mean keeps `decay` of itself at every step.",
    paper="Polyak and Juditsky 1992; Morales-Brotons et al. 2024, arXiv:2411.18704",
    ordered=True,
    elementwise=True,
)
def ema(tensors: Tensors, *, decay: Share) -> torch.Tensor:
    """Start at the first, then keep `decay` of the mean and take the rest from the next."""
    weights = [1.0]
    for _ in tensors[1:]:
        weights = [decay * weight for weight in weights] + [1.0 - decay]
    return weighted_sum(tensors, weights)


@merge_method(
    "wise_ft",
    summary="a point on the straight path from the base to one tuned model",
    direction="At `alpha` 0 the result is the base bit for bit, at 1 the tuned model.",
    paper="Wortsman et al. 2021, Robust fine-tuning of zero-shot models, arXiv:2109.01903",
    elementwise=True,
)
def wise_ft(tensors: One, base: torch.Tensor, *, alpha: Share) -> torch.Tensor:
    """Return the base at `alpha` 0, the tuned model at 1; equal values stay unchanged."""
    return along(base, tensors[0], alpha)


@merge_method(
    "passthrough",
    summary="one model unchanged, or layers of several models given by slices",
    direction="With BASE+ADAPTER as the model, the adapter is merged into its base.",
    elementwise=True,
)
def passthrough(tensors: One, *, scale: PerModel = (1.0,)) -> torch.Tensor:
    """Return the tensor itself, times `scale`."""
    return weighted_sum(tensors, scale)


def along(start: torch.Tensor, stop: torch.Tensor, share: float) -> torch.Tensor:
    """Return a point on the straight line between two tensors."""
    if share in {0.0, 1.0}:
        # Adding 0 times the distance turns -0 into 0, and does not keep every tensor bit for bit.
        return stop if share else start
    return torch.lerp(start, stop, share)


def shares(weights: Sequence[float]) -> list[float]:
    """Divide the weights by their sum."""
    total = sum(weights)
    if total == 0:
        raise UsageError(
            f"the weights {', '.join(map(str, weights))} add up to 0 and cannot be normalised",
            hint="change a weight, or set normalize to false.",
        )
    return [weight / total for weight in weights]


def weighted_sum(tensors: Tensors, weights: Sequence[float]) -> torch.Tensor:
    """Sum weight times tensor.

    A weight of 0 is left out: 0 times infinity is not 0. A single weight of 1 is neither multiplied
    nor added, so that the tensor is unchanged bit for bit.
    """
    used = [(tensor, weight) for tensor, weight in zip(tensors, weights, strict=True) if weight]
    if not used:
        return torch.zeros_like(tensors[0])
    (first, weight), *others = used
    if weight == 1 and not others:
        return first
    total = first * weight
    for tensor, weight in others:
        total.add_(tensor, alpha=weight)
    return total
