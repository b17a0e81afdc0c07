"""Capability drift of each pair of a study, as one number per pair."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from forgetmap.capabilities import SUITE_OF_TAXONOMY, DriftResult, drift_pairs
from forgetmap.errors import ForgetmapError
from forgetmap.results import Notice
from forgetmap.study.declaration import Study, StudyModel, StudyPair
from forgetmap.study.pair_table import TOTAL, StudyTable, lineage, pair_facts

NO_ITEMS = (
    "drift: the intervals do not allow for items that all pairs share; differences hardly need it."
)
_ASKED_BY_SUITE = ("capabilities", "captrack")
"""Suites with capabilities, for studies without a taxonomy; for others, forgetting is enough."""
Places = tuple[str, str]
"""Ids of the model before and of the model after."""


@dataclass(frozen=True, slots=True)
class DriftChain:
    """Three models in a row of trainings.

    Attributes:
        first: id of the model before all training.
        between: id of the model after the first training.
        last: id of the model after the second one.
        step: name of the second training, for readers.
        before: name of the first training, for readers.
        lineage: first ancestor.
        change: drift of the last model minus that of the middle one.
    """

    first: str
    between: str
    last: str
    step: str
    before: str
    lineage: str
    change: float


@dataclass(frozen=True, slots=True)
class StudyDrift:
    """Drift of all pairs.

    Attributes:
        table: drift of the measured pairs.
        chains: models that were trained twice.
        capabilities: ids of the capabilities that all pairs have; only these count.
        notices: notices for readers.
    """

    table: StudyTable
    chains: tuple[DriftChain, ...]
    capabilities: tuple[str, ...]
    notices: tuple[Notice, ...]


def taxonomy_of(study: Study) -> str | None:
    """Return the taxonomy for drift; None if the suite has no capabilities."""
    if study.taxonomy is not None:
        path = study.folder / study.taxonomy
        return str(path) if path.is_file() else study.taxonomy
    names = {suite: name for name, suite in SUITE_OF_TAXONOMY.items() if suite in _ASKED_BY_SUITE}
    return names.get(study.suite or "")


def measure_drift(
    study: Study, pairs: Sequence[StudyPair], runs: Mapping[str, Sequence[Any]]
) -> StudyDrift | Notice:
    """Return the drift of every pair, or the reason why there is none.

    Args:
        study: the study with a taxonomy, or with a suite of capabilities.
        pairs: pairs whose models have runs.
        runs: model -> its runs; of several, the first with results counts.
    """
    taxonomy = taxonomy_of(study)
    single = [pair for pair in pairs if len(runs[pair.before]) == len(runs[pair.after]) == 1]
    routes = _routes(study, single)
    keys = list(dict.fromkeys([*((pair.before, pair.after) for pair in single), *routes]))
    if taxonomy is None or not keys:
        return Notice("no_drift", "drift: no pair has a run of both models.")
    inputs = [tuple((name, runs[name][0]) for name in pair) for pair in keys]
    try:
        result = drift_pairs(inputs, taxonomy=taxonomy)  # type: ignore[arg-type]
    except ForgetmapError as error:
        return Notice("no_drift", f"drift was not measured: {error.message}.")
    sizes = _sizes(keys, result)
    if sizes is None:
        return Notice(
            "no_drift",
            "drift was not measured: no capability has intervals for all pairs.",
        )
    return _study_drift(study, single, routes, sizes, result)


def _study_drift(
    study: Study,
    pairs: Sequence[StudyPair],
    routes: Mapping[Places, tuple[str, str, str]],
    sizes: Mapping[Places, float],
    result: DriftResult,
) -> StudyDrift:
    nothing = np.full((len(pairs), 1), np.nan)
    drift = np.asarray([[sizes[pair.before, pair.after]] for pair in pairs])
    table = StudyTable(pair_facts(study, pairs), (TOTAL,), nothing, nothing, drift=drift)
    chains = [_chain(study, route, sizes) for route in routes.values()]
    assert result.ranking is not None  # noqa: S101  # sizes come from it
    return StudyDrift(
        table, tuple(chains), result.ranking.capabilities, (Notice("no_drift_items", NO_ITEMS),)
    )


def _sizes(pairs: Sequence[Places], result: DriftResult) -> dict[Places, float] | None:
    """Return the drift by pair; the columns of the result are in the order of the pairs."""
    if result.ranking is None:
        return None
    by_name = {entry.model: entry.size for entry in result.ranking.models}
    return {pair: by_name[name] for pair, name in zip(pairs, result.models, strict=True)}


def _routes(study: Study, pairs: Sequence[StudyPair]) -> dict[Places, tuple[str, str, str]]:
    """Return the three models of every two successive pairs, by first and last model."""
    steps = {pair.after: pair.before for pair in pairs}
    routes = {}
    for pair in pairs:
        first = study.model(pair.before).parent
        if first is not None and steps.get(pair.before) is not None:
            routes[first, pair.after] = first, pair.before, pair.after
    return {
        ends: route for ends, route in routes.items() if study.model(route[2]).parent == route[1]
    }


def _chain(study: Study, route: tuple[str, str, str], sizes: Mapping[Places, float]) -> DriftChain:
    first, between, last = route
    earlier, later = (_training(study.model(name)) for name in (between, last))
    return DriftChain(
        first=first,
        between=between,
        last=last,
        step=later.removeprefix(f"{earlier}+"),
        before=earlier,
        lineage=lineage(study, first),
        change=sizes[first, last] - sizes[first, between],
    )


def _training(model: StudyModel) -> str:
    """Return the training of a model in a word."""
    return model.method or model.stage or "training"
