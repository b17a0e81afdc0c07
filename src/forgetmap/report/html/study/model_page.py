"""The page of a model or of a merge, with its pairs."""

from __future__ import annotations

from forgetmap.report.html.parts import escaped
from forgetmap.report.html.study import cells
from forgetmap.report.html.study.cells import SiteTable, facts_list
from forgetmap.report.html.study.context import SiteContext, crumbs
from forgetmap.report.html.study.names import START
from forgetmap.report.html.study.shell import SitePage
from forgetmap.study import StudyMerge, StudyModel, model_accuracies, write_size
from forgetmap.text import counted, listed


def model_page(context: SiteContext, name: str) -> str:
    """Return HTML of the page."""
    study = context.detail.study
    model = next((one for one in study.models if one.id == name), None)
    merge = next((one for one in study.merges if one.id == name), None)
    title = (model.title if model else merge.label if merge else "") or name
    page = context.page(title)
    page.add(crumbs([("Models", f"{START}#section=models"), (title, "")], page))
    page.add(_first_card(context, name, title))
    if model is not None:
        links = {"parent": context.names.models.get(model.parent or "", "")}
        page.section("What it is", facts_list(_model_facts(context, model), page.root, links))
    elif merge is not None:
        page.section("What it is", facts_list(_merge_facts(merge), page.root))
    _add_accuracies(context, name, page)
    _add_pairs(context, name, page)
    return page.html()


def _first_card(context: SiteContext, name: str, title: str) -> str:
    gap = next((one for one in context.detail.result.gaps if one.model == name), None)
    if gap is not None:
        lead = (
            f"It has no run. Missing because of that: {listed(gap.pairs, 'pairs') or 'nothing'}. "
            "Missing pairs are never counted as 0."
        )
    else:
        count = sum(name in (pair.before, pair.after) for pair in context.all_pairs)
        lead = f"It is in {counted(count, 'pair')}."
    return (
        '<section class="card first" aria-label="Summary">'
        f'<p class="names">{escaped(name)}</p><h1>{escaped(title)}</h1>'
        f'<p class="lead">{escaped(lead)}</p></section>'
    )


def _model_facts(context: SiteContext, model: StudyModel) -> dict[str, str]:
    protocol = context.detail.study.protocol
    facts = {
        "family": model.family,
        "series": model.series,
        "size": f"{write_size(model.billions)} parameters" if model.billions else None,
        "stage": model.stage,
        "parent": model.parent,
        "data": model.data,
        "trained on": ", ".join(model.domains),
        "method": model.method,
        "hub": model.hub,
        "prompt style": model.style or protocol.style,
        "shots": _number(model.shots if model.shots is not None else protocol.shots),
        "temperature": _number(
            model.temperature if model.temperature is not None else protocol.temperature
        ),
        "longest answer": _number(model.max_new_tokens or protocol.max_new_tokens),
        "repeats": _number(protocol.repeats),
    }
    return {name: value for name, value in facts.items() if value}


def _number(value: float | None) -> str | None:
    return None if value is None else f"{value:g}"


def _merge_facts(merge: StudyMerge) -> dict[str, str]:
    facts = {
        "method": merge.method,
        "recipe": merge.recipe,
        "models": " + ".join(merge.models),
        "share of the later model": _number(merge.weight),
        "compared with": ", ".join(merge.compared_with),
    }
    return {name: value for name, value in facts.items() if value}


def _add_accuracies(context: SiteContext, name: str, page: SitePage) -> None:
    answers = context.detail.answers
    if answers is None or name not in answers.right:
        return
    rows = [
        [
            cells.words(one.category, context.names.categories.get(one.category, "")),
            cells.count(one.tasks),
            cells.count(one.items),
            cells.part(one.accuracy),
        ]
        for one in model_accuracies(answers, name)
    ]
    heads = ("category", "tasks", "items", "accuracy")
    table = SiteTable("accuracy", f"Accuracy of {name}", heads, rows)
    page.section("Accuracy", context.table(table, page))


def _add_pairs(context: SiteContext, name: str, page: SitePage) -> None:
    note = f'<p class="faint">{escaped(context.note())}</p>'
    parts = (
        ("pairs-before", "Models made from it", [p for p in context.all_pairs if p.before == name]),
        (
            "pairs-after",
            "Models it was made from",
            [p for p in context.all_pairs if p.after == name],
        ),
    )
    for stem, title, pairs in parts:
        if pairs:
            table = context.pair_table(stem, title, pairs)
            page.section(title, note + context.table(table, page))
