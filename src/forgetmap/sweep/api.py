"""Public functions that compare runs of merges with both parents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from forgetmap.comparison import Comparison, FanOut, GroupResult, Rule, compare
from forgetmap.errors import UsageError
from forgetmap.evaluation import model_labels
from forgetmap.merge import WeightDrift
from forgetmap.pairing import prepare
from forgetmap.results import Presentable
from forgetmap.sources import open_run
from forgetmap.stats import LEVEL
from forgetmap.sweep import words
from forgetmap.sweep.analyse import (
    ALL_ITEMS,
    DEFAULT_BUDGET,
    ERROR,
    PathPoint,
    analyse_pair,
    correlate,
)
from forgetmap.sweep.grid import Merge
from forgetmap.sweep.result import SweepResult
from forgetmap.sweep.states import gather_states


class MergedPath(NamedTuple):
    """One tuned model: as given, its run, and the runs of its merges, ends included."""

    model: str
    run: str
    merges: Mapping[Merge, str]


@dataclass(frozen=True, slots=True, repr=False)
class Sweep(Presentable):
    """What merges of two models keep, forget and retain.

    Attributes:
        result: all numbers and texts, as in `--json`.
        from_base: comparisons of base with every tuned model and merge.
        from_tuned: name of the run of a tuned model -> its comparisons with base and its merges.
    """

    result: SweepResult
    from_base: FanOut | Comparison
    from_tuned: Mapping[str, FanOut | Comparison] = field(default_factory=dict)

    def to_json(self, *, indent: int | None = 2) -> str:
        """Return all numbers and texts as JSON; the schema is in docs/schemas."""
        return self.result.to_json(indent=indent)

    def __repr__(self) -> str:
        return "\n".join(words.headline(pair) for pair in self.result.pairs)


def compare_runs(
    folder: Path,
    base: tuple[str, str],
    paths: Sequence[MergedPath],
    *,
    suite: str = "",
    targets: Sequence[str] = (),
    budget: float = DEFAULT_BUDGET,
    drifts: Sequence[WeightDrift | None] = (),
    rule: Rule | None = None,
) -> Sweep:
    """Compare the runs of a sweep on disk.

    Args:
        folder: folder of the runs.
        base: the model as given, and the name of its run.
        paths: the tuned models and their merges.
        suite: name of the suite.
        targets: tasks that the tuned models were trained for.
        budget: maximum forgetting of the best merge, as a share of what tuned forgot.
        drifts: weight difference of each tuned model.
        rule: rule of the comparisons.
    """
    rule = rule or Rule()
    if not paths:
        raise UsageError("a sweep needs a tuned model", hint="pass one or more.")
    later = {run: folder / run for path in paths for run in (path.run, *path.merges.values())}
    later = {run: index for run, index in later.items() if run != base[1]}
    # The best merge is chosen by the items it is judged by: upper limits allow for that.
    merges = sum(merge.parent is None for path in paths for merge in path.merges)
    from_base = compare(folder / base[1], *later.values(), chosen_among=max(merges, 1))
    compared = dict(zip(later, _groups(from_base), strict=True))
    from_tuned = {path.run: _from_tuned(folder, base[1], path) for path in paths}
    pairs = []
    labels = model_labels([path.model for path in paths])
    for path, label, drift in zip(paths, labels, drifts or [None] * len(paths), strict=True):
        runs = list(dict.fromkeys([base[1], path.run, *path.merges.values()]))
        sides = [prepare(open_run(folder / run), rule.metric) for run in runs]
        pair = analyse_pair(
            gather_states(sides, correct_at=rule.correct_at, target=set(targets)),
            [PathPoint(*merge, runs.index(run), run) for merge, run in path.merges.items()],
            names=(path.model, label),
            compared={n: compared[run] for n, run in enumerate(runs) if run in compared},
            drift=drift,
            budget=budget,
        )
        pairs.append(pair)
    result = SweepResult(
        base=base[0],
        suite=suite,
        targets=list(targets),
        level=LEVEL,
        budget=budget,
        rule=words.rule(budget, ERROR),
        pairs=pairs,
        correlation=correlate(pairs),
    )
    return Sweep(result, from_base, from_tuned)


def _from_tuned(folder: Path, base: str, path: MergedPath) -> FanOut | Comparison:
    others = [run for run in dict.fromkeys([base, *path.merges.values()]) if run != path.run]
    return compare(folder / path.run, *(folder / run for run in others))


def _groups(comparisons: FanOut | Comparison) -> list[dict[str, GroupResult]]:
    pairs = [comparisons] if isinstance(comparisons, Comparison) else list(comparisons)
    return [
        {ALL_ITEMS: pair.result.total} | {group.name: group for group in pair.result.categories}
        for pair in pairs
    ]
