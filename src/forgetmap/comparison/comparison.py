"""The class of a comparison of two runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from forgetmap.comparison.cells import count_scored_before
from forgetmap.comparison.choices import Kind
from forgetmap.comparison.evidence import GroupedEvidence
from forgetmap.comparison.flips import select_flips, select_unpaired, with_texts
from forgetmap.comparison.frames import small_frame, to_library
from forgetmap.comparison.judge import VerdictSettings
from forgetmap.comparison.kinds import names_at
from forgetmap.comparison.labels import Label
from forgetmap.comparison.render import as_html, as_text
from forgetmap.comparison.result import ComparisonResult
from forgetmap.pairing import SIDES, Pairs
from forgetmap.records import Frame, Run, reading
from forgetmap.results import Presentable


@dataclass(frozen=True, slots=True, repr=False)
class Grounds:
    """The basis of the verdicts, to compute them again: with other models, or another margin.

    Attributes:
        evidence: all counts.
        settings: how the verdicts are reached.
    """

    evidence: GroupedEvidence
    settings: VerdictSettings


@dataclass(frozen=True, slots=True, repr=False)
class Comparison(Presentable):
    """What one model forgot and gained compared with another.

    Attributes:
        result: all numbers and texts, as in `--json`.
        before: the run before.
        after: the run after.
        pairs: every result with its counterpart, lazy.
        grounds: the data behind the verdicts.
    """

    result: ComparisonResult
    before: Run
    after: Run
    pairs: Pairs
    grounds: Grounds

    @property
    def headline(self) -> str:
        """The verdict in one sentence."""
        return self.result.headline

    @property
    def summary(self) -> Any:
        """Total, mean over tasks and categories, as a frame of the caller's library."""
        groups = [self.result.total, self.result.total_macro, *self.result.categories]
        return small_frame(groups, self.before)

    @property
    def tasks(self) -> Any:
        """One row per task, as a frame of the caller's library."""
        return small_frame(self.result.tasks, self.before)

    @property
    def groups(self) -> Any:
        """Total, mean over tasks, categories and tasks, as a frame of the caller's library."""
        result = self.result
        rows = [result.total, result.total_macro, *result.categories, *result.tasks]
        return small_frame(rows, self.before)

    def flips(self, kind: Kind = "forgotten", *, texts: bool = False) -> Any:
        """Return the items of one transition with both answers, as a frame of the caller's library.

        Args:
            kind: forgotten (1->0), gained (0->1), kept (1->1) or never (0->0).
            texts: include questions, prompts and responses.
        """
        with reading(self.before, self.after):
            return to_library(self.flip_frame(kind, texts=texts), self.before)

    def flip_frame(self, kind: Kind, *, texts: bool = False, limit: int | None = None) -> Frame:
        """Return the same as a lazy frame; texts are looked up only for the first `limit` items."""
        flips = select_flips(self.pairs, kind)
        flips = flips if limit is None else flips.head(limit)
        return with_texts(flips, self.before, self.after) if texts else flips

    def unpaired(self) -> Any:
        """Return every result that is not compared, with the reason."""
        with reading(self.before, self.after):
            return to_library(select_unpaired(self.pairs), self.before)

    def to_json(self, *, indent: int | None = 2) -> str:
        """Return all numbers and texts as JSON; the schema is in docs/schemas."""
        return self.result.to_json(indent=indent)

    def __repr__(self) -> str:
        return as_text(self.result)

    def _repr_html_(self) -> str:
        return as_html(self.result)


def measure_group_coverage(
    comparison: Comparison, level: Literal["category", "tags"]
) -> dict[str, float]:
    """Return the share of the results scored before in a scored pair, by category or tag of BEFORE.

    Evidence has no category or tags of results without a counterpart, so these are counted here. If
    BEFORE does not record their label, they count against every group.

    Returns:
        Shares by name; empty if every result before has a counterpart: then evidence is enough.
    """
    pairs = comparison.pairs
    if not comparison.result.pairing.only_before:
        return {}
    if not any(f"{level}_{side}" in pairs.columns for side in SIDES):
        return {}
    with reading(comparison.before, comparison.after):
        counts, unknown = count_scored_before(pairs, level)
    scored: dict[str, int] = {}
    for label, count in counts.items():
        for name in names_at(level, Label("", label, label)):
            scored[name] = scored.get(name, 0) + count
    evidence = comparison.grounds.evidence.by(level)
    return {
        name: min(evidence[name].cells.n / (count + unknown), 1.0) if name in evidence else 0.0
        for name, count in sorted(scored.items())
        if count + unknown
    }
