"""The report of a sweep as one HTML file: words and tables as they are, figures drawn by Vega."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

import forgetmap
from forgetmap.report import (
    drawable,
    fill_page,
    packed,
    page_file,
    policy,
    script_of,
    vega_bundle,
    write_whole,
)
from forgetmap.sweep.analyse import ALL
from forgetmap.sweep.figures import sweep_figures
from forgetmap.sweep.markdown import title_of
from forgetmap.sweep.render import (
    LEGEND,
    barrier_words,
    benefits,
    drift_words,
    groups_sheet,
    points_sheet,
    signed,
    span,
    told,
)
from forgetmap.sweep.result import Barrier, PairResult, SweepResult
from forgetmap.sweep.words import limits, spot
from forgetmap.text import Sheet, percent, printable

OWN = "forgetmap.sweep"


def write_page(result: SweepResult, path: Path) -> Path:
    """Write the report; it appears under its name only when it is whole."""
    return write_whole(page_html(result), path)


def page_html(result: SweepResult) -> str:
    """The report as the text of one HTML file."""
    style = page_file("style.css") + page_file("sweep.css", OWN)
    script, vega = script_of(started_by=page_file("sweep.js", OWN)), vega_bundle()
    figures = [drawable(figure) for figure in sweep_figures(result)]
    parts = {
        "csp": policy([script, vega], style),
        "title": _text(title_of(result)),
        "style": style,
        "summary": _summary(result),
        "tables": "".join(_pair_tables(result, pair) for pair in result.pairs),
        "footer": _text(f"Made with forgetmap {forgetmap.__version__}. Nothing leaves this file."),
        "payload": packed(result.model_dump_json()),
        "figures": packed(json.dumps(figures, ensure_ascii=False, allow_nan=False)),
        "script": script,
        "vega": vega,
    }
    return fill_page(parts, OWN)


def _summary(result: SweepResult) -> str:
    several = len(result.pairs) > 1
    parts = [_pair_summary(result, pair, several=several) for pair in result.pairs]
    if several:
        words = f'<p class="lead">{_text(result.correlation.words)}</p>'
        parts.append(_section("Weight drift and benefit", words + table(benefits(result.pairs))))
    return "".join(parts)


def _pair_summary(result: SweepResult, pair: PairResult, *, several: bool) -> str:
    tag = "h2" if several else "h1"
    names = f"{result.base} → {pair.tuned}"
    outside = " outside the target" if result.targets else ""
    inside = " in the target" if result.targets else ""
    facts = (
        f"The tuned model forgot {pair.lost:,} items{outside} and gained {pair.gained:,}{inside}; "
        f"{pair.items:,} items in all, suite {result.suite}."
    )
    parts = [
        f'<p class="names">{_text(names)}</p>',
        f"<{tag}>{_text(_first_sentence(pair))}</{tag}>",
        f'<p class="lead">{_text(pair.best.words)}</p>',
        f'<p class="words">{_text(facts)}</p>',
        *(f'<p class="words">{_text(barrier_words(b))}</p>' for b in _overall(pair)),
    ]
    if pair.drift is not None:
        parts.append(f'<p class="words">{_text(drift_words(pair.drift))}</p>')
    if pair.notices:
        listed = "".join(f"<li>{_text(each)}</li>" for each in pair.notices)
        parts.append(f'<div class="card warned"><ul class="warnings">{listed}</ul></div>')
    return f'<section aria-label="Summary">{"".join(parts)}</section>'


def _first_sentence(pair: PairResult) -> str:
    if pair.best.point is None:
        return "No merge is best"
    point = pair.points[pair.best.point]
    sure = "" if pair.best.sure == "sure" else ", not surely"
    high = point.benefit_all.high
    vain = ", though mixing answers would do better" if high is not None and high < 0 else ""
    return f"Best merge: {spot(point)}{sure}{vain}"


def _overall(pair: PairResult) -> list[Barrier]:
    return [each for each in pair.barriers if each.group == ALL]


def _pair_tables(result: SweepResult, pair: PairResult) -> str:
    best = None if pair.best.point is None else told(pair).index(pair.best.point)
    legend = "".join(
        f"<dt>{_text(name)}</dt><dd>{_text(text)}</dd>" for name, text in LEGEND.items()
    )
    points = (
        table(points_sheet(pair), best=best)
        + f'<dl class="counts faint">{legend}</dl><p class="faint words">{_text(result.rule)}</p>'
    )
    title = f"Every merge of {pair.name}" if len(result.pairs) > 1 else "Every merge"
    parts = [_section(title, points), _every(pair)]
    if pair.drift is not None:
        drift = pair.drift
        sheets = table(groups_sheet("part", [drift.total, *drift.kinds, *drift.layers], strong=1))
        modules = table(groups_sheet("module", drift.modules))
        parts.append(_section("Distance in weight space", sheets + _folded("By module", modules)))
    return "".join(parts)


def _every(pair: PairResult) -> str:
    """All limits, both comparisons, categories and barriers."""
    parts = {
        "All limits: each on its own, and for all merges at once": table(_limits_sheet(pair)),
        "Against both parents": table(_parents_sheet(pair)),
        "Along the path, by category": "".join(
            f"<h3>{_text(sheet.heads[0])}</h3>{table(sheet)}" for sheet in _category_sheets(pair)
        ),
        "Barriers": table(_barrier_sheet(pair)),
    }
    folded = "".join(_folded(name, content) for name, content in parts.items())
    return _section(f"Every number of {pair.name}", folded)


def _limits_sheet(pair: PairResult) -> Sheet:
    names = {
        "forgotten": "forgetting", "gained": "backward_transfer", "gains kept": "retained",
        "recovered": "recovered",
    }  # fmt: skip
    heads = ["merge"]
    for name in names:
        heads += [name, "alone", "at once"]
    rows = []
    for place in told(pair):
        point = pair.points[place]
        cells = [point.reused or spot(point)]
        for name in names.values():
            alone, together = getattr(point, name), getattr(point, f"{name}_all")
            cells += [percent(alone.value), span(alone), span(together)]
        rows.append(tuple(cells))
    return Sheet(tuple(heads), rows)


def _parents_sheet(pair: PairResult) -> Sheet:
    heads = ("merge", "lost from base", "gained on base", "lost from tuned", "gained on tuned",
             "benefit, at once", "over budget, at once", "below line, at once", "loss")  # fmt: skip
    rows = []
    for place in told(pair):
        point = pair.points[place]
        apart = [
            f"{signed(each.value)} ({signed(each.low)} to {signed(each.high)})"
            for each in (point.benefit_all, point.over_budget, point.below_line)
        ]
        rows.append(
            (
                point.reused or spot(point),
                limits(point.forgetting), limits(point.backward_transfer),
                limits(point.lost_from_tuned), limits(point.gained_on_tuned), *apart,
                "-" if point.loss is None else f"{point.loss:.3f}",
            )
        )  # fmt: skip
    return Sheet(heads, rows)


def _category_sheets(pair: PairResult) -> Iterable[Sheet]:
    names = [group.name for group in pair.points[0].groups]
    heads = ("items", "accuracy", "forgotten", "95% limits", "gained", "95% limits", "really lost")
    for place, name in enumerate(names):
        rows = []
        for number in told(pair):
            point = pair.points[number]
            group = point.groups[place]
            real = group.really_lost
            value = f"{percent(real.value)} " if real.value is not None else ""
            rows.append(
                (
                    point.reused or spot(point), f"{group.n:,}", percent(group.accuracy),
                    percent(group.forgetting.value), span(group.forgetting),
                    percent(group.backward_transfer.value), span(group.backward_transfer),
                    f"{value}{span(real)}",
                )
            )  # fmt: skip
        yield Sheet((name, *heads), rows)


def _barrier_sheet(pair: PairResult) -> Sheet:
    heads = ("items", "path", "of", "greatest distance below the line", "limits", "at")
    rows = []
    for each in pair.barriers:
        height = each.height
        shown = signed if each.measure == "accuracy" else _loss
        low, high = shown(height.low), shown(height.high)
        row = (each.group, each.method, each.measure, shown(height.value), f"{low} to {high}")
        rows.append((*row, f"{each.weight:g}"))
    return Sheet(heads, rows)


def _loss(value: float | None) -> str:
    return "-" if value is None else f"{value:+.3f}"


def table(sheet: Sheet, *, best: int | None = None) -> str:
    """A table that scrolls sideways where there is no room."""
    heads = "".join(
        f'<th scope="col"{_right(place)}>{_text(head)}</th>'
        for place, head in enumerate(sheet.heads)
    )
    rows = "".join(_row(cells, best=place == best) for place, cells in enumerate(sheet.rows))
    return (
        f'<div class="scroll" tabindex="0"><table class="sheet"><thead><tr>{heads}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )


def _row(cells: Sequence[str], *, best: bool) -> str:
    first, *rest = (_text(cell.strip().removeprefix("> ")) for cell in cells)
    numbers = "".join(f'<td class="number">{cell}</td>' for cell in rest)
    return f'<tr{" class=best" if best else ""}><th scope="row">{first}</th>{numbers}</tr>'


def _right(place: int) -> str:
    return ' class="number"' if place else ""


def _section(title: str, content: str) -> str:
    return f'<section aria-label="{_text(title)}"><h2>{_text(title)}</h2>{content}</section>'


def _folded(title: str, content: str) -> str:
    return f'<details class="every"><summary>{_text(title)}</summary>{content}</details>'


def _text(text: str) -> str:
    return escape(printable(text.replace("\n", " ")))
