"""What a drift says, in sentences: the most important first, and how sure it is."""

from __future__ import annotations

from forgetmap.capabilities import TARGET, Cell, DriftResult, MetricCell
from forgetmap.report.payloads.schema import Capabilities, DriftScale, DriftState, Withheld
from forgetmap.stats import FDR
from forgetmap.text import Blocks, Line, Sheet, counted

NO_DATA = "no data"
NOT_HERE = "n/a"
_MOVED = {
    ("better", False): "got worse",
    ("better", True): "got better",
    ("more", False): "became less",
    ("more", True): "became more",
    ("mixed", False): "moved down",
    ("mixed", True): "moved up",
}
_DIGITS: dict[DriftScale, int] = {"effect": 2, "points": 1, "relative": 1, "published": 1}
_UNITS: dict[DriftScale, str] = {"effect": "", "points": "", "relative": "%", "published": "%"}


def state_of(cell: Cell | MetricCell) -> DriftState:
    """How much is known of a cell."""
    if cell.value is None:
        return "none"
    if cell.within_noise:
        return "noise"
    chance = cell.p if cell.q is None else cell.q
    return "sure" if chance is not None and chance <= FDR else "open"


def signed(value: float, scale: DriftScale = "effect") -> str:
    """A change in words, with a true minus and never a false sign of nothing."""
    text = f"{value:+.{_DIGITS[scale]}f}"
    if not float(text):
        text = text[1:]
    return text.replace("-", "\N{MINUS SIGN}") + _UNITS[scale]


def headline(result: DriftResult, model: str) -> str:
    """What drifted most, in which direction, how sure."""
    cells = _measured(result, model)
    if not cells:
        return f"{model}: nothing can be said, no capability has data on both sides."
    beyond = [cell for cell in cells if state_of(cell) == "sure"]
    farthest = max(beyond or cells, key=lambda cell: abs(cell.value or 0.0))
    if not any(cell.low is not None for cell in cells):
        return (
            f"{model}: {_called(farthest)} drifted most: it {_moved(farthest)} "
            f"({_amount(farthest, result)}); how sure that is, averages cannot say."
        )
    if not beyond:
        return (
            f"{model}: no capability surely drifted; the largest change, of {_called(farthest)} "
            f"({_amount(farthest, result)}), may be chance or noise."
        )
    return (
        f"{model}: {_called(farthest)} drifted most: it surely {_moved(farthest)} "
        f"({_amount(farthest, result)})."
    )


def lead(result: DriftResult, model: str) -> str:
    """How many moved, and how much of the taxonomy was measured."""
    cells = _measured(result, model)
    known = {
        cell.id for cell in result.capabilities if cell.model == model and cell.group != TARGET
    }
    metrics = [
        cell
        for cell in result.metrics
        if cell.model == model and cell.weight and cell.capability in known
    ]
    have = sum(cell.value is not None for cell in metrics)
    rests = (
        f"{len(cells)} of {len(known)} capabilities have data, "
        f"{have} of {len(metrics)} metrics; nothing is put in for the others."
    )
    if not cells or all(cell.low is None for cell in cells):
        return rests
    states = [state_of(cell) for cell in cells]
    kinds = [_moved(cell) for cell, state in zip(cells, states, strict=True) if state == "sure"]
    moved = ", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(_MOVED.values())
                      if kind in kinds)  # fmt: skip
    rest = len(cells) - len(kinds)
    within = states.count("noise")
    sure = f"Surely (at most 5% false discoveries) {moved}" if kinds else "Nothing surely moved"
    noise = f" ({within} within the noise of the model before)" * bool(within)
    still = f"; {rest} may not have moved{noise}" * bool(rest)
    return f"{sure}{still}. {rests}"


def sentence(cell: Cell, result: DriftResult) -> str:
    """One capability of one model."""
    if cell.value is None:
        return f"Nothing can be said: {cell.note or NO_DATA}."
    how = {
        "sure": "surely: at most 5% false discoveries among the capabilities",
        "noise": "but the model before differs from itself as much",
        "open": "which may be chance" if cell.low is not None else "averages cannot say how surely",
        "none": "",
        "off": "",
    }[state_of(cell)]
    return (
        f"It {_moved(cell)} ({_amount(cell, result)}), {how}. It rests on "
        f"{counted(cell.n, 'item') + ', ' if cell.n else ''}{cell.coverage} metrics."
    )


def withheld(result: DriftResult) -> list[Withheld]:
    """What has no value, by the reason why."""
    by_note: dict[str, dict[str, dict[str, None]]] = {}
    for cell in result.metrics:
        if cell.note:
            by_note.setdefault(cell.note, {}).setdefault(cell.id, {})[cell.model] = None
    parts = []
    for note, ids in by_note.items():
        by_models: dict[tuple[str, ...], list[str]] = {}
        for id_, models in ids.items():
            by_models.setdefault(tuple(models), []).append(id_)
        parts += [
            Withheld(note=note, level="metric", models=list(models), ids=listed)
            for models, listed in by_models.items()
        ]
    return parts


def tell_drift(drift: Capabilities) -> Blocks:
    """A drift in lines and tables, as the terminal and Markdown take them."""
    result = drift.result
    blocks: Blocks = []
    for index in range(len(result.models)):
        blocks += [Line(drift.headlines[index], "strong"), Line(drift.leads[index])]
    messages = dict.fromkeys(f"{gate.model}: {gate.message}" for gate in result.gates)
    blocks += [Line(message, "warning", "!") for message in messages]
    blocks.append(_sheet(drift))
    blocks += [Line(f"{', '.join(missing.ids)} ({', '.join(missing.models)}).", lead=missing.note)
               for missing in drift.withheld]  # fmt: skip
    blocks.append(
        Line("Positive is better, or more where any change is drift. * beyond chance (at most 5% "
             "false discoveries); ~ within the noise of the model before. No data is not 0.")
    )  # fmt: skip
    return blocks


def _sheet(drift: Capabilities) -> Sheet:
    """Groups and capabilities down; of one model its limits, of several one column each."""
    rows, models = drift.rows, drift.result.models
    cells: dict[tuple[int, str], dict[int, int]] = {}
    for index, level in enumerate(rows.level):
        if level != "metric" and rows.scale[index] == drift.scales[0].name:
            key = (rows.order[index], rows.name[index])
            cells.setdefault(key, {})[rows.comparison[index]] = index
    lines = sorted(cells.items())
    if len(models) > 1:
        table = [
            (name, *(rows.shown[own[model]] for model in range(len(models))))
            for (_, name), own in lines
        ]
        return Sheet(("", *models), table)
    table = []
    for (_, name), own in lines:
        (index,) = own.values()
        low, high = rows.low[index], rows.high[index]
        limits = "" if low is None or high is None else f"{signed(low)} to {signed(high)}"
        table.append((name, rows.shown[index], limits, f"{rows.n[index]:,}", rows.coverage[index]))
    return Sheet(("", "drift", "95% limits", "items", "metrics"), table)


def _measured(result: DriftResult, model: str) -> list[Cell]:
    """Capabilities with data; what a model was trained for is no side effect."""
    return [
        cell
        for cell in result.capabilities
        if cell.model == model and cell.value is not None and cell.group != TARGET
    ]


def _moved(cell: Cell) -> str:
    return _MOVED[cell.direction, (cell.value or 0.0) > 0]


def _called(cell: Cell) -> str:
    return cell.id if cell.name in cell.id else f"{cell.name} [{cell.id}]"


def _amount(cell: Cell, result: DriftResult) -> str:
    relative = result.aggregator == "captrack-relative"
    value = signed(cell.value or 0.0, "published" if relative else "effect")
    words = value if relative else f"effect {value}"
    if cell.low is None or cell.high is None:
        return words
    return f"{words}, 95% limits {signed(cell.low)} to {signed(cell.high)}"
