"""From two prepared runs to a comparison: pair, count, estimate, judge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace

from forgetmap.comparison.cells import Cells, Label, count_cells
from forgetmap.comparison.clustered import has_shared_content
from forgetmap.comparison.comparison import Comparison, Grounds
from forgetmap.comparison.contradictions import contradictions, first_contradiction
from forgetmap.comparison.coverage import (
    PairingCoverage,
    is_one_to_one,
    measure_coverage,
    require_enough,
)
from forgetmap.comparison.evidence import NO_SIDES, GroupedEvidence, Sides, gather_evidence
from forgetmap.comparison.group_results import (
    conclude_family,
    group_result,
    group_results,
    macro_result,
    with_shrinkage,
)
from forgetmap.comparison.notices import (
    count_failures,
    coverage_warnings,
    evidence_warnings,
    identical_warnings,
    key_warnings,
    missing_warnings,
    passage_warnings,
    reading_warnings,
    repeat_warnings,
    sanity_warnings,
    seed_warnings,
    table_warnings,
    worst_case_warnings,
)
from forgetmap.comparison.result import (
    ComparisonResult,
    ConsensusResult,
    GroupResult,
    PairingResult,
    RolledUpResult,
    Rule,
    RunResult,
)
from forgetmap.comparison.rollups import SeedRow, agree_over_seeds, count_seeds, roll_up
from forgetmap.comparison.side_counts import SideCounts, count_side, has_empty_position
from forgetmap.comparison.task_tables import with_task_table
from forgetmap.comparison.verdict import Policy, make_claim
from forgetmap.comparison.words import counts_sentence
from forgetmap.errors import PairingError, UsageError
from forgetmap.pairing import (
    SIDES,
    Pairs,
    Side,
    check_directions,
    compare_conditions,
    match,
    match_twins,
)
from forgetmap.records import Kept, Run, is_spark, kept_frames, one_plan, reading
from forgetmap.results import Notice
from forgetmap.text import counted


def compare_sides(
    before: Side, after: Side, rule: Rule, *, noise: Side | None = None
) -> Comparison:
    """Pair two prepared runs, count transitions, estimate losses and reach verdicts.

    Args:
        before: the model before.
        after: the model after.
        rule: rule of the comparison.
        noise: a repeat of the model before.
    """
    refuse_same_run(before, after)
    for side in (before, after, *([noise] if noise else [])):
        check_directions(side.run, side.measured.measures)
    rows = before.rows + after.rows
    with (
        reading(before.run, after.run),
        one_plan(before.run.scores, rows),
        kept_frames() as kept,
    ):
        pairs, cells = pair_and_count(before, after, rule, kept)
        counted_pairs = without_answers(pairs)
        total = Cells.total(cells.values())
        coverage = measure_coverage(counted_pairs, total, before, after)
        names = (before.run.name, after.run.name)
        against = contradictions(before, after, *([noise] if noise else []))
        if not against:  # it is the reason for missing scores, too
            require_enough(coverage, cells, rule.min_paired, names)
        again = None if noise is None else pair_noise(before, noise, pairs, rule)
        evidence = gather_evidence(
            counted_pairs,
            cells,
            again,
            sides=count_positions(before, after, rule.correct_at),
            graded=_are_graded(before, after),
            level=rule.level,
            shared_content=has_shared_content(before),
        )
        seeds = [] if rule.rollup == "default" else count_seeds(counted_pairs)
        rolled_up = {} if rule.rollup == "default" else _rolled_up(counted_pairs, seeds)
        passages = passage_warnings(before.run, pairs)
        failures = tuple(count_failures(side) for side in (before, after))
    measures = (before.measured.measures, after.measured.measures)
    all_items, by_task = evidence.total(), evidence.tasks()
    warnings = [
        *reading_warnings(before.run, after.run),
        *key_warnings(pairs),
        *compare_conditions(before.run.info, after.run.info, measures),
        *repeat_warnings(before, after),
        *coverage_warnings(coverage, total, cells, rule.min_paired),
        *missing_warnings(total),
        *passages,
        *identical_warnings(total, all_items.graded),
        *evidence_warnings(all_items, by_task),
        *table_warnings(by_task, rule.task_table),
        *seed_warnings(seeds),
        *sanity_warnings(all_items, by_task, failures),
    ]
    policy = make_policy(rule, before.run, after.run, pairs, against)
    repeats = _shared_repeats(before, after)
    paired = _pairing(coverage, warnings, against)
    result = _result(before.run, after.run, rule, evidence, paired, policy)
    worst = worst_case_warnings(result.total, warnings, strict=rule.strict)
    added = {
        **rolled_up,
        "measures": {task: str(measure) for task, measure in sorted(measures[0].items())},
        "pairing": paired.model_copy(update={"warnings": [*warnings, *worst]}),
    }
    result = result.model_copy(update=added)
    return Comparison(result, before.run, after.run, pairs, Grounds(evidence, policy, repeats))


def in_one_family(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """Correct the totals of several models compared with one for the number of models."""
    grounds = [comparison.grounds for comparison in comparisons]
    groups = [comparison.result.total for comparison in comparisons]
    claims = [
        make_claim(group, ground.evidence.total(), ground.policy)
        for group, ground in zip(groups, grounds, strict=True)
    ]
    totals = conclude_family(groups, claims, grounds[0].policy, "models")
    return [
        replace(comparison, result=comparison.result.model_copy(update=_total(comparison, total)))
        for comparison, total in zip(comparisons, totals, strict=True)
    ]


def _total(comparison: Comparison, total: GroupResult) -> dict[str, object]:
    return {"total": total, "headline": f"{comparison.after.name}: {total.headline.words}."}


def count_positions(before: Side, after: Side, correct_at: float) -> Sides:
    """Count positions of right and chosen options; AFTER only if a position may be missing."""
    if "k" not in before.measured.scores.collect_schema().names():
        return NO_SIDES
    counts = _count_side(before, correct_at)
    if not any(has_empty_position(part.gold) for part in counts.values()):
        return counts, {}
    return counts, _count_side(after, correct_at)


def _count_side(side: Side, correct_at: float) -> dict[Label, SideCounts]:
    totals = None if side.totals is None else side.totals.of(side.measured.measures)
    return count_side(side.measured.scores, correct_at, totals)


def refuse_same_run(before: Side, after: Side) -> None:
    """Refuse to compare a run with itself.

    Raises:
        UsageError: both sides are the same run.
    """
    # Our runs are named by their model, and one run of a harness may evaluate several models.
    infos = (before.run.info, after.run.info)
    ids = [(info.run_id, info.created, info.model.name) for info in infos]
    is_fingerprinted = any(info.fingerprint for info in infos)
    if not is_fingerprinted and None not in ids[0][:2] and ids[0] == ids[1]:
        raise UsageError(
            f"{before.run.name} is both before and after: the two sides have the same run id "
            f"{ids[0][0]}",
            hint="give the run of another model as the second argument.",
        )


def pair_and_count(
    before: Side, after: Side, rule: Rule, kept: Kept | None = None
) -> tuple[Pairs, dict[Label, Cells]]:
    """Pair two prepared runs item by item, and count the four cells of every group.

    Args:
        before: the model before.
        after: the model after.
        rule: rule of the comparison.
        kept: caches the pairs, if more than the cells is counted.
    """

    def count(pairs: Pairs) -> dict[Label, Cells]:
        counted_pairs = without_answers(pairs)
        if kept is not None and _is_counted_again(pairs, before, after, rule):
            kept.release()
            kept.keep(counted_pairs.frame)
        return count_cells(counted_pairs, _shared_repeats(before, after))

    pairs = match(before, after, correct_at=rule.correct_at, pair_by=rule.pair_by)
    pairs = with_task_table(pairs, rule.task_table)
    cells = count(pairs)
    if not is_one_to_one(Cells.total(cells.values()), before, after):
        pairs = match_twins(before, after, pairs.keys, correct_at=rule.correct_at)
        pairs = with_task_table(pairs, rule.task_table)
        cells = count(pairs)
        if not is_one_to_one(Cells.total(cells.values()), before, after):
            raise PairingError(
                f"some items of {before.run.name} and {after.run.name} are ambiguous",
                hint="give every item of a task a unique id.",
            )
    return pairs, cells


def without_answers(pairs: Pairs) -> Pairs:
    """Drop columns that are not counted, on Spark: choices, and golds that have an index."""
    if not is_spark(pairs.frame):
        return pairs
    left_out = {f"{name}_{side}" for name in ("choice",) for side in SIDES}
    if {f"gold_index_{side}" for side in SIDES} <= pairs.columns:
        left_out |= {f"gold_{side}" for side in SIDES}
    columns = pairs.columns - left_out
    return replace(pairs, frame=pairs.frame.select(*sorted(columns)), columns=columns)


def _is_counted_again(pairs: Pairs, before: Side, after: Side, rule: Rule) -> bool:
    """Return whether repeats, clusters, options, content or graded scores take further queries."""
    asking = {f"{name}_{side}" for name in ("cluster", "k") for side in SIDES}
    return (
        pairs.repeats
        or pairs.keys.use_content
        or rule.rollup != "default"
        or not pairs.columns.isdisjoint(asking)
        or _are_graded(before, after)
    )


def _are_graded(*sides: Side) -> bool:
    """Return whether some score is neither 0 nor 1."""
    return any(task["graded"] for side in sides for task in side.measured.recorded.values())


def _shared_repeats(before: Side, after: Side) -> int | None:
    """Return the answers per item that can have a counterpart; None if all can."""
    return None if before.repeats == after.repeats else min(before.repeats, after.repeats)


def pair_noise(before: Side, noise: Side, pairs: Pairs, rule: Rule) -> Pairs:
    """Pair the model before with a repeat of it, by the keys that pair the two models.

    Raises:
        PairingError: `noise` is not a repeat of the model before.
    """
    with reading(before.run, noise.run):
        if "tie" in pairs.columns:
            repeat = match_twins(before, noise, pairs.keys, correct_at=rule.correct_at)
        else:
            repeat = match(before, noise, correct_at=rule.correct_at, pair_by=rule.pair_by)
        cells = Cells.total(count_cells(repeat).values())
    alike = repeat.item_columns == pairs.item_columns and is_one_to_one(cells, before, noise)
    items = round(before.rows / before.repeats)
    if not alike or cells.items < rule.min_paired * items:
        raise PairingError(
            f"{noise.run.name} is not a repeat of {before.run.name}: {cells.items:,} of about "
            f"{counted(items, 'item')} pair",
            hint="pass a repeat of the model before, on the same items and in the same format.",
        )
    return repeat


def _result(
    before: Run,
    after: Run,
    rule: Rule,
    evidence: GroupedEvidence,
    pairing: PairingResult,
    policy: Policy,
) -> ComparisonResult:
    by_task = evidence.tasks()
    tasks = with_shrinkage(group_results(by_task, policy, "tasks"), by_task, policy)
    total = group_result("total", evidence.total(), policy)
    return ComparisonResult(
        headline=f"{after.name}: {total.headline.words}.",
        seen=counts_sentence(before.name, after.name, total),
        before=_run(before),
        after=_run(after),
        rule=rule,
        pairing=pairing,
        total=total,
        total_macro=macro_result(by_task, tasks, total, policy),
        categories=group_results(evidence.categories(), policy, "categories"),
        tags=group_results(evidence.tags(), policy, "tags"),
        tasks=tasks,
    )


def make_policy(
    rule: Rule, before: Run, after: Run, pairs: Pairs, against: Sequence[Notice]
) -> Policy:
    """Build the verdict rules of a comparison.

    Args:
        rule: rule of the comparison.
        before: the model before.
        after: the model after.
        pairs: their results.
        against: what contradicts the results.
    """
    return Policy(
        estimator=rule.estimator,
        sampled=_sampled(before, after),
        knows_options=bool(pairs.columns & {"k_before", "k_after"}),
        margin=rule.margin,
        noise_floor=rule.noise_floor,
        level=rule.level,
        contradiction=first_contradiction(against) if against else None,
    )


def _sampled(before: Run, after: Run) -> bool | None:
    """Return whether answers of either run were sampled; None if it is not known of both."""
    known = (before.info.is_sampled, after.info.is_sampled)
    return True if True in known else None if None in known else False


def _rolled_up(pairs: Pairs, rows: Sequence[SeedRow]) -> dict[str, object]:
    """Return the published averages, and the consensus of the seeds."""
    rolled = [
        RolledUpResult(name=group.name, mean=group.mean, deviation=group.deviation)
        for group in roll_up(rows)
    ]
    agreed = [ConsensusResult(**asdict(group)) for group in agree_over_seeds(pairs, rows)]
    return {"rolled_up": rolled, "consensus": agreed or None}


def _pairing(
    coverage: PairingCoverage, warnings: list[Notice], against: list[Notice]
) -> PairingResult:
    counts = {**asdict(coverage), "share": coverage.share}
    return PairingResult(**counts, contradictions=against, warnings=warnings)


def _run(run: Run) -> RunResult:
    return RunResult(
        name=run.name,
        origin=run.origin,
        run_id=run.info.run_id,
        model=run.info.model.name,
        stage=run.info.stage,
        simulated=run.info.simulated,
    )
