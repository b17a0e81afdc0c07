"""From completions weighed by both models to overlap, divergence and what is certainly kept."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forgetmap.errors import EmptyInputError, UsageError
from forgetmap.overlap.intervals import Limits, Part, bootstrap, by_cluster
from forgetmap.overlap.result import GroupResult, LengthResult, OverlapResult, PromptResult, Scope
from forgetmap.overlap.samples import SIDES, Floats, Places, Sample, Side, Table, table_of
from forgetmap.overlap.trust import notices_on
from forgetmap.results import Estimate
from forgetmap.theory import (
    RATIO_LIMIT,
    effective_separation,
    effective_size_of_logs,
    kl_terms,
    misassignment_bound,
    misassignment_terms,
    old_mass,
    overlap_terms,
    retention_floor,
    total_variation_terms,
)

FEW_PROMPTS = 5
"""Fewer prompts than this say nothing about others like them."""
ALIKE = 1e-6
"""Nats between two models that give a completion the same probability."""
SMALLEST = 1e-12
"""Information below which two models cannot be told apart."""
ALL = "all"
METHOD = "studentised cluster bootstrap"


@dataclass(frozen=True, slots=True)
class Asked:
    """What is wanted.

    Attributes:
        level: of intervals, and of the upper limit behind a certificate.
        new_share: weight of the model after before a completion is seen, for misassignment.
        behaviours: probabilities, before, of behaviours to be certified.
        seed: of the bootstrap.
    """

    level: float = 0.95
    new_share: float = 0.5
    behaviours: tuple[float, ...] = (0.5, 0.9)
    seed: int = 0

    def __post_init__(self) -> None:
        shares = {"level": self.level, "new_share": self.new_share}
        shares |= {f"behaviour {each:g}": each for each in self.behaviours}
        for name, share in shares.items():
            if not 0 < share < 1:
                raise UsageError(
                    f"{name} is {share:g}", hint="give a number between 0 and 1, both excluded."
                )


QUANTITIES = (
    "overlap", "total_variation", "forward_kl", "reverse_kl", "misassigned_before",
    "misassigned_after",
)  # fmt: skip
BOUNDED = {"overlap", "total_variation", "misassigned_before", "misassigned_after"}
FROM: dict[str, tuple[Side, ...]] = {
    "overlap": ("before", "after"),
    "total_variation": ("before", "after"),
    "forward_kl": ("before",),
    "reverse_kl": ("after",),
    "misassigned_before": ("before",),
    "misassigned_after": ("after",),
}
"""Whose completions each quantity is a mean of."""


def estimate_overlap(
    samples: Iterable[Sample],
    *,
    before: str = "before",
    after: str = "after",
    asked: Asked | None = None,
) -> OverlapResult:
    """Estimate everything from completions that both models weighed.

    Args:
        samples: of both models (or of one: then what needs the other is missing).
        before: what to call the model before.
        after: what to call the model after.
        asked: levels, shares and behaviours.
    """
    known = list(samples)
    table = table_of(known)
    longest = int(table.tokens.max())
    beginnings = [1 << power for power in range(longest.bit_length()) if 1 << power < longest]
    lengths = [(first, table_of(known, first=first)) for first in beginnings]
    return estimate_table(table, before=before, after=after, asked=asked, lengths=lengths)


def estimate_table(
    table: Table,
    *,
    before: str = "before",
    after: str = "after",
    asked: Asked | None = None,
    lengths: Sequence[tuple[int, Table]] = (),
) -> OverlapResult:
    """The same from columns, such as those of `table_of_arrays`."""
    asked = asked or Asked()
    if not table.place.size:
        raise EmptyInputError("There are no samples.", hint="give at least one completion.")
    names = sorted({group for group in table.groups if group is not None})
    chosen = {ALL: table} | {
        name: table.of_prompts(place for place, group in enumerate(table.groups) if group == name)
        for name in names
    }
    groups = [_group(name, part, asked) for name, part in chosen.items()]
    known = ~np.isnan(table.kl)
    return OverlapResult(
        before=before,
        after=after,
        level=asked.level,
        new_share=asked.new_share,
        kl_from="whole distributions"
        if known.all()
        else "both"
        if known.any()
        else "sampled ratios",
        groups=groups,
        prompts=list(_prompts(table, asked)),
        lengths=[_length(tokens, part, asked) for tokens, part in lengths],
        notices=notices_on(table, groups[0]),
    )


def all_terms(table: Table, asked: Asked) -> dict[str, Floats]:
    """Of each quantity, the term of every sample."""
    ratio, known = table.ratio, ~np.isnan(table.kl)
    sign = np.where(table.wrote_before, 1.0, -1.0)
    divergence = np.where(known, table.kl, kl_terms(sign * ratio))
    mistaken = np.where(
        table.wrote_before,
        misassignment_terms(ratio, asked.new_share),
        misassignment_terms(-ratio, 1 - asked.new_share),
    )
    return {
        "overlap": overlap_terms(ratio),
        "total_variation": total_variation_terms(ratio),
        "forward_kl": divergence,
        "reverse_kl": divergence,
        "misassigned_before": mistaken,
        "misassigned_after": mistaken,
    }


def _group(name: str, table: Table, asked: Asked) -> GroupResult:
    terms = all_terms(table, asked)
    scope: Scope = "these prompts" if len(table.prompts) < FEW_PROMPTS else "prompts like these"
    found = {each: _over_prompts(each, table, terms[each], asked, scope) for each in QUANTITIES}
    values: dict[str, Any] = {each: _estimate(each, found[each], 0, asked) for each in QUANTITIES}
    overlap = values["overlap"].value
    sizes = _effective(table)
    counted = table.tokens[table.tokens > 0]
    return GroupResult(
        name=name,
        scope=scope,
        prompts=len(table.prompts),
        samples_before=int(table.wrote_before.sum()),
        samples_after=int((~table.wrote_before).sum()),
        tokens=float(counted.mean()) if counted.size else None,
        cut=float(1 - table.ended.mean()),
        separation=_finite(None if overlap is None else effective_separation(overlap)),
        misassigned_bound=None
        if overlap is None
        else misassignment_bound(overlap, asked.new_share),
        old_mass=_old_mass(table, asked),
        effective_overlap=None if overlap is None else float(terms["overlap"].sum()),
        effective_before=_finite(np.nansum(sizes[0]) if np.isfinite(sizes[0]).any() else None),
        effective_after=_finite(np.nansum(sizes[1]) if np.isfinite(sizes[1]).any() else None),
        **values,
        **_kept(found["forward_kl"], 1, asked)[0],
    )


def _prompts(table: Table, asked: Asked) -> Iterator[PromptResult]:
    """Each prompt by itself; prompts with as many samples are computed together."""
    terms = all_terms(table, asked)
    sizes = _effective(table)
    counts = np.array([[rows.size for rows in table.rows_of(side)] for side in SIDES])
    done: dict[int, dict[str, Any]] = {}
    for pair in np.unique(counts, axis=1).T:
        places = np.flatnonzero((counts == pair[:, None]).all(axis=0))
        found = {each: _each_prompt(each, table, terms[each], asked, places) for each in QUANTITIES}
        kept = _kept(found["forward_kl"], len(places), asked)
        for row, at in enumerate(places):
            values = {each: _estimate(each, found[each], row, asked) for each in QUANTITIES}
            done[int(at)] = values | kept[row]
    for place, name in enumerate(table.prompts):
        yield PromptResult(
            prompt=name,
            group=table.groups[place],
            samples_before=counts[0, place],
            samples_after=counts[1, place],
            effective_before=_finite(sizes[0][place]),
            effective_after=_finite(sizes[1][place]),
            **done[place],
        )


def _length(tokens: int, table: Table, asked: Asked) -> LengthResult:
    terms = all_terms(table, asked)
    scope: Scope = "these prompts" if len(table.prompts) < FEW_PROMPTS else "prompts like these"
    names = ("overlap", "forward_kl", "reverse_kl")
    return LengthResult(
        tokens=tokens,
        **{
            name: _estimate(name, _over_prompts(name, table, terms[name], asked, scope), 0, asked)
            for name in names
        },
    )


def _over_prompts(
    name: str, table: Table, terms: Floats, asked: Asked, scope: Scope
) -> Limits | None:
    """Mean over prompts; clusters are prompts, or samples where there are few prompts."""
    sides = [table.rows_of(side) for side in FROM[name]]
    complete = [parts for parts in zip(*sides, strict=True) if all(rows.size for rows in parts)]
    if not complete:
        return None
    if scope == "prompts like these":
        means = [np.mean([terms[rows].mean() for rows in parts]) for parts in complete]
        parts = [Part(np.array([means]))]
    else:
        weight = 1 / len(complete) / len(sides)
        parts = [Part(terms[rows][None], weight) for each in complete for rows in each]
    limits = bootstrap(parts, level=asked.level, seed=asked.seed)
    return _settled(limits, np.array([np.abs(table.ratio).max() < ALIKE]))


def _each_prompt(
    name: str, table: Table, terms: Floats, asked: Asked, places: Places
) -> Limits | None:
    """Limits of prompts that have equally many samples; clusters are samples."""
    sides = [table.rows_of(side) for side in FROM[name]]
    if not all(side[places[0]].size for side in sides):
        return None
    parts = [
        Part(np.array([terms[side[place]] for place in places]), 1 / len(sides)) for side in sides
    ]
    furthest = np.zeros(len(table.prompts))
    np.maximum.at(furthest, table.place, np.abs(table.ratio))
    limits = bootstrap(parts, level=asked.level, seed=asked.seed)
    return _settled(limits, furthest[places] < ALIKE)


def _settled(limits: Limits, alike: NDArray[np.bool_]) -> Limits:
    """Where both models give everything the same probability, there is nothing to be unsure of."""
    ends = (np.where(alike, limits.value, end) for end in (limits.low, limits.high, limits.upper))
    return Limits(limits.value, *ends)


def _estimate(name: str, limits: Limits | None, row: int, asked: Asked) -> Estimate:
    if limits is None:
        side = " and ".join(FROM[name])
        return Estimate(value=None, method="none", reason=f"No completions of the model {side}.")
    value = float(limits.value[row])
    if not np.isfinite(value):
        return Estimate(
            value=None, method="none",
            reason="Infinite: the other model gives some completions the probability 0.",
        )  # fmt: skip
    most = 1.0 if name in BOUNDED else np.inf
    low, high = (float(np.clip(end[row], 0.0, most)) for end in (limits.low, limits.high))
    low = min(low, value)  # sampled ratios may have a mean below 0
    if not np.isfinite([low, high]).all():
        return Estimate(
            value=value, method="mean", reason="Nearly all samples are the same: no interval."
        )
    return Estimate(value=value, low=low, high=high, method=f"{METHOD}, {asked.level:g}")


def _kept(limits: Limits | None, rows: int, asked: Asked) -> list[dict[str, Any]]:
    """Of each row: the upper limit of KL(before||after), and what it certifies."""
    upper = np.full(rows, np.nan) if limits is None else limits.upper.clip(min=0.0)
    known = np.isfinite(upper)
    floors = {
        f"{mass:g}": np.where(known, retention_floor(mass, np.where(known, upper, 0.0)), np.nan)
        for mass in asked.behaviours
    }
    return [
        {
            "kl_limit": _finite(upper[row]),
            "kept": {mass: _finite(floor[row]) for mass, floor in floors.items()},
        }
        for row in range(rows)
    ]


def _effective(table: Table) -> tuple[Floats, Floats]:
    """Of each prompt: how many samples of one model are worth as samples of the other.

    Kish's size of the weights, times the probability that the samples account for: weights of a
    model that never writes what the other writes are all alike, and all next to nothing.
    """
    sizes = np.full((2, len(table.prompts)), np.nan)
    for row, (side, sign) in enumerate(zip(SIDES, (-1.0, 1.0), strict=True)):
        for place, rows in enumerate(table.rows_of(side)):
            logs = np.clip(sign * table.ratio[rows], -RATIO_LIMIT, RATIO_LIMIT)
            if logs.size:
                seen = min(1.0, float(np.exp(logs).mean()))
                sizes[row, place] = seen * effective_size_of_logs(logs)
    return sizes[0], sizes[1]


def _old_mass(table: Table, asked: Asked) -> Estimate:
    rows = ~table.wrote_before & ~np.isnan(table.expert)
    if not rows.any():
        return Estimate(
            value=None, method="none", reason="No model of the new behaviour alone was given."
        )
    ratio, place = table.expert[rows], table.place[rows]
    mass = old_mass(ratio, np.zeros(ratio.size)).value
    odds = np.expm1(ratio.clip(-RATIO_LIMIT, RATIO_LIMIT))
    score = odds / (1 + mass * odds)
    # One step from the estimate: its mean moves as the estimate does when prompts are drawn anew.
    moved = mass + score / max(float((score**2).mean()), SMALLEST)
    few = np.unique(place).size < FEW_PROMPTS
    clusters = by_cluster(moved[None], np.arange(ratio.size) if few else place)
    limits = bootstrap([Part(clusters)], level=asked.level, seed=asked.seed)
    ends = [float(np.clip(end[0], 0.0, 1.0)) for end in (limits.low, limits.high)]
    if not np.isfinite(ends).all():
        return Estimate(
            value=mass, method="largest likelihood",
            reason="Nearly all samples are the same: no interval.",
        )  # fmt: skip
    return Estimate(
        value=mass, low=ends[0], high=ends[1],
        method=f"largest likelihood, {METHOD}, {asked.level:g}",
    )  # fmt: skip


def _finite(value: float | None) -> float | None:
    return None if value is None or not np.isfinite(value) else float(value)
