"""The page of a sweep, with static text and tables; Vega draws the figures."""

from __future__ import annotations

from forgetmap import __version__
from forgetmap.report.figures.registry import figures_json
from forgetmap.report.html.parts import (
    definitions,
    escaped,
    folded,
    notices_card,
    section,
    table_of,
)
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

NO_SCRIPT = "Figures need JavaScript; every number is in the tables below."


def sweep_page(result: SweepResult) -> Page:
    """Return the page."""
    title = escaped(title_of(result))
    footer = escaped(f"Made with forgetmap {__version__}. This file sends no data.")
    return Page(
        kind="sweep",
        title=title,
        top=f'<p class="title">{title}</p><div class="bar" id="switches"></div>',
        main=f"""<div id="sweep">
{_summary(result)}
<div class="bar" id="model-switch"></div>
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
        parts.insert(0, f"<h1>{escaped(title_of(result))}</h1>")
        words = f'<p class="lead">{escaped(result.correlation.words)}</p>'
        parts.append(
            section("Weight drift and benefit", words + table_of(benefits_sheet(result.pairs)))
        )
    return "".join(parts)


def _pair_summary(result: SweepResult, pair: PairResult, *, several: bool) -> str:
    tag = "h2" if several else "h1"
    names = f"{result.base} → {pair.tuned}"
    outside, inside = scope_words(result)
    facts = (
        f"The tuned model forgot {pair.lost:,} items{outside} and gained "
        f"{pair.gained:,}{inside}; {pair.items:,} items in total, suite {result.suite}."
    )
    parts = [
        f'<p class="names">{escaped(names)}</p>',
        f"<{tag}>{escaped(best_merge(pair))}</{tag}>",
        f'<p class="lead">{escaped(pair.best.words)}</p>',
        f'<p class="words">{escaped(facts)}</p>',
        *(f'<p class="words">{escaped(barrier_words(b))}</p>' for b in overall_barriers(pair)),
    ]
    if pair.drift is not None:
        parts.append(f'<p class="words">{escaped(drift_words(pair.drift))}</p>')
    parts.append(notices_card(pair.notices))
    label = f"Summary of {names}" if several else "Summary"
    content = "".join(parts)
    return f'<section class="card" aria-label="{escaped(label)}">{content}</section>'


def _pair_tables(result: SweepResult, pair: PairResult) -> str:
    best = None if pair.best.point is None else listed_points(pair).index(pair.best.point)
    points = (
        table_of(points_sheet(pair), best=best)
        + f'{definitions(LEGEND)}<p class="faint words">{escaped(result.rule)}</p>'
    )
    title = f"Every merge of {pair.name}" if len(result.pairs) > 1 else "Every merge"
    parts = [section(title, points), _every(pair)]
    if pair.drift is not None:
        drift = pair.drift
        sheets = table_of(
            groups_sheet("part", [drift.total, *drift.kinds, *drift.layers], strong=1)
        )
        modules = table_of(groups_sheet("module", drift.modules))
        parts.append(section("Distance in weight space", sheets + folded("By module", modules)))
    return "".join(parts)


def _every(pair: PairResult) -> str:
    """Return all intervals, both comparisons, categories and barriers."""
    parts = {
        "All intervals: separate, and simultaneous for all merges": table_of(limits_sheet(pair)),
        "Compared with both parents": table_of(parents_sheet(pair)),
        "Along the path, by category": "".join(
            f"<h3>{escaped(sheet.heads[0])}</h3>{table_of(sheet)}"
            for sheet in category_sheets(pair)
        ),
        "Barriers": table_of(barrier_sheet(pair)),
    }
    content = "".join(folded(name, table) for name, table in parts.items())
    return section(f"Every number of {pair.name}", content)
