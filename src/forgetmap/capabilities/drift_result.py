"""The class of drift results, with its sentences and tables."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple

from forgetmap.capabilities.choices import Aggregator
from forgetmap.capabilities.ranking import DriftRanking, Recovery
from forgetmap.capabilities.result import Caution, Cell, Direction, MetricCell
from forgetmap.capabilities.taxonomy import TARGET
from forgetmap.results import Presentable
from forgetmap.stats import FDR
from forgetmap.text import Blocks, Line, Sheet, blocks_to_html, blocks_to_text, counted, signed

CellState = Literal["sure", "open", "noise", "none"]
"""Significant; not significant; within the noise floor; no data."""
NO_DATA = "no data"
"""Text of a cell without a value."""
EITHER_WAY = "\N{UP DOWN ARROW}"
"""Mark after the name of a metric that is neither better nor worse when it changes."""
STRONGEST: dict[Aggregator, float] = {"default": 0.3, "captrack-relative": 15.0}
"""Drift with the strongest colour."""
CONTRADICTIONS = ("total_contradicted", "verdict_unmatched", "one_question")
"""Codes of cautions after which nothing is concluded from the results."""
_MOVED: dict[tuple[Direction, bool], str] = {
    ("better", False): "got worse",
    ("better", True): "got better",
    ("more", False): "became less",
    ("more", True): "became more",
    ("mixed", False): "moved down",
    ("mixed", True): "moved up",
}


@dataclass(frozen=True, slots=True)
class DriftResult(Presentable):
    """Drift of one or several models, each compared with a model before.

    Attributes:
        taxonomy: name of the taxonomy.
        aggregator: how metrics were averaged; values are effects, or percent if published.
        before: name of the model before; several are separated by commas.
        models: names of the models after, in order; in a chain, a step has both names.
        cautions: warnings about the numbers.
        groups: cells, by model.
        capabilities: cells, by model.
        metrics: cells, by model.
        draws: number of bootstrap samples.
        seed: random seed of the bootstrap.
        bases: for each model after, its model before.
        deep_dive: cells of metrics that explain capabilities, if requested.
        ranking: which of several models drifted most.
        recoveries: how much of the earlier drift later steps of a chain undid.
    """

    taxonomy: str
    aggregator: Aggregator
    before: str
    models: tuple[str, ...]
    cautions: tuple[Caution, ...]
    groups: tuple[Cell, ...]
    capabilities: tuple[Cell, ...]
    metrics: tuple[MetricCell, ...]
    draws: int | None = None
    seed: int | None = None
    bases: tuple[str, ...] = ()
    deep_dive: tuple[MetricCell, ...] = ()
    ranking: DriftRanking | None = None
    recoveries: tuple[Recovery, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain values; NaN and infinity are None."""
        plain: dict[str, Any] = _plain(asdict(self))
        return plain

    def to_json(self, *, indent: int | None = 2) -> str:
        """Return all numbers and texts as JSON."""
        return json.dumps(self.to_dict(), indent=indent, ensure_ascii=False, allow_nan=False)

    def to_csv(self) -> str:
        """Return every cell as a row, for spreadsheets: groups, capabilities, metrics, deep dive.

        `state` is sure, open, noise or none; `within` is the group or the capability.
        """
        from forgetmap.capabilities.table import csv_of  # loads pyarrow

        return csv_of(self._rows())

    def to_table(self) -> Any:
        """Return the same as a PyArrow table."""
        from forgetmap.capabilities.table import table_of

        return table_of(self._rows())

    def _rows(self) -> Iterator[dict[str, Any]]:
        levels: dict[str, tuple[Cell | MetricCell, ...]] = {
            "group": self.groups,
            "capability": self.capabilities,
            "metric": self.metrics,
            "deep_dive": self.deep_dive,
        }
        for level, cells in levels.items():
            for cell in cells:
                within = cell.capability if isinstance(cell, MetricCell) else cell.group
                yield {
                    **asdict(cell),
                    "level": level,
                    "base": self.base_of(cell.model),
                    "within": within,
                    "state": _state_of(cell),
                    "items": cell.n,
                    "metrics": cell.coverage.have,
                    "of_metrics": cell.coverage.of,
                }

    def base_of(self, model: str) -> str:
        """Return the model that a model after is compared with."""
        return self.bases[self.models.index(model)] if self.bases else self.before

    def __repr__(self) -> str:
        return blocks_to_text(self._summary())

    def _repr_html_(self) -> str:
        return blocks_to_html(self._summary())

    def opening(self) -> Blocks:
        """Return what was compared, and for each model the largest drift and the data basis."""
        title = f"Drift from {self.before} ({self.taxonomy}, {self.aggregator})"
        blocks: Blocks = [Line(title, "strong")]
        for model in self.models:
            blocks += [Line(self.headline(model), "strong"), Line(self.lead(model))]
        if self.ranking is not None:
            blocks.append(Line(self.comparison(self.ranking), "strong"))
        return blocks

    def comparison(self, ranking: DriftRanking) -> str:
        """Return a sentence about the model that drifted most, with its probability."""
        first, second = ranking.models[:2]
        size = f"size {first.size:.2f}, 95% interval {first.low:.2f} to {first.high:.2f}"
        chance = f"probability {first.largest:.2f}"
        over = f"counted over {', '.join(ranking.capabilities)}"
        if ranking.is_certain:
            return f"{first.model} drifted most ({size}; {chance}), {over}."
        return (
            f"It is unclear which model drifted most: {first.model} ({size}; {chance}) or "
            f"{second.model} (size {second.size:.2f}), {over}."
        )

    def contradictions(self, model: str) -> list[str]:
        """Return what contradicts the results of a model, so that nothing is concluded."""
        codes = CONTRADICTIONS
        return [c.message for c in self.cautions if c.model == model and c.code in codes]

    def cells(self, model: str) -> list[Cell]:
        """Return the groups of a model, each before its capabilities."""
        return [
            cell
            for group in self.groups
            if group.model == model
            for cell in (
                group,
                *(
                    cell
                    for cell in self.capabilities
                    if cell.model == model and cell.group == group.id
                ),
            )
        ]

    def sheet(self) -> Sheet:
        """Return a table with groups and capabilities in rows and models in columns."""
        columns = [self.cells(model) for model in self.models]
        rows = [
            (self.row_name(cells[0]), *(describe_cell(cell).drift for cell in cells))
            for cells in zip(*columns, strict=True)
        ]
        shades = {
            (row, column): self.shade(cell)
            for column, cells in enumerate(columns, start=1)
            for row, cell in enumerate(cells)
        }
        return Sheet(("", *self.models), rows, shades=shades, whole_heads=True)

    def row_name(self, cell: Cell) -> str:
        """Return the first cell of a row: capabilities are below their group."""
        indent = "  " if cell.group else ""
        either_way = cell.direction != "better" and self.aggregator == "default"
        return f"{indent}{_title(cell)}" + f" {EITHER_WAY}" * either_way

    def shade(self, cell: Cell | MetricCell) -> float:
        """Return the strength of the colour from -1 to 1; 0 without data or within noise."""
        if cell.value is None or cell.within_noise:
            return 0.0
        return max(-1.0, min(cell.value / STRONGEST[self.aggregator], 1.0))

    def headline(self, model: str) -> str:
        """Return a sentence about the largest drift, with direction and uncertainty."""
        cells, against = self._measured(model), self.contradictions(model)
        base = self.base_of(model)
        if base != self.before and not model.startswith(base):
            model = f"{model} (from {base})"
        if not cells:
            return f"{model}: no result, because no capability has data on both sides."
        if against:
            return f"{model}: cannot tell: {against[0]}"
        beyond = [cell for cell in cells if _state_of(cell) == "sure"]
        farthest = max(beyond or cells, key=lambda cell: abs(cell.value or 0.0))
        if not any(cell.low is not None for cell in cells):
            return (
                f"{model}: {_label(farthest)} drifted most: it {_moved(farthest)} "
                f"({self._amount(farthest)}); averages give no uncertainty."
            )
        if not beyond:
            return (
                f"{model}: no significant drift; the largest change, of {_label(farthest)} "
                f"({self._amount(farthest)}), may be chance or noise."
            )
        return (
            f"{model}: {_label(farthest)} drifted most: it {_moved(farthest)} "
            f"({self._amount(farthest)}; significant)."
        )

    def lead(self, model: str) -> str:
        """Return the number of capabilities that drifted, and the coverage of the taxonomy."""
        cells = self._measured(model)
        known = {
            cell.id for cell in self.capabilities if cell.model == model and cell.group != TARGET
        }
        metrics = [
            cell
            for cell in self.metrics
            if cell.model == model and cell.weight and cell.capability in known
        ]
        have = sum(cell.value is not None for cell in metrics)
        rests = (
            f"{len(cells)} of {len(known)} capabilities and {have} of {len(metrics)} metrics "
            "have data; the others are left empty."
        )
        if not cells or all(cell.low is None for cell in cells) or self.contradictions(model):
            return rests
        states = [_state_of(cell) for cell in cells]
        kinds = [_moved(cell) for cell, state in zip(cells, states, strict=True) if state == "sure"]
        moved = ", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(_MOVED.values())
                          if kind in kinds)  # fmt: skip
        rest = len(cells) - len(kinds)
        within = states.count("noise")
        sure = (
            f"Significant (false discovery rate 5%): {moved}" if kinds else "No significant drift"
        )
        noise = f" ({within} within the noise of the model before)" * bool(within)
        still = f"; {rest} without significant drift{noise}" * bool(rest)
        return f"{sure}{still}. {rests}"

    def sentence(self, cell: Cell) -> str:
        """Return a sentence about one capability of one model."""
        if cell.value is None:
            return f"No result: {cell.note or NO_DATA}."
        how = {
            "sure": "significant at a false discovery rate of 5% among the capabilities",
            "noise": "but two runs of the model before differ as much",
            "open": "which may be chance"
            if cell.low is not None
            else "with unknown uncertainty, because only averages are known",
            "none": "",
        }[_state_of(cell)]
        return (
            f"It {_moved(cell)} ({self._amount(cell)}), {how}. Based on "
            f"{counted(cell.n, 'item') + ', ' if cell.n else ''}{cell.coverage} metrics."
        )

    def _measured(self, model: str) -> list[Cell]:
        """Return capabilities with data, without those that the model was trained for."""
        return [
            cell
            for cell in self.capabilities
            if cell.model == model and cell.value is not None and cell.group != TARGET
        ]

    def _amount(self, cell: Cell) -> str:
        if self.aggregator == "captrack-relative":
            words = f"{signed(cell.value or 0.0, 1)}%"
        else:
            words = f"effect {signed(cell.value or 0.0)}"
        if cell.low is None or cell.high is None:
            return words
        return f"{words}, 95% interval {signed(cell.low)} to {signed(cell.high)}"

    def _summary(self) -> Blocks:
        return [*self.opening(), Line(), self.sheet()]


class CellWords(NamedTuple):
    """The texts of a cell in tables and figures.

    Attributes:
        state: significance of the cell.
        mark: * for significant drift, ~ for drift within the noise of the model before.
        title: the id, and the name if it differs.
        drift: the value with its mark; no data is never a number.
    """

    state: CellState
    mark: str
    title: str
    drift: str


def describe_cell(cell: Cell | MetricCell) -> CellWords:
    """Return the texts of a cell in tables and figures."""
    state = _state_of(cell)
    mark = {"noise": "~", "sure": "*"}.get(state, "")
    drift = NO_DATA if cell.value is None else f"{signed(cell.value)}{mark or ' '}"
    return CellWords(state, mark, _title(cell), drift)


def _state_of(cell: Cell | MetricCell) -> CellState:
    if cell.value is None:
        return "none"
    if cell.within_noise:
        return "noise"
    chance = cell.p if cell.q is None else cell.q
    sure = chance is not None and chance <= FDR and leaves_out_zero(cell.value, cell.low, cell.high)
    return "sure" if sure else "open"


def leaves_out_zero(value: float, low: float | None, high: float | None) -> bool:
    """Return whether an interval is entirely on the side of its value, without 0."""
    if low is None or high is None:
        return False
    return low > 0 < value or high < 0 > value


def _title(cell: Cell | MetricCell) -> str:
    if cell.name in cell.id:
        return cell.id
    is_group = isinstance(cell, Cell) and not cell.group
    return f"{cell.id}{':' * is_group} {cell.name}"


def _moved(cell: Cell) -> str:
    return _MOVED[cell.direction, (cell.value or 0.0) > 0]


def _label(cell: Cell) -> str:
    return cell.id if cell.name in cell.id else f"{cell.name} [{cell.id}]"


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
