"""Results of the lab as lines and tables: methods, repair, and merging under drift."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from forgetmap.lab import LabResult, MergeDriftResult, RepairResult
from forgetmap.report.payloads.lab import (
    DIFFERENCE_LEGEND,
    LEGEND,
    MERGE_LEGEND,
    REPAIR_LEGEND,
    differences_sheets,
    lab_facts,
    merge_drift_facts,
    merge_drift_sentences,
    merge_drift_sheet,
    methods_sheet,
    repair_facts,
    repair_sentences,
    repair_sheet,
)
from forgetmap.report.payloads.overlap import fit_sentence
from forgetmap.text import Blocks, Line


def tell_lab(result: LabResult) -> Blocks:
    """Describe the result, each method, and its differences from the baselines."""
    blocks: Blocks = [
        Line(result.headline, "strong"),
        Line(),
        methods_sheet(result),
        *_legend(LEGEND),
    ]
    if any(method.differences for method in result.methods):
        for sheet in differences_sheets(result):
            blocks += [Line(), sheet]
        blocks += [Line(DIFFERENCE_LEGEND, "faint")]
    if result.bridge is not None:
        best = fit_sentence(result.bridge.fits[0], "of the known items")
        blocks += [Line(), Line(best)]
    return [*blocks, *_end(lab_facts(result), result.notices)]


def tell_repair(result: RepairResult) -> Blocks:
    """Describe what each kind of replay recovered."""
    sentences = [Line(sentence) for sentence in repair_sentences(result)]
    blocks: Blocks = [
        Line(result.headline, "strong"),
        *sentences,
        Line(),
        repair_sheet(result),
        *_legend(REPAIR_LEGEND),
    ]
    return [*blocks, *_end(repair_facts(result), result.notices)]


def tell_merge_drift(result: MergeDriftResult) -> Blocks:
    """Describe whether merging compensates if drift is small."""
    sentences = [Line(sentence) for sentence in merge_drift_sentences(result)]
    blocks: Blocks = [
        Line(result.headline, "strong"),
        *sentences,
        Line(),
        merge_drift_sheet(result),
        *_legend(MERGE_LEGEND),
    ]
    return [*blocks, *_end(merge_drift_facts(result), result.notices)]


def _legend(legend: Mapping[str, str]) -> Iterable[Line]:
    return [Line(text, "faint", f"{name:<11}") for name, text in legend.items()]


def _end(facts: Mapping[str, str], notices: Sequence[str]) -> Blocks:
    """Return the section "How we know" and the notices."""
    lines: Blocks = [Line(), Line("How we know", "strong")]
    lines += [Line(text, "plain", f"{name:<13}") for name, text in facts.items()]
    return [*lines, *(Line(text, "warning", "!") for text in notices)]
