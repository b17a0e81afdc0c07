"""The class of all figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Spec = dict[str, Any]
"""A part of a Vega-Lite or Vega specification."""
Record = dict[str, Any]
"""A row of data."""
PageName = Literal["overview", "capability"]


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure that is not drawn yet.

    Attributes:
        name: short and constant; suitable for a file name.
        title: what it shows.
        caption: how to read it, and what is left out.
        alt: one sentence with numbers for screen readers.
        table: numbers behind it for download: column -> one value per row.
        spec: Vega-Lite or Vega that draws the data set `rows`; uses the params (or signals)
            `estimator`, `scale`, `dark`, `capability` and, if there are several comparisons,
            `comparison`.
        page: page on which it is shown; `capability` shows the open capability.
        svg: the picture itself if it is not drawn by Vega; text has the `color` of the root
            element.
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
    """Convert records to columns."""
    return {name: [record[name] for record in records] for name in (records[0] if records else ())}
