"""One page on a whole project: training, comparison, mitigation and merge."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path

from forgetmap.comparison import Comparison
from forgetmap.report.figures.comparison.cells import cells
from forgetmap.report.figures.comparison.forest import forest
from forgetmap.report.figures.figure import Figure, as_table
from forgetmap.report.figures.registry import records_of
from forgetmap.report.figures.story import both_categories, both_curves
from forgetmap.report.figures.sweep.curves import path as path_figure
from forgetmap.report.figures.sweep.curves import trade
from forgetmap.report.figures.sweep.front import pareto_front
from forgetmap.report.figures.watch import groups
from forgetmap.report.html.lab import first_card
from forgetmap.report.html.parts import (
    definitions,
    escaped,
    folded,
    how_we_know,
    paragraphs,
    section,
    table_of,
)
from forgetmap.report.html.sections import Pictures, SectionsPage
from forgetmap.report.html.shell import Page, fill_shell, vega_bundle, write_page
from forgetmap.report.payloads import payload_for
from forgetmap.report.payloads.lab import KeyNumber
from forgetmap.report.payloads.schema import Items, Payload
from forgetmap.report.payloads.sweep import LEGEND, best_merge, points_sheet
from forgetmap.report.payloads.watch import watch_facts, watch_gaps, watch_sentences, watch_sheet
from forgetmap.sweep import Sweep, SweepResult, listed_points
from forgetmap.text import Sheet, share, shorten
from forgetmap.train import WatchHistory

CONTENTS = {
    "watched": "During training",
    "forgotten": "What plain fine-tuning forgot",
    "protected": "The same training with protection",
    "merges": "Merging instead",
    "how": "How we know",
}
MAX_FLIPS = 12
FLIPS = {"task": "task", "question": "question", "gold": "right answer",
         "answer_before": "before", "answer_after": "after"}  # fmt: skip
LONGEST = 90


@dataclass(frozen=True)
class WatchedTraining:
    """One training of the story.

    Attributes:
        name: name, such as `plain fine-tuning`.
        history: history of the watch.
        comparison: comparison of the models before and after it.
        score: share of the new task known at the end, if measured.
    """

    name: str
    history: WatchHistory
    comparison: Comparison | Payload
    score: float | None = None

    @property
    def payload(self) -> Payload:
        """Payload of the comparison."""
        payload = payload_for(self.comparison)
        assert isinstance(payload, Payload)  # noqa: S101  # of a comparison it is
        return payload


def write_story(
    plain: WatchedTraining,
    protected: WatchedTraining,
    sweep: Sweep | SweepResult,
    path: str | Path,
    *,
    title: str = "Training without forgetting",
) -> Path:
    """Write one page about two trainings and the merges of one of them.

    Args:
        plain: the training without protection.
        protected: the same training with a mitigation.
        sweep: merges of the start model with a trained model.
        path: file to write; an existing one is replaced.
        title: title of the page.

    Returns:
        The file.

    Raises:
        OutputError: the file cannot be written.
    """
    merges = sweep.result if isinstance(sweep, Sweep) else sweep
    page = story_page(plain, protected, merges, title)
    return write_page(fill_shell(page, vega_bundle()), Path(path))


def story_page(
    plain: WatchedTraining, protected: WatchedTraining, sweep: SweepResult, title: str
) -> Page:
    """Return the page."""
    page = SectionsPage()
    payloads = {"plain": plain.payload, "protected": protected.payload}
    page.add(_start(plain, protected, payloads, sweep, title))
    page.add(_watched(page, plain, protected))
    page.add(_forgotten(page, plain, payloads["plain"]))
    page.add(_protected(page, plain, protected, payloads))
    page.add(_merges(page, sweep))
    page.add(f'<div id="how">{how_we_know(_facts(plain, sweep))}</div>')
    parts = {
        "plain": _values(plain, payloads["plain"]),
        "protected": _values(protected, payloads["protected"]),
        "sweep": sweep.model_dump_json(),
    }
    result = ",".join(f"{json.dumps(name)}:{value}" for name, value in parts.items())
    return page.finish(title, "story.json", f"{{{result}}}")


def _values(training: WatchedTraining, payload: Payload) -> str:
    """Return the numbers as JSON, without the texts of items."""
    compared = payload.comparisons[0].to_json(indent=None)
    return f'{{"watch":{training.history.model_dump_json()},"comparison":{compared}}}'


def _start(
    plain: WatchedTraining,
    protected: WatchedTraining,
    payloads: dict[str, Payload],
    sweep: SweepResult,
    title: str,
) -> str:
    lost = {name: _lost(payload) for name, payload in payloads.items()}
    headline = (
        f"{plain.name} forgot {share(lost['plain'])} of the items; {protected.name}, "
        f"{share(lost['protected'])}."
    )
    ratio = None if not lost["plain"] else lost["protected"] / lost["plain"]
    number = None if ratio is None else KeyNumber(
        f"{ratio:.2f}\u00d7", f"as many items forgotten {protected.name} as by {plain.name}"
    )  # fmt: skip
    links = "".join(
        f'<li><a href="#{name}">{escaped(words)}</a></li>' for name, words in CONTENTS.items()
    )
    card = first_card(title, headline, number, [best_merge(sweep.pairs[0]) + "."])
    both = table_of(_trainings_sheet([plain, protected], list(payloads.values())))
    return f'{card}{both}<nav aria-label="Contents"><ol class="contents">{links}</ol></nav>'


def _lost(payload: Payload) -> float:
    total = payload.comparisons[0].total
    return total.n10 / total.n if total.n else 0.0


def _trainings_sheet(trainings: list[WatchedTraining], payloads: list[Payload]) -> Sheet:
    """Return a table of both trainings."""
    heads = ["training", "verdict", "forgotten", "gained", "accuracy before", "after", "alarm"]
    scored = any(training.score is not None for training in trainings)
    rows = []
    for training, payload in zip(trainings, payloads, strict=True):
        total = payload.comparisons[0].total
        alarms = training.history.alarms
        row = [
            training.name, payload.summaries[0].badge, share(_lost(payload)),
            share(total.n01 / total.n if total.n else None), share(total.acc_before),
            share(total.acc_after), f"step {alarms[0].step:,}" if alarms else "none",
        ]  # fmt: skip
        rows.append(tuple(row + [share(training.score)] * scored))
    return Sheet(tuple(heads + ["new task"] * scored), rows)


def _watched(page: SectionsPage, plain: WatchedTraining, protected: WatchedTraining) -> str:
    trainings = (plain, protected)
    curves = both_curves({training.name: training.history for training in trainings})
    small = groups(plain.history)
    words = "".join(
        f"<h3>{escaped(training.name)}</h3>{paragraphs(watch_sentences(training.history))}"
        + "".join(
            f'<p class="words">{escaped(f"Gap at {gap}.")}</p>'
            for gap in watch_gaps(training.history)
        )
        + folded("Every look", table_of(watch_sheet(training.history)))
        for training in trainings
    )
    figures = [curves] if small is None else [curves, small]
    return section(CONTENTS["watched"], page.place(Pictures(figures)) + words, name="watched")


def _verdict(payload: Payload, name: str) -> str:
    """Return badge, verdict, interval and counts."""
    summary = payload.summaries[0]
    lines = (summary.interval, summary.counts, summary.noise, summary.gained, summary.tasks)
    return (
        f'<div class="card first edge-{summary.tone}"><p class="names">{escaped(name)}</p>'
        f'<p><span class="verdict tone-{summary.tone}">{escaped(summary.badge)}</span></p>'
        f"{paragraphs([summary.sentence], 'lead')}{paragraphs(list(filter(None, lines)))}</div>"
    )


def _forgotten(page: SectionsPage, plain: WatchedTraining, payload: Payload) -> str:
    drawn = [replace(figure, name=f"plain_{figure.name}")
             for figure in (cells(payload), forest(payload)) if figure is not None]  # fmt: skip
    content = _verdict(payload, plain.name) + page.place(Pictures(drawn, _rows(payload)))
    flips = _flips(payload)
    if len(flips.heads) > 1:
        total = payload.items[0].total.get("forgotten", len(flips.rows))
        title = f"{len(flips.rows)} of {total:,} items that were forgotten"
        content += f"<h3>{escaped(title)}</h3>{table_of(flips, texts=True)}"
    return section(CONTENTS["forgotten"], content, name="forgotten")


def _rows(payload: Payload) -> dict[str, list[object]]:
    return as_table(records_of(payload))


def _flips(payload: Payload) -> Sheet:
    """Return the first forgotten items, in turn from every task."""
    items: Items | None = payload.items[0] if payload.items else None
    columns = {} if items is None else items.columns
    places = [n for n, kind in enumerate(columns.get("transition", [])) if kind == "forgotten"]
    chosen = places[:: max(1, len(places) // MAX_FLIPS)][:MAX_FLIPS]
    names = [name for name in FLIPS if any(columns[name][n] for n in chosen if name in columns)]
    rows = [tuple(shorten(str(columns[name][n] or ""), LONGEST) for name in names) for n in chosen]
    return Sheet(tuple(FLIPS[name] for name in names), rows if names else [])


def _protected(
    page: SectionsPage,
    plain: WatchedTraining,
    protected: WatchedTraining,
    payloads: dict[str, Payload],
) -> str:
    results = {
        plain.name: payloads["plain"].comparisons[0],
        protected.name: payloads["protected"].comparisons[0],
    }
    figure = both_categories(results)
    drawn: list[Figure] = [] if figure is None else [figure]
    content = _verdict(payloads["protected"], protected.name)
    return section(CONTENTS["protected"], content + page.place(Pictures(drawn)), name="protected")


def _merges(page: SectionsPage, sweep: SweepResult) -> str:
    pair = sweep.pairs[0]
    best = None if pair.best.point is None else listed_points(pair).index(pair.best.point)
    figures = [f for f in (pareto_front(sweep), path_figure(sweep), trade(sweep)) if f is not None]
    content = (
        f'<p class="lead">{escaped(best_merge(pair))}</p>{paragraphs([pair.best.words])}'
        + page.place(Pictures(figures))
        + folded("Every merge", table_of(points_sheet(pair), best=best) + definitions(LEGEND))
    )
    return section(CONTENTS["merges"], content, name="merges")


def _facts(plain: WatchedTraining, sweep: SweepResult) -> dict[str, str]:
    return watch_facts(plain.history) | {
        "Verdict": (
            "Before and after are compared item by item. What is proven to be lost, at least and "
            "at most, holds for any noise and luck; the verdict compares it with the margin."
        ),
        "Merges": sweep.rule,
    }
