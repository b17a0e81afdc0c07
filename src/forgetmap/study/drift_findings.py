"""Findings on the drift of all pairs: algorithms, domains, families, sizes, recovery."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from itertools import combinations

import numpy as np

from forgetmap.stats import Contrast, clustered_contrast
from forgetmap.study.declaration import LEVEL
from forgetmap.study.drift import DriftChain, StudyDrift
from forgetmap.study.effects import as_estimate, difference, size_trend
from forgetmap.study.findings import assumed_facts, named, sign_answer
from forgetmap.study.pair_table import Flags, PairFacts, StudyTable
from forgetmap.study.result import Answer, NamedEstimate, StudyFinding
from forgetmap.study.words import effect_size, interval
from forgetmap.text import counted

Labels = Callable[[PairFacts], Hashable]
"""Returns the label by which a pair is compared; None without such a fact."""
_MANY = "{} comparisons: each interval has the level {:.4g} %, so that all hold together at {:g} %."
_APART = "no two of these pairs have the same model before, so the models differ as well."


def find_drift_effects(drift: StudyDrift, level: float = LEVEL) -> list[StudyFinding]:
    """Return all findings on the drift of the pairs of a study."""
    table = drift.table
    size = larger_drift_less(table, level)
    return [
        *methods_differ(table, level),
        *domains_differ(table, level),
        *families_differ(table, level),
        *([size] if size is not None else []),
        *recovers(drift.chains, level),
    ]


def methods_differ(table: StudyTable, level: float = LEVEL) -> Iterator[StudyFinding]:
    """Test whether one training method drifts more than another, from the same models."""
    yield from _each_two(
        table, "method", lambda fact: fact.method, level,
        claim="{} drifts more than {}.",
        within=(
            lambda fact: (fact.before, fact.domain_names),
            lambda fact: fact.before,
            lambda fact: fact.stage,
        ),
    )  # fmt: skip


def domains_differ(table: StudyTable, level: float = LEVEL) -> Iterator[StudyFinding]:
    """Test whether training on some domains drifts more than on others, from the same models."""
    yield from _each_two(
        table, "domains", lambda fact: " + ".join(sorted(fact.domain_names)) or None, level,
        claim="Training on {} drifts more than on {}.",
        within=(
            lambda fact: (fact.before, fact.method),
            lambda fact: fact.before,
            lambda fact: fact.stage,
        ),
    )  # fmt: skip


def families_differ(table: StudyTable, level: float = LEVEL) -> Iterator[StudyFinding]:
    """Test whether one family drifts more than another with the same training."""
    yield from _each_two(
        table, "family", lambda fact: fact.family, level,
        claim="{} drifts more than {}.",
        within=(
            lambda fact: (fact.stage, fact.method, fact.domain_names),
            lambda fact: fact.stage,
        ),
    )  # fmt: skip


def larger_drift_less(table: StudyTable, level: float = LEVEL) -> StudyFinding | None:
    """Test whether drift falls with size, within series of similar models."""
    trend = size_trend(table, "drift", level=level)
    if trend is None:
        return None
    contrast, rows = trend
    return StudyFinding(
        id="drift-size",
        claim="Larger models drift less.",
        answer=sign_answer(contrast, below=True),
        sentence=f"Per doubling of size the drift changes by {interval(contrast, effect_size)}; "
        f"{counted(int(rows.sum()), 'pair')}.",
        evidence=[named("change of drift per doubling of size", contrast, table, rows)],
        confounds=[],
    )


def recovers(chains: Sequence[DriftChain], level: float = LEVEL) -> Iterator[StudyFinding]:
    """Test whether a second training moves a model back towards the start of the first one."""
    kinds = list(dict.fromkeys((chain.before, chain.step) for chain in chains))
    own = _own_level(level, len(kinds))
    for before, step in kinds:
        here = [chain for chain in chains if (chain.before, chain.step) == (before, step)]
        contrast = clustered_contrast(
            [chain.change for chain in here],
            np.ones((len(here), 1)),
            [1.0],
            [chain.lineage for chain in here],
            level=own,
        )
        yield StudyFinding(
            id=f"drift-recovery:{step} after {before}",
            claim=f"{step} after {before} reverses part of the drift.",
            answer=sign_answer(contrast, below=True),
            sentence="The second training changes the drift from the first model by "
            f"{interval(contrast, effect_size)}; {counted(len(here), 'model')}.",
            evidence=[
                NamedEstimate(
                    name="change of drift by the second training",
                    estimate=as_estimate(contrast),
                    pairs=len(here),
                    lineages=len({chain.lineage for chain in here}),
                )
            ],
            confounds=_many(level, len(kinds)),
        )


def _each_two(
    table: StudyTable,
    fact: str,
    label_of: Labels,
    level: float,
    *,
    claim: str,
    within: Sequence[Labels],
) -> Iterator[StudyFinding]:
    """Return a finding for each two comparable labels."""
    labels = [label_of(one) for one in table.facts]
    names = [name for name in dict.fromkeys(labels) if name is not None]
    comparisons = []
    for first, second in combinations(names, 2):
        rows = tuple(np.asarray([label == name for label in labels]) for name in (first, second))
        gap = _difference(table, (rows[0], rows[1]), within, level)
        if gap is not None:
            comparisons.append((str(first), str(second), rows))
    own = _own_level(level, len(comparisons))
    for first, second, rows in comparisons:
        gap = _difference(table, (rows[0], rows[1]), within, own)
        assert gap is not None  # noqa: S101  # it was not None at another level
        contrast, taken, has_same = gap
        both = taken[0] | taken[1]
        yield StudyFinding(
            id=f"drift-{fact}:{first} against {second}",
            claim=claim.format(first, second),
            answer=sign_answer(contrast, below=False),
            sentence=_sentence(contrast, taken),
            evidence=[named("difference of mean drift", contrast, table, both)],
            confounds=[
                *([] if has_same else [_APART]),
                *assumed_facts(table, both, fact),
                *_many(level, len(comparisons)),
            ],
        )


def _sentence(contrast: Contrast, rows: tuple[Flags, Flags]) -> str:
    answer: Answer = sign_answer(contrast, below=False)
    ending = " It is unclear whether it is more or less." if answer == "cannot tell" else ""
    first, second = (int(side.sum()) for side in rows)
    return (
        f"Mean drift differs by {interval(contrast, effect_size)}; {counted(first, 'pair')} "
        f"against {second}.{ending}"
    )


def _difference(
    table: StudyTable, rows: tuple[Flags, Flags], within: Sequence[Labels], level: float
) -> tuple[Contrast, tuple[Flags, Flags], bool] | None:
    """Return the difference within the most similar pairs, and whether both sides share a start."""
    for label_of in within:
        labels = [label_of(fact) for fact in table.facts]
        result = difference(table, "drift", rows, within=labels, level=level)
        if result is not None:
            contrast, taken = result
            starts = [
                {fact.before for fact, is_in in zip(table.facts, side, strict=True) if is_in}
                for side in taken
            ]
            return contrast, taken, bool(starts[0] & starts[1])
    return None


def _own_level(level: float, count: int) -> float:
    """Return the level of each of several simultaneous intervals (Bonferroni)."""
    return 1 - (1 - level) / max(count, 1)


def _many(level: float, count: int) -> list[str]:
    if count < 2:
        return []
    return [_MANY.format(count, 100 * _own_level(level, count), 100 * level)]
