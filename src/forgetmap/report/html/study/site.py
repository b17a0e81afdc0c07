"""The site of a study, written into one folder."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from forgetmap.records import complete_folder, quote_formulas
from forgetmap.report.choices import STUDY_ITEMS
from forgetmap.report.figures.figure import Figure
from forgetmap.report.figures.study.radar import stage_radars
from forgetmap.report.figures.study.registry import study_figures
from forgetmap.report.html.shell import has_vega
from forgetmap.report.html.study.context import SiteContext
from forgetmap.report.html.study.model_page import model_page
from forgetmap.report.html.study.names import (
    DOWNLOADS,
    FIGURES_FOLDER,
    LOST,
    START,
    TABLES_FOLDER,
    name_pages,
)
from forgetmap.report.html.study.other_pages import downloads_page, lost_page
from forgetmap.report.html.study.pair_page import pair_page
from forgetmap.report.html.study.shell import write_assets
from forgetmap.report.html.study.stage_pages import category_page, stage_page
from forgetmap.report.html.study.start_page import start_page
from forgetmap.report.payloads.texts import (
    OF_ITEMS,
    Secret,
    parse_patterns,
    redact,
    redact_columns,
)
from forgetmap.report.static import write_figure
from forgetmap.report.tables import slug_of, write_study_tables
from forgetmap.study import ItemReader, LostItem, StudyDetail

LOST_ITEMS = 100
MOST_LETTERS = 300
"""Maximum length of a question or an answer in the file of all changed items."""
RESULT = "study.json"
MANIFEST = {"schema_version": 1, "study_report": True}
OnPage = Callable[[str], None]
"""Callback that receives the name of each page that is written."""


def write_study(
    detail: StudyDetail,
    folder: Path | str,
    *,
    overwrite: bool = False,
    texts: bool = True,
    redact: Sequence[str] = (),
    limit: int = STUDY_ITEMS,
    on_page: OnPage | None = None,
) -> Path:
    """Write tables, figures and the site of a study into a folder, atomically.

    Args:
        detail: a result of `examine_study`.
        folder: folder to write.
        overwrite: replace an earlier report.
        texts: include questions, answers and responses.
        redact: regular expressions; matches in texts are redacted.
        limit: maximum number of changed items on the page of a pair.
        on_page: called with the name of each page that is written.

    Returns:
        The start page.

    Raises:
        OutputError: the folder cannot be written, or already exists.
        UsageError: an entry of `redact` is not a regular expression.
    """
    secrets, target = parse_patterns(redact), Path(folder)
    tell = on_page or (lambda _: None)
    tell("items")
    context = _make_context(detail, limit, texts=texts, secrets=secrets)
    with complete_folder(target, overwrite=overwrite) as partial:
        _write(context, partial, tell)
    return target / START


def _make_context(
    detail: StudyDetail, limit: int, *, texts: bool, secrets: Sequence[Secret]
) -> SiteContext:
    every = [*detail.pairs, *detail.merges]
    names = name_pages(detail)
    if detail.answers is None:
        return SiteContext(detail, names)
    reader = ItemReader(detail.answers, every, limit, texts=texts)
    lost, counts = reader.lost_items(LOST_ITEMS, pairs=len(detail.pairs))
    shown = [_redacted(item, secrets) for item in lost]
    return SiteContext(detail, names, reader, tuple(secrets), tuple(shown), tuple(counts.tolist()))


def _redacted(item: LostItem, secrets: Sequence[Secret]) -> LostItem:
    if item.question is None or not secrets:
        return item
    return item.with_question(redact(item.question, secrets))


def _write(context: SiteContext, folder: Path, tell: OnPage) -> None:
    detail, names = context.detail, context.names
    for name in ("stages", "pairs", "categories", "models", "items"):
        (folder / name).mkdir()
    write_assets(folder)
    tell("tables")
    write_study_tables(detail, folder / TABLES_FOLDER)
    figures = _site_figures(context)
    tell("figures")
    _write_figures(figures, folder / FIGURES_FOLDER)
    pages: list[tuple[str, Callable[[], str]]] = [
        (START, lambda: start_page(context, [one for name, one in figures if not name])),
        (LOST, lambda: lost_page(context)),
        (DOWNLOADS, lambda: downloads_page(context, folder)),
    ]
    for group, path in names.stages.items():
        pages.append((path, _bind(stage_page, context, group)))
    for category, path in names.categories.items():
        pages.append((path, _bind(category_page, context, category)))
    for model, path in names.models.items():
        pages.append((path, _bind(model_page, context, model)))
    for number, pair in enumerate([*detail.pairs, *detail.merges]):
        tell(pair.label)
        path = names.pairs[pair.before, pair.after]
        if context.reader is not None:
            _write_items(context, number, folder / names.items[pair.before, pair.after])
        (folder / path).write_text(pair_page(context, number), encoding="utf-8")
    for path, make in pages:
        (folder / path).write_text(make(), encoding="utf-8")
    (folder / RESULT).write_text(_result_json(detail), encoding="utf-8")
    (folder / "manifest.json").write_text(json.dumps(MANIFEST) + "\n", encoding="utf-8")


def _bind(make: Callable[[SiteContext, str], str], context: SiteContext, name: str) -> Any:
    return lambda: make(context, name)


def _site_figures(context: SiteContext) -> list[tuple[str, Figure]]:
    """Return the figures of the whole study, then the radars of each stage, with the stage."""
    detail = context.detail
    radars = [(group, one) for group in detail.groups for one in stage_radars(detail, group)]
    whole = study_figures(detail, context.lost_counts)
    return [*(("", figure) for figure in whole), *radars]


def _write_figures(figures: Sequence[tuple[str, Figure]], folder: Path) -> None:
    """Write each figure as SVG; none if the package that draws is missing."""
    if not has_vega():
        return
    folder.mkdir()
    for group, figure in figures:
        stem = f"{figure.name}-{slug_of(group)}" if group else figure.name
        write_figure(figure, folder / f"{stem}.svg", ground=True)


def _write_items(context: SiteContext, number: int, path: Path) -> None:
    """Write every changed item of a pair as CSV, without responses and with shortened texts."""
    assert context.reader is not None  # noqa: S101  # only called if there are items
    table = _shortened(context.reader.table(number))
    if context.secrets:
        table = _redacted_table(table, context.secrets)
    safe = pa.table(quote_formulas(table), names=table.schema.names)
    pa.csv.write_csv(safe, path)


def _shortened(table: pa.Table) -> pa.Table:
    """Shorten long texts: the files of all pairs repeat the questions."""
    columns = [
        pc.utf8_slice_codeunits(table[name], 0, MOST_LETTERS) if name in OF_ITEMS else table[name]
        for name in table.schema.names
    ]
    return pa.table(columns, names=table.schema.names)


def _redacted_table(table: pa.Table, secrets: Sequence[Secret]) -> pa.Table:
    texts = [name for name in table.schema.names if name in OF_ITEMS]
    columns = redact_columns({name: table[name].to_pylist() for name in texts}, secrets)
    for name in texts:
        place = table.schema.names.index(name)
        table = table.set_column(place, name, pa.array(columns[name], pa.string()))
    return table


def _result_json(detail: StudyDetail) -> str:
    pairs = ",".join(pair.model_dump_json() for pair in detail.pairs)
    merges = ",".join(pair.model_dump_json() for pair in detail.merges)
    return (
        f'{{"study":{detail.study.model_dump_json(by_alias=True)},'
        f'"findings":{detail.result.findings.model_dump_json()},'
        f'"gaps":[{",".join(gap.model_dump_json() for gap in detail.result.gaps)}],'
        f'"pairs":[{pairs}],"merges":[{merges}]}}\n'
    )
