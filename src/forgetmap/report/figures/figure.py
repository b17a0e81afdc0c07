"""The class of all figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Spec = dict[str, Any]
"""A part of Vega-Lite or Vega."""
Record = dict[str, Any]
"""A row of data."""
PageName = Literal["overview", "capability"]


@dataclass(frozen=True, slots=True)
class Figure:
    """A picture of some numbers, not yet drawn.

    Attributes:
        name: short and constant; fit for a file name.
        title: what it shows.
        caption: how to read it, and what was left out.
        alt: one sentence of numbers for those who cannot see it.
        table: column -> one value per row: the numbers behind it, for download.
        spec: Vega-Lite or Vega, drawing the data set `rows`; follows the params (or signals)
            `estimator`, `scale`, `dark`, `capability` and, where there are several, `comparison`.
        page: where it belongs; `capability` shows the capability that is open.
        svg: the picture itself, where Vega has none; text takes the `color` of the root element.
    """

    name: str
    title: str
    caption: str
    alt: str
    table: Mapping[str, Sequence[object]]
    spec: Spec | None = None
    svg: str | None = None
    page: PageName = "overview"


def as_table(records: Sequence[Record]) -> dict[str, list[object]]:
    """Records as columns."""
    return {name: [record[name] for record in records] for name in (records[0] if records else ())}
