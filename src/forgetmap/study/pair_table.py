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
"""Stands for all categories together."""
Effect = Literal["forgetting", "backward_transfer", "drift"]
"""What is measured of a pair."""
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class PairFacts:
    """What is known about a pair beside its values.

    Attributes:
        before: id of the model before.
        after: id of the model after.
        label: for people.
        group: pairs shown together.
        stage: of the model after, without its scale of data.
        lineage: the first ancestor of the model before; pairs of one lineage are one cluster.
        series: models made alike at several sizes.
        size: of the model after, in billions of parameters.
        data: its scale.
        domains: how many it was trained on; 0 if nobody says.
        changed_style: whether the two models are asked in different styles.
        family: of the model after.
        method: how it was trained.
        domain_names: what it was trained on.
        assumed: facts that nobody has checked.
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
        facts: of each pair.
        categories: the total first.
        forgetting: shares of all items (pair, category); NaN where there is none.
        backward_transfer: the same.
        covariance: of pairs over items, by effect and category, where items are known.
        drift: size of the drift of capabilities (pair, category), where it was measured.
    """

    facts: tuple[PairFacts, ...]
    categories: tuple[str, ...]
    forgetting: Reals
    backward_transfer: Reals
    covariance: dict[tuple[Effect, str], Reals] = field(default_factory=dict)
    drift: Reals | None = None

    def values(self, effect: Effect, category: str = TOTAL) -> Reals:
        """Of every pair."""
        values: Reals = getattr(self, effect)[:, self.categories.index(category)]
        return values

    def rows(self, **wanted: object) -> Flags:
        """The pairs whose facts have these values."""
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
    """What a study says about its pairs."""
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
    """The first ancestor of a model."""
    parent = study.model(name).parent
    return name if parent is None else lineage(study, parent)
