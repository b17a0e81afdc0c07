"""A run in memory: its metadata, and its results as a lazy frame."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import narwhals as nw

from forgetmap.records.manifest import RunInfo
from forgetmap.records.problem import Contradiction, Problem

Frame = nw.LazyFrame[Any]
"""A lazy table of any dataframe library."""
HandedIn = Literal["path", "eager", "lazy"]
Rows = Callable[[], Iterator[tuple[int, Mapping[str, Any]]]]


@dataclass(frozen=True, slots=True)
class Run:
    """The results of one model, from any source.

    Attributes:
        info: facts about the whole run.
        scores: the canonical table without texts; columns that were not recorded are absent.
        texts: questions, options, prompts and responses, or None if there are none.
        name: display name.
        origin: the path or dataframe it was read from.
        rows: the raw rows with their line numbers, to locate an error; None if not available.
        ids_are_occurrences: the items had no ids and were numbered within equal content.
        positions_of: the file in which items are identified only by their position.
        handed_in: whether it was passed as a path, or as an eager or lazy dataframe.
        format: name of the log format.
        notices: cautions about how it was read.
        problems: rows that could not be used; at most a limited number is kept.
        problem_count: total number of problems.
        contradictions: statements of the log that its records contradict.
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
    contradictions: tuple[Contradiction, ...] = ()

    @property
    def columns(self) -> frozenset[str]:
        """The canonical columns that were recorded."""
        return frozenset(self.scores.collect_schema().names())

    def __repr__(self) -> str:
        return f"Run({self.name!r} from {self.origin}, columns: {', '.join(sorted(self.columns))})"
