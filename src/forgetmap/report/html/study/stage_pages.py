"""Pages of stages and of categories."""

from __future__ import annotations

from collections.abc import Sequence

from forgetmap.report.figures.study.changes import pair_changes
from forgetmap.report.figures.study.radar import stage_radars
from forgetmap.report.html.parts import escaped, folded
from forgetmap.report.html.study import cells
from forgetmap.report.html.study.cells import SiteCell, SiteTable, without_empty
from forgetmap.report.html.study.context import SiteContext, crumbs, findings_list
from forgetmap.report.html.study.names import START, TABLES_FOLDER
from forgetmap.report.html.study.shell import SitePage
from forgetmap.report.tables import EFFECTS, PRINTED_WORDS, printed_cell
from forgetmap.study import TOTAL, Effect, GroupEffect, PairDetail
from forgetmap.text import counted, share

LOOKS: dict[Effect, str] = {"forgetting": "forgotten", "backward_transfer": "gained"}


def stage_page(context: SiteContext, group: str) -> str:
    """Return HTML of the page of a stage."""
    page = context.page(group)
    detail = context.detail
    pairs = [pair for pair in detail.pairs if pair.group == group]
    effects = [one for one in detail.result.findings.groups if one.group == group]
    page.add(crumbs([("Stages", f"{START}#section=stages"), (group, "")], page))
    page.add(_stage_card(context, group, pairs, effects))
    names = (f"catastrophic:{group}", group.replace(" ", "-"))
    findings = [one for one in detail.result.findings.findings if one.id in names]
    page.section("Findings", findings_list(findings))
    page.section("Figures", page.place([*stage_radars(detail, group),
                                        pair_changes(detail, group=group)]))  # fmt: skip
    note = f'<p class="faint">{escaped(context.note())}</p>'
    table = context.with_gaps(context.pair_table("pairs", f"Pairs of {group}", pairs), group)
    page.section("Pairs", note + context.table(table, page))
    page.section("Means over pairs, by category", _means(context, effects, page))
    for effect, title in EFFECTS.items():
        page.section(f"{title}, every pair and category", _matrix(context, effect, pairs, page))
    page.section("As papers print it", _printed(context, group, pairs, page))
    return page.html()


def _stage_card(
    context: SiteContext, group: str, pairs: Sequence[PairDetail], effects: Sequence[GroupEffect]
) -> str:
    total = next((one for one in effects if one.category == TOTAL), None)
    declared = [pair for pair in context.detail.study.pairs if pair.group == group]
    words = f"{len(pairs)} of {counted(len(declared), 'pair')} compared"
    if total is None:
        lead = "No pair of this stage has runs of both models yet."
    else:
        lead = (
            f"Forgetting {cells.limits_of(total.forgetting)}, backward transfer "
            f"{cells.limits_of(total.backward_transfer)} of all items, on average over pairs "
            f"like these ({counted(total.lineages, 'lineage')})."
        )
    changed = sum(pair.changed_style for pair in pairs)
    words_on_style = (
        f"{changed} of {counted(len(pairs), 'pair')} change the prompt style: apparent "
        "forgetting may be due to the prompt."
    )
    warning = f'<p class="rests">{escaped(words_on_style)}</p>' if changed else ""
    return (
        '<section class="card first" aria-label="Summary">'
        f'<p class="names">{escaped(words)}</p><h1>{escaped(group)}</h1>'
        f'<p class="lead">{escaped(lead)}</p>{warning}</section>'
    )


def _means(context: SiteContext, effects: Sequence[GroupEffect], page: SitePage) -> str:
    rows = [
        [
            cells.words(one.category, context.names.categories.get(one.category, "")),
            cells.count(one.pairs),
            cells.count(one.lineages),
            cells.estimate(one.forgetting, "forgotten"),
            cells.estimate(one.backward_transfer, "gained"),
            cells.estimate(one.forgetting_of_these, "number"),
            cells.estimate(one.backward_transfer_of_these, "number"),
        ]
        for one in effects
    ]
    heads = (
        "category", "pairs", "lineages", "forgetting", "backward transfer",
        "forgetting of these pairs", "transfer of these pairs",
    )  # fmt: skip
    note = "Over pairs like these: lineages are clusters. Of these pairs: only items are resampled."
    table = context.table(without_empty("means", "Means by category", heads, rows), page)
    return f'<p class="faint">{escaped(note)}</p>{table}' if table else ""


def _matrix(
    context: SiteContext, effect: Effect, pairs: Sequence[PairDetail], page: SitePage
) -> str:
    """Return a table of pairs by category; every number is linked to its items."""
    names = context.detail.categories
    kind = LOOKS[effect]
    rows = []
    for pair in pairs:
        row = [cells.words(pair.label, context.names.pair(pair))]
        for name in names:
            change = pair.category(name)
            where = {} if name == TOTAL else {"category": name}
            href = context.names.pair(pair, transition=kind, **where)
            value = None if change is None else getattr(change, effect)
            row.append(SiteCell(cells.DASH) if value is None else cells.estimate(value, kind, href))
        rows.append(row)
    table = SiteTable(effect.replace("_", "-"), EFFECTS[effect], ["pair", *names], rows)
    return context.table(table, page)


def _printed(context: SiteContext, group: str, pairs: Sequence[PairDetail], page: SitePage) -> str:
    if not pairs:
        return ""
    stem = f"{TABLES_FOLDER}/{context.names.tables[group]}"
    files = {
        "LaTeX": f"{stem}.tex", "CSV": f"{stem}.csv", "Markdown": f"{stem}.md",
        "LaTeX with intervals": f"{stem}-intervals.tex",
        "Markdown with intervals": f"{stem}-intervals.md",
    }  # fmt: skip
    links = " · ".join(
        f'<a href="{escaped(page.root + path)}" download>{escaped(name)}</a>'
        for name, path in files.items()
    )
    names = list(dict.fromkeys(one.category for pair in pairs for one in pair.printed))
    html = "".join(
        f"<h3>{escaped(title)}</h3>"
        + context.table(
            SiteTable(
                f"printed-{effect.replace('_', '-')}",
                f"{title} as papers print it",
                ["pair", *names],
                [
                    [
                        cells.words(pair.label, context.names.pair(pair)),
                        *(_printed_cell(pair, name, effect) for name in names),
                    ]
                    for pair in pairs
                ],
            ),
            page,
        )
        for effect, title in EFFECTS.items()
    )
    note = escaped(f"{PRINTED_WORDS[0].upper()}{PRINTED_WORDS[1:]}.")
    return f'<p class="faint">{note}</p><p>Files: {links}</p>{folded("Show the tables", html)}'


def _printed_cell(pair: PairDetail, category: str, effect: Effect) -> SiteCell:
    values = next((one for one in pair.printed if one.category == category), None)
    return SiteCell(printed_cell(pair, category, effect), value=getattr(values, effect, None))


def category_page(context: SiteContext, category: str) -> str:
    """Return HTML of the page of a category."""
    page = context.page(category)
    detail = context.detail
    page.add(crumbs([("Categories", f"{START}#section=categories"), (category, "")], page))
    pairs = [pair for pair in detail.pairs if pair.category(category)]
    tasks = {t.task: t for pair in pairs for t in pair.tasks if t.category == category}
    words = f"{counted(len(pairs), 'pair')}, {counted(len(tasks), 'task')}"
    values = [
        (value, pair.label)
        for pair in pairs
        if (value := (pair.category(category) or pair.total).forgetting.value) is not None
    ]
    lead = (
        f"{max(values)[1]} forgets most, {share(max(values)[0])}; {min(values)[1]} least, "
        f"{share(min(values)[0])}."
        if values
        else "No pair has items of this category."
    )
    page.add(
        '<section class="card first" aria-label="Summary">'
        f'<p class="names">{escaped(words if tasks else counted(len(pairs), "pair"))}</p>'
        f'<h1>{escaped(category)}</h1><p class="lead">{escaped(lead)}</p></section>'
    )
    page.section("Figures", page.place([pair_changes(detail, category)]))
    effects = [one for one in detail.result.findings.groups if one.category == category]
    page.section("Stages", _stage_means(context, effects, page))
    note = f'<p class="faint">{escaped(context.note())}</p>'
    table = context.pair_table("pairs", f"Pairs in {category}", pairs, category)
    page.section("Pairs", note + context.table(table, page))
    page.section("Tasks", _tasks(context, category, page))
    return page.html()


def _stage_means(context: SiteContext, effects: Sequence[GroupEffect], page: SitePage) -> str:
    rows = [
        [
            cells.words(one.group, context.names.stages.get(one.group, "")),
            cells.count(one.pairs),
            cells.count(one.lineages),
            cells.estimate(one.forgetting, "forgotten"),
            cells.estimate(one.backward_transfer, "gained"),
        ]
        for one in effects
        if one.pairs
    ]
    heads = ("stage", "pairs", "lineages", "forgetting", "backward transfer")
    return context.table(SiteTable("stages", "Stages", heads, rows), page)


def _tasks(context: SiteContext, category: str, page: SitePage) -> str:
    """Return each task with its means over all pairs."""
    rows_by_task: dict[str, list[tuple[float, float, int]]] = {}
    options: dict[str, float | None] = {}
    for pair in context.detail.pairs:
        for task in pair.tasks:
            if task.category == category:
                options[task.task] = task.options
                values = (task.forgetting, task.backward_transfer, task.items)
                rows_by_task.setdefault(task.task, []).append(values)
    rows = [
        [
            cells.words(name),
            cells.count(max(items for _, _, items in values)),
            SiteCell("open" if options[name] is None else f"{options[name]:.3g}",
                     value=options[name]),
            cells.count(len(values)),
            cells.part(sum(lost for lost, _, _ in values) / len(values)),
            cells.part(sum(gained for _, gained, _ in values) / len(values)),
        ]
        for name, values in rows_by_task.items()
    ]  # fmt: skip
    heads = ("task", "items", "options", "pairs", "mean forgetting", "mean transfer")
    return context.table(SiteTable("tasks", f"Tasks of {category}", heads, rows), page)
