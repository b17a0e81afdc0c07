"""Notices about unreliable overlap estimates; they are always shown beside the numbers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from forgetmap.overlap.result import OverlapGroup, OverlapNotice
from forgetmap.overlap.samples import SIDES, Floats, SampleTable, Side
from forgetmap.theory import misassignment_terms

OUT_OF_BALANCE = 4.0
"""Standard errors between two means that are equal if samples follow their log-probabilities."""
FEW_TERMS = 20.0
"""Sum of overlap terms below which the overlap depends on a few completions."""
SMALL_SHARE = 0.1
"""Effective share of samples below which one model hardly ever writes what the other does."""
LEANING = 0.6
"""Maximum share of all squared deviations by a single prompt."""
FEW_TO_LEAN_ON = 3
HARDLY = 0.01
"""Overlap below which whole completions show only that they are long."""


def trust_notices(table: SampleTable, group: OverlapGroup) -> list[OverlapNotice]:
    """Return the limitations of the numbers of all prompts."""
    return [
        *_on_counts(group),
        *_on_balance(table),
        *_on_weights(group),
        *_on_divergence(table, group),
    ]


def _on_counts(group: OverlapGroup) -> Iterator[OverlapNotice]:
    if group.scope == "these prompts":
        yield OverlapNotice(
            kind="few prompts",
            text=f"Only {group.prompts} prompt{'s' * (group.prompts > 1)}: the intervals apply "
            "to these prompts only.",
        )
    if not (group.samples_before and group.samples_after):
        yield OverlapNotice(
            kind="one side",
            text="Only one model was sampled; quantities that need completions of the other are "
            "null.",
        )
    if group.cut:
        yield OverlapNotice(
            kind="cut",
            text=f"{group.cut:.0%} of the completions were cut: the results apply to completions "
            "up to that length, so the divergence is a lower bound, the overlap an upper "
            "bound, and certificates cover only that length.",
        )


def _on_balance(table: SampleTable) -> Iterator[OverlapNotice]:
    """Check E_P[Q / (P + Q)] = E_Q[P / (P + Q)], which holds for all P and Q."""
    terms = misassignment_terms(np.where(table.wrote_before, 1.0, -1.0) * table.ratio)
    gap, variance, used = 0.0, 0.0, 0
    for both in zip(*(table.rows_of(side) for side in SIDES), strict=True):
        if min(rows.size for rows in both) > 1:
            gap += float(terms[both[0]].mean() - terms[both[1]].mean())
            # A few samples without spread must not look certain.
            variance += sum(float(terms[rows].var(ddof=1)) / rows.size for rows in both)
            variance += sum(1 / rows.size**2 for rows in both)
            used += 1
    error = np.sqrt(variance)
    if used and abs(gap) > OUT_OF_BALANCE * error:
        yield OverlapNotice(
            kind="out of balance",
            text="The completions do not match the log-probabilities (the two estimates of the "
            f"overlap differ by {abs(gap) / error:.1f} standard errors): check that both "
            "models were sampled at temperature 1 without top-k or top-p, and scored after "
            "the same prompt. The results are not reliable.",
        )


def _on_weights(group: OverlapGroup) -> Iterator[OverlapNotice]:
    if group.effective_overlap is not None and group.effective_overlap < FEW_TERMS:
        yield OverlapNotice(
            kind="few terms",
            text=f"The overlap is determined by about {group.effective_overlap:.0f} completions, "
            "so its interval is too narrow. Use more samples.",
        )
    for side, other in (SIDES, SIDES[::-1]):
        size, count = getattr(group, f"effective_{side}"), getattr(group, f"samples_{side}")
        if size is not None and size < SMALL_SHARE * count:
            yield OverlapNotice(
                kind="heavy weights",
                text=f"The model {side} almost never writes what the model {other} writes (its "
                f"{count:,} completions are worth {size:.0f} of the other's), so its samples "
                f"do not cover the behaviour of the model {other}.",
            )
    overlap = group.overlap.value
    if overlap is not None and overlap < HARDLY and (group.tokens or 0) > 1:
        yield OverlapNotice(
            kind="long completions",
            text="Complete completions hardly overlap, which is usual for long ones: compare "
            "their first tokens (--first).",
        )


def _on_divergence(table: SampleTable, group: OverlapGroup) -> Iterator[OverlapNotice]:
    for side, name in zip(SIDES, ("forward", "reverse"), strict=True):
        means = _means(table, side, by_prompt=group.scope == "prompts like these")
        if means.size < FEW_TO_LEAN_ON or not np.isfinite(means).all():
            continue
        squares = (means - means.mean()) ** 2
        share = squares.max() / squares.sum() if squares.sum() else 0.0
        if share > LEANING:
            yield OverlapNotice(
                kind="leaning",
                text=f"One of {means.size:,} contributes {share:.0%} of the variance of the "
                f"{name} divergence: similar ones may be missing from the sample, so the "
                "interval is too narrow.",
            )
    if np.isnan(table.kl).any() and group.forward_kl.value is not None:
        yield OverlapNotice(
            kind="sampled ratios",
            text="Divergences are means of sampled log-ratios, because the full next-token "
            "distributions are unknown: unbiased, but with a much larger variance.",
        )


def _means(table: SampleTable, side: Side, *, by_prompt: bool) -> Floats:
    """Return the divergence of each prompt, or of each sample."""
    sign = 1.0 if side == "before" else -1.0
    terms = np.where(np.isnan(table.kl), sign * table.ratio, table.kl)
    rows = [rows for rows in table.rows_of(side) if rows.size]
    if by_prompt:
        return np.array([terms[samples].mean() for samples in rows])
    return terms[np.concatenate(rows)] if rows else np.array([])
