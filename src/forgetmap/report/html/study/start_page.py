"""The start page: findings of the study, then stages, pairs, categories and models."""

from __future__ import annotations

from collections.abc import Sequence

from forgetmap.report.figures.figure import Figure
from forgetmap.report.html.parts import escaped, how_we_know
from forgetmap.report.html.study import cells
from forgetmap.report.html.study.cells import SiteCell, SiteTable
from forgetmap.report.html.study.context import SiteContext, findings_list, gaps_card
from forgetmap.report.html.study.shell import SitePage
from forgetmap.study import DRIFT_LEGEND, TOTAL, GroupEffect, StudyDetail, write_size
from forgetmap.text import counted, share

STAGE_HEADS = ("stage", "pairs", "lineages", "forgetting", "backward transfer", "without runs")


def start_page(context: SiteContext, figures: Sequence[Figure]) -> str:
    """Return HTML of the page."""
    page = context.page(context.title, "")
    detail = context.detail
    page.add(_first_card(context))
    page.add(gaps_card(context))
    page.section("Findings", findings_list(detail.result.findings.findings), "findings")
    page.section("Drift of capabilities", _drift(context, page), "drift")
    page.section("Stages", _stages(context, page), "stages")
    page.section("Figures", page.place(figures), "pictures")
    note = f'<p class="faint">{escaped(context.note())}</p>'
    pairs = context.with_gaps(context.pair_table("pairs", "All pairs", detail.pairs))
    page.section("Pairs", note + context.table(pairs, page), "pairs")
    merges = context.pair_table(
        "merges", "Merges, with the models they are compared with", detail.merges
    )
    page.section("Merges", context.table(merges, page), "merges")
    page.section("Categories", _categories(context, page), "categories")
    page.section("Models", _models(context, page), "models")
    page.add(how_we_know(_facts(context)))
    return page.html()


def _first_card(context: SiteContext) -> str:
    detail = context.detail
    counts = [
        counted(len(detail.pairs), "pair"),
        counted(len({m for p in detail.pairs for m in (p.before, p.after)}), "model"),
        counted(len(detail.groups), "stage"),
    ]
    if detail.merges:
        counts.append(counted(len({pair.after for pair in detail.merges}), "merge"))
    if detail.answers is not None:
        counts.append(counted(len(detail.answers.task), "item"))
        counts.append(counted(len(detail.answers.tasks), "task"))
    source = f'<p class="rests">Values: {escaped(detail.source)}.</p>' if detail.source else ""
    return (
        '<section class="card first" aria-label="Summary">'
        f'<p class="names">{escaped(", ".join(counts))}</p><h1>{escaped(context.title)}</h1>'
        f'<p class="lead">{escaped(_headline(detail))}</p>{source}</section>'
    )


def _headline(detail: StudyDetail) -> str:
    """Return where most and least is forgotten, and how many claims are decided."""
    totals = [
        group for group in detail.result.findings.groups
        if group.category == TOTAL and group.forgetting.value is not None
    ]  # fmt: skip
    sentences = []
    if totals:
        ordered = sorted(totals, key=lambda group: group.forgetting.value or 0.0)
        least, most = ordered[0], ordered[-1]
        sentences.append(
            f"{most.group.capitalize()} forgets most, {_value(most)} of the items on average"
            + (f"; {least.group} least, {_value(least)}." if least is not most else ".")
        )
    findings = detail.result.findings.findings
    if findings:
        sure = sum(finding.answer != "cannot tell" for finding in findings)
        sentences.append(f"{sure} of {len(findings)} claims are decided by these pairs.")
    return " ".join(sentences)


def _value(group: GroupEffect) -> str:
    return share(group.forgetting.value)


def _drift(context: SiteContext, page: SitePage) -> str:
    """Return the findings on capabilities, if the study measures drift."""
    findings = context.detail.result.findings
    known = {(pair.before, pair.after): pair for pair in context.detail.pairs}
    rows = [
        [
            cells.words(pair.label, context.names.pair(pair), f"{pair.before} → {pair.after}"),
            cells.words(pair.group, context.names.stages[pair.group]),
            SiteCell(f"{size.size:.2f}", value=size.size),
        ]
        for size in findings.drift_sizes
        if (pair := known.get((size.before, size.after))) is not None
    ]
    table = SiteTable("drift", "Size of drift", ("pair", "stage", "size of drift"), rows)
    legend = f'<p class="faint">{escaped(DRIFT_LEGEND)}</p>' if rows else ""
    return findings_list(findings.drift) + legend + context.table(table, page)


def _stages(context: SiteContext, page: SitePage) -> str:
    detail = context.detail
    effects = {g.group: g for g in detail.result.findings.groups if g.category == TOTAL}
    known = [pair.group for pair in detail.pairs]
    rows = []
    for group in detail.groups:
        declared = sum(pair.group == group for pair in detail.study.pairs)
        missing = declared - known.count(group)
        effect = effects.get(group)
        rows.append(
            [
                cells.words(group, context.names.stages[group]),
                cells.count(known.count(group)),
                cells.count(effect.lineages if effect else 0),
                *_effect_cells(effect),
                cells.count(missing) if missing else SiteCell("none", value=0.0),
            ]
        )
    note = (
        f"Means over pairs like these, with {context.level} intervals; pairs whose models "
        "descend from one model are one cluster."
    )
    table = SiteTable("stages", "Stages", STAGE_HEADS, rows)
    return f'<p class="faint">{escaped(note)}</p>{context.table(table, page)}'


def _effect_cells(effect: GroupEffect | None) -> list[SiteCell]:
    if effect is None:
        return [cells.gap("no run"), SiteCell(cells.DASH)]
    return [
        cells.estimate(effect.forgetting, "forgotten"),
        cells.estimate(effect.backward_transfer, "gained"),
    ]


def _categories(context: SiteContext, page: SitePage) -> str:
    detail = context.detail
    rows = []
    for name, path in context.names.categories.items():
        changes = [change for pair in detail.pairs if (change := pair.category(name))]
        lost = [c.forgetting.value for c in changes if c.forgetting.value is not None]
        gained = [
            c.backward_transfer.value for c in changes if c.backward_transfer.value is not None
        ]
        tasks = {task.task for pair in detail.pairs for task in pair.tasks if task.category == name}
        rows.append(
            [
                cells.words(name, path),
                cells.count(len(tasks) if tasks else None),
                cells.count(len(lost)),
                cells.part(sum(lost) / len(lost) if lost else None),
                cells.part(max(lost, default=None)),
                cells.part(sum(gained) / len(gained) if gained else None),
                cells.part(max(gained, default=None)),
            ]
        )
    heads = ("category", "tasks", "pairs", "mean forgetting", "most", "mean transfer", "most ")
    return context.table(SiteTable("categories", "Categories", heads, rows), page)


def _models(context: SiteContext, page: SitePage) -> str:
    detail = context.detail
    missing = {gap.model for gap in detail.result.gaps}
    rows = []
    for model in detail.study.models:
        size = (
            SiteCell(write_size(model.billions), value=model.billions) if model.billions else None
        )
        before = sum(pair.before == model.id for pair in detail.study.pairs)
        rows.append(
            [
                cells.words(model.title or model.id, context.names.models[model.id]),
                cells.words(model.family or cells.DASH),
                size or SiteCell(cells.DASH),
                cells.words(model.stage or cells.DASH),
                cells.words(
                    model.parent or cells.DASH, context.names.models.get(model.parent or "", "")
                ),
                cells.count(before),
                cells.gap("no run") if model.id in missing else cells.words(run_words(context)),
            ]
        )
    heads = ("model", "family", "size", "stage", "parent", "pairs before", "run")
    return context.table(SiteTable("models", "Models", heads, rows), page)


def run_words(context: SiteContext) -> str:
    """Return the origin of the values of a model."""
    return "published" if context.detail.source else "read"


def _facts(context: SiteContext) -> dict[str, str]:
    detail = context.detail
    facts = {
        "Forgetting": (
            "Items that were right before and wrong after, minus what is expected by luck alone "
            "(C = m (1 - a)(1 - b)), as a share of all items."
        ),
        "Averages": "A category is the mean of its tasks, the total is the mean of the categories.",
        "Intervals": (
            f"{context.level}; of a pair over resampled items within tasks, of a stage over "
            "pairs like these, with lineages as clusters."
        ),
        "Gaps": "A model without a run is missing and never counted as 0.",
        "Prompts": (
            "Where the prompt style changes between two models, apparent forgetting may be due "
            "to the prompt."
        ),
    }
    if detail.source:
        facts["Intervals"] = "Of stages over pairs like these; the items are not published."
    return facts
