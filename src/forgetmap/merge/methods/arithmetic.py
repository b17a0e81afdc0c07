"""Adding up changes."""

from __future__ import annotations

from forgetmap.merge.method import ManyValues, PerModel, merge_method
from forgetmap.merge.methods.changes import merged_changes
from forgetmap.merge.stretches import Step, Values


@merge_method(
    "task_arithmetic",
    says="the base plus the weighted changes of the models",
    paper="Ilharco et al. 2022, Editing models with task arithmetic, arXiv:2212.04089",
    elementwise=True,
)
def task_arithmetic(
    tensors: ManyValues,
    base: Values,
    *,
    weight: PerModel,
    normalize: bool = False,
    lambda_: float = 1.0,
) -> Step:
    """The base + lambda * sum of weight * (tensor - base); negative weights unlearn."""
    return merged_changes(tensors, base, weight=weight, normalize=normalize, scale=lambda_)
