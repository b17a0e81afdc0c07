"""Tensors with a row per token, where models have different numbers of tokens.

Rows are matched by their number: a token has to have the same id in all models that have it.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from forgetmap.errors import ModelError
from forgetmap.merge.layers import has_a_row_per_token
from forgetmap.merge.recipe_model import Vocabulary
from forgetmap.merge.tensor_file import TensorInfo


def merged_shape(
    name: str,
    models: Sequence[str],
    infos: Sequence[TensorInfo],
    leader: int,
    policy: Vocabulary,
) -> tuple[int, ...]:
    """The shape of the result.

    Args:
        name: of the tensor.
        models: that have it.
        infos: its shape in each.
        leader: the place of the model that counts as base.
        policy: what to do where only the number of tokens differs.

    Raises:
        ModelError: the shapes differ in another way, or the policy is to complain.
    """
    shapes = [info.shape for info in infos]
    if len(set(shapes)) == 1:
        return shapes[0]
    said = ", ".join(
        f"{list(shape)} in '{model}'" for model, shape in zip(models, shapes, strict=True)
    )
    if not has_a_row_per_token(name) or len({shape[1:] for shape in shapes}) > 1:
        raise ModelError(
            f"The tensor '{name}' has different shapes: {said}",
            hint="merge models of one architecture and size.",
        )
    rows = [shape[0] for shape in shapes]
    wanted = {"smallest": min(rows), "base": rows[leader], "union": max(rows)}.get(policy)
    if wanted is None:
        raise ModelError(
            f"The models have different vocabularies; '{name}' has the shapes {said}",
            hint="if tokens have the same id in all models, set vocabulary in the recipe to "
            "smallest, base or union.",
        )
    return (wanted, *shapes[0][1:])


def fit_rows(
    tensors: Sequence[torch.Tensor], shape: tuple[int, ...], leader: int
) -> list[torch.Tensor]:
    """Tensors of this shape: rows that are too many are cut off, rows that lack are borrowed.

    They come from the base, as if the model had never moved there; from the first model that has
    them where the base has none.
    """
    if len({tensor.shape for tensor in tensors}) == 1:  # also equal pieces of all
        return list(tensors)
    rows = shape[0]
    lenders = [tensors[leader], *tensors]
    lender = next(each for each in lenders if each.shape[0] >= rows)
    return [torch.cat([each[:rows], lender[each.shape[0] : rows]]) for each in tensors]
