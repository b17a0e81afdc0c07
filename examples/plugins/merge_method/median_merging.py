"""A merge method of your own: the median of the models."""

import torch

from forgetmap.merge import PerModel, Tensors, merge_method


@merge_method("median", summary="the median of the models, value by value", min_models=3)
def median(tensors: Tensors, *, shift: PerModel = (0.0,)) -> torch.Tensor:
    """Of the models' values, each model shifted first."""
    shifted = [tensor + amount for tensor, amount in zip(tensors, shift, strict=True)]
    return torch.stack(shifted).median(dim=0).values
