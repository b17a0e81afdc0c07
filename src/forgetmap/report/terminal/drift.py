"""A drift as lines and tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Literal

from forgetmap.capabilities import (
    ARROW,
    EITHER_WAY,
    SHARES,
    Cell,
    DriftRanking,
    DriftResult,
    MetricCell,
    Recovery,
    describe_cell,
)
from forgetmap.text import Blocks, Line, Sheet, signed

DriftTable = Literal["capability", "metric"]
"""Rows of the table."""
MAX_CAUTIONS = 12
INTERVAL = "95% interval"
EMPTY = "-"
SPARE = ("items", "rel. %", "form", INTERVAL, "before", "after")
"""Columns of metrics that are dropped on a narrow screen, in this order."""
LEGEND = {
    "default": {
        "drift": (
            f"mean effect; positive is better, or more where any change is drift ({EITHER_WAY}). "
            "Cohen's h for shares, change over range for ratings, log-ratio for counts. * "
            "significant at FDR 5%; ~ within the noise of the model before. No data is not 0."
        ),
    },
    "captrack-relative": {
        "drift": "relative change in %, averaged as published; positive is more. No data is not 0.",
    },
}

OF_ONE = {
    "default": {
        "either way": "mean change of the metrics in either direction, beyond noise.",
        "metrics": "number of metrics with data; the others are left empty.",
    },
    "captrack-relative": {"+-": "spread between metrics, not an error."},
}
"""Columns of the table of a single model only."""
SIZE = "root mean square of the drift of capabilities, in either direction, minus noise."
UNDONE = "share of the drift from the first model that a step undid; below 0 it drifted further."


def tell_drift(result: DriftResult, by: DriftTable = "capability") -> Blocks:
    """Describe the largest drifts, warnings, the table, and cells without a value."""
    blocks: Blocks = [*result.opening(), *_cautions(result), Line()]
    ranking = result.ranking
    if ranking is not None:
        blocks += [_ranking_sheet(ranking), Line()]
    if by == "metric":
        blocks += _metric_tables(result, result.metrics)
    else:
        one = len(result.models) == 1
        blocks += [_model_sheet(result) if one else result.sheet(), Line()]
        blocks += _missing(result.capabilities)
    if result.deep_dive:
        blocks += [Line("Deep dive (not in any average)", "strong")]
        blocks += _metric_tables(result, result.deep_dive)
    if result.recoveries:
        blocks += _recovery_tables(result.recoveries)
    legend = dict(LEGEND[result.aggregator])
    if by == "capability" and len(result.models) == 1:
        legend |= OF_ONE[result.aggregator]
    if ranking is not None:
        legend["size"] = SIZE
    if result.recoveries:
        legend["undone"] = UNDONE
    return [*blocks, *(Line(text, "faint", f"{name:<10}") for name, text in legend.items())]


def _cautions(result: DriftResult) -> Iterator[Line]:
    """Yield a few warnings of each kind, and the number of further ones."""
    by_code: dict[str, dict[str, list[str]]] = {}
    for caution in result.cautions:
        by_code.setdefault(caution.code, {}).setdefault(caution.message, []).append(caution.model)
    most = max(1, MAX_CAUTIONS // max(len(by_code), 1))
    for code, messages in by_code.items():
        for message, models in list(messages.items())[:most]:
            own = "" if set(models) == set(result.models) else f"{', '.join(models)}: "
            # A message about a run already names it.
            yield Line(f"{own}{message.removeprefix(own)}", "warning", "!")
        if len(messages) > most:
            more = f"{len(messages) - most} more like this ({code}); use --json for all."
            yield Line(more, "warning", "!")


def _missing(cells: Sequence[Cell] | Sequence[MetricCell]) -> Iterator[Line]:
    """Yield cells without a value, grouped by reason."""
    by_note: dict[str, dict[str, None]] = {}
    for cell in cells:
        if cell.note:
            by_note.setdefault(cell.note, {})[cell.id] = None
    for note, ids in by_note.items():
        yield Line(f"{', '.join(ids)}: {note}.", "faint", "no value")


def _model_sheet(result: DriftResult) -> Sheet:
    """Return the table of one model: groups and capabilities as rows."""
    published = result.aggregator == "captrack-relative"
    heads = ("+-",) if published else (INTERVAL, "either way", "items")
    cells = result.cells(result.models[0])
    rows = [
        (
            result.row_name(cell),
            describe_cell(cell).drift,
            *((_number(cell.std, 2),) if published else _details(cell)),
            str(cell.coverage),
        )
        for cell in cells
    ]
    shades = {(row, 1): result.shade(cell) for row, cell in enumerate(cells)}
    spare = () if published else ("items", "either way", INTERVAL)
    return Sheet(("", "drift", *heads, "metrics"), rows, spare=spare, shades=shades)


def _details(cell: Cell) -> tuple[str, ...]:
    return (_interval(cell), _number(cell.size, 2), f"{cell.n:,}" if cell.n else EMPTY)


def _metric_tables(result: DriftResult, cells: Sequence[MetricCell]) -> Iterator[Line | Sheet]:
    for model in result.models:
        own = [cell for cell in cells if cell.model == model and cell.value is not None]
        yield from (Line(model, "strong"), _metric_sheet(result, own), Line())
    yield from _missing(cells)


def _ranking_sheet(ranking: DriftRanking) -> Sheet:
    """Return models in order of drift: its size, and the probability that it is the largest."""
    models = ranking.models
    rows = [
        ("Total size of drift", *(f"{entry.size:.2f} " for entry in models)),
        (INTERVAL, *(f"{entry.low:.2f} to {entry.high:.2f} " for entry in models)),
        ("Probability of being largest", *(f"{entry.largest:.2f} " for entry in models)),
    ]
    return Sheet(("", *(entry.model for entry in models)), rows, whole_heads=True)


def _recovery_tables(recoveries: Sequence[Recovery]) -> Iterator[Line | Sheet]:
    """Yield for each step the capabilities that had significantly drifted before it."""
    steps: dict[tuple[str, str], list[Recovery]] = {}
    for entry in recoveries:
        steps.setdefault((entry.between, entry.model), []).append(entry)
    heads = ("", "drift before", "drift after", "undone", INTERVAL)
    for (between, model), entries in steps.items():
        yield Line(f"What the step {between}{ARROW}{model} undid", "strong")
        rows = [
            (
                f"{entry.name} [{entry.id}]",
                signed(entry.drift),
                signed(entry.left),
                f"{signed(100 * entry.undone, 0)}%",
                f"{signed(100 * entry.low, 0)} to {signed(100 * entry.high, 0)}%",
            )
            for entry in entries
        ]
        yield from (Sheet(heads, rows, spare=("drift after", "drift before")), Line())


def _metric_sheet(result: DriftResult, cells: Sequence[MetricCell]) -> Sheet:
    """Return the table of metrics, without empty columns, which would take room from names."""
    texts = {name: [write(cell) for cell in cells] for name, write in METRIC_COLUMNS.items()}
    heads = [name for name, column in texts.items() if name == "drift" or set(column) - {EMPTY}]
    columns = [[cell.id for cell in cells], *(texts[name] for name in heads)]
    column = 1 + heads.index("drift")
    shades = {(row, column): result.shade(cell) for row, cell in enumerate(cells)}
    spare = tuple(name for name in SPARE if name in heads)
    rows = list(zip(*columns, strict=True))
    return Sheet(("metric", *heads), rows, spare=spare, shades=shades)


def _mean(mean: float | None, cell: MetricCell) -> str:
    if mean is None:
        return EMPTY
    return f"{100 * mean:.1f}%" if cell.scale in SHARES else f"{mean:,.2f}"


def _change(value: float | None, digits: int = 1) -> str:
    return EMPTY if value is None else signed(value, digits)


def _number(value: float | None, digits: int) -> str:
    return EMPTY if value is None else f"{value:.{digits}f}"


def _interval(cell: Cell | MetricCell) -> str:
    if cell.low is None or cell.high is None:
        return EMPTY
    return f"{signed(cell.low)} to {signed(cell.high)}"


METRIC_COLUMNS: dict[str, Callable[[MetricCell], str]] = {
    "before": lambda cell: _mean(cell.before, cell),
    "after": lambda cell: _mean(cell.after, cell),
    # Points for shares, else the unit of the metric, with the digits of its means.
    "change": lambda cell: _change(cell.points, 1 if cell.scale in SHARES else 2),
    "rel. %": lambda cell: _change(cell.relative),
    "forgotten": lambda cell: _number(cell.forgotten, 0),
    "gained": lambda cell: _number(cell.gained, 0),
    "form": lambda cell: _change(cell.form.points if cell.form else None),
    "drift": lambda cell: describe_cell(cell).drift,
    INTERVAL: _interval,
    "items": lambda cell: f"{cell.n:,}" if cell.n else EMPTY,
}
