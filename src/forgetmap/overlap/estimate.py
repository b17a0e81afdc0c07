"""Estimates of overlap, divergence and retained behaviour from the completions of both models."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forgetmap.errors import EmptyInputError, UsageError
from forgetmap.overlap.certificate import VACUOUS, certify, certify_prompts, floor_or_none
from forgetmap.overlap.notices import trust_notices
from forgetmap.overlap.result import LengthResult, OverlapGroup, OverlapResult, PromptResult, Scope
from forgetmap.overlap.samples import (
    SIDES,
    CompletionSample,
    Floats,
    Indices,
    SampleTable,
    Side,
    table_of,
)
from forgetmap.results import Estimate
from forgetmap.stats import MeanLimits, TermGroup, cluster_terms, studentised_bootstrap
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
"""Minimum number of prompts to generalise to others like them."""
ALIKE = 1e-6
"""Largest difference in nats of log-probabilities that count as equal."""
SMALLEST = 1e-12
"""Information below which two models are indistinguishable."""
ALL = "all"
"""Name of the group of all prompts."""
METHOD = "studentised cluster bootstrap"


@dataclass(frozen=True, slots=True)
class OverlapSettings:
    """Settings of an estimate.

    Attributes:
        level: confidence level of the intervals, and one-sided level of a certificate.
        new_share: prior weight of the model after, for misassignment.
        behaviours: probabilities before of the behaviours to certify.
        seed: seed of the bootstrap.
    """

    level: float = 0.95
    new_share: float = 0.5
    behaviours: tuple[float, ...] = (0.5, 0.9)
    seed: int = 0

    def __post_init__(self) -> None:
        shares = {"level": self.level, "new_share": self.new_share}
        shares |= {f"behaviour {mass:g}": mass for mass in self.behaviours}
        for name, share in shares.items():
            if not 0 < share < 1:
                raise UsageError(
                    f"{name} is {share:g}", hint="use a number between 0 and 1, both excluded."
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
"""Models whose completions each quantity averages."""


def estimate_overlap(
    samples: Iterable[CompletionSample],
    *,
    before: str = "before",
    after: str = "after",
    settings: OverlapSettings | None = None,
) -> OverlapResult:
    """Estimate everything from completions with log-probabilities under both models.

    Args:
        samples: completions of both models (with one model only, some quantities are missing).
        before: name of the model before.
        after: name of the model after.
        settings: levels, shares and behaviours.
    """
    rows = list(samples)
    table = table_of(rows)
    longest = int(table.tokens.max())
    beginnings = [1 << power for power in range(longest.bit_length()) if 1 << power < longest]
    lengths = [(first, table_of(rows, first=first)) for first in beginnings]
    return estimate_table(table, before=before, after=after, settings=settings, lengths=lengths)


def estimate_table(
    table: SampleTable,
    *,
    before: str = "before",
    after: str = "after",
    settings: OverlapSettings | None = None,
    lengths: Sequence[tuple[int, SampleTable]] = (),
) -> OverlapResult:
    """Estimate the same from columns, such as those of `table_of_arrays`."""
    settings = settings or OverlapSettings()
    if not table.prompt_index.size:
        raise EmptyInputError("There are no samples.", hint="add at least one completion.")
    names = sorted({group for group in table.groups if group is not None})
    chosen = {ALL: table} | {
        name: table.of_prompts(row for row, group in enumerate(table.groups) if group == name)
        for name in names
    }
    groups = [_group(name, part, settings) for name, part in chosen.items()]
    known = ~np.isnan(table.kl)
    return OverlapResult(
        before=before,
        after=after,
        level=settings.level,
        new_share=settings.new_share,
        kl_from="whole distributions"
        if known.all()
        else "both"
        if known.any()
        else "sampled ratios",
        groups=groups,
        prompts=list(_prompts(table, settings)),
        lengths=[_length(tokens, part, settings) for tokens, part in lengths],
        notices=trust_notices(table, groups[0]),
    )


def all_terms(table: SampleTable, settings: OverlapSettings) -> dict[str, Floats]:
    """Return the term of every sample for each quantity."""
    ratio, known = table.ratio, ~np.isnan(table.kl)
    sign = np.where(table.wrote_before, 1.0, -1.0)
    # Use whole distributions if they are known: their KL has no sampling error within a token.
    divergence = np.where(known, table.kl, kl_terms(sign * ratio))
    mistaken = np.where(
        table.wrote_before,
        misassignment_terms(ratio, settings.new_share),
        misassignment_terms(-ratio, 1 - settings.new_share),
    )
    return {
        "overlap": overlap_terms(ratio),
        "total_variation": total_variation_terms(ratio),
        "forward_kl": divergence,
        "reverse_kl": divergence,
        "misassigned_before": mistaken,
        "misassigned_after": mistaken,
    }


def _group(name: str, table: SampleTable, settings: OverlapSettings) -> OverlapGroup:
    terms = all_terms(table, settings)
    scope: Scope = "these prompts" if len(table.prompts) < FEW_PROMPTS else "prompts like these"
    limits = {name: _over_prompts(name, table, terms[name], settings, scope) for name in QUANTITIES}
    values: dict[str, Any] = {
        name: _estimate(name, limits[name], 0, settings) for name in QUANTITIES
    }
    overlap = values["overlap"].value
    sizes = _effective(table)
    counted = table.tokens[table.tokens > 0]
    return OverlapGroup(
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
        else misassignment_bound(overlap, settings.new_share),
        old_mass=_old_mass(table, settings),
        effective_overlap=None if overlap is None else float(terms["overlap"].sum()),
        effective_before=_finite(np.nansum(sizes[0]) if np.isfinite(sizes[0]).any() else None),
        effective_after=_finite(np.nansum(sizes[1]) if np.isfinite(sizes[1]).any() else None),
        **values,
        **_retention(limits["forward_kl"], 1, settings)[0],
        certificate=certify(table, settings.behaviours, settings.level, scope),
    )


def _prompts(table: SampleTable, settings: OverlapSettings) -> Iterator[PromptResult]:
    """Estimate each prompt by itself; prompts with equally many samples are computed together."""
    terms = all_terms(table, settings)
    sizes = _effective(table)
    counts = np.array([[rows.size for rows in table.rows_of(side)] for side in SIDES])
    results: dict[int, dict[str, Any]] = {}
    for pair in np.unique(counts, axis=1).T:
        prompts = np.flatnonzero((counts == pair[:, None]).all(axis=0))
        limits = {
            name: _each_prompt(name, table, terms[name], settings, prompts) for name in QUANTITIES
        }
        retention = _retention(limits["forward_kl"], len(prompts), settings)
        for row, prompt in enumerate(prompts):
            values = {name: _estimate(name, limits[name], row, settings) for name in QUANTITIES}
            results[int(prompt)] = values | retention[row]
    certificates = certify_prompts(table, settings.behaviours, settings.level)
    for index, name in enumerate(table.prompts):
        yield PromptResult(
            prompt=name,
            group=table.groups[index],
            samples_before=counts[0, index],
            samples_after=counts[1, index],
            effective_before=_finite(sizes[0][index]),
            effective_after=_finite(sizes[1][index]),
            certificate=certificates[index],
            **results[index],
        )


def _length(tokens: int, table: SampleTable, settings: OverlapSettings) -> LengthResult:
    terms = all_terms(table, settings)
    scope: Scope = "these prompts" if len(table.prompts) < FEW_PROMPTS else "prompts like these"
    names = ("overlap", "forward_kl", "reverse_kl")
    return LengthResult(
        tokens=tokens,
        certificate=certify(table, settings.behaviours, settings.level, scope),
        **{
            name: _estimate(
                name, _over_prompts(name, table, terms[name], settings, scope), 0, settings
            )
            for name in names
        },
    )


def _over_prompts(
    name: str, table: SampleTable, terms: Floats, settings: OverlapSettings, scope: Scope
) -> MeanLimits | None:
    """Average over prompts; clusters are prompts, or samples if there are few prompts."""
    sides = [table.rows_of(side) for side in FROM[name]]
    complete = [parts for parts in zip(*sides, strict=True) if all(rows.size for rows in parts)]
    if not complete:
        return None
    # With many prompts their spread matters; with few it is unknown, and the interval only covers
    # the measurement of exactly these prompts.
    if scope == "prompts like these":
        means = [np.mean([terms[rows].mean() for rows in parts]) for parts in complete]
        parts = [TermGroup(np.array([means]))]
    else:
        weight = 1 / len(complete) / len(sides)
        parts = [
            TermGroup(terms[rows][None], weight)
            for sides_of_prompt in complete
            for rows in sides_of_prompt
        ]
    limits = studentised_bootstrap(parts, level=settings.level, seed=settings.seed)
    return _settled(limits, np.array([np.abs(table.ratio).max() < ALIKE]))


def _each_prompt(
    name: str, table: SampleTable, terms: Floats, settings: OverlapSettings, prompts: Indices
) -> MeanLimits | None:
    """Return bounds of prompts that have equally many samples; clusters are samples."""
    sides = [table.rows_of(side) for side in FROM[name]]
    if not all(side[prompts[0]].size for side in sides):
        return None
    parts = [
        TermGroup(np.array([terms[side[index]] for index in prompts]), 1 / len(sides))
        for side in sides
    ]
    furthest = np.zeros(len(table.prompts))
    np.maximum.at(furthest, table.prompt_index, np.abs(table.ratio))
    limits = studentised_bootstrap(parts, level=settings.level, seed=settings.seed)
    return _settled(limits, furthest[prompts] < ALIKE)


def _settled(limits: MeanLimits, alike: NDArray[np.bool_]) -> MeanLimits:
    """Set the interval to the value if both models give everything the same probability."""
    ends = (np.where(alike, limits.value, end) for end in (limits.low, limits.high, limits.upper))
    return MeanLimits(limits.value, *ends)


def _estimate(
    name: str, limits: MeanLimits | None, row: int, settings: OverlapSettings
) -> Estimate:
    if limits is None:
        side = " and ".join(FROM[name])
        return Estimate(
            value=None, method="none", reason=f"There are no completions of the model {side}."
        )
    value = float(limits.value[row])
    if not np.isfinite(value):
        return Estimate(
            value=None, method="none",
            reason="Infinite: the other model assigns some completions the probability 0.",
        )  # fmt: skip
    most = 1.0 if name in BOUNDED else np.inf
    low, high = (float(np.clip(end[row], 0.0, most)) for end in (limits.low, limits.high))
    low = min(low, value)  # the mean of sampled ratios may be below 0
    if not np.isfinite([low, high]).all():
        return Estimate(
            value=value,
            method="mean",
            reason="No interval, because nearly all samples are identical.",
        )
    return Estimate(value=value, low=low, high=high, method=f"{METHOD}, {settings.level:g}")


def _retention(
    limits: MeanLimits | None, rows: int, settings: OverlapSettings
) -> list[dict[str, Any]]:
    """Return for each row the upper bound of KL(before||after), and its retention floors."""
    upper = np.full(rows, np.nan) if limits is None else limits.upper.clip(min=0.0)
    known = np.isfinite(upper)
    floors = {
        mass: retention_floor(mass, np.where(known, upper, 0.0)) for mass in settings.behaviours
    }
    return [
        _floors(
            _finite(upper[row]),
            {mass: float(floor[row]) for mass, floor in floors.items()},
        )
        for row in range(rows)
    ]


def _floors(upper: float | None, floors: dict[float, float]) -> dict[str, Any]:
    """Return the floors of a row, null with a reason if they are unknown or almost nothing."""
    if upper is None:
        kept: dict[str, float | None] = {f"{mass:g}": None for mass in floors}
        why = "The divergence has no upper bound."
    else:
        kept = {f"{mass:g}": floor_or_none(mass, floor) for mass, floor in floors.items()}
        why = f"No guarantee: {upper:.3g} nats may leave less than {VACUOUS:.0%} of a behaviour."
    return {
        "kl_limit": upper,
        "kept": kept,
        "kept_reason": why if None in kept.values() else None,
    }


def _effective(table: SampleTable) -> tuple[Floats, Floats]:
    """Return for each prompt the effective number of samples of one model for the other.

    Kish's size of the weights, times the probability that the samples cover: if a model never
    writes what the other writes, all weights are equal and almost 0.
    """
    sizes = np.full((2, len(table.prompts)), np.nan)
    for row, (side, sign) in enumerate(zip(SIDES, (-1.0, 1.0), strict=True)):
        for index, rows in enumerate(table.rows_of(side)):
            logs = np.clip(sign * table.ratio[rows], -RATIO_LIMIT, RATIO_LIMIT)
            if logs.size:
                overlap = min(1.0, float(np.exp(logs).mean()))
                sizes[row, index] = overlap * effective_size_of_logs(logs)
    return sizes[0], sizes[1]


def _old_mass(table: SampleTable, settings: OverlapSettings) -> Estimate:
    rows = ~table.wrote_before & ~np.isnan(table.expert)
    if not rows.any():
        return Estimate(
            value=None, method="none", reason="No model of the new behaviour was given."
        )
    ratio, prompts = table.expert[rows], table.prompt_index[rows]
    mass = old_mass(ratio, np.zeros(ratio.size)).value
    odds = np.expm1(ratio.clip(-RATIO_LIMIT, RATIO_LIMIT))
    score = odds / (1 + mass * odds)
    # One step from the estimate: its mean changes like the estimate when prompts are resampled.
    moved = mass + score / max(float((score**2).mean()), SMALLEST)
    few = np.unique(prompts).size < FEW_PROMPTS
    clusters = cluster_terms(moved[None], np.arange(ratio.size) if few else prompts)
    limits = studentised_bootstrap([TermGroup(clusters)], level=settings.level, seed=settings.seed)
    ends = [float(np.clip(end[0], 0.0, 1.0)) for end in (limits.low, limits.high)]
    if not np.isfinite(ends).all():
        return Estimate(
            value=mass, method="largest likelihood",
            reason="No interval, because nearly all samples are identical.",
        )  # fmt: skip
    return Estimate(
        value=mass, low=ends[0], high=ends[1],
        method=f"maximum likelihood, {METHOD}, {settings.level:g}",
    )  # fmt: skip


def _finite(value: float | None) -> float | None:
    return None if value is None or not np.isfinite(value) else float(value)
