"""Guaranteed retained behaviour of a model, from the total variation distance.

A behaviour of probability b before keeps at least b - TV. The mean of a divergence has no valid
bound from n prompts, because a single prompt that was not drawn may change it by any amount; total
variation is in [0, 1], so its mean has a bound for any population of prompts.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from forgetmap.overlap.result import Certificate, Scope
from forgetmap.overlap.samples import SIDES, Floats, SampleTable
from forgetmap.stats import betting_upper_limit
from forgetmap.theory import RATIO_LIMIT, total_variation_terms

METHOD = "betting"
VACUOUS = 0.01
"""A floor below this part of the probability of a behaviour guarantees nothing."""


def certify(
    table: SampleTable, behaviours: Sequence[float], level: float, scope: Scope
) -> Certificate:
    """Certify all prompts of a table together."""
    strata = _strata(table)
    draws = (
        np.array([np.mean([terms.mean() for terms in prompt]) for prompt in strata])
        if scope == "prompts like these"
        else _blocks([terms for prompt in strata for terms in prompt])
    )
    limit = _limits([draws], level)[0]
    return _certificate(limit, draws.size, int(table.tokens.max()), behaviours, level)


def certify_prompts(
    table: SampleTable, behaviours: Sequence[float], level: float
) -> list[Certificate]:
    """Certify each prompt by itself, from its completions."""
    longest = np.zeros(len(table.prompts), int)
    np.maximum.at(longest, table.prompt_index, table.tokens)
    blocks = [_blocks(terms) for terms in _strata(table)]
    limits = _limits(blocks, level)
    return [
        _certificate(limits[index], draws.size, int(longest[index]), behaviours, level)
        for index, draws in enumerate(blocks)
    ]


def _limits(blocks: Sequence[Floats], level: float) -> Floats:
    """Return the bound of each block; blocks of equal size are computed together."""
    sizes = np.array([draws.size for draws in blocks])
    limits = np.empty(len(blocks))
    for size in np.unique(sizes):
        rows = np.flatnonzero(sizes == size)
        limits[rows] = betting_upper_limit(np.array([blocks[int(row)] for row in rows]), 1 - level)
    return limits


def _strata(table: SampleTable) -> list[list[Floats]]:
    """Return for each prompt the terms of the completions of each model, with mean TV.

    If both models have completions, each side contributes half; otherwise the terms are the
    probability that the other model lacks.
    """
    both = total_variation_terms(table.ratio)
    sign = np.where(table.wrote_before, -1.0, 1.0)
    other_over_writer = np.exp(np.clip(sign * table.ratio, -RATIO_LIMIT, RATIO_LIMIT))
    alone = np.clip(1 - other_over_writer, 0.0, 1.0)
    strata = []
    for rows_by_side in zip(*map(table.rows_of, SIDES), strict=True):
        sides = [rows for rows in rows_by_side if rows.size]
        terms = both if len(sides) == len(SIDES) else alone
        strata.append([terms[rows] for rows in sides])
    return strata


def _blocks(strata: Sequence[Floats]) -> Floats:
    """Return as many independent draws as the smallest stratum has, each a mean over strata."""
    size = min(terms.size for terms in strata)
    parts = [[block.mean() for block in np.array_split(terms, size)] for terms in strata]
    means: Floats = np.mean(parts, axis=0)
    return means


def floor_or_none(mass: float, floor: float) -> float | None:
    """Return the floor of the probability of a behaviour; None if it guarantees almost nothing."""
    return floor if floor >= VACUOUS * mass else None


def _certificate(
    limit: float, draws: int, tokens: int, behaviours: Sequence[float], level: float
) -> Certificate:
    kept = {f"{mass:g}": floor_or_none(mass, mass - limit) for mass in behaviours}
    return Certificate(
        total_variation_limit=limit,
        kept=kept,
        reason=f"Up to {limit:.3g} of the probability of a behaviour may be lost."
        if None in kept.values()
        else None,
        tokens=tokens or None,
        draws=draws,
        method=f"{METHOD}, {level:g} one-sided",
    )
