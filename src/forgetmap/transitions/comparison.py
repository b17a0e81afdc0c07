"""The result of comparing two runs, for people and programs."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from forgetmap.errors import PairingError
from forgetmap.pairing.checks import Notice, check_directions, compare_conditions
from forgetmap.pairing.match import Side, match, match_twins
from forgetmap.pairing.pair import Pairs
from forgetmap.records.run import Frame, Run
from forgetmap.records.validate import reading
from forgetmap.transitions.cells import Cells, Group, count_cells
from forgetmap.transitions.coverage import (
    Coverage,
    coverage_warnings,
    is_one_to_one,
    measure_coverage,
    require_enough,
)
from forgetmap.transitions.flips import Kind, select_flips, select_unpaired, with_texts
from forgetmap.transitions.frames import small_frame, to_library
from forgetmap.transitions.rates import group_result, macro_result, results_by, results_by_task
from forgetmap.transitions.render import as_html, as_text
from forgetmap.transitions.result import (
    ComparisonResult,
    PairingResult,
    Rule,
    RunResult,
)
from forgetmap.transitions.words import counted, headline


@dataclass(frozen=True, slots=True, repr=False)
class Comparison:
    """What one model forgot and gained against another.

    Attributes:
        result: all numbers and words, as in `--json`.
        before: the run before.
        after: the run after.
        pairs: every result with its counterpart, lazy.
    """

    result: ComparisonResult
    before: Run
    after: Run
    pairs: Pairs

    @property
    def headline(self) -> str:
        """What happened, in one sentence."""
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

    def flips(self, kind: Kind = "forgotten", *, texts: bool = False) -> Any:
        """The items of one transition with both answers, as a frame of the caller's library.

        Args:
            kind: forgotten (1->0), gained (0->1), kept (1->1) or never (0->0).
            texts: bring questions, prompts and responses along.
        """
        with reading(self.before, self.after):
            return to_library(self.flip_frame(kind, texts=texts), self.before)

    def flip_frame(self, kind: Kind, *, texts: bool = False, limit: int | None = None) -> Frame:
        """The same, lazy; texts are looked up only for the first `limit` items."""
        flips = select_flips(self.pairs, kind)
        flips = flips if limit is None else flips.head(limit)
        return with_texts(flips, self.before, self.after) if texts else flips

    def unpaired(self) -> Any:
        """Every result that is not in the cells, and why."""
        with reading(self.before, self.after):
            return to_library(select_unpaired(self.pairs), self.before)

    def to_json(self, *, indent: int | None = 2) -> str:
        """All numbers and words as JSON; the schema is in docs/schemas."""
        return self.result.to_json(indent=indent)

    def __repr__(self) -> str:
        return as_text(self.result)

    def _repr_html_(self) -> str:
        return as_html(self.result)


def compare_sides(before: Side, after: Side, rule: Rule) -> Comparison:
    """Pair two prepared runs and count what happened."""
    for side in (before, after):
        check_directions(side.run, side.measured.measures)
    with reading(before.run, after.run):
        pairs, groups = _pair_and_count(before, after, rule)
        cells = Cells.total(group.cells for group in groups)
        coverage = measure_coverage(pairs, cells, before, after)
    names = (before.run.name, after.run.name)
    require_enough(coverage, groups, rule.min_paired, names)
    measures = (before.measured.measures, after.measured.measures)
    warnings = [
        *compare_conditions(before.run.info, after.run.info, measures),
        *_repeat_warning(before, after),
        *coverage_warnings(coverage, cells, groups, rule.min_paired),
    ]
    result = _result(before.run, after.run, rule, groups, _pairing(coverage, warnings))
    return Comparison(result, before.run, after.run, pairs)


def _pair_and_count(before: Side, after: Side, rule: Rule) -> tuple[Pairs, list[Group]]:
    pairs = match(before, after, correct_at=rule.correct_at, pair_by=rule.pair_by)
    groups = count_cells(pairs)
    if not is_one_to_one(Cells.total(group.cells for group in groups), before, after):
        pairs = match_twins(before, after, pairs.keys, correct_at=rule.correct_at)
        groups = count_cells(pairs)
        if not is_one_to_one(Cells.total(group.cells for group in groups), before, after):
            raise PairingError(
                f"some items of {before.run.name} and {after.run.name} cannot be told apart",
                hint="give every item of a task its own id.",
            )
    return pairs, groups


def _result(
    before: Run, after: Run, rule: Rule, groups: list[Group], pairing: PairingResult
) -> ComparisonResult:
    total = group_result("total", Cells.total(group.cells for group in groups))
    tasks = results_by_task(groups)
    return ComparisonResult(
        headline=headline(before.name, after.name, total),
        before=_run(before),
        after=_run(after),
        rule=rule,
        pairing=pairing,
        total=total,
        total_macro=macro_result(tasks, total),
        categories=results_by(groups, lambda group: [group.category] if group.category else []),
        tags=results_by(groups, lambda group: group.tags),
        tasks=tasks,
    )


def _pairing(coverage: Coverage, warnings: list[Notice]) -> PairingResult:
    return PairingResult(**asdict(coverage), share=coverage.share, warnings=warnings)


def _run(run: Run) -> RunResult:
    return RunResult(
        name=run.name,
        origin=run.origin,
        run_id=run.info.run_id,
        model=run.info.model.name,
        stage=run.info.stage,
        simulated=run.info.simulated,
    )


def _repeat_warning(before: Side, after: Side) -> list[Notice]:
    if before.repeats == after.repeats:
        return []
    return [
        Notice(
            "repeats",
            f"{counted(before.repeats, 'answer')} per item before and {after.repeats:,} after: "
            "those without a counterpart are not compared.",
        )
    ]
