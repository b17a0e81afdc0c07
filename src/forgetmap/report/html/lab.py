"""Pages of the lab, and of a watched training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from forgetmap.lab import LabResult, MergeDriftResult, RepairResult
from forgetmap.report.figures.registry import all_figures
from forgetmap.report.html.parts import (
    definitions,
    escaped,
    folded,
    how_we_know,
    key_number,
    notices_card,
    paragraphs,
    section,
    table_of,
)
from forgetmap.report.html.sections import Pictures, SectionsPage
from forgetmap.report.html.shell import Page
from forgetmap.report.payloads import LabPayload
from forgetmap.report.payloads import lab as words
from forgetmap.report.payloads import watch as watch_words
from forgetmap.text import Sheet
from forgetmap.train import WatchHistory


def lab_page(payload: LabPayload) -> Page:
    """Return the page of a result of the lab, or of a watched training."""
    if isinstance(payload, LabResult):
        return _compared(payload)
    if isinstance(payload, RepairResult):
        return _repaired(payload)
    if isinstance(payload, MergeDriftResult):
        return _merged(payload)
    return _watched(payload)


def first_card(
    name: str, headline: str, number: words.KeyNumber | None, sentences: Sequence[str] = ()
) -> str:
    """Return the first card: headline, key number and further sentences."""
    return (
        '<section class="card first" aria-label="Summary">'
        f'<p class="names">{escaped(name)}</p><h1>{escaped(headline)}</h1>'
        f"{key_number(number)}{paragraphs(sentences)}</section>"
    )


def _page(
    payload: LabPayload,
    title: str,
    first: str,
    *,
    notices: Sequence[str],
    tables: str,
    facts: Mapping[str, str],
    name: str,
) -> Page:
    page = SectionsPage()
    page.add(first)
    page.add(notices_card(notices))
    page.add(section("Figures", page.place(Pictures(all_figures(payload)))))
    page.add(tables)
    page.add(how_we_know(facts))
    return page.finish(title, name, payload.model_dump_json())


def _explained(title: str, sheet: Sheet, legend: Mapping[str, str]) -> str:
    return section(title, table_of(sheet) + definitions(legend))


def _compared(result: LabResult) -> Page:
    best = 0 if result.methods and result.methods[0].method != words.BASELINE else None
    methods = table_of(words.methods_sheet(result), best=best) + definitions(words.LEGEND)
    differences = "".join(map(table_of, words.differences_sheets(result, ratios=True)))
    note = f"{words.DIFFERENCE_LEGEND} Ratio: the one by the other."
    legend = f'<p class="faint words">{escaped(note)}</p>'
    every = {
        "Chosen settings": table_of(words.settings_sheet(result)),
        "By category": "".join(map(table_of, words.lab_category_sheets(result))),
        "KL, theoretical bound, and early peak": table_of(words.divergence_sheet(result))
        + f'<p class="faint words">{escaped(words.KL_LEGEND)}</p>',
        f"All {len(result.runs):,} runs": table_of(words.runs_sheet(result)),
    }
    tables = (
        section("Every method at its best setting", methods)
        + section("Compared with plain fine-tuning", differences + legend)
        + section("Every number", "".join(folded(name, html) for name, html in every.items()))
    )
    title = words.lab_title(result)
    return _page(
        result, title, first_card(title, result.headline, words.lab_number(result)),
        notices=result.notices, tables=tables, facts=words.lab_facts(result), name="lab.json",
    )  # fmt: skip


def _repaired(result: RepairResult) -> Page:
    sheet, seeds = words.repair_sheet(result), words.repair_runs_sheet(result)
    tables = _explained("Every kind of replay", sheet, words.REPAIR_LEGEND)
    tables += section("Every seed", table_of(seeds))
    title = words.repair_title(result)
    first = first_card(
        title, result.headline, words.repair_number(result), words.repair_sentences(result)
    )
    return _page(
        result, title, first, notices=result.notices, tables=tables,
        facts=words.repair_facts(result), name="repair.json",
    )  # fmt: skip


def _merged(result: MergeDriftResult) -> Page:
    sheet = words.merge_drift_sheet(result)
    tables = _explained("Every level of drift", sheet, words.MERGE_LEGEND)
    title = words.merge_drift_title(result)
    first = first_card(
        title, result.headline, words.merge_drift_number(result),
        words.merge_drift_sentences(result),
    )  # fmt: skip
    return _page(
        result, title, first, notices=result.notices, tables=tables,
        facts=words.merge_drift_facts(result), name="merge-drift.json",
    )  # fmt: skip


def _watched(history: WatchHistory) -> Page:
    looks, categories = watch_words.watch_sheet(history), watch_words.watch_category_sheet(history)
    tables = _explained("Every look", looks, watch_words.WATCH_LEGEND)
    tables += section("Every category", table_of(categories))
    title = watch_words.watch_title(history)
    first = first_card(
        title, watch_words.watch_headline(history), watch_words.watch_number(history),
        watch_words.watch_sentences(history),
    )  # fmt: skip
    return _page(
        history, title, first, notices=watch_words.watch_gaps(history), tables=tables,
        facts=watch_words.watch_facts(history), name="watch.json",
    )  # fmt: skip
