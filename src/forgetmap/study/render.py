"""Findings as text for the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from forgetmap.study.pair_table import TOTAL
from forgetmap.study.result import (
    Answer,
    FindingsResult,
    GroupEffect,
    PublishedFindings,
    StudyFinding,
    StudyGap,
    StudyResult,
    StudyStatus,
)
from forgetmap.study.words import estimate_cell, verdict_cell
from forgetmap.text import Blocks, Line, Sheet, Tone, counted, listed

TONES: dict[Answer, Tone] = {"yes": "good", "no": "bad", "cannot tell": "open"}
"""Colour of each answer."""
SUPPORT: dict[Answer, str] = {
    "yes": "SUPPORTED",
    "no": "CONTRADICTED",
    "cannot tell": "CANNOT TELL",
}
"""Badge of each answer."""
PAIR_HEADS = ("pair", "group", "items", "forgetting", "backward transfer", "verdict")
DRIFT_LEGEND = (
    "Size of drift: root mean square of the effects on capabilities, in either direction."
)
"""Explanation of the size of drift."""
HEADS = ("group", "pairs", "lineages", "forgetting", "backward transfer")


def tell_findings(result: FindingsResult) -> Blocks:
    """Describe the findings over the pairs of a study."""
    head = f"{result.study}: {counted(result.pairs, 'pair')} of {result.lineages} lineages"
    blocks: Blocks = [Line(head, "strong"), Line(_legend(result.level), "faint"), Line()]
    for finding in result.findings:
        blocks += _tell(finding)
    blocks += [_totals(result.groups), Line()]
    if result.drift:
        blocks += [Line("Drift of capabilities", "strong"), Line(DRIFT_LEGEND, "faint"), Line()]
    for finding in result.drift:
        blocks += _tell(finding)
    return [*blocks, *(Line(notice.message, "warning", lead="!") for notice in result.notices)]


def tell_study(result: StudyResult) -> Blocks:
    """Describe all pairs of a study, the findings, and missing runs."""
    rows = [
        (
            pair.label,
            pair.group,
            f"{pair.items:,}",
            estimate_cell(pair.forgetting[TOTAL]),
            estimate_cell(pair.backward_transfer[TOTAL]),
            verdict_cell(pair),
        )
        for pair in result.pairs
    ]
    blocks: Blocks = [Sheet(PAIR_HEADS, rows, spare=("group", "items")), Line()]
    return [*blocks, *tell_findings(result.findings), *tell_gaps(result.gaps)]


def tell_status(status: StudyStatus) -> Blocks:
    """Describe the status of models, with reasons of failures and the next command."""
    head = (
        f"{status.study}: {status.with_runs} of {counted(status.models, 'model')} have runs, "
        f"{status.ready} of {counted(status.pairs, 'pair')} can be compared"
    )
    blocks: Blocks = [Line(head, "strong"), *tell_gaps(status.gaps)]
    for run in status.runs:
        if run.state == "stopped":
            blocks.append(Line(f"{run.model}: stopped after {counted(run.answers, 'answer')}."))
        if run.state == "failed":
            line = f" (line {run.line})" if run.line is not None else ""
            blocks += [
                Line(f"{run.model}{line}: {run.reason}", lead="FAILED", tone="bad"),
                Line(run.hint, "faint", lead="-"),
                Line(f"then `{run.next}`", "commands", lead="-"),
            ]
    return [*blocks, Line(f"Next: `{status.next}`", "commands")]


def tell_gaps(gaps: Sequence[StudyGap]) -> Blocks:
    """List models without a run, and the pairs that need them."""
    return [
        Line(f"no run of {gap.model}; missing because of that: "
            f"{listed(gap.pairs, 'pairs') or 'nothing'}.",
             "warning", lead="!")
        for gap in gaps
    ]  # fmt: skip


def tell_published(result: PublishedFindings) -> Blocks:
    """Describe the claims of two papers, tested on their own values."""
    blocks: Blocks = []
    for paper in result.papers:
        source = paper.source["paper"]
        blocks += [Line(paper.paper, "strong"), Line(f"Values: {source}.", "faint"), Line()]
        for finding in paper.findings:
            blocks += _tell(finding)
        if paper.further:
            blocks += [Line("Not claimed, but tested on the same values", "strong"), Line()]
        for finding in paper.further:
            blocks += _tell(finding)
    legend = "Low is below 5 points, moderate up to 15, large above; the papers give no numbers."
    return [
        *blocks,
        _totals(result.groups),
        Line(),
        Line(f"{_legend(result.level)} {legend}", "faint"),
    ]


def _tell(finding: StudyFinding) -> Blocks:
    return [
        Line(finding.claim, lead=SUPPORT[finding.answer], tone=TONES[finding.answer]),
        Line(finding.sentence),
        *(Line(confound, "faint", lead="-") for confound in finding.confounds),
        Line(),
    ]


def tell_categories(groups: Sequence[GroupEffect]) -> Blocks:
    """Describe forgetting and backward transfer of every group in every category."""
    blocks: Blocks = []
    for name in dict.fromkeys(group.group for group in groups):
        rows = [
            (
                group.category,
                estimate_cell(group.forgetting),
                estimate_cell(group.backward_transfer),
            )
            for group in groups
            if group.group == name
        ]
        blocks += [Line(), Sheet((name, *HEADS[-2:]), rows, strong=1)]
    return blocks


def _totals(groups: Sequence[GroupEffect]) -> Sheet:
    rows = [
        (
            group.group,
            str(group.pairs),
            str(group.lineages),
            estimate_cell(group.forgetting),
            estimate_cell(group.backward_transfer),
        )
        for group in groups
        if group.category == TOTAL
    ]
    return Sheet(HEADS, rows, spare=("lineages",))


def _legend(level: float) -> str:
    return (
        f"In parentheses: {100 * level:g} % intervals for pairs like these; pairs whose models "
        "descend from one model are one cluster."
    )
