"""Data that every page of the site uses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from forgetmap.report.html.parts import escaped, notices_card
from forgetmap.report.html.study import cells
from forgetmap.report.html.study.cells import SiteCell, SiteTable
from forgetmap.report.html.study.names import SiteNames
from forgetmap.report.html.study.shell import SitePage
from forgetmap.report.payloads.texts import Secret, redact_columns
from forgetmap.study import (
    SUPPORT,
    TONES,
    TOTAL,
    CategoryChange,
    ItemReader,
    LostItem,
    PairDetail,
    StudyDetail,
    StudyFinding,
    write_size,
)
from forgetmap.text import counted, listed

SEPARATOR = " \N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK} "
PAIR_HEADS = (
    "pair", "stage", "size", "items", "accuracy before", "after", "change, points",
    "forgetting", "backward transfer", "forgotten", "gained", "prompt style",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class SiteContext:
    """A study with the paths of its pages and its items.

    Attributes:
        detail: detailed results of the study.
        names: paths of pages.
        reader: reader of items; None if there are none.
        secrets: patterns that are redacted in texts.
        lost: items that most pairs forgot.
        lost_counts: number of items forgotten by 0, 1, ... pairs.
    """

    detail: StudyDetail
    names: SiteNames
    reader: ItemReader | None = None
    secrets: tuple[Secret, ...] = ()
    lost: tuple[LostItem, ...] = ()
    lost_counts: tuple[int, ...] = ()

    @property
    def title(self) -> str:
        """Title of the site."""
        return self.detail.study.title or self.detail.study.name

    @property
    def level(self) -> str:
        """Confidence level of the intervals as text."""
        return f"{100 * self.detail.study.level:g}%"

    @property
    def all_pairs(self) -> list[PairDetail]:
        """Pairs, then merges."""
        return [*self.detail.pairs, *self.detail.merges]

    def page(self, title: str, root: str = "../") -> SitePage:
        """Return an empty page; all but those at the top are in folders."""
        return SitePage(self.title, title, root)

    def table(self, table: SiteTable, page: SitePage) -> str:
        """Return HTML of a table; empty if it has no rows."""
        return cells.site_table(table, page.root) if table.rows else ""

    def note(self) -> str:
        """Return an explanation of the numbers."""
        if self.detail.source:
            return (
                "Published values: shares of all items, adjusted for chance and clipped at 0 "
                "per task and seed. The items are not available."
            )
        return (
            f"Shares of all items, adjusted for chance, with {self.level} intervals over items. "
            "Displayed between 0% and 100%; saved files have the full values. A dash means no "
            "data, never 0."
        )

    def pair_table(
        self, name: str, caption: str, pairs: Sequence[PairDetail], category: str = TOTAL
    ) -> SiteTable:
        """Return a table of pairs in one category."""
        heads = [head for head in PAIR_HEADS if self._is_known(head)]
        rows = [self._pair_row(pair, category) for pair in pairs]
        shown = [place for place, head in enumerate(PAIR_HEADS) if head in heads]
        return SiteTable(name, caption, heads, [[row[n] for n in shown] for row in rows])

    def with_gaps(self, table: SiteTable, group: str | None = None) -> SiteTable:
        """Add a row for each declared pair without values."""
        known = {(pair.before, pair.after) for pair in self.detail.pairs}
        missing = {gap.model for gap in self.detail.result.gaps}
        rows = list(table.rows)
        for pair in self.detail.study.pairs:
            if (pair.before, pair.after) in known or (group is not None and pair.group != group):
                continue
            absent = [name for name in (pair.before, pair.after) if name in missing]
            first = cells.words(pair.label, note=f"{pair.before} → {pair.after}")
            stage = [cells.words(pair.group, self.names.stages[pair.group])]
            rest = len(table.heads) - 2 if "stage" in table.heads else len(table.heads) - 1
            empty = [SiteCell(cells.DASH)] * (rest - 1)
            gap = cells.gap(f"no run of {listed(absent)}")
            rows.append([first, *(stage if "stage" in table.heads else []), gap, *empty])
        return table._replace(rows=rows)

    def _is_known(self, head: str) -> bool:
        """Whether a column is known: published values have no items and no accuracies."""
        unknown = ("items", "accuracy before", "after", "change, points", "forgotten", "gained")
        return not self.detail.source or head not in unknown

    def _pair_row(self, pair: PairDetail, category: str) -> list[SiteCell]:
        change, names = pair.category(category), self.names
        where = {} if category == TOTAL else {"category": category}
        lost, gained = (
            names.pair(pair, transition=kind, **where) for kind in ("forgotten", "gained")
        )
        return [
            cells.words(pair.label, names.pair(pair), f"{pair.before} → {pair.after}"),
            cells.words(pair.group, names.stages.get(pair.group, "")),
            size_cell(self.detail, pair),
            cells.count(None if change is None else change.items),
            *effect_cells(change, lost, gained),
            cells.words("changes" if pair.changed_style else "same"),
        ]

    def item_columns(self, number: int) -> dict[str, list[Any]]:
        """Return the items on the page of a pair, redacted if requested."""
        assert self.reader is not None  # noqa: S101  # only called if there are items
        columns = self.reader.columns(number)
        return redact_columns(columns, self.secrets) if self.secrets else columns


def effect_cells(change: CategoryChange | None, lost: str, gained: str) -> list[SiteCell]:
    """Return cells with accuracies, effects with intervals, and counts linked to items."""
    if change is None:
        return [SiteCell(cells.DASH)] * 7
    return [
        cells.part(change.acc_before),
        cells.part(change.acc_after),
        cells.change(change.acc_before, change.acc_after),
        cells.estimate(change.forgetting, "forgotten", lost),
        cells.estimate(change.backward_transfer, "gained", gained),
        cells.count(change.forgotten, lost),
        cells.count(change.gained, gained),
    ]


def size_cell(detail: StudyDetail, pair: PairDetail) -> SiteCell:
    """Return the size of the model after, in billions of parameters."""
    model = next((one for one in detail.study.models if one.id == pair.after), None)
    if model is None or model.billions is None:
        return SiteCell(cells.DASH)
    return SiteCell(write_size(model.billions), value=model.billions)


def findings_list(findings: Sequence[StudyFinding]) -> str:
    """Return each claim with its answer, evidence and confounds."""
    return f'<ul class="findings">{"".join(map(_finding, findings))}</ul>' if findings else ""


def _finding(finding: StudyFinding) -> str:
    tone = TONES[finding.answer]
    confounds = "".join(f"<li>{escaped(text)}</li>" for text in finding.confounds)
    return (
        f'<li class="card edge-{tone}"><p><span class="verdict tone-{tone}">'
        f'{escaped(SUPPORT[finding.answer])}</span><span class="claim">{escaped(finding.claim)}'
        f"</span></p><p>{escaped(finding.sentence)}</p>"
        + (f'<ul class="faint">{confounds}</ul>' if confounds else "")
        + "</li>"
    )


def gaps_card(context: SiteContext) -> str:
    """Return a card with models without a run and the pairs that need them."""
    notices = [notice.message for notice in context.detail.result.findings.notices]
    gaps = context.detail.result.gaps
    if gaps:
        missing = {pair for gap in gaps for pair in gap.pairs}
        notices.append(
            f"{counted(len(gaps), 'model')} without a run: "
            f"{listed([gap.model for gap in gaps])}; {counted(len(missing), 'pair')} missing "
            "because of that. Missing pairs are never counted as 0."
        )
    return notices_card(notices)


def crumbs(parts: Sequence[tuple[str, str]], page: SitePage) -> str:
    """Return the breadcrumbs of a page."""
    links = SEPARATOR.join(
        cells.page_link(href, escaped(text), page.root) if href else escaped(text)
        for text, href in parts
    )
    return f'<p class="crumbs">{links}</p>'
