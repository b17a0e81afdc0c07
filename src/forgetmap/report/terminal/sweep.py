"""A sweep, and a distance in weight space, as lines and tables."""

from __future__ import annotations

from forgetmap.merge import WeightDrift
from forgetmap.report.payloads.sweep import (
    LEGEND,
    WEIGHTS_LEGEND,
    barrier_words,
    benefits_sheet,
    drift_words,
    groups_sheet,
    overall_barriers,
    points_sheet,
    scope_words,
    tensors_sheet,
)
from forgetmap.sweep import PairResult, SweepResult
from forgetmap.text import Blocks, Line


def tell_sweep(result: SweepResult) -> Blocks:
    """Describe conclusions, points, paths and weights."""
    blocks: Blocks = []
    for pair in result.pairs:
        blocks += [*_tell_pair(result, pair), Line()]
    blocks += [Line(text, "faint", f"{name:<11}") for name, text in LEGEND.items()]
    blocks += [Line(), Line(result.rule, "faint")]
    if len(result.pairs) > 1:
        blocks += [Line(), benefits_sheet(result.pairs), Line(result.correlation.words)]
    return blocks


def _tell_pair(result: SweepResult, pair: PairResult) -> Blocks:
    outside, inside = scope_words(result)
    blocks: Blocks = [
        Line(pair.best.words, "strong"),
        Line(
            f"{pair.tuned} forgot {pair.lost:,} items of {result.base}{outside} and gained "
            f"{pair.gained:,}{inside}; {pair.items:,} items in total."
        ),
        Line(),
        points_sheet(pair),
        Line(),
    ]
    blocks += [Line(barrier_words(barrier)) for barrier in overall_barriers(pair)]
    if pair.drift is not None:
        blocks.append(Line(drift_words(pair.drift)))
    return [*blocks, *(Line(text, "warning", "!") for text in pair.notices)]


def tell_weights(drift: WeightDrift) -> Blocks:
    """Describe a weight change: total, kinds, layers, and the tensors that changed most."""
    blocks: Blocks = [
        Line(f"{drift.tuned} against {drift.base}: {drift_words(drift)}", "strong"),
        Line(),
        groups_sheet("", [drift.total, *drift.kinds], strong=1),
    ]
    if drift.layers:
        blocks += [Line(), groups_sheet("", drift.layers)]
    blocks += [Line(), tensors_sheet(drift), Line()]
    if drift.unchanged:
        blocks.append(Line(f"{drift.unchanged:,} tensors are bit-for-bit identical."))
    blocks += [Line(text, "warning", "!") for text in drift.notices]
    return [*blocks, Line(WEIGHTS_LEGEND, "faint")]
