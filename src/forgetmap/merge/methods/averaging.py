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
    """Sum of `weight` times tensor, divided by the sum of the weights unless told not to."""
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
    """Starts at the first, then keeps `decay` of the mean and takes the rest of the next."""
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
    """At `alpha` 0 the base, at 1 the tuned model; what both share stays as it is."""
    return along(base, tensors[0], alpha)


@merge_method(
    "passthrough",
    summary="one model unchanged, or layers of several models given by slices",
    direction="With BASE+ADAPTER as the model, the adapter is merged into its base.",
    elementwise=True,
)
def passthrough(tensors: One, *, scale: PerModel = (1.0,)) -> torch.Tensor:
    """The tensor itself, times `scale`."""
    return weighted_sum(tensors, scale)


def along(start: torch.Tensor, stop: torch.Tensor, share: float) -> torch.Tensor:
    """A point on the straight line between two tensors."""
    if share in {0.0, 1.0}:
        # Adding 0 times the distance makes 0 of -0, and not all of a tensor bit for bit.
        return stop if share else start
    return torch.lerp(start, stop, share)


def shares(weights: Sequence[float]) -> list[float]:
    """The weights divided by their sum."""
    total = sum(weights)
    if total == 0:
        raise UsageError(
            f"the weights {', '.join(map(str, weights))} add up to 0 and cannot be normalised",
            hint="change a weight, or set normalize to false.",
        )
    return [weight / total for weight in weights]


def weighted_sum(tensors: Tensors, weights: Sequence[float]) -> torch.Tensor:
    """Sum of weight times tensor.

    A weight of 0 is left out: 0 times infinity is not 0. A weight of 1 that is alone is not
    multiplied, nor is anything added to it, so that the tensor comes out bit for bit.
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
