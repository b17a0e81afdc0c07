"""Overlap and divergence as lines and tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from forgetmap.overlap import (
    BridgeResult,
    Certificate,
    EventGroup,
    EventResult,
    OverlapEstimates,
    OverlapGroup,
    OverlapNotice,
    OverlapResult,
)
from forgetmap.report.payloads.overlap import divergence_name, fit_sentence
from forgetmap.results import Estimate
from forgetmap.text import Blocks, Line, Sheet, shorten

MAX_PROMPTS = 10
NAME_WIDTH = 28
LIMITS = (
    "The guarantee applies to any behaviour with that probability before, on average over "
    "prompts like these, including rare prompts that changed a lot; {wrong:g} of 100 such "
    "guarantees may fail, separately for prompt groups and prefixes. All results apply to "
    "completions sampled at temperature 1, in nats, and not to other prompts."
)
NO_GUARANTEE = "no guarantee"
BETWEEN = " | "


def tell_overlap(result: OverlapResult) -> Blocks:
    """Describe the overlap of two models: conclusions, groups, beginnings, prompts, warnings."""
    total = result.groups[0]
    blocks: Blocks = [Line(_headline(result, total), "strong"), Line()]
    blocks.append(_groups(result))
    if result.lengths:
        blocks += [Line(), _lengths(result)]
    blocks += [Line(), Line("Largest changes:"), _prompts(result), Line()]
    if total.old_mass.value is not None:
        blocks.append(Line(f"Old mass left in {result.after}: {_with_limits(total.old_mass)}."))
    blocks += _notices(result.notices)
    return [*blocks, Line(LIMITS.format(wrong=round(100 * (1 - result.level), 6)), "faint")]


def tell_events(result: EventResult) -> Blocks:
    """Describe bounds from the log-probabilities of right answers."""
    heads = ("", "items", "overlap\nat most", "KL before||after\nat least",
             "KL after||before\nat least", "change of\nright answers")  # fmt: skip
    rows = [_event_row(group) for group in (result.total, *result.tasks)]
    missing = f" {result.without:,} pairs lack it." if result.without else ""
    return [
        Line(f"{result.before} and {result.after}, measured on the right answers", "strong"),
        Line(),
        Sheet(heads, rows, strong=1),
        Line(),
        Line(
            "Computed from the log-probability of each item's right answer alone; the models "
            f"may differ more elsewhere, but not less.{missing}",
            "faint",
        ),
    ]


def tell_bridge(result: BridgeResult) -> Blocks:
    """Describe how well divergence predicts forgetting."""
    heads = ("divergence", "R² of fit", "error\nleft out", "error\nof mean", "R²\nleft out")
    rows = [
        (
            divergence_name(fit),
            _number(fit.r_squared),
            f"{fit.error_left_out:.4f}",
            f"{fit.error_of_mean:.4f}",
            _number(fit.r_squared_left_out),
        )
        for fit in result.fits
    ]
    return [
        Line(fit_sentence(result.fits[0]), "strong"),
        Line(),
        Sheet(heads, rows, strong=1),
        Line(),
        *_notices(result.notices),
    ]


def _headline(result: OverlapResult, total: OverlapGroup) -> str:
    kl = total.forward_kl
    moved = "an unknown divergence" if kl.value is None else f"KL {_with_limits(kl)} nats"
    certificate = total.certificate
    guarantee = f" {_guarantee(result, certificate)}" if certificate else ""
    return f"{result.after} moved by {moved} from {result.before}.{guarantee}"


def _guarantee(result: OverlapResult, certificate: Certificate) -> str:
    within = f"completions of up to {certificate.tokens:,} tokens" if certificate.tokens else ""
    kept = [
        f"a behaviour that {result.before} shows with probability {mass} keeps a probability of "
        f"{floor:.3g} or more"
        for mass, floor in certificate.kept.items()
        if floor is not None
    ]
    if kept:
        return f"Guaranteed{' for ' * bool(within)}{within}: {'; '.join(kept)}."
    return (
        f"No guarantee{' for ' * bool(within)}{within}: up to "
        f"{certificate.total_variation_limit:.3g} of the probability of a behaviour may be lost."
    )


def _groups(result: OverlapResult) -> Sheet:
    heads = ("prompts", "n", "samples", "overlap", "KL before||after", "KL after||before",
             "assigned to\nthe other", "effective")  # fmt: skip
    rows = [
        (
            group.name,
            f"{group.prompts:,}",
            f"{group.samples_before:,}+{group.samples_after:,}",
            _with_limits(group.overlap),
            _with_limits(group.forward_kl),
            _with_limits(group.reverse_kl),
            _number(group.misassigned_before.value),
            f"{_count(group.effective_before)}+{_count(group.effective_after)}",
        )
        for group in result.groups
    ]
    return Sheet(heads, rows, strong=1, spare=("effective", "assigned to\nthe other", "samples"))


def _lengths(result: OverlapResult) -> Sheet:
    masses = list(result.groups[0].kept)
    rows = [
        (
            f"first {length.tokens:,}",
            _with_limits(length.overlap),
            _with_limits(length.forward_kl),
            _with_limits(length.reverse_kl),
            *_certificate_cells(length.certificate, masses),
        )
        for length in result.lengths
    ]
    heads = ("tokens", "overlap", "KL before||after", "KL after||before", *_kept_heads(masses))
    return Sheet(heads, rows, spare=("KL after||before",))


def _prompts(result: OverlapResult) -> Sheet:
    masses = list(result.groups[0].kept)
    heads = ("prompt", "overlap", "KL before||after", *_kept_heads(masses))
    order = sorted(result.prompts, key=lambda prompt: -_or_zero(prompt.forward_kl.value))
    rows = [
        (shorten(prompt.prompt, NAME_WIDTH), *_prompt_cells(prompt, masses))
        for prompt in order[:MAX_PROMPTS]
    ]
    return Sheet(heads, rows)


def _prompt_cells(estimates: OverlapEstimates, masses: Sequence[str]) -> Iterator[str]:
    yield _number(estimates.overlap.value)
    yield _with_limits(estimates.forward_kl)
    yield from _certificate_cells(estimates.certificate, masses)


def _kept_heads(masses: Sequence[str]) -> tuple[str, ...]:
    return ("TV\nat most", f"keeps at least\nof {BETWEEN.join(masses)}")


def _certificate_cells(certificate: Certificate | None, masses: Sequence[str]) -> Iterator[str]:
    if certificate is None:
        yield from ("-", "-")
        return
    yield _number(certificate.total_variation_limit)
    floors = [certificate.kept[mass] for mass in masses]
    if all(floor is None for floor in floors):
        yield NO_GUARANTEE
    else:
        yield BETWEEN.join("none" if floor is None else _number(floor) for floor in floors)


def _event_row(group: EventGroup) -> tuple[str, ...]:
    return (
        shorten(group.name, NAME_WIDTH),
        f"{group.items:,}",
        _with_limits(group.overlap_at_most),
        _with_limits(group.forward_kl_at_least),
        _with_limits(group.reverse_kl_at_least),
        _with_limits(group.change),
    )


def _notices(notices: Sequence[OverlapNotice]) -> Blocks:
    lines: Blocks = [Line(notice.text, "warning", "!") for notice in notices]
    return [*lines, Line()] if lines else lines


def _with_limits(estimate: Estimate) -> str:
    if estimate.value is None:
        return "-"
    if estimate.low is None or estimate.high is None:
        return _number(estimate.value)
    return f"{_number(estimate.value)} [{estimate.low:.2g}, {estimate.high:.2g}]"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"


def _count(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"


def _or_zero(value: float | None) -> float:
    return 0.0 if value is None else value
