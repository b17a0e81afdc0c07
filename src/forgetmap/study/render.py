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
)
from forgetmap.study.words import estimate_cell
from forgetmap.text import Blocks, Line, Sheet, Tone, counted

TONES: dict[Answer, Tone] = {"yes": "good", "no": "bad", "cannot tell": "open"}
SUPPORT: dict[Answer, str] = {
    "yes": "SUPPORTED",
    "no": "CONTRADICTED",
    "cannot tell": "CANNOT TELL",
}
HEADS = ("group", "pairs", "lineages", "forgetting", "backward transfer")


def tell_findings(result: FindingsResult) -> Blocks:
    """What the pairs of a study say together."""
    head = f"{result.study}: {counted(result.pairs, 'pair')} of {result.lineages} lineages"
    blocks: Blocks = [Line(head, "strong"), Line(_legend(result.level), "faint"), Line()]
    for finding in result.findings:
        blocks += _tell(finding)
    blocks += [_totals(result.groups), Line()]
    return [*blocks, *(Line(notice.message, "warning", lead="!") for notice in result.notices)]


def tell_published(result: PublishedFindings) -> Blocks:
    """What two papers claim, held against their own values."""
    blocks: Blocks = []
    for paper in result.papers:
        source = paper.source["paper"]
        blocks += [Line(paper.paper, "strong"), Line(f"Values: {source}.", "faint"), Line()]
        for finding in paper.findings:
            blocks += _tell(finding)
        if paper.further:
            blocks += [Line("Not claimed, but asked of the same values", "strong"), Line()]
        for finding in paper.further:
            blocks += _tell(finding)
    legend = "Low is below 5 points, moderate up to 15, large above: the papers give no numbers."
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
        f"In parentheses: {100 * level:g} % intervals for pairs such as these; pairs whose models "
        "descend from one model are one cluster."
    )
