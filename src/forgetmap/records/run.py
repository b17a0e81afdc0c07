"""A run in memory: what is known about it, and its results as a lazy frame."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import narwhals as nw

from forgetmap.records.manifest import Problem, RunInfo

Frame = nw.LazyFrame[Any]
"""A lazy table of any dataframe library."""
HandedIn = Literal["path", "eager", "lazy"]
Rows = Callable[[], Iterator[tuple[int, Mapping[str, Any]]]]


@dataclass(frozen=True, slots=True)
class Run:
    """The results of one model, wherever they came from.

    Attributes:
        info: what is known about the run as a whole.
        scores: the canonical table without texts; columns nobody recorded are absent.
        texts: questions, options, prompts and responses, or None if there are none.
        name: what to call it in front of people.
        origin: the path or dataframe it was read from.
        rows: the raw rows with their line numbers, to point at a fault; None where impossible.
        ids_are_occurrences: the items had no ids; they were numbered within equal content.
        positions_of: the file in which items have no other id than their place.
        handed_in: as a path, or as a dataframe that was eager or lazy.
        format: what kind of log it was read from, in words.
        notices: what a reader must know about how it was read.
        problems: what could not be used, as far as it was kept.
        problem_count: how many there were.
    """

    info: RunInfo
    scores: Frame
    texts: Frame | None
    name: str
    origin: str
    rows: Rows | None = None
    ids_are_occurrences: bool = False
    positions_of: str | None = None
    handed_in: HandedIn = "path"
    format: str = ""
    notices: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    problem_count: int = 0

    @property
    def columns(self) -> frozenset[str]:
        """The canonical columns that were recorded."""
        return frozenset(self.scores.collect_schema().names())

    def __repr__(self) -> str:
        return f"Run({self.name!r} from {self.origin}, columns: {', '.join(sorted(self.columns))})"
