"""The pages of the most forgotten items and of the downloads."""

from __future__ import annotations

from pathlib import Path

from forgetmap.report.figures.study.lost_items import lost_items_figure
from forgetmap.report.html.parts import escaped
from forgetmap.report.html.study import cells
from forgetmap.report.html.study.cells import SiteCell, SiteTable
from forgetmap.report.html.study.context import SiteContext
from forgetmap.text import counted

QUESTION = 160
"""Maximum length of a question in the table."""
NAMED = 3
"""Number of pairs that are named for each forgotten item."""
NO_ITEMS = (
    "The items of published values are not available; a study with runs or logs lists them here."
)


def lost_page(context: SiteContext) -> str:
    """Return HTML of the page of the items that most pairs forgot."""
    page = context.page("Items forgotten by most pairs", "")
    if context.reader is None:
        lead = NO_ITEMS
    elif not context.lost:
        lead = "No pair forgot an item."
    else:
        first = context.lost[0]
        lead = (
            f"{first.lost} of {counted(len(context.detail.pairs), 'pair')} forgot the first of "
            "them. If most models forget an item, the cause is probably the item or its scoring."
        )
    page.add(
        '<section class="card first" aria-label="Summary"><p class="names">Items</p>'
        f'<h1>Items that most pairs forgot</h1><p class="lead">{escaped(lead)}</p></section>'
    )
    page.section("Figures", page.place([lost_items_figure(context.lost_counts)]))
    rows = [_row(context, number) for number in range(len(context.lost))]
    heads = (
        "item",
        "task",
        "category",
        "pairs that forgot it",
        "knew it",
        "gained it",
        "which forgot it",
    )
    table = SiteTable("items", "Items forgotten by most pairs", heads, rows)
    page.section("The items", context.table(table, page))
    return page.html()


def _row(context: SiteContext, number: int) -> list[SiteCell]:
    item = context.lost[number]
    question = item.question or item.item
    text = question if len(question) <= QUESTION else f"{question[:QUESTION]}…"
    pair = context.detail.pairs[item.losers[0]]
    losers = [context.detail.pairs[place].label for place in item.losers]
    named = ", ".join(losers[:NAMED])
    more = f" and {len(losers) - NAMED} more" if len(losers) > NAMED else ""
    return [
        SiteCell(text, note=item.item if item.question else "", look="words", full=question),
        cells.words(item.task),
        cells.words(item.category, context.names.categories.get(item.category, "")),
        cells.count(item.lost),
        cells.count(item.known),
        cells.count(item.gained),
        SiteCell(
            f"{named}{more}",
            context.names.pair(pair, transition="forgotten", task=item.task),
            look="words",
            full=", ".join(losers),
        ),
    ]


def downloads_page(context: SiteContext, folder: Path) -> str:
    """Return HTML of the page with all other files of the folder."""
    page = context.page("Downloads", "")
    page.add(
        '<section class="card first" aria-label="Summary"><p class="names">Downloads</p>'
        "<h1>Everything as files</h1>"
        '<p class="lead">Tables for papers and spreadsheets, figures, and the whole study as JSON.'
        "</p></section>"
    )
    page.section("The study", _files(["study.json"]))
    tables = sorted(path.name for path in (folder / "tables").iterdir())
    note = (
        "all.tex is a document with every table: pdflatex all.tex. Include the others with "
        "\\input; all.csv has all numbers of every pair in full, tasks.csv every task."
    )
    page.section("Tables", f'<p class="faint">{escaped(note)}</p>'
                 + _files([f"tables/{name}" for name in tables]))  # fmt: skip
    figures = folder / "figures"
    names = sorted(path.name for path in figures.iterdir()) if figures.is_dir() else []
    page.section("Figures", _files([f"figures/{name}" for name in names]))
    page.section("Changed items of every pair", _files(sorted(context.names.items.values())))
    return page.html()


def _files(paths: list[str]) -> str:
    lines = "".join(
        f'<li><a href="{escaped(path)}" download>{escaped(path.rpartition("/")[2])}</a></li>'
        for path in paths
    )
    return f'<ul class="files">{lines}</ul>' if lines else ""
