"""Chains of checkpoints: the path of each item over base -> sft -> rl."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import narwhals as nw

from forgetmap.comparison.cells import count_cells
from forgetmap.comparison.clusters import records_clusters, without_clusters
from forgetmap.comparison.comparison import Comparison
from forgetmap.comparison.contradictions import contradictions
from forgetmap.comparison.copies import is_copy, without_copies
from forgetmap.comparison.evidence import Evidence
from forgetmap.comparison.frames import to_library
from forgetmap.comparison.judge import judge_group, judge_stages
from forgetmap.comparison.kinds import EARLIER, item_kinds
from forgetmap.comparison.phrases import headline
from forgetmap.comparison.pipeline import (
    Extra,
    compare_sides,
    gather_evidence,
    half_suffix,
    has_shared_content,
    pair_noise,
)
from forgetmap.comparison.render import as_html, as_text
from forgetmap.comparison.result import (
    ComparisonResult,
    GroupResult,
    PathKind,
    PathResult,
    Rule,
    StageResult,
)
from forgetmap.errors import LineageError
from forgetmap.pairing import (
    RIGHT,
    WRONG,
    Pairs,
    Side,
    both_sides,
    scored_pair,
    side_value,
)
from forgetmap.records import CONTENT_HASHES, Frame, Run, reading, sort_items
from forgetmap.results import Presentable

ITEM_COLUMNS = ("task", "item", "repeat", "path", "first_loss", "kind")
MIN_CHECKPOINTS = 3
"""Minimum number of checkpoints; two are a comparison."""

ANSWER_COLUMNS = ("outcome", "wrong", "answer")
ITEM_FACTS = ("k", "cluster", "gold", "gold_index")
"""Columns of an item that the estimators need, once for all stages."""


@dataclass(frozen=True, slots=True, repr=False)
class Chain(Presentable):
    """A comparison of several checkpoints, item by item.

    Attributes:
        result: the first checkpoint compared with the last, with `stages` and `paths`.
        comparisons: the first checkpoint compared with each later one.
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
        """Number of items with each history."""
        return self.result.paths or []

    def histories(self) -> Any:
        """Return one row per item: path, first stage at which it was forgotten, and final state."""
        return to_library(sort_items(self.items, "repeat"), self.comparisons[0].before)

    def to_json(self, *, indent: int | None = 2) -> str:
        """Return all numbers and texts as JSON; the schema is in docs/schemas."""
        return self.result.to_json(indent=indent)

    def __repr__(self) -> str:
        return as_text(self.result)

    def _repr_html_(self) -> str:
        return as_html(self.result)


def build_chain(sides: Sequence[Side], rule: Rule, *, noise: Side | None = None) -> Chain:
    """Compare the first checkpoint with each later one and follow every item through all."""
    if len(sides) < MIN_CHECKPOINTS:
        raise LineageError(
            f"a chain needs at least {MIN_CHECKPOINTS} checkpoints, not {len(sides)}",
            hint="remove --chain to compare two runs.",
        )
    sides = [without_copies(side) for side in sides]
    noise = None if noise is None else without_copies(noise)
    extra = Extra(noise=noise)
    comparisons = tuple(compare_sides(sides[0], later, rule, extra=extra) for later in sides[1:])
    followed = _follow([comparison.pairs for comparison in comparisons])
    again = None
    if noise is not None and not is_copy(sides[0], noise):
        again = _keyed_noise(pair_noise(sides[0], noise, comparisons[0].pairs, rule))
    with reading(*(side.run for side in sides)):
        counts = _count_paths(followed)
        against_first, against_previous = _judge(comparisons, sides, followed, again)
    stages = [
        StageResult(
            name=comparison.after.name,
            pairing=comparison.result.pairing,
            against_previous=previous,
            against_first=first,
            first_forgotten=sum(n for path, n in counts.items() if first_loss(path) == stage),
            regained=sum(n for path, n in counts.items() if _is_regained(path, stage)),
        )
        for stage, (comparison, previous, first) in enumerate(
            zip(comparisons, against_previous, against_first, strict=True), start=1
        )
    ]
    paths = [
        PathResult(path=path, n=counts[path], kind=kind_of(path))
        for path in sorted(counts, key=lambda path: (-counts[path], path))
    ]
    last = comparisons[-1]
    result = replace(
        last.result,
        total=replace(against_first[-1], name="total"),
        headline=headline(last.after.name, against_first[-1], last.result.pairing),
        stages=stages,
        paths=paths,
    )
    return Chain(result, comparisons, followed.select(*ITEM_COLUMNS))


def _is_regained(path: str, stage: int) -> bool:
    return path[stage - 1 : stage + 1] == "01" and "1" in path[: stage - 1]


def _judge(
    comparisons: Sequence[Comparison], sides: Sequence[Side], followed: Frame, noise: Pairs | None
) -> tuple[list[GroupResult], list[GroupResult]]:
    """Judge every stage against the first, by Holm, and against the one before it."""
    settings = [comparison.grounds.settings for comparison in comparisons]
    names = [comparison.after.name for comparison in comparisons]
    named = records_clusters(sides)
    by_content, suffix = has_shared_content(sides[0]), half_suffix(sides, named=named)

    def between(earlier: int, stage: int) -> Evidence:
        pairs = _between(followed, comparisons[0].pairs, earlier, stage)
        pairs = pairs if named else without_clusters(pairs)
        more = [] if earlier or stage == 1 else [_answers_at(followed, pairs, stage - 1)]
        kinds = item_kinds(
            pairs, noise=None if earlier else noise, by_content=by_content, suffix=suffix,
            more=more,
        )  # fmt: skip
        return gather_evidence(pairs, count_cells(pairs), kinds).total()

    def against_previous(stage: int) -> GroupResult:
        own = settings[stage - 1]
        is_contradicted = bool(contradictions(sides[stage - 1], sides[stage]))
        own = replace(own, undecided="contradicted" if is_contradicted else None)
        return judge_group(names[stage - 1], since_previous[stage - 1], own)

    stages = range(1, len(sides))
    since_first = [between(0, stage) for stage in stages]
    since_previous = [since_first[0], *(between(stage - 1, stage) for stage in stages[1:])]
    return (
        judge_stages([*zip(names, since_first, strict=True)], settings),
        [against_previous(stage) for stage in stages],
    )


def _answers_at(followed: Frame, pairs: Pairs, stage: int) -> Frame:
    """Return the right answers and all answers to each item at a stage."""
    item = ["task", *pairs.item_columns]
    right = nw.when(nw.col(f"state_{stage}") == RIGHT).then(nw.lit(1)).otherwise(nw.lit(0))
    rows = followed.select(*item, right=right).group_by(*item)
    return rows.agg(nw.col("right").sum().alias(EARLIER[0]), nw.len().alias(EARLIER[1]))


def kind_of(path: str) -> PathKind:
    """Classify an item by its path, such as `1101`."""
    changes = sum(a != b for a, b in pairwise(path))
    if not changes:
        return "kept" if path[0] == "1" else "never"
    if changes == 1:
        return "forgotten" if path[0] == "1" else "gained"
    return "regained" if path[0] == "1" and changes == 2 else "unstable"


def first_loss(path: str) -> int | None:
    """Return the first stage at which an item that was right is wrong."""
    index = path.find("10")
    return None if index < 0 else index + 1


def order_by_lineage(runs: Sequence[Run]) -> list[Run]:
    """Sort runs after their recorded parents; the others keep the order of the arguments.

    Raises:
        LineageError: the recorded parents form a tree or a cycle, not a chain.
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
            f"the recorded parents of these runs do not form a chain: {parents}",
            hint="give runs of one branch, or compare without --chain.",
        )
    return ordered


def _follow(all_pairs: Sequence[Pairs]) -> Frame:
    """Return one row per item scored at every stage, with its states, choices and path."""
    key = _first_key(all_pairs[0])
    followed = _states(all_pairs[0], key, 1, first=True)
    for stage, pairs in enumerate(all_pairs[1:], start=2):
        later = _states(pairs, key, stage, first=False)
        followed = followed.join(later, on=list(key), how="inner")
    states = [nw.col(f"state_{stage}") for stage in range(len(all_pairs) + 1)]
    return followed.with_columns(
        path=nw.concat_str(*(state.cast(nw.String) for state in states)),
        first_loss=_first_loss(states),
        kind=_kind(states),
    )


def _first_key(pairs: Pairs) -> dict[str, nw.Expr]:
    """Return the null-free columns that identify a result of the first checkpoint, for joins."""
    key = {"task": nw.col("task"), "item": nw.col("item_before"), "repeat": nw.col("repeat")}
    for name in CONTENT_HASHES:
        if f"{name}_before" in pairs.columns:
            key[name] = nw.coalesce(nw.col(f"{name}_before"), nw.lit(0, dtype=nw.Int64))
    return key


def _states(pairs: Pairs, key: dict[str, nw.Expr], stage: int, *, first: bool) -> Frame:
    columns = _stage_columns(pairs, "after", stage)
    if first:
        columns |= _stage_columns(pairs, "before", 0)
        for name in ITEM_FACTS:
            if pairs.columns & {f"{name}_before", f"{name}_after"}:
                columns[f"{name}_before"] = side_value(name, pairs.columns)
    return pairs.frame.filter(scored_pair()).select(**key, **columns)


def _stage_columns(pairs: Pairs, side: str, stage: int) -> dict[str, nw.Expr]:
    """Return the columns of a side, named by the number of its stage."""
    columns = {
        f"{name}_{stage}": nw.col(f"{name}_{side}")
        for name in ANSWER_COLUMNS
        if f"{name}_{side}" in pairs.columns
    }
    return columns | {f"state_{stage}": nw.col(f"state_{side}").cast(nw.Int8)}


def _between(followed: Frame, first: Pairs, earlier: int, later: int) -> Pairs:
    """Return two stages of the items scored at every stage, as pairs of a comparison."""
    names = followed.collect_schema().names()
    columns = {}
    for side, stage in (("before", earlier), ("after", later)):
        for name in ("state", *ANSWER_COLUMNS):
            if f"{name}_{stage}" in names:
                columns[f"{name}_{side}"] = nw.col(f"{name}_{stage}")
    kept = [name for name in names if name.removesuffix("_before") in ITEM_FACTS]
    key = [name for name in ("item", *CONTENT_HASHES) if name in names]
    frame = followed.select("task", "repeat", *key, *kept, **columns)
    return Pairs(
        frame, first.keys, frozenset(("task", "repeat", *key, *kept, *columns)), tuple(key),
        first.repeats,
    )  # fmt: skip


def _keyed_noise(noise: Pairs) -> Pairs:
    """Key a repeat of the first checkpoint like the results of a chain."""
    key = {name: value for name, value in _first_key(noise).items() if name != "repeat"}
    answer = {
        name: nw.col(name)
        for name in ("state_after", "wrong_after", "outcome_after", "k_before", "k_after")
        if name in noise.columns
    }
    frame = noise.frame.filter(both_sides()).select(**key, **answer)
    item_columns = tuple(name for name in key if name != "task")
    return Pairs(frame, noise.keys, frozenset((*key, *answer)), item_columns, repeats=True)


def _first_loss(states: Sequence[nw.Expr]) -> nw.Expr:
    """Return the first stage that is wrong after a right one; null if there is none."""
    stage_lost: nw.Expr | None = None
    for stage in reversed(range(1, len(states))):
        lost = (states[stage - 1] == RIGHT) & (states[stage] == WRONG)
        here = nw.when(lost).then(nw.lit(stage, dtype=nw.Int32))
        stage_lost = here if stage_lost is None else here.otherwise(stage_lost)
    assert stage_lost is not None  # noqa: S101  # a chain has stages
    return stage_lost


def _kind(states: Sequence[nw.Expr]) -> nw.Expr:
    changes: nw.Expr = nw.lit(0)
    for earlier, later in pairwise(states):
        changes = changes + (earlier != later).cast(nw.Int32)
    known = states[0] == RIGHT
    still = nw.when(known).then(nw.lit("kept")).otherwise(nw.lit("never"))
    once = nw.when(known).then(nw.lit("forgotten")).otherwise(nw.lit("gained"))
    twice = nw.when(known & (changes == 2)).then(nw.lit("regained")).otherwise(nw.lit("unstable"))
    moved = nw.when(changes == 1).then(once).otherwise(twice)
    return nw.when(changes == 0).then(still).otherwise(moved)


def _count_paths(followed: Frame) -> dict[str, int]:
    counts = followed.group_by("path").agg(nw.len().alias("n")).collect()
    return {str(row["path"]): int(row["n"]) for row in counts.rows(named=True)}
