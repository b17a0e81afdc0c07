"""From two prepared runs to a comparison: pair, count, estimate, judge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import narwhals as nw

from forgetmap.comparison.cells import Cells, Counted, count_cells, count_pairs
from forgetmap.comparison.clusters import (
    has_cluster_names,
    records_clusters,
    refuse_split_items,
    without_clusters,
)
from forgetmap.comparison.comparison import Comparison, Grounds
from forgetmap.comparison.contradictions import contradictions
from forgetmap.comparison.copies import copied_rerun, is_copy, without_copies
from forgetmap.comparison.coverage import (
    PairingCoverage,
    is_one_to_one,
    measure_coverage,
    require_enough,
)
from forgetmap.comparison.evidence import GroupedEvidence, with_lone_results
from forgetmap.comparison.fresh import fresh_answers
from forgetmap.comparison.graded import sum_changes
from forgetmap.comparison.halves import half_columns, id_suffix
from forgetmap.comparison.judge import VerdictSettings, judge_family, judge_group, judge_together
from forgetmap.comparison.kinds import (
    Kinds,
    gold_position,
    item_kinds,
    plain_kinds,
    refuse_one_cluster,
)
from forgetmap.comparison.labels import Label, label_of
from forgetmap.comparison.notices import (
    ceiling_warnings,
    count_failures,
    coverage_warnings,
    floor_warnings,
    identical_warnings,
    key_warnings,
    kind_warnings,
    missing_warnings,
    passage_warnings,
    position_warnings,
    reading_warnings,
    repeat_warnings,
    sanity_warnings,
    seed_warnings,
    table_warnings,
    worst_case_warnings,
)
from forgetmap.comparison.phrases import headline
from forgetmap.comparison.reruns import refuse_other_model
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
from forgetmap.records import CONTENT_HASHES, Kept, Run, is_spark, kept_frames, one_plan, reading
from forgetmap.results import Notice
from forgetmap.stats import MIN_TASKS
from forgetmap.text import counted

MIN_SELECTED = 50
"""Items from which on a run before that is right in all of them is a sign of selection."""


@dataclass(frozen=True, slots=True)
class Extra:
    """Further runs of the two models.

    Attributes:
        noise: a repeat of the model before.
        fresh: fresh answers of both models to items that flipped.
        planned: the fresh answers were planned before the first ones were seen.
    """

    noise: Side | None = None
    fresh: tuple[Side, Side] | None = None
    planned: bool = False


def compare_sides(
    before: Side, after: Side, rule: Rule, *, extra: Extra | None = None
) -> Comparison:
    """Pair two prepared runs, count transitions, estimate losses and reach verdicts.

    Args:
        before: the model before.
        after: the model after.
        rule: rule of the comparison.
        extra: further runs of the two models.
    """
    extra = _without_copies(extra or Extra())
    before, after = without_copies(before), without_copies(after)
    refuse_same_run(before, after)
    for side in (before, after, *([extra.noise] if extra.noise else [])):
        check_directions(side.run, side.measured.measures)
    rows = before.rows + after.rows
    with (
        reading(before.run, after.run),
        one_plan(before.run.scores, rows),
        kept_frames() as kept,
    ):
        pairs, counts = pair_and_count_rows(before, after, rule, kept)
        cells = counts[0]
        counted_pairs = without_answers(pairs)
        total = Cells.total(cells.values())
        coverage = measure_coverage(counted_pairs, total, before, after)
        more = (*([extra.noise] if extra.noise else []), *(extra.fresh or ()))
        against = contradictions(before, after, *more)
        if not against:  # verdicts that match nothing leave no scores
            require_enough(coverage, cells, rule.min_paired, (before.run.name, after.run.name))
        kinds, copies = gather_kinds(counted_pairs, counts, (before, after), rule, extra)
        evidence = gather_evidence(counted_pairs, cells, kinds, graded=_are_graded(before, after))
        seeds = [] if rule.rollup == "default" else count_seeds(counted_pairs)
        rolled_up = {} if rule.rollup == "default" else _rolled_up(counted_pairs, seeds)
        passages = passage_warnings(before.run, pairs)
        failures = tuple(count_failures(side) for side in (before, after))
        positions = count_positions(before, after, rule.correct_at)
    measures = (before.measured.measures, after.measured.measures)
    by_task = evidence.by("task")
    warnings = [
        *copies,
        *reading_warnings(before.run, after.run),
        *key_warnings(pairs),
        *compare_conditions(before.run.info, after.run.info, measures),
        *repeat_warnings(before, after),
        *coverage_warnings(coverage, total, cells, rule.min_paired),
        *missing_warnings(total),
        *passages,
        *identical_warnings(evidence.total()),
        *kind_warnings(evidence.total()),
        *position_warnings(*positions),
        *table_warnings(by_task, rule.task_table),
        *seed_warnings(seeds),
        *sanity_warnings(evidence.total(), by_task, failures),
    ]
    settings = make_settings(rule, total, (before, after), extra, is_contradicted=bool(against))
    paired = _pairing(coverage, warnings, against)
    result = _result(before.run, after.run, rule, evidence, paired, settings)
    warnings = [*floor_warnings(result.total, rule.noise_floor), *warnings]
    warnings += ceiling_warnings(result.total, result.tasks)
    worst = worst_case_warnings(result.total, warnings, strict=rule.strict)
    added: dict[str, Any] = {
        **rolled_up,
        "measures": {task: str(measure) for task, measure in sorted(measures[0].items())},
        "pairing": replace(paired, warnings=[*warnings, *worst]),
    }
    result = replace(result, **added)
    return Comparison(result, before.run, after.run, pairs, Grounds(evidence, settings))


def gather_grounds(
    before: Side, after: Side, rule: Rule, *, accept_one_cluster: bool = False
) -> tuple[Grounds, list[Notice]]:
    """Pair and count two prepared runs, only for the verdict of `compare_sides`.

    Args:
        before: the model before, without copies among its repeats.
        after: the model after.
        rule: rule of the comparison.
        accept_one_cluster: a single cluster of everything is no error; it decides nothing.

    Returns:
        The basis of the verdict, and what contradicts it.

    Raises:
        PairingError: the two runs cannot be compared.
    """
    with reading(before.run, after.run), kept_frames() as kept:
        pairs, counts = pair_and_count_rows(before, after, rule, kept)
        pairs = without_answers(pairs)
        against = contradictions(before, after)
        kinds, _ = gather_kinds(
            pairs, counts, (before, after), rule, Extra(), accept_one_cluster=accept_one_cluster
        )
    evidence = GroupedEvidence(with_lone_results(counts[0]), kinds, {}, {})
    total = Cells.total(counts[0].values())
    settings = make_settings(rule, total, (before, after), Extra(), is_contradicted=bool(against))
    return Grounds(evidence, settings), against


def judge_tasks(before: Side, after: Side, rule: Rule) -> tuple[list[GroupResult], list[Notice]]:
    """Return the verdicts of the tasks of two prepared runs, and what contradicts their scores.

    Nothing is refused here: what is compared may be little, or a single cluster.
    """
    grounds, against = gather_grounds(before, after, rule, accept_one_cluster=True)
    return judge_family(grounds.evidence.by("task"), grounds.settings, "tasks"), against


def _without_copies(extra: Extra) -> Extra:
    return extra if extra.noise is None else replace(extra, noise=without_copies(extra.noise))


def in_one_family(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """Correct the totals of several models compared with one for the number of models."""
    grounds = [comparison.grounds for comparison in comparisons]
    totals = judge_together(
        [("total", ground.evidence.total()) for ground in grounds],
        [ground.settings for ground in grounds],
        "models",
    )
    return [
        replace(comparison, result=replace(comparison.result, **_total(comparison, total)))
        for comparison, total in zip(comparisons, totals, strict=True)
    ]


def _total(comparison: Comparison, total: GroupResult) -> dict[str, Any]:
    pairing = comparison.result.pairing
    return {"total": total, "headline": headline(comparison.after.name, total, pairing)}


def gather_kinds(
    pairs: Pairs,
    counts: Counted,
    sides: tuple[Side, Side],
    rule: Rule,
    extra: Extra,
    *,
    accept_one_cluster: bool = False,
) -> tuple[Kinds, list[Notice]]:
    """Return the kinds of items, and what there is to say about copied repeats.

    Args:
        pairs: both sides.
        counts: from `count_pairs`.
        sides: both sides, before the join.
        rule: rule of the comparison.
        extra: further runs of the two models.
        accept_one_cluster: a single cluster of everything is no error; it decides nothing.
    """
    by_content = has_shared_content(sides[0])
    notices = []
    noise = None
    if extra.noise is not None:
        refuse_other_model(sides[0].run, extra.noise.run)
        if is_copy(sides[0], extra.noise):
            message = copied_rerun(sides[0].run, extra.noise.run)
            notices.append(Notice("copies", message))
        else:
            noise = pair_noise(sides[0], extra.noise, pairs, rule)
    examined = (*sides, *([extra.noise] if extra.noise else []))
    notices += [Notice("copies", said) for side in examined for said in side.copies or ()]
    more = []
    if extra.fresh is not None:
        fresh, notes = fresh_answers(pairs, sides, extra.fresh, rule)
        more.append(fresh)
        notices += notes
    named = has_cluster_names(pairs) and records_clusters(sides)
    if named:
        refuse_split_items(pairs)
    else:
        pairs = without_clusters(pairs)
    if not (pairs.repeats or noise or named or by_content or more):
        return plain_kinds(counts[1], label_of), notices
    suffix = half_suffix(sides, named=named)
    kinds = item_kinds(pairs, noise=noise, by_content=by_content, suffix=suffix, more=more)
    if named and not accept_one_cluster:
        refuse_one_cluster(kinds)
    return kinds, notices


def half_suffix(sides: Sequence[Side], *, named: bool) -> int:
    """Return which character of clusters, or else of ids, divides items into halves."""
    frames = [side.measured.scores for side in sides]
    if not named:
        return id_suffix(frames[0])
    return max(
        id_suffix(frame, "cluster")
        for frame in frames
        if "cluster" in frame.collect_schema().names()
    )


def gather_evidence(
    pairs: Pairs, cells: Mapping[Label, Cells], kinds: Kinds, *, graded: bool = False
) -> GroupedEvidence:
    """Add sums of graded scores and probabilities to the counts."""
    return GroupedEvidence(
        with_lone_results(cells),
        kinds,
        sum_changes(pairs, "score") if graded else {},
        sum_changes(pairs, "probability"),
    )


def has_shared_content(side: Side) -> bool:
    """Return whether items of a side share a question; counted without the join."""
    scores = side.measured.scores
    names = scores.collect_schema().names()
    if CONTENT_HASHES[0] not in names:
        return False
    first = scores.filter(nw.col("repeat") == 0) if "repeat" in names else scores
    question = nw.col(CONTENT_HASHES[0])
    counts = (
        first.filter(~question.is_null())
        .select(nw.len().alias("items"), question.n_unique().alias("different"))
        .collect()
    )
    return int(counts["different"][0] or 0) < int(counts["items"][0] or 0)


def make_settings(
    rule: Rule, total: Cells, sides: Sequence[Side], extra: Extra, *, is_contradicted: bool = False
) -> VerdictSettings:
    """Return how the verdicts of a comparison are reached."""
    selected: Literal["selected", "all_right"] | None = None
    if rule.selected or (rule.selected is None and _may_have_chosen(*sides)):
        selected = "selected"
    elif rule.selected is None and total.items >= MIN_SELECTED and not total.n01 + total.n00:
        selected = "all_right"
    return VerdictSettings(
        margin=rule.margin,
        level=rule.level,
        look=rule.look,
        looks=rule.looks,
        chosen_among=rule.chosen_among,
        estimator=rule.estimator,
        noise_floor=rule.noise_floor,
        selected=selected,
        asked_later=not extra.planned,
        undecided="contradicted" if is_contradicted else None,
    )


def _may_have_chosen(before: Side, after: Side) -> bool:
    """Return whether the model before was right in the items because these were chosen so."""
    own = before.run.info
    if own.chosen_by:  # asked after the choice, unless the items were chosen again
        return own.run_id in own.chosen_by and own.run_id is not None
    chosen_by = after.run.info.chosen_by
    return bool(chosen_by) and (own.run_id in chosen_by or None in (own.run_id, *chosen_by))


Sides = tuple[Mapping[Label, SideCounts], Mapping[Label, SideCounts]]
"""Counts of the scored results before and after, paired or not."""


def count_positions(before: Side, after: Side, correct_at: float) -> Sides:
    """Count positions of right and chosen options; AFTER only if a position may be missing."""
    if "k" not in before.measured.scores.collect_schema().names():
        return {}, {}
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


def pair_and_count_rows(
    before: Side, after: Side, rule: Rule, kept: Kept | None = None
) -> tuple[Pairs, Counted]:
    """Pair two prepared runs item by item, and count everything in one pass.

    Args:
        before: the model before.
        after: the model after.
        rule: rule of the comparison.
        kept: caches the pairs, if more than the cells is counted.
    """
    several = len(before.measured.recorded) >= MIN_TASKS
    suffix = id_suffix(before.measured.scores) if several else 1

    def count(pairs: Pairs) -> Counted:
        counted_pairs = without_answers(pairs)
        if kept is not None and _is_counted_again(pairs, before, after, rule):
            kept.release()
            kept.keep(counted_pairs.frame)
        more = half_columns(pairs, suffix) if several and not pairs.repeats else {}
        gold = None if pairs.repeats else gold_position(pairs)
        if gold is not None:
            more["gold"] = gold
        return count_pairs(counted_pairs, more)

    pairs = match(before, after, correct_at=rule.correct_at, pair_by=rule.pair_by)
    pairs = with_task_table(pairs, rule.task_table)
    cells = count(pairs)
    if not is_one_to_one(Cells.total(cells[0].values()), before, after):
        pairs = match_twins(before, after, pairs.keys, correct_at=rule.correct_at)
        pairs = with_task_table(pairs, rule.task_table)
        cells = count(pairs)
        if not is_one_to_one(Cells.total(cells[0].values()), before, after):
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
    if not alike or not cells.items:
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
    settings: VerdictSettings,
) -> ComparisonResult:
    total = judge_group("total", evidence.total(), settings)
    families = {"task": "tasks", "category": "categories", "tags": "tags"}
    tasks, categories, tags = (
        judge_family(evidence.by(level), settings, family) for level, family in families.items()
    )
    return ComparisonResult(
        headline=headline(after.name, total, pairing),
        before=_run(before),
        after=_run(after),
        rule=rule,
        pairing=pairing,
        total=total,
        total_macro=judge_group("macro", evidence.total(macro=True), settings),
        categories=categories,
        tags=tags,
        tasks=tasks,
    )


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
    counts = asdict(coverage)
    return PairingResult(**counts, share=coverage.share, warnings=warnings, contradictions=against)


def _run(run: Run) -> RunResult:
    return RunResult(
        name=run.name,
        origin=run.origin,
        run_id=run.info.run_id,
        model=run.info.model.name,
        stage=run.info.stage,
        simulated=run.info.simulated,
    )
