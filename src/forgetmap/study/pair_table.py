"""Values of all pairs of a study in one table, with the attributes of each pair."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from forgetmap.stats import Reals
from forgetmap.study.declaration import Study, StudyPair
from forgetmap.study.summary import changes_style

TOTAL = "total"
"""Name of the total over all categories."""
Effect = Literal["forgetting", "backward_transfer", "drift"]
"""Measured effect of a pair."""
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class PairFacts:
    """Facts about a pair besides its values.

    Attributes:
        before: id of the model before.
        after: id of the model after.
        label: label for readers.
        group: group of the pair.
        stage: stage of the model after, without its scale of data.
        lineage: first ancestor of the model before; pairs of one lineage form a cluster.
        series: series of similar models of several sizes.
        size: size of the model after, in billions of parameters.
        data: scale of its training data.
        domains: number of training domains; 0 if unknown.
        changed_style: whether the two models have different prompt styles.
        family: family of the model after.
        method: training method.
        domain_names: training domains.
        assumed: facts that are not verified.
    """

    before: str
    after: str
    label: str
    group: str
    stage: str
    lineage: str
    series: str | None
    size: float | None
    data: str | None
    domains: int
    changed_style: bool
    family: str | None = None
    method: str | None = None
    domain_names: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StudyTable:
    """Forgetting and backward transfer of every pair.

    Attributes:
        facts: facts of each pair.
        categories: categories, the total first.
        forgetting: shares of all items (pair, category); NaN if missing.
        backward_transfer: shares of all items (pair, category); NaN if missing.
        covariance: covariance of pairs over items, by effect and category, if items are known.
        drift: size of capability drift (pair, category), if measured.
    """

    facts: tuple[PairFacts, ...]
    categories: tuple[str, ...]
    forgetting: Reals
    backward_transfer: Reals
    covariance: dict[tuple[Effect, str], Reals] = field(default_factory=dict)
    drift: Reals | None = None

    def values(self, effect: Effect, category: str = TOTAL) -> Reals:
        """Return the value of every pair."""
        values: Reals = getattr(self, effect)[:, self.categories.index(category)]
        return values

    def rows(self, **wanted: object) -> Flags:
        """Return which pairs have these facts."""
        return np.asarray(
            [
                all(getattr(fact, name) == value for name, value in wanted.items())
                for fact in self.facts
            ],
            bool,
        )

    @property
    def groups(self) -> list[str]:
        """Names of groups, in the order of the study."""
        return list(dict.fromkeys(fact.group for fact in self.facts))


def pair_facts(study: Study, pairs: Sequence[StudyPair]) -> tuple[PairFacts, ...]:
    """Return the facts of pairs."""
    return tuple(_facts(study, pair) for pair in pairs)


def _facts(study: Study, pair: StudyPair) -> PairFacts:
    after = study.model(pair.after)
    return PairFacts(
        before=pair.before,
        after=pair.after,
        label=pair.label,
        group=pair.group,
        stage=after.stage or pair.group,
        lineage=lineage(study, pair.before),
        series=after.made_like,
        size=after.billions,
        data=after.data,
        domains=len(after.domains),
        changed_style=changes_style(study, pair),
        family=after.family,
        method=after.method,
        domain_names=after.domains,
        assumed=after.assumed,
    )


def lineage(study: Study, name: str) -> str:
    """Return the first ancestor of a model."""
    parent = study.model(name).parent
    return name if parent is None else lineage(study, parent)
