"""A drift as lines and tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Literal

from forgetmap.capabilities import (
    EITHER_WAY,
    SHARES,
    Cell,
    DriftResult,
    MetricCell,
    describe_cell,
)
from forgetmap.text import Blocks, Line, Sheet, signed

DriftTable = Literal["capability", "metric"]
"""What the rows of the table are."""
MAX_CAUTIONS = 12
INTERVAL = "95% interval"
LEGEND = {
    "default": {
        "drift": "mean effect, positive is better, or more where any change is drift "
        f"({EITHER_WAY}). Cohen's h for shares, change over range for ratings, log-ratio for "
        "counts. * at FDR 5%; ~ within the noise of the model before. No data is not 0.",
        "either way": "how far metrics moved in any direction beyond noise.",
        "metrics": "how many have data. Nothing is put in for the others.",
    },
    "captrack-relative": {
        "drift": "relative change in %, averaged as published: positive is more, whatever that "
        "means. No data is not 0.",
        "+-": "spread between metrics, not an error.",
    },
}


def tell_drift(result: DriftResult, by: DriftTable = "capability") -> Blocks:
    """What drifted most, what to know first, the table, what has no value and why."""
    blocks: Blocks = [*result.opening(), *_cautions(result), Line()]
    if by == "metric":
        for model in result.models:
            blocks += [Line(model, "strong"), _metric_sheet(result, model), Line()]
        blocks += _missing(result.metrics)
    else:
        one = len(result.models) == 1
        blocks += [_model_sheet(result) if one else result.sheet(), Line()]
        blocks += _missing(result.capabilities)
    legend = LEGEND[result.aggregator].items()
    return [*blocks, *(Line(text, "faint", f"{name:<10}") for name, text in legend)]


def _cautions(result: DriftResult) -> Iterator[Line]:
    """Of each kind of caution a few, and how many more there are."""
    by_code: dict[str, dict[str, list[str]]] = {}
    for caution in result.cautions:
        by_code.setdefault(caution.code, {}).setdefault(caution.message, []).append(caution.model)
    most = max(1, MAX_CAUTIONS // max(len(by_code), 1))
    for code, messages in by_code.items():
        for message, models in list(messages.items())[:most]:
            own = "" if set(models) == set(result.models) else f"{', '.join(models)}: "
            yield Line(f"{own}{message}", "warning", "!")
        if len(messages) > most:
            more = f"{len(messages) - most} more like this ({code}); --json has all."
            yield Line(more, "warning", "!")


def _missing(cells: Sequence[Cell] | Sequence[MetricCell]) -> Iterator[Line]:
    """What has no value, by the reason why."""
    by_note: dict[str, dict[str, None]] = {}
    for cell in cells:
        if cell.note:
            by_note.setdefault(cell.note, {})[cell.id] = None
    for note, ids in by_note.items():
        yield Line(f"{', '.join(ids)}: {note}.", "faint", "no value")


def _model_sheet(result: DriftResult) -> Sheet:
    """One model: groups and capabilities down, what is known of each across."""
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
    return (_interval(cell), _number(cell.size, 2), f"{cell.n:,}" if cell.n else "-")


def _metric_sheet(result: DriftResult, model: str) -> Sheet:
    cells = [cell for cell in result.metrics if cell.model == model and cell.value is not None]
    rows = [(cell.id, *(write(cell) for write in METRIC_COLUMNS.values())) for cell in cells]
    column = 1 + list(METRIC_COLUMNS).index("drift")
    shades = {(row, column): result.shade(cell) for row, cell in enumerate(cells)}
    spare = ("items", "rel. %", "form", INTERVAL, "before", "after")
    return Sheet(("metric", *METRIC_COLUMNS), rows, spare=spare, shades=shades)


def _mean(mean: float | None, cell: MetricCell) -> str:
    if mean is None:
        return "-"
    return f"{100 * mean:.1f}%" if cell.scale in SHARES else f"{mean:,.2f}"


def _change(value: float | None) -> str:
    return "-" if value is None else signed(value, 1)


def _number(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def _interval(cell: Cell | MetricCell) -> str:
    if cell.low is None or cell.high is None:
        return "-"
    return f"{signed(cell.low)} to {signed(cell.high)}"


METRIC_COLUMNS: dict[str, Callable[[MetricCell], str]] = {
    "before": lambda cell: _mean(cell.before, cell),
    "after": lambda cell: _mean(cell.after, cell),
    "points": lambda cell: _change(cell.points),
    "rel. %": lambda cell: _change(cell.relative),
    "lost": lambda cell: _number(cell.lost, 0),
    "gained": lambda cell: _number(cell.gained, 0),
    "form": lambda cell: _change(cell.form.points if cell.form else None),
    "drift": lambda cell: describe_cell(cell).drift,
    INTERVAL: _interval,
    "items": lambda cell: f"{cell.n:,}" if cell.n else "-",
}
