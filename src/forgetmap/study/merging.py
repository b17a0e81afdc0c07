"""Effect of merging on forgetting, compared with the later of the two models."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from forgetmap.stats import Reals, clustered_contrast
from forgetmap.study.declaration import LEVEL
from forgetmap.study.effects import as_estimate, possible
from forgetmap.study.result import Answer, NamedEstimate, StudyFinding
from forgetmap.study.words import interval, signed_points
from forgetmap.text import counted


@dataclass(frozen=True, slots=True)
class MergeChanges:
    """How much more of the earlier model merges forget than the later model does.

    Attributes:
        labels: labels of the merges.
        lineages: first ancestor of each merge; merges with the same one form a cluster.
        changes: forgetting of the merge minus that of the later model, as shares of all items.
        errors: standard error of each, for exactly these models.
        reach: half width of an interval in standard errors.
    """

    labels: tuple[str, ...]
    lineages: tuple[str, ...]
    changes: Reals
    errors: Reals
    reach: float

    @property
    def surely_less(self) -> int:
        """Number of merges that forget significantly less than the later model."""
        return int((self.changes + self.reach * self.errors < 0).sum())

    @property
    def surely_more(self) -> int:
        """Number of merges that forget significantly more than the later model."""
        return int((self.changes - self.reach * self.errors > 0).sum())


def merging_reduces(merges: MergeChanges, level: float = LEVEL) -> StudyFinding:
    """Test whether every merge forgets less, without an exception."""
    count = len(merges.labels)
    ones = np.ones((count, 1))
    contrast = possible(
        clustered_contrast(merges.changes, ones, [1.0], merges.lineages, level=level)
    )
    less, more = merges.surely_less, merges.surely_more
    answer: Answer = "no" if more else "yes" if less == count else "cannot tell"
    number = len(set(merges.lineages))
    confounds = [f"all merges belong to {counted(number, 'lineage')}."] if number < count else []
    return StudyFinding(
        id="merging",
        claim="Merging reliably forgets less than the later model.",
        answer=answer,
        sentence=f"Of {counted(count, 'merge')}, {less} forget significantly less than the later "
        f"model, {more} significantly more; the mean change is "
        f"{interval(contrast, signed_points)}.",
        evidence=[
            NamedEstimate(
                name="mean change of forgetting by merging",
                estimate=as_estimate(contrast),
                pairs=count,
                lineages=number,
            )
        ],
        confounds=confounds,
    )
