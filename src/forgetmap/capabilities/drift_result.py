"""The result of a drift, and how it reads: what to know first, a table, what its words mean.

One model after gets a line per capability with its limits; of several, each is a column of a heat
map in which losses and gains have different colours.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from io import StringIO
from typing import TYPE_CHECKING, Any, Literal

from forgetmap.capabilities.choices import Aggregator
from forgetmap.capabilities.result import Cell, Gate, MetricCell
from forgetmap.capabilities.taxonomy import SHARES
from forgetmap.stats import FDR
from forgetmap.text import printable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

Rows = Literal["capability", "metric"]
WIDTH = 110
MOST_GATES = 12
NOTHING = "-"
STRONG = {"default": 0.3, "captrack-relative": 15.0}
"""Drift that is shown in the strongest colour."""
GOES_ON = {
    "better": "",
    "more": "+ is more",
    "mixed": "+ is better or more",
}
EFFECTS = (
    "drift: mean effect, positive is better, or more where any change is drift. Cohen's h for "
    "shares, change over range for ratings, log-ratio for counts. * at FDR 5%; ~ within the noise "
    "of the model before."
)
EITHER_WAY = (
    "either way: how far metrics moved in any direction beyond noise; metrics: how many have data. "
    "Nothing is put in for the others."
)
PUBLISHED = (
    "Relative change in %, averaged as published: positive is more, whatever that means; +- is the "
    "spread between metrics, not an error."
)
LEGEND = {"default": (EFFECTS, EITHER_WAY), "captrack-relative": (PUBLISHED,)}


@dataclass(frozen=True, slots=True)
class DriftResult:
    """Drift of one or several models against the same model before.

    Attributes:
        taxonomy: its name.
        aggregator: how metrics were averaged; values are effects, or percent if published.
        before: name of the model before.
        models: names of the models after, in order.
        gates: what to know first.
        groups: cells, model by model.
        capabilities: cells, model by model.
        metrics: cells, model by model.
        draws: of the bootstrap.
        seed: of the bootstrap.
    """

    taxonomy: str
    aggregator: Aggregator
    before: str
    models: tuple[str, ...]
    gates: tuple[Gate, ...]
    groups: tuple[Cell, ...]
    capabilities: tuple[Cell, ...]
    metrics: tuple[MetricCell, ...]
    draws: int | None = None
    seed: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain values; what is no number is None."""
        plain: dict[str, Any] = _plain(asdict(self))
        return plain

    def to_json(self, *, indent: int | None = 2) -> str:
        """All numbers and words as JSON."""
        return json.dumps(self.to_dict(), indent=indent, ensure_ascii=False, allow_nan=False)

    def __repr__(self) -> str:
        return as_text(self)


def as_text(result: DriftResult, *, rows: Rows = "capability", width: int | None = None) -> str:
    """A drift as plain text."""
    from rich.console import Console  # 50 ms, only when something is shown

    stream = StringIO()
    # In a notebook rich would display what is meant for the stream.
    console = Console(
        file=stream,
        color_system=None,
        legacy_windows=False,
        width=width or WIDTH,
        force_jupyter=False,
    )
    print_drift(console, result, rows=rows)
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines()).rstrip()


def print_drift(console: Console, result: DriftResult, *, rows: Rows = "capability") -> None:
    """Print the gates, the table, what has no value and why, and what the words mean."""
    _print(console, f"Drift from {result.before} ({result.taxonomy}, {result.aggregator})", "bold")
    for line in _told(result.gates):
        _print(console, line, "yellow")
    if rows == "metric":
        for model in result.models:
            _print(console, f"\n{model}", "bold")
            console.print(_metric_table(result, model, console.width))
    else:
        table = _one_model(result, console.width) if len(result.models) == 1 else _heat_map(result)
        console.print(table)
    for line in _empty(result.metrics if rows == "metric" else result.capabilities):
        _print(console, line, "dim")
    for line in LEGEND[result.aggregator]:
        _print(console, line, "dim")


def _empty(cells: Iterable[Cell | MetricCell]) -> Iterable[str]:
    """What has no value, by the reason why."""
    by_note: dict[str, dict[str, None]] = {}
    for cell in cells:
        if cell.note:
            by_note.setdefault(cell.note, {})[cell.id] = None
    for note, ids in by_note.items():
        yield f"{NOTHING} {', '.join(ids)}: {note}."


def _print(console: Console, text: str, style: str) -> None:
    from rich.text import Text

    lines = "\n".join(map(printable, text.split("\n")))
    console.print(Text(lines, style=style))


def _told(gates: Sequence[Gate]) -> Iterable[str]:
    """The gates, each kind once with how often it occurs beyond a few."""
    by_code: dict[str, list[Gate]] = {}
    for gate in gates:
        by_code.setdefault(gate.code, []).append(gate)
    most = max(1, MOST_GATES // max(len(by_code), 1))
    for same in by_code.values():
        messages = list(dict.fromkeys(gate.message for gate in same))
        for message in messages[:most]:
            yield f"! {message}"
        if len(messages) > most:
            yield f"! {len(messages) - most} more like this ({same[0].code}); --json has all."


def _table(heads: Sequence[str]) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(heads[0], overflow="ellipsis", no_wrap=True, min_width=14)
    for head in heads[1:]:
        table.add_column(head, justify="right", no_wrap=True)
    return table


def _one_model(result: DriftResult, width: int) -> Table:
    published = result.aggregator == "captrack-relative"
    heads = ["", "drift", "+-" if published else "95% limits"]
    heads += [] if published else ["either way", "items"]
    table = _table([*heads, "metrics", ""])
    for group in result.groups:
        _add(table, group, result, group.id, style="bold")
        for cell in result.capabilities:
            if cell.group == group.id:
                _add(table, cell, result, f"  {cell.id} {cell.name}")
    _keep_numbers_whole(table, width)
    return table


def _keep_numbers_whole(table: Table, width: int) -> None:
    """Where there is no room, names and notes are cut, and no number."""
    names, *numbers, notes = table.columns
    for column in numbers:
        column.min_width = max(map(len, map(str, (column.header, *column.cells))))
    room = width - sum((column.min_width or 0) + 2 for column in numbers)
    widest = max(map(len, map(str, names.cells)), default=0)
    names.max_width = max(min(widest, room - 3), names.min_width or 1)
    notes.max_width = max(room - names.max_width - 2, 1)


def _add(table: Table, cell: Cell, result: DriftResult, name: str, style: str = "") -> None:
    from rich.text import Text

    note = GOES_ON[cell.direction] if cell.value is not None else ""
    cells = [Text(printable(name)), Text(_value(cell), style=_colour(cell, result))]
    if result.aggregator == "captrack-relative":
        cells.append(Text(_signless(cell.std)))
        note = ""
    else:
        cells.append(Text(_limits(cell.low, cell.high)))
        cells += [Text(_signless(cell.size)), Text(f"{cell.n:,}" if cell.n else NOTHING)]
    cells += [Text(str(cell.coverage)), Text(printable(note), style="dim", justify="left")]
    table.add_row(*cells, style=style)


def _heat_map(result: DriftResult) -> Table:
    from rich.text import Text

    table = _table(["", *map(printable, result.models)])
    cells = {(cell.model, cell.id): cell for cell in (*result.capabilities, *result.groups)}
    first = result.models[0]
    for group in (cell for cell in result.groups if cell.model == first):
        lines = [(group, group.id, "bold")]
        lines += [
            (cell, f"  {cell.id} {cell.name}", "")
            for cell in result.capabilities
            if cell.model == first and cell.group == group.id
        ]
        for cell, name, style in lines:
            row = [cells[model, cell.id] for model in result.models]
            shown = [Text(_value(part), style=_colour(part, result)) for part in row]
            table.add_row(Text(printable(name)), *shown, style=style)
    return table


def _metric_table(result: DriftResult, model: str, width: int) -> Table:
    from rich.text import Text

    cells = [cell for cell in result.metrics if cell.model == model and cell.value is not None]
    shown = {head: [make(cell) for cell in cells] for head, make in COLUMNS.items()}
    room = width - max((len(cell.id) for cell in cells), default=0)
    for head in SPARE:
        if sum(max(map(len, [head, *column])) + 2 for head, column in shown.items()) > room:
            del shown[head]
    table = _table(["metric", *shown])
    for index, cell in enumerate(cells):
        line = [Text(printable(cell.id))]
        line += [
            Text(column[index], style=_colour(cell, result) if head == "drift" else "")
            for head, column in shown.items()
        ]
        table.add_row(*line)
    return table


SPARE = ("items", "rel. %", "form", "95% limits", "before", "after")
"""Columns to leave out, one after the other, where there is no room."""
COLUMNS: dict[str, Callable[[MetricCell], str]] = {
    "before": lambda cell: _mean(cell.before, cell),
    "after": lambda cell: _mean(cell.after, cell),
    "points": lambda cell: _signed(cell.points, 1),
    "rel. %": lambda cell: _signed(cell.relative, 1),
    "lost": lambda cell: _signless(cell.lost, 0),
    "gained": lambda cell: _signless(cell.gained, 0),
    "form": lambda cell: _signed(cell.form.points if cell.form else None, 1),
    "drift": lambda cell: _value(cell),  # noqa: PLW0108  # defined below
    "95% limits": lambda cell: _limits(cell.low, cell.high),
    "items": lambda cell: f"{cell.n:,}" if cell.n else NOTHING,
}


def _mean(mean: float | None, cell: MetricCell) -> str:
    if mean is None:
        return NOTHING
    return f"{100 * mean:.1f}%" if cell.scale in SHARES else f"{mean:,.2f}"


def _value(cell: Cell | MetricCell) -> str:
    """The drift, and whether it is more than chance or noise. No data is never a number."""
    if cell.value is None:
        return NOTHING
    mark = "*" if cell.q is not None and cell.q <= FDR else " "
    return _signed(cell.value, 2) + ("~" if cell.within_noise else mark)


def _signed(value: float | None, digits: int) -> str:
    return NOTHING if value is None else f"{value:+.{digits}f}"


def _signless(value: float | None, digits: int = 2) -> str:
    return NOTHING if value is None else f"{value:.{digits}f}"


def _limits(low: float | None, high: float | None) -> str:
    return NOTHING if low is None or high is None else f"{low:+.2f} to {high:+.2f}"


def _colour(cell: Cell | MetricCell, result: DriftResult) -> str:
    """Red for down, blue for up; the darker the farther, none within noise or without data."""
    if cell.value is None or cell.within_noise:
        return "dim"
    share = min(abs(cell.value) / STRONG[result.aggregator], 1.0)
    light = round(235 - 150 * share)
    r, g, b = (235, light, light) if cell.value < 0 else (light, light, 235)
    return f"black on rgb({r},{g},{b})"


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
