"""The result of comparing two runs, for people and programs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from forgetmap.comparison.cells import Cells, Label, count_cells
from forgetmap.comparison.choice_counts import CHOICES
from forgetmap.comparison.choices import Kind
from forgetmap.comparison.coverage import (
    Coverage,
    coverage_warnings,
    evidence_warnings,
    is_one_to_one,
    measure_coverage,
    require_enough,
)
from forgetmap.comparison.evidence import Evidence, Gathered, gather
from forgetmap.comparison.flips import select_flips, select_unpaired, with_texts
from forgetmap.comparison.frames import small_frame, to_library
from forgetmap.comparison.gold_positions import with_places
from forgetmap.comparison.group_results import group_result, group_results, macro_result
from forgetmap.comparison.headline import Judge
from forgetmap.comparison.render import as_html, as_text
from forgetmap.comparison.result import (
    ComparisonResult,
    GroupResult,
    PairingResult,
    RolledUpResult,
    Rule,
    RunResult,
)
from forgetmap.comparison.rollups import count_seeds, roll_up
from forgetmap.comparison.sanity import count_failures, sanity_warnings
from forgetmap.comparison.task_tables import load_table, with_task_table
from forgetmap.comparison.words import seen
from forgetmap.errors import PairingError
from forgetmap.pairing import Pairs, Side, check_directions, compare_conditions, match, match_twins
from forgetmap.records import Frame, Run, reading
from forgetmap.results import Notice
from forgetmap.stats import FDR
from forgetmap.text import counted, listed


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


def compare_sides(
    before: Side, after: Side, rule: Rule, *, noise: Side | None = None
) -> Comparison:
    """Pair two prepared runs, count what happened, and say how sure that is.

    Args:
        before: the model before.
        after: the model after.
        rule: how they are compared.
        noise: a repeat of the model before.
    """
    for side in (before, after, *([noise] if noise else [])):
        check_directions(side.run, side.measured.measures)
    with reading(before.run, after.run):
        pairs, cells = pair_and_count(before, after, rule)
        total = Cells.total(cells.values())
        coverage = measure_coverage(pairs, total, before, after)
        names = (before.run.name, after.run.name)
        require_enough(coverage, cells, rule.min_paired, names)
        again = None if noise is None else pair_noise(before, noise, pairs, rule)
        if pairs.columns >= CHOICES:
            cells = with_places(cells, before.measured.scores)
        evidence = gather(pairs, cells, again)
        rolled_up = _rolled_up(pairs, rule)
        failures = tuple(count_failures(side.measured.scores) for side in (before, after))
    measures = (before.measured.measures, after.measured.measures)
    warnings = [
        *_reading_warnings(before.run, after.run),
        *_key_warnings(pairs),
        *compare_conditions(before.run.info, after.run.info, measures),
        *_repeat_warning(before, after),
        *coverage_warnings(coverage, total, cells, rule.min_paired),
        *evidence_warnings(evidence.total()),
        *table_warnings(evidence.tasks(), rule.task_table),
        *sanity_warnings(evidence.total(), evidence.tasks(), failures),
    ]
    judge = make_judge(rule, before.run, after.run, pairs)
    paired = _pairing(coverage, warnings)
    result = _result(before.run, after.run, rule, evidence, paired, judge)
    compared_by = {task: str(measure) for task, measure in sorted(measures[0].items())}
    result = result.model_copy(update={"rolled_up": rolled_up, "measures": compared_by})
    return Comparison(result, before.run, after.run, pairs)


def pair_and_count(before: Side, after: Side, rule: Rule) -> tuple[Pairs, dict[Label, Cells]]:
    """Two prepared runs, item by item, and the four cells of every group."""
    pairs = match(before, after, correct_at=rule.correct_at, pair_by=rule.pair_by)
    pairs = with_task_table(pairs, rule.task_table)
    cells = count_cells(pairs)
    if not is_one_to_one(Cells.total(cells.values()), before, after):
        pairs = match_twins(before, after, pairs.keys, correct_at=rule.correct_at)
        pairs = with_task_table(pairs, rule.task_table)
        cells = count_cells(pairs)
        if not is_one_to_one(Cells.total(cells.values()), before, after):
            raise PairingError(
                f"some items of {before.run.name} and {after.run.name} cannot be told apart",
                hint="give every item of a task its own id.",
            )
    return pairs, cells


def pair_noise(before: Side, noise: Side, pairs: Pairs, rule: Rule) -> Pairs:
    """The model before with a repeat of it, by the keys that pair the two models.

    Raises:
        PairingError: it is no repeat of the model before.
    """
    with reading(before.run, noise.run):
        if "tie" in pairs.columns:
            found = match_twins(before, noise, pairs.keys, correct_at=rule.correct_at)
        else:
            found = match(before, noise, correct_at=rule.correct_at, pair_by=rule.pair_by)
        cells = Cells.total(count_cells(found).values())
    alike = found.item_columns == pairs.item_columns and is_one_to_one(cells, before, noise)
    items = round(before.rows / before.repeats)
    if not alike or cells.items < rule.min_paired * items:
        raise PairingError(
            f"{noise.run.name} is no repeat of {before.run.name}: {cells.items:,} of about "
            f"{counted(items, 'item')} pair",
            hint="--noise takes a repeat of the model before, on the same items and written the "
            "same way.",
        )
    return found


def _result(
    before: Run,
    after: Run,
    rule: Rule,
    evidence: Gathered,
    pairing: PairingResult,
    judge: Judge,
) -> ComparisonResult:
    by_task = evidence.tasks()
    tasks = group_results(by_task, judge)
    overall = replace(judge, tasks=lost_tasks(tasks))
    total = group_result("total", evidence.total(), overall)
    return ComparisonResult(
        headline=f"{after.name}: {total.headline.words}.",
        seen=seen(before.name, after.name, total),
        before=_run(before),
        after=_run(after),
        rule=rule,
        pairing=pairing,
        total=total,
        total_macro=macro_result(by_task, tasks, total, overall),
        categories=group_results(evidence.categories(), judge),
        tags=group_results(evidence.tags(), judge),
        tasks=tasks,
    )


def make_judge(rule: Rule, before: Run, after: Run, pairs: Pairs) -> Judge:
    """How headlines are chosen in a comparison."""
    return Judge(
        asked=rule.estimator,
        sampled=_sampled(before, after),
        knows_options=bool(pairs.columns & {"k_before", "k_after"}),
    )


def _sampled(before: Run, after: Run) -> bool | None:
    """Whether answers of either were sampled; None where that is not known of both."""
    known = (before.info.is_sampled, after.info.is_sampled)
    return True if True in known else None if None in known else False


def lost_tasks(tasks: Sequence[GroupResult]) -> tuple[int, int]:
    """How many tasks lost something at a false discovery rate of 5 %, of how many tested."""
    tested = [task.q_lost for task in tasks if task.q_lost is not None]
    return sum(q <= FDR for q in tested), len(tested)


def table_warnings(tasks: Mapping[str, Evidence], name: str | None) -> list[Notice]:
    """Tasks of which the table says that options vary, and the data do not say how."""
    table = None if name is None else load_table(name)
    vary = [
        task
        for task, found in tasks.items()
        if table is not None
        and (entry := table.find(task)) is not None
        and entry.k is None
        and all(math.isinf(k) for k in found.options)
    ]
    if not vary:
        return []
    message = f"the number of options varies in {listed(vary)} and is not recorded: taken as open."
    return [Notice("options_vary", message)]


def _rolled_up(pairs: Pairs, rule: Rule) -> list[RolledUpResult] | None:
    if rule.rollup == "default":
        return None
    return [
        RolledUpResult(name=each.name, mean=each.mean, deviation=each.deviation)
        for each in roll_up(count_seeds(pairs))
    ]


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


def _reading_warnings(*runs: Run) -> list[Notice]:
    """What happened while logs were read: runs left out, rows that could not be used."""
    found = [Notice("log", f"{run.name}: {said}") for run in runs for said in run.notices]
    for run in runs:
        if run.problem_count:
            rows = counted(run.problem_count, "problem")
            found.append(Notice("problems", f"{run.name}: {rows}, such as {run.problems[0]}."))
    return found


def _key_warnings(pairs: Pairs) -> list[Notice]:
    if not pairs.keys.loosened:
        return []
    tasks = listed(pairs.keys.loosened, "tasks")
    return [
        Notice(
            "loosened",
            f"right answers or options are written differently on the two sides in {tasks}: items "
            "were paired by the rest of their content.",
        )
    ]


def _repeat_warning(before: Side, after: Side) -> list[Notice]:
    if before.repeats == after.repeats:
        return []
    return [
        Notice(
            "repeats",
            f"{counted(before.repeats, 'answer')} per item before and {after.repeats:,} after: "
            "those without a counterpart are in no cell; they only tell of self-churn.",
        )
    ]
