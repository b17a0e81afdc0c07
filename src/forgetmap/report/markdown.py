"""A report as Markdown, for pull requests and model cards.

It has the same lines and tables as the terminal, and lists the first flips. Names and texts cannot
become links, mentions, HTML or tables.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from forgetmap import __version__
from forgetmap.comparison import FanOutResult, View, tell_comparison
from forgetmap.lab import LabResult, MergeDriftResult, RepairResult
from forgetmap.overlap import BridgeResult
from forgetmap.report.figures.plugins import plugin_figures
from forgetmap.report.payloads import AnyPayload, LabPayload, Reportable, payload_for
from forgetmap.report.payloads.lab import lab_title, merge_drift_title, repair_title
from forgetmap.report.payloads.schema import Capabilities, Cell, Items, Payload
from forgetmap.report.payloads.sweep import title_of
from forgetmap.report.payloads.watch import watch_title
from forgetmap.report.terminal.drift import tell_drift
from forgetmap.report.terminal.lab import tell_lab, tell_merge_drift, tell_repair
from forgetmap.report.terminal.overlap import tell_bridge
from forgetmap.report.terminal.sweep import tell_sweep
from forgetmap.report.terminal.watch import tell_watch
from forgetmap.sweep import SweepResult
from forgetmap.text import (
    Blocks,
    Line,
    Sheet,
    blocks_to_markdown,
    escape_markdown,
    markdown_table,
    quote_markdown,
)

MAX_FIGURE_ROWS = 40
MAX_FLIPS = 10
"""Maximum number per comparison and transition."""
FLIP_COLUMNS = {
    "task": "task",
    "metric": "metric",
    "item": "item",
    "question": "question",
    "gold": "gold",
    "answer_before": "before",
    "answer_after": "after",
    "reason": "why",
}


def as_markdown(result: Reportable, *, by: str = "category") -> str:
    """Return a report as Markdown, with tables for GitHub and model cards.

    Args:
        result: a result of `compare`, `drift`, `merge_sweep` or the lab, the history of `watch`,
            or a payload of `make_payload`.
        by: the groups of the table, `category` or `task`.
    """
    payload = payload_for(result)
    if isinstance(payload, LabPayload):
        title, blocks = _tell_lab(payload)
        return _document(title, [*blocks_to_markdown(blocks), *_plugin_figures(payload)])
    if isinstance(payload, SweepResult):
        parts = [*blocks_to_markdown(tell_sweep(payload)), *_plugin_figures(payload)]
        return _document(title_of(payload), parts)
    if isinstance(payload, BridgeResult):
        parts = [*blocks_to_markdown(tell_bridge(payload)), *_plugin_figures(payload)]
        return _document("Forgetting against divergence", parts)
    if payload.capabilities:
        blocks = _tell_drift(payload.capabilities)
        names = list(payload.capabilities.result.models)
    else:
        blocks = [*_tell_comparisons(payload, by), *_cells(payload)]
        names = [comparison.after.name for comparison in payload.comparisons]
    flips = [part for items in payload.items for part in _flips(items, names[items.comparison])]
    parts = [*blocks_to_markdown(blocks), *_plugin_figures(payload), *flips]
    return _document(payload.title, parts, payload.version, _date(payload), _redacted(payload))


def _document(
    title: str, parts: Sequence[str], version: str = "", date: str = "", redacted: str = ""
) -> str:
    footer = f"Made with forgetmap {version or __version__}{date}.{redacted}"
    return "\n\n".join([f"# {escape_markdown(title)}", *parts, footer]) + "\n"


def _plugin_figures(payload: AnyPayload) -> list[str]:
    """Return figures of other packages as tables, because Markdown has no pictures."""
    parts = []
    for figure in plugin_figures(payload):
        rows = list(zip(*figure.table.values(), strict=True))
        cells = [[_figure_cell(value) for value in row] for row in rows[:MAX_FIGURE_ROWS]]
        left = len(rows) - len(cells)
        parts.append(f"## {escape_markdown(figure.title)}")
        parts += [escape_markdown(figure.caption)] if figure.caption else []
        parts += [markdown_table([escape_markdown(name) for name in figure.table], cells)]
        parts += [f"... and {left:,} more rows."] if left else []
    return parts


def _figure_cell(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else escape_markdown(str(value))


def _tell_lab(payload: LabPayload) -> tuple[str, Blocks]:
    if isinstance(payload, LabResult):
        return lab_title(payload), tell_lab(payload)
    if isinstance(payload, RepairResult):
        return repair_title(payload), tell_repair(payload)
    if isinstance(payload, MergeDriftResult):
        return merge_drift_title(payload), tell_merge_drift(payload)
    return watch_title(payload), tell_watch(payload)


def _tell_drift(drift: Capabilities) -> Blocks:
    """Describe a drift with every metric without a value: a file can be longer than a screen."""
    missing = [
        Line(f"{', '.join(part.ids)} ({', '.join(part.models)}).", lead=part.note)
        for part in drift.withheld
    ]
    return [*tell_drift(drift.result), *missing]


def _tell_comparisons(payload: Payload, by: str) -> Blocks:
    """Describe comparisons with everything behind the verdict: a file has the room."""
    view = View(by=by, details=True)
    if payload.kind == "many":
        return tell_comparison(FanOutResult(comparisons=payload.comparisons), view)
    return tell_comparison(payload.comparisons[0], view)


def _cells(payload: Payload) -> Blocks:
    """Return the four cells of each comparison; of a chain, those of its ends."""
    results = payload.comparisons if payload.kind == "many" else payload.comparisons[:1]
    return [
        Sheet(
            (result.after.name, "right after", "wrong after"),
            [
                ("right before", f"{total.n11:,} kept", f"{total.n10:,} forgotten"),
                ("wrong before", f"{total.n01:,} gained", f"{total.n00:,} never right"),
            ],
        )
        for result in results
        for total in [result.total]
    ]


def _flips(items: Items, after: str) -> list[str]:
    parts = []
    for kind, total in items.total.items():
        columns = items.columns
        places = _first_of_each_task(columns, kind)[:MAX_FLIPS]
        if not places:
            continue
        names = [
            name
            for name in FLIP_COLUMNS
            if any(columns[name][n] for n in places if name in columns)
        ]
        rows = [[_cell(columns[name][n]) for name in names] for n in places]
        title = f"{kind} ({after}): {len(places):,} of {total:,}"
        parts += [
            f"## {escape_markdown(title)}",
            markdown_table([FLIP_COLUMNS[name] for name in names], rows),
        ]
    return parts


def _first_of_each_task(columns: Mapping[str, Sequence[Cell]], kind: str) -> list[int]:
    """Return the indices of one transition: the first of every task, then the second, and so on."""
    counts: Counter[Cell] = Counter()
    turns = {}
    for index, transition in enumerate(columns.get("transition", [])):
        if transition == kind:
            task = columns["task"][index]
            turns[index] = counts[task]
            counts[task] += 1
    return sorted(turns, key=turns.__getitem__)


def _cell(cell: Cell) -> str:
    return "" if cell is None else quote_markdown(str(cell))


def _date(payload: Payload) -> str:
    return "" if payload.made is None else f" on {escape_markdown(payload.made)}"


def _redacted(payload: Payload) -> str:
    return " Texts are left out or redacted." if payload.redacted else ""
