"""The page of a sweep: words and tables stand in the document, figures are drawn by Vega."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from forgetmap import __version__
from forgetmap.report.figures.registry import figures_json
from forgetmap.report.html.shell import Page
from forgetmap.report.payloads.packing import packed
from forgetmap.report.payloads.sweep import (
    LEGEND,
    barrier_sheet,
    barrier_words,
    benefits_sheet,
    best_merge,
    category_sheets,
    drift_words,
    groups_sheet,
    limits_sheet,
    overall_barriers,
    parents_sheet,
    points_sheet,
    scope_words,
    title_of,
)
from forgetmap.sweep import PairResult, SweepResult, listed_points
from forgetmap.text import Sheet, printable

NO_SCRIPT = "Figures need JavaScript; every number is in the tables below."


def sweep_page(result: SweepResult) -> Page:
    """The parts of the page."""
    title = _text(title_of(result))
    footer = _text(f"Made with forgetmap {__version__}. Nothing leaves this file.")
    return Page(
        kind="sweep",
        title=title,
        top=f'<p class="title">{title}</p><div class="bar" id="switches"></div>',
        main=f"""<div id="sweep">
{_summary(result)}
<section id="pictures" aria-label="Figures"><noscript><p>{NO_SCRIPT}</p></noscript></section>
{"".join(_pair_tables(result, pair) for pair in result.pairs)}
<footer class="faint">{footer} <span id="take"></span></footer>
</div>""",
        payload=packed(result.model_dump_json()),
        figures=packed(figures_json(result)),
    )


def _summary(result: SweepResult) -> str:
    several = len(result.pairs) > 1
    parts = [_pair_summary(result, pair, several=several) for pair in result.pairs]
    if several:
        words = f'<p class="lead">{_text(result.correlation.words)}</p>'
        parts.append(
            _section("Weight drift and benefit", words + _table(benefits_sheet(result.pairs)))
        )
    return "".join(parts)


def _pair_summary(result: SweepResult, pair: PairResult, *, several: bool) -> str:
    tag = "h2" if several else "h1"
    names = f"{result.base} → {pair.tuned}"
    outside, inside = scope_words(result)
    facts = (
        f"The tuned model forgot {pair.lost:,} items{outside} and gained {pair.gained:,}{inside}; "
        f"{pair.items:,} items in all, suite {result.suite}."
    )
    parts = [
        f'<p class="names">{_text(names)}</p>',
        f"<{tag}>{_text(best_merge(pair))}</{tag}>",
        f'<p class="lead">{_text(pair.best.words)}</p>',
        f'<p class="words">{_text(facts)}</p>',
        *(f'<p class="words">{_text(barrier_words(b))}</p>' for b in overall_barriers(pair)),
    ]
    if pair.drift is not None:
        parts.append(f'<p class="words">{_text(drift_words(pair.drift))}</p>')
    if pair.notices:
        lines = "".join(f"<li>{_text(notice)}</li>" for notice in pair.notices)
        parts.append(f'<div class="card warned"><ul class="warnings">{lines}</ul></div>')
    return f'<section aria-label="Summary">{"".join(parts)}</section>'


def _pair_tables(result: SweepResult, pair: PairResult) -> str:
    best = None if pair.best.point is None else listed_points(pair).index(pair.best.point)
    legend = "".join(
        f"<dt>{_text(name)}</dt><dd>{_text(text)}</dd>" for name, text in LEGEND.items()
    )
    points = (
        _table(points_sheet(pair), best=best)
        + f'<dl class="counts faint">{legend}</dl><p class="faint words">{_text(result.rule)}</p>'
    )
    title = f"Every merge of {pair.name}" if len(result.pairs) > 1 else "Every merge"
    parts = [_section(title, points), _every(pair)]
    if pair.drift is not None:
        drift = pair.drift
        sheets = _table(groups_sheet("part", [drift.total, *drift.kinds, *drift.layers], strong=1))
        modules = _table(groups_sheet("module", drift.modules))
        parts.append(_section("Distance in weight space", sheets + _folded("By module", modules)))
    return "".join(parts)


def _every(pair: PairResult) -> str:
    """All limits, both comparisons, categories and barriers."""
    parts = {
        "All limits: each on its own, and for all merges at once": _table(limits_sheet(pair)),
        "Against both parents": _table(parents_sheet(pair)),
        "Along the path, by category": "".join(
            f"<h3>{_text(sheet.heads[0])}</h3>{_table(sheet)}" for sheet in category_sheets(pair)
        ),
        "Barriers": _table(barrier_sheet(pair)),
    }
    folded = "".join(_folded(name, content) for name, content in parts.items())
    return _section(f"Every number of {pair.name}", folded)


def _table(sheet: Sheet, *, best: int | None = None) -> str:
    """A table that scrolls sideways where there is no room."""
    heads = "".join(
        f'<th scope="col"{_right(index)}>{_text(head)}</th>'
        for index, head in enumerate(sheet.heads)
    )
    rows = "".join(_row(cells, best=index == best) for index, cells in enumerate(sheet.rows))
    return (
        f'<div class="scroll" tabindex="0"><table class="sheet"><thead><tr>{heads}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )


def _row(cells: Sequence[str], *, best: bool) -> str:
    first, *rest = (_text(cell.strip().removeprefix("> ")) for cell in cells)
    numbers = "".join(f'<td class="number">{cell}</td>' for cell in rest)
    return f'<tr{" class=best" if best else ""}><th scope="row">{first}</th>{numbers}</tr>'


def _right(index: int) -> str:
    return ' class="number"' if index else ""


def _section(title: str, content: str) -> str:
    return f'<section aria-label="{_text(title)}"><h2>{_text(title)}</h2>{content}</section>'


def _folded(title: str, content: str) -> str:
    return f'<details class="every"><summary>{_text(title)}</summary>{content}</details>'


def _text(text: str) -> str:
    return escape(printable(text.replace("\n", " ")))
