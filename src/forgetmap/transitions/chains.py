"""Ordered checkpoints: what happened to each item over base -> sft -> rl, and at which step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import narwhals as nw

from forgetmap.errors import LineageError
from forgetmap.pairing.match import Side
from forgetmap.pairing.pair import RIGHT, UNSCORED, WRONG, Pairs, is_in
from forgetmap.records.run import Frame, Run
from forgetmap.records.schema import CONTENT_HASHES
from forgetmap.records.validate import reading
from forgetmap.transitions.cells import CELL_NAMES, Cells, reason_of
from forgetmap.transitions.comparison import Comparison, compare_sides
from forgetmap.transitions.frames import to_library
from forgetmap.transitions.rates import group_result
from forgetmap.transitions.render import as_html, as_text
from forgetmap.transitions.result import ComparisonResult, PathKind, PathResult, Rule, StageResult

ITEM_COLUMNS = ("task", "item", "repeat", "path", "first_loss", "kind")
SHORTEST = 3
"""Checkpoints in a chain; two are a comparison."""

Tally = dict[tuple[str, str | None], int]
"""Path and way of ending -> number of pairs."""


@dataclass(frozen=True, slots=True, repr=False)
class Chain:
    """What happened to each item over several checkpoints.

    Attributes:
        result: first against last, with `stages` and `paths`.
        comparisons: the first checkpoint against each later one.
        items: lazy; one row per item scored at every stage, with its path.
    """

    result: ComparisonResult
    comparisons: tuple[Comparison, ...]
    items: Frame

    @property
    def stages(self) -> list[StageResult]:
        """One entry per later checkpoint."""
        return self.result.stages or []

    @property
    def paths(self) -> list[PathResult]:
        """How many items share each history."""
        return self.result.paths or []

    def histories(self) -> Any:
        """One row per item: path, where it was lost first, and what became of it."""
        return to_library(self.items.sort("task", "item", "repeat"), self.comparisons[0].before)

    def to_json(self, *, indent: int | None = 2) -> str:
        """All numbers and words as JSON; the schema is in docs/schemas."""
        return self.result.to_json(indent=indent)

    def __repr__(self) -> str:
        return as_text(self.result)

    def _repr_html_(self) -> str:
        return as_html(self.result)


def build_chain(sides: Sequence[Side], rule: Rule) -> Chain:
    """Compare the first checkpoint with each later one and follow every item through all."""
    if len(sides) < SHORTEST:
        raise LineageError(
            f"a chain needs at least {SHORTEST} checkpoints, there are {len(sides)}",
            hint="leave out --chain to compare two runs.",
        )
    comparisons = tuple(compare_sides(sides[0], later, rule) for later in sides[1:])
    followed = _follow([each.pairs for each in comparisons])
    with reading(*(side.run for side in sides)):
        many = _distinct_items(followed)
        tallies = [_tally(followed, stage) for stage in range(1, len(sides))]
    stages = [
        _stage(comparison, place, tally, items=many)
        for place, (comparison, tally) in enumerate(zip(comparisons, tallies, strict=True), start=1)
    ]
    counts = _by_path(tallies[-1])
    paths = [
        PathResult(path=path, n=counts[path], kind=kind_of(path))
        for path in sorted(counts, key=lambda path: (-counts[path], path))
    ]
    result = comparisons[-1].result.model_copy(update={"stages": stages, "paths": paths})
    return Chain(result, comparisons, followed.select(*ITEM_COLUMNS))


def kind_of(path: str) -> PathKind:
    """What became of an item, from its path such as `1101`."""
    changes = sum(a != b for a, b in pairwise(path))
    if not changes:
        return "kept" if path[0] == "1" else "never"
    if changes == 1:
        return "lost" if path[0] == "1" else "gained"
    return "regained" if path[0] == "1" and changes == 2 else "unstable"  # noqa: PLR2004


def first_loss(path: str) -> int | None:
    """The first stage at which an item that was right turned wrong."""
    place = path.find("10")
    return None if place < 0 else place + 1


def order_by_lineage(runs: Sequence[Run]) -> list[Run]:
    """Every run after its recorded parent; runs without one among these stay as they were given.

    Raises:
        LineageError: the recorded parents form a tree or a ring, not a line.
    """
    ids = [run.info.run_id for run in runs if run.info.run_id is not None]
    if len(set(ids)) < len(ids):
        return list(runs)
    children = {run.info.parent: run for run in runs if run.info.parent in ids}
    ordered: list[Run] = []
    for root in (run for run in runs if run.info.parent not in ids):
        ordered.append(root)
        while ordered[-1].info.run_id in children:
            ordered.append(children[ordered[-1].info.run_id])
    if len(ordered) < len(runs):
        parents = ", ".join(f"{run.name} from {run.info.parent}" for run in runs)
        raise LineageError(
            f"the recorded parents of these runs form no line: {parents}",
            hint="give runs of one branch, or compare without --chain.",
        )
    return ordered


def _follow(all_pairs: Sequence[Pairs]) -> Frame:
    """One row per item scored at every stage, with its states and path."""
    key = _first_key(all_pairs[0])
    followed = _states(all_pairs[0], key, 1, first=True)
    for stage, pairs in enumerate(all_pairs[1:], start=2):
        later = _states(pairs, key, stage, first=False)
        followed = followed.join(later, on=list(key), how="inner")
    states = [nw.col(f"state_{stage}") for stage in range(len(all_pairs) + 1)]
    names = followed.collect_schema().names()
    outcomes = [name for name in names if name.startswith("outcome_")]
    return followed.select(
        *key,
        *outcomes,
        path=nw.concat_str(*(state.cast(nw.String) for state in states)),
        first_loss=_first_loss(states),
        kind=_kind(states),
    )


def _first_key(pairs: Pairs) -> dict[str, nw.Expr]:
    """What tells results of the first checkpoint apart, null-free so that it can be joined on."""
    key = {"task": nw.col("task"), "item": nw.col("item_before"), "repeat": nw.col("repeat")}
    for name in CONTENT_HASHES:
        if f"{name}_before" in pairs.columns:
            key[name] = nw.coalesce(nw.col(f"{name}_before"), nw.lit(0, dtype=nw.Int64))
    return key


def _states(pairs: Pairs, key: dict[str, nw.Expr], stage: int, *, first: bool) -> Frame:
    both = is_in("before") & is_in("after")
    scored = (nw.col("state_before") != UNSCORED) & (nw.col("state_after") != UNSCORED)
    states = {f"state_{stage}": nw.col("state_after").cast(nw.Int8)}
    if first:
        states["state_0"] = nw.col("state_before").cast(nw.Int8)
    if "outcome_after" in pairs.columns:
        states[f"outcome_{stage}"] = nw.col("outcome_after")
    return pairs.frame.filter(both & scored).select(**key, **states)


def _first_loss(states: Sequence[nw.Expr]) -> nw.Expr:
    """The first stage that lost what the one before had; null where none did."""
    found: nw.Expr | None = None
    for stage in reversed(range(1, len(states))):
        lost = (states[stage - 1] == RIGHT) & (states[stage] == WRONG)
        here = nw.when(lost).then(nw.lit(stage, dtype=nw.Int32))
        found = here if found is None else here.otherwise(found)
    assert found is not None  # noqa: S101  # a chain has stages
    return found


def _kind(states: Sequence[nw.Expr]) -> nw.Expr:
    changes: nw.Expr = nw.lit(0)
    for earlier, later in pairwise(states):
        changes = changes + (earlier != later).cast(nw.Int32)
    known = states[0] == RIGHT
    still = nw.when(known).then(nw.lit("kept")).otherwise(nw.lit("never"))
    once = nw.when(known).then(nw.lit("lost")).otherwise(nw.lit("gained"))
    twice = nw.when(known & (changes == 2)).then(nw.lit("regained")).otherwise(nw.lit("unstable"))  # noqa: PLR2004
    moved = nw.when(changes == 1).then(once).otherwise(twice)
    return nw.when(changes == 0).then(still).otherwise(moved)


def _distinct_items(followed: Frame) -> int:
    names = followed.collect_schema().names()
    by = [name for name in ("task", "item", *CONTENT_HASHES) if name in names]
    per_item = followed.group_by(*by).agg(nw.len().alias("n"))
    return int(per_item.select(nw.len()).collect().item())


def _tally(followed: Frame, stage: int) -> Tally:
    """How many items share a path and the way they ended at this stage."""
    outcome = f"outcome_{stage}"
    by = ["path", *(name for name in followed.collect_schema().names() if name == outcome)]
    found = followed.group_by(*by).agg(nw.len().alias("n")).collect()
    tally: Tally = {}
    for row in found.rows(named=True):
        tally[str(row["path"]), row.get(outcome)] = int(row["n"])
    return tally


def _by_path(tally: Tally) -> dict[str, int]:
    counts: dict[str, int] = {}
    for (path, _), n in tally.items():
        counts[path] = counts.get(path, 0) + n
    return counts


def _stage(comparison: Comparison, stage: int, tally: Tally, *, items: int) -> StageResult:
    counts = _by_path(tally)
    return StageResult(
        name=comparison.after.name,
        pairing=comparison.result.pairing,
        against_previous=group_result("previous", _cells(tally, stage - 1, stage, items)),
        against_first=group_result("first", _cells(tally, 0, stage, items)),
        first_lost=sum(n for path, n in counts.items() if first_loss(path) == stage),
        regained=sum(
            n
            for path, n in counts.items()
            if path[stage - 1 : stage + 1] == "01" and "1" in path[: stage - 1]
        ),
    )


def _cells(tally: Tally, earlier: int, later: int, items: int) -> Cells:
    parts = []
    for (path, outcome), n in tally.items():
        cell = CELL_NAMES[int(path[earlier]), int(path[later])]
        reasons = {reason_of(outcome): n} if cell == "n10" else {}
        parts.append(Cells(**{cell: n}, paired=n, reasons=reasons))
    return replace(Cells.total(parts), items=items)
