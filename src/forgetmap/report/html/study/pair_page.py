"""The page of a pair: numbers by category and task, then single items."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from forgetmap.report.figures.study.changes import category_changes
from forgetmap.report.html.parts import escaped, notices_card
from forgetmap.report.html.study import cells
from forgetmap.report.html.study.cells import SiteCell, SiteTable, without_empty
from forgetmap.report.html.study.context import SiteContext, crumbs, effect_cells
from forgetmap.report.html.study.names import START
from forgetmap.report.html.study.shell import SitePage
from forgetmap.study import TOTAL, PairDetail
from forgetmap.text import counted

STYLE = (
    "The two models have different prompt styles: apparent forgetting or gains may be due to "
    "the prompt."
)
FEW_SHARED = 0.8


def pair_page(context: SiteContext, number: int) -> str:
    """Return HTML of the page."""
    pair = context.all_pairs[number]
    page = context.page(f"{pair.before} → {pair.after}")
    stage = context.names.stages.get(pair.group, f"{START}#section=merges")
    page.add(crumbs([("Pairs", f"{START}#section=pairs"), (pair.group, stage), (pair.label, "")],
                    page))  # fmt: skip
    page.add(_first_card(context, pair, page))
    page.add(notices_card(_notices(pair)))
    page.section("Figures", page.place([category_changes(pair)]))
    note = f'<p class="faint">{escaped(context.note())}</p>'
    page.section("Categories", note + _categories(context, pair, page))
    page.section("Tasks", _tasks(context, pair, page))
    items = _items(context, number)
    if context.reader is not None:
        href = escaped(page.root + context.names.items[pair.before, pair.after])
        total = len(context.reader.flips[number].places)
        page.add(
            f'<p>All {total:,} changed answers of this pair: <a href="{href}" download>CSV</a> '
            "(beginnings of questions and answers, without responses).</p>"
        )
    return page.html(items)


def _first_card(context: SiteContext, pair: PairDetail, page: SitePage) -> str:
    total, names = pair.total, context.names
    models = " → ".join(
        cells.page_link(names.models[name], escaped(name), page.root)
        for name in (pair.before, pair.after)
    )
    lead = (
        f"Forgetting {cells.limits_of(total.forgetting)}, backward transfer "
        f"{cells.limits_of(total.backward_transfer)} of all items."
    )
    change = cells.change(total.acc_before, total.acc_after)
    more = ""
    if change.value is not None:
        more = (
            f"Accuracy went from {cells.part(total.acc_before).text} to "
            f"{cells.part(total.acc_after).text} ({change.text} points), which is all that an "
            f"average shows. {counted(pair.items or 0, 'item')} were answered by both models."
        )
    return (
        '<section class="card first" aria-label="Summary">'
        f'<p class="names">{models}</p><h1>{escaped(pair.label)}</h1>'
        f'<p class="lead">{escaped(lead)}</p><p class="rests">{escaped(more)}</p></section>'
    )


def _notices(pair: PairDetail) -> list[str]:
    notices = [STYLE] if pair.changed_style else []
    if pair.shared is not None and pair.shared < FEW_SHARED:
        notices.append(f"Only {pair.shared:.0%} of the items are common to both models.")
    return notices


def _categories(context: SiteContext, pair: PairDetail, page: SitePage) -> str:
    printed = {one.category: one for one in pair.printed}
    known = context.detail.answers is not None
    rows = []
    for change in pair.categories:
        name = change.category
        where = {} if name == TOTAL else {"category": name}
        lost, gained = (
            "#" + context.names.pair(pair, transition=kind, **where).partition("#")[2]
            if known
            else ""
            for kind in ("forgotten", "gained")
        )
        values = printed.get(name)
        rows.append(
            [
                cells.words(name, context.names.categories.get(name, "")),
                cells.count(change.tasks),
                cells.count(change.items),
                *effect_cells(change, lost, gained),
                cells.part(values.forgetting_max if values else None),
                cells.part(values.backward_transfer_max if values else None),
                cells.part(values.forgetting_sd if values else None),
                cells.part(values.backward_transfer_sd if values else None),
            ]
        )
    heads = (
        "category", "tasks", "items", "accuracy before", "after", "change, points", "forgetting",
        "backward transfer", "forgotten", "gained", "most to forget", "most to gain",
        "SD of forgetting", "SD of transfer",
    )  # fmt: skip
    return context.table(
        without_empty("categories", f"Categories of {pair.label}", heads, rows), page
    )


def _tasks(context: SiteContext, pair: PairDetail, page: SitePage) -> str:
    rows = []
    for task in pair.tasks:
        lost, gained = (
            "#" + context.names.pair(pair, transition=kind, task=task.task).partition("#")[2]
            for kind in ("forgotten", "gained")
        )
        rows.append(
            [
                cells.words(task.task),
                cells.words(task.category, context.names.categories.get(task.category, "")),
                SiteCell("open" if task.options is None else f"{task.options:.3g}",
                         value=task.options),
                cells.count(task.items),
                cells.part(task.acc_before),
                cells.part(task.acc_after),
                cells.change(task.acc_before, task.acc_after),
                cells.part(task.forgetting),
                cells.part(task.backward_transfer),
                cells.count(task.forgotten, lost),
                cells.count(task.gained, gained),
                cells.count(task.kept),
                cells.count(task.never),
            ]
        )  # fmt: skip
    heads = (
        "task", "category", "options", "items", "accuracy before", "after", "change, points",
        "forgetting",
        "backward transfer", "forgotten", "gained", "kept", "never right",
    )  # fmt: skip
    return context.table(SiteTable("tasks", f"Tasks of {pair.label}", heads, rows), page)


def _items(context: SiteContext, number: int) -> Mapping[str, Any] | None:
    if context.reader is None:
        return None
    pair, flips = context.all_pairs[number], context.reader.flips[number]
    lost = int(flips.forgotten.sum())
    return {
        "names": [pair.before, pair.after],
        "total": {"forgotten": lost, "gained": len(flips.places) - lost},
        "shortened": 0,
        "columns": context.item_columns(number),
    }
