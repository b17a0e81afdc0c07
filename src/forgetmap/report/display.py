"""Results for notebooks and papers: one figure, a LaTeX table, a dataframe."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa

from forgetmap.capabilities import DriftResult
from forgetmap.comparison import Chain, Comparison, FanOut, View, flat_table, tell_comparison
from forgetmap.errors import UsageError
from forgetmap.report.figures.figure import Figure, Record
from forgetmap.report.figures.registry import all_figures, records_of
from forgetmap.report.figures.study.registry import study_figures
from forgetmap.report.payloads import payload_for
from forgetmap.report.payloads.sweep import points_sheet
from forgetmap.report.static import draw, write_figure
from forgetmap.report.tables import pair_rows, study_latex
from forgetmap.study import StudyDetail
from forgetmap.sweep import Sweep
from forgetmap.text import Sheet, listed, sheet_to_latex

Result: TypeAlias = Comparison | FanOut | Chain | DriftResult | Sweep | StudyDetail
"""Results with figures and tables."""


@dataclass(frozen=True, slots=True)
class Plot:
    """A figure that notebooks display.

    Attributes:
        figure: the figure with title, caption and numbers.
        records: the rows that it draws.
    """

    figure: Figure
    records: list[Record]

    def save(self, path: Path | str) -> Path:
        """Write the figure to a file.

        Args:
            path: a file name that ends in .svg, .png or .pdf.
        """
        return write_figure(self.figure, Path(path), self.records)

    def to_frame(self) -> pa.Table:
        """Return the numbers behind the figure."""
        return pa.table({name: list(values) for name, values in self.figure.table.items()})

    def __repr__(self) -> str:
        return f"{self.figure.title}. {self.figure.alt}"

    def _repr_svg_(self) -> str:
        return draw(self.figure, self.records, "light", words=True, ground=True)


def plot(result: Result, figure: str | None = None) -> Plot:
    """Draw one figure of a result.

    Args:
        result: a result of `compare`, `chain`, `drift`, `merge_sweep` or `examine_study`.
        figure: name of the figure; by default the main one.

    Raises:
        UsageError: the result has no figure of that name; the message lists the available ones.
    """
    figures, records = _figures_of(result)
    names = [one.name for one in figures]
    if not figures:
        raise UsageError("this result has no figure", hint="the data are too few for any.")
    if figure is not None and figure not in names:
        raise UsageError(
            f"there is no figure {figure!r} of this result", hint=f"choose {listed(names, 'or')}."
        )
    chosen = figures[0] if figure is None else figures[names.index(figure)]
    return Plot(chosen, records)


def _figures_of(result: Result) -> tuple[list[Figure], list[Record]]:
    if isinstance(result, StudyDetail):
        return study_figures(result), []
    payload = payload_for(result)
    figures = [one for one in all_figures(payload) if one.page == "overview"]
    return figures, records_of(payload)


def to_latex(result: Result, *, caption: str | None = None, label: str = "tab:forgetmap") -> str:
    """Return the main table of a result as LaTeX; needs the packages booktabs and graphicx.

    Args:
        result: as for `plot`.
        caption: caption of the table; by default a description of the result.
        label: label for references.
    """
    if isinstance(result, StudyDetail):
        return study_latex(result)
    title, sheets = _sheets_of(result)
    return "\n".join(
        sheet_to_latex(
            sheet,
            caption=caption or title,
            label=label if not number else f"{label}-{number + 1}",
        )
        for number, sheet in enumerate(sheets)
    )


def _sheets_of(
    result: Comparison | FanOut | Chain | DriftResult | Sweep,
) -> tuple[str, list[Sheet]]:
    if isinstance(result, DriftResult):
        return f"Drift of capabilities from {result.before}", [result.sheet()]
    if isinstance(result, Sweep):
        return f"Merges of {result.result.base}", [
            points_sheet(pair) for pair in result.result.pairs
        ]
    blocks = tell_comparison(result.result, View(by="category"))
    return _title_of(result), [next(block for block in blocks if isinstance(block, Sheet))]


def _title_of(result: Comparison | FanOut | Chain) -> str:
    first = result.comparisons[0] if isinstance(result, FanOut) else result
    before = first.result.before.name
    if isinstance(result, FanOut):
        return f"{len(result)} models against {before}"
    if isinstance(result, Chain):
        return f"Chain from {before} to {result.result.after.name}"
    return f"{result.result.after.name} against {before}"


def to_frame(result: Result) -> Any:
    """Return the numbers of a result as one table, one row per group.

    Args:
        result: as for `plot`.

    Returns:
        A dataframe of the library of the inputs, or a PyArrow table if they are files.
    """
    if isinstance(result, Comparison):
        return result.groups
    if isinstance(result, FanOut | Chain):
        return _joined([(one.result.after.name, one) for one in result.comparisons])
    if isinstance(result, DriftResult):
        return result.to_table()
    rows = list(_sweep_rows(result)) if isinstance(result, Sweep) else pair_rows(result.pairs)
    names = list(dict.fromkeys(name for row in rows for name in row))
    return pa.table({name: [row.get(name) for row in rows] for name in names})


def _joined(comparisons: Sequence[tuple[str, Comparison]]) -> pa.Table:
    tables = []
    for name, comparison in comparisons:
        result = comparison.result
        table = flat_table([result.total, result.total_macro, *result.categories, *result.tasks])
        tables.append(table.add_column(0, "after", pa.array([name] * len(table), pa.string())))
    return pa.concat_tables(tables)


def _sweep_rows(sweep: Sweep) -> Iterator[dict[str, Any]]:
    for pair in sweep.result.pairs:
        for point in pair.points:
            values = point.model_dump(exclude={"groups"})
            row: dict[str, Any] = {"tuned": pair.name}
            for name, value in values.items():
                if isinstance(value, dict):
                    limits = {"": "value", "_low": "low", "_high": "high"}
                    row |= {f"{name}{end}": value.get(key) for end, key in limits.items()}
                else:
                    row[name] = value
            yield row
