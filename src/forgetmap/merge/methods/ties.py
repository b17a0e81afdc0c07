"""Trim, elect sign, merge."""

from __future__ import annotations

from forgetmap.merge.method import ManyValues, PerModel, SharePerModel, merge_method
from forgetmap.merge.methods.changes import Change, Thin, merged_changes
from forgetmap.merge.methods.selection import kept, largest
from forgetmap.merge.stretches import Step, Values


@merge_method(
    "ties",
    says="the largest changes of each model, where the models agree on the sign",
    paper="Yadav et al. 2023, TIES-Merging, arXiv:2306.01708",
)
def ties(
    tensors: ManyValues,
    base: Values,
    *,
    weight: PerModel,
    density: SharePerModel = (1.0,),
    normalize: bool = True,
    lambda_: float = 1.0,
) -> Step:
    """Keep the share `density` of each change, the largest; then the mean of what agrees in sign.

    The sign of a position is that of the weighted sum; `normalize` off gives the sum.
    """

    def trimmed(place: int, change: Change) -> Thin:
        stay = largest(change, kept(len(change), density[place]))
        return lambda part, stretch: part.mul_(stay.mask(part, stretch.start))

    return merged_changes(
        tensors, base, weight=weight, normalize=normalize, scale=lambda_, thin=trimmed, elect=True
    )
