"""Notices of a comparison: limitations of its numbers."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import narwhals as nw
import numpy as np

from forgetmap.comparison.cells import Cells, by_task
from forgetmap.comparison.clusters import has_cluster_names
from forgetmap.comparison.coverage import PairingCoverage, missing_items
from forgetmap.comparison.evidence import Evidence
from forgetmap.comparison.labels import Label, is_none
from forgetmap.comparison.positions import Sides, doubt_options, lopsided_tasks
from forgetmap.comparison.result import GroupResult
from forgetmap.comparison.rollups import SeedRow
from forgetmap.comparison.task_tables import load_table
from forgetmap.pairing import SIDES, Pairs, Side
from forgetmap.records import MISSING, Frame, Outcome, Run, first_rows
from forgetmap.results import Notice
from forgetmap.stats import fisher_p
from forgetmap.text import counted, listed, percent, share

MIN_ITEMS = 30
"""Minimum number of items for more than anecdotes."""
CEILING = 0.97
"""Share right before above which hardly anything can be gained."""
MAX_STANDARD_ERRORS = 3.0
"""Number of standard errors that luck does not explain."""
FAILURE_DIFFERENCE = 0.05
"""Difference in the share of unreadable answers that can look like a change of the model."""
SELECTED_P = 0.01
"""Missing items differ from the others if the p-value is below this."""
PASSAGE = 200
"""Number of equal characters at the start of questions about one passage."""
PASSAGE_SHARE = 0.2
"""Minimum share of such questions in a task."""
QUESTIONS_READ = 20_000
"""Maximum number of questions that are checked for passages."""
MAX_CLUSTER = 0.25
"""Share of the items in one cluster above which limits are less reliable."""
UNREADABLE = (Outcome.NO_ANSWER, Outcome.MISREAD, Outcome.TRUNCATED)

Failures = tuple[int, int]
"""Numbers of unreadable answers, and of answers with a known outcome."""


def reading_warnings(*runs: Run) -> list[Notice]:
    """Report problems of reading logs: runs left out, unusable rows."""
    notices = [Notice("log", f"{run.name}: {message}") for run in runs for message in run.notices]
    for run in runs:
        if run.info.left_out:
            items = counted(sum(run.info.left_out.values()), "item")
            tasks = listed(sorted(run.info.left_out), "tasks")
            message = f"{run.name}: {items} left out that exceed the context length, in {tasks}."
            notices.append(Notice("left_out", message))
        if run.problem_count:
            problems = counted(run.problem_count, "problem")
            # The rows are listed elsewhere: they quote the log, and a report may be shared.
            listing = "`forgetmap records show` lists them"
            notices.append(Notice("problems", f"{run.name}: {problems} in its log; {listing}."))
    return notices


def key_warnings(pairs: Pairs) -> list[Notice]:
    """Report tasks whose items were paired by a part of their content."""
    if not pairs.keys.loosened:
        return []
    tasks = listed(pairs.keys.loosened, "tasks")
    return [
        Notice(
            "loosened",
            f"right answers or options are written differently on the two sides in {tasks}; "
            "items were paired by the rest of their content.",
        )
    ]


def repeat_warnings(before: Side, after: Side) -> list[Notice]:
    """Report that one model has more answers per item."""
    if before.repeats == after.repeats:
        return []
    return [
        Notice(
            "repeats",
            f"{counted(before.repeats, 'answer')} per item before and {after.repeats:,} after.",
        )
    ]


def table_warnings(tasks: Mapping[str, Evidence], name: str | None) -> list[Notice]:
    """Report tasks whose number of options varies by the table and is not in the data."""
    table = None if name is None else load_table(name)
    vary = [
        task
        for task, evidence in tasks.items()
        if table is not None
        and (entry := table.find(task)) is not None
        and entry.k is None
        and np.isinf(evidence.kinds.k).all()
    ]
    if not vary:
        return []
    message = (
        f"the number of options varies in {listed(vary)} and is not recorded; these items are "
        "treated as open-ended."
    )
    return [Notice("options_vary", message)]


def passage_warnings(run: Run, pairs: Pairs) -> list[Notice]:
    """Report tasks whose questions seem to share passages without recorded clusters."""
    tasks = [] if run.texts is None or has_cluster_names(pairs) else _passage_tasks(run.texts)
    if not tasks:
        return []
    return [
        Notice(
            "passages",
            f"many questions of {listed(tasks, 'tasks')} begin with the same long text: if they "
            "share passages, losses are correlated and the intervals are too narrow. Put the "
            "passage of each item into a column `cluster`.",
        )
    ]


def _passage_tasks(texts: Frame) -> list[str]:
    if "question" not in texts.collect_schema().names():
        return []
    questions = first_rows(texts.select("task", "question"), QUESTIONS_READ).unique()
    beginnings = questions.select("task", beginning=nw.col("question").str.slice(0, PASSAGE))
    counts = beginnings.group_by("task", "beginning").agg(nw.len().alias("n"))
    alike = counts.group_by("task", "n").agg(nw.len().alias("times")).collect()
    sizes: dict[str, dict[int, int]] = {}
    for row in alike.rows(named=True):
        sizes.setdefault(row["task"], {})[int(row["n"])] = int(row["times"])
    return sorted(task for task, own in sizes.items() if _share_passages(own))


def _share_passages(sizes: Mapping[int, int]) -> bool:
    """Return whether several beginnings are shared; one shared by most is an instruction.

    Args:
        sizes: number of questions with the same beginning -> number of such beginnings.
    """
    shared = {size: times for size, times in sizes.items() if size > 1}
    questions = sum(size * times for size, times in sizes.items())
    return (
        sum(shared.values()) > 1
        and sum(size * times for size, times in shared.items()) >= PASSAGE_SHARE * questions
        and max(shared) <= questions / 2
    )


def seed_warnings(rows: Sequence[SeedRow]) -> list[Notice]:
    """Report tasks with other seeds than most: the published mean mixes them."""
    seeds: dict[str, set[int]] = {}
    for row in rows:
        if row.cells.n:
            seeds.setdefault(row.task, set()).add(row.seed)
    kinds = Counter(frozenset(own) for own in seeds.values())
    if len(kinds) < 2:
        return []
    usual = max(kinds, key=lambda kind: (kinds[kind], len(kind), sorted(kind)))
    odd = [task for task, own in sorted(seeds.items()) if own != usual]
    message = (
        f"most tasks have {counted(len(usual), 'seed')}, but {listed(odd, 'tasks')} have other "
        "seeds: the published mean over seeds does not cover the same tasks."
    )
    return [Notice("seeds_differ", message)]


def coverage_warnings(
    coverage: PairingCoverage, cells: Cells, groups: Mapping[Label, Cells], min_paired: float
) -> list[Notice]:
    """Report which items are in the numbers and which are not."""
    lone = coverage.only_before + coverage.only_after
    by_order = f"; {cells.ordered_twins:,} of them distinguished only by their order"
    messages = {
        "one_sided": f"{counted(coverage.only_before, 'result')} only before and "
        f"{coverage.only_after:,} only after: not compared.",
        "conflict": (
            f"{counted(coverage.conflicts, 'result')} with the same id but different content on "
            "the two sides: not compared."
        ),
        "duplicates": f"{counted(coverage.duplicates, 'duplicate question')}"
        f"{by_order if cells.ordered_twins else ''}.",
        "unscored": (
            f"{counted(coverage.unscored, 'pair')} without a score on one or both sides: neither "
            "right nor wrong."
        ),
        "prompts": (
            f"{cells.prompts_differ:,} of {counted(coverage.paired, 'pair')} have different "
            "prompts on the two sides: the format alone can change scores."
        ),
    }
    counts = {
        "one_sided": lone,
        "conflict": coverage.conflicts,
        "duplicates": coverage.duplicates,
        "unscored": coverage.unscored,
        "prompts": cells.prompts_differ,
    }
    warnings = [Notice(code, messages[code]) for code, count in counts.items() if count]
    return warnings + _thin_tasks(groups, min_paired)


def missing_warnings(total: Cells) -> list[Notice]:
    """Report whether the items missing after were harder or easier before than the others."""
    missing = missing_items(total)
    if missing is None:
        return []
    absent, right = missing
    known = total.n11 + total.n10
    p = fisher_p(right, absent - right, known, total.n - known)
    if p >= SELECTED_P:
        return []
    kind = "harder" if right * total.n < known * absent else "easier"
    message = (
        f"the {counted(absent, 'result')} missing after were {kind}: {percent(right / absent)} of "
        f"them were right before, {percent(known / total.n)} of those compared."
    )
    return [Notice("missing_differ", message)]


def worst_case_warnings(
    total: GroupResult, warnings: Sequence[Notice], *, strict: bool
) -> list[Notice]:
    """Report the worst case if results are missing after, and they differ or `strict` is set.

    Args:
        total: result of all items.
        warnings: the notices so far.
        strict: report it whichever results are missing.
    """
    selected = any(notice.code == "missing_differ" for notice in warnings)
    if total.worst_case is None or not (strict or selected):
        return []
    message = (
        "results scored before are missing after: if all that were right are lost, at most "
        f"{percent(total.worst_case)} of what was scored before is lost."
    )
    return [Notice("worst_case", message)]


def floor_warnings(total: GroupResult, stated: float | None) -> list[Notice]:
    """Contradict a stated noise floor that the repeats of a model exceed."""
    measured = total.noise_floor.value
    if stated is None or measured is None or measured <= stated:
        return []
    message = (
        f"the stated noise floor is {share(stated)}, but repeats flip {share(measured)} of the "
        "items one way: limits that rest on it do not hold."
    )
    return [Notice("noise_floor", message)]


def position_warnings(before: Sides, after: Sides) -> list[Notice]:
    """Report numbers of options that cannot be true, and right answers at few positions."""
    notices = [Notice("options_doubted", f"{doubt}.") for doubt in doubt_options(before, after)]
    lopsided = lopsided_tasks(before)
    if lopsided:
        message = (
            "right answers are at some positions far more often than at others in "
            f"{listed(lopsided, 'tasks')}: guessing habits can look like knowledge."
        )
        notices.append(Notice("lopsided", message))
    return notices


def kind_warnings(total: Evidence) -> list[Notice]:
    """Report clusters that carry the result alone, and graded scores."""
    notices = []
    share = total.kinds.sample.largest_share if total.kinds.items else 0.0
    if total.kinds.cluster is not None and share > MAX_CLUSTER:
        message = (
            f"one cluster has {percent(share)} of the items: limits may be wrong in up to 5% of "
            "such data instead of 2.5%."
        )
        notices.append(Notice("large_cluster", message))
    if total.graded is not None and total.graded.graded:
        message = (
            f"{int(total.graded.graded):,} of {counted(int(total.graded.n), 'pair')} have scores "
            "between 0 and 1, which count as right or wrong by a threshold: see the graded "
            "change."
        )
        notices.append(Notice("graded", message))
    return notices


def identical_warnings(total: Evidence) -> list[Notice]:
    """Report two runs without any difference, which may be one; graded scores may differ."""
    cells, kinds = total.cells, total.kinds
    if total.graded is not None and total.graded.squares > 0:
        return []
    options = kinds.tally("option_before") * kinds.tally("option_after") - kinds.tally("same")
    if cells.n10 + cells.n01 or options.any() or cells.n < MIN_ITEMS:
        return []
    message = f"all {counted(cells.n, 'score')} are identical: check that these are two runs."
    return [Notice("identical", message)]


def _thin_tasks(groups: Mapping[Label, Cells], min_paired: float) -> list[Notice]:
    thin = []
    for task, cells in by_task(groups).items():
        larger = cells.paired + max(cells.missing)
        on_one_side = not cells.paired and not all(cells.missing)
        if larger and not on_one_side and cells.paired / larger < min_paired:
            thin.append(f"{task} ({cells.paired:,} of {larger:,})")
    if not thin:
        return []
    return [Notice("thin_task", f"fewer than {100 * min_paired:g}% paired in {listed(thin)}.")]


def sanity_warnings(
    total: Evidence, tasks: Mapping[str, Evidence], failures: tuple[Failures | None, ...]
) -> list[Notice]:
    """Report what makes the numbers doubtful, whatever they are.

    Args:
        total: evidence of all items.
        tasks: the same by task.
        failures: of each side, from `count_failures`.
    """
    return [
        *_tiny(total),
        *(notice for side in SIDES for notice in _below_chance(tasks, side)),
        *_failures_differ(failures),
    ]


def count_failures(side: Side) -> Failures | None:
    """Count the unreadable answers of a run; None if most outcomes are not recorded.

    Counted on one side alone, without the join.
    """
    if "outcome" not in side.run.columns:
        return None
    counts: Counter[Any] = Counter()
    if side.totals is not None:
        for row in side.totals.of(side.measured.measures).rows:
            counts[row["outcome"]] += int(row["rows"])
    else:
        outcomes = side.measured.scores.group_by("outcome").agg(nw.len().alias("n")).collect()
        counts.update({row["outcome"]: int(row["n"]) for row in outcomes.rows(named=True)})
    known = {how: n for how, n in counts.items() if not is_none(how) and how not in MISSING}
    unknown = sum(n for how, n in counts.items() if is_none(how))
    answers = sum(known.values())
    if answers <= unknown:
        return None
    return sum(known.get(how, 0) for how in UNREADABLE), answers


def _tiny(total: Evidence) -> list[Notice]:
    items = total.cells.items
    if not 0 < items < MIN_ITEMS:
        return []
    words = (
        f"only {counted(items, 'item')}: a single item changes every rate by {percent(1 / items)}."
    )
    return [Notice("tiny", words)]


def _below_chance(tasks: Mapping[str, Evidence], side: str) -> list[Notice]:
    """Report tasks in which a model is worse than one that never read the question."""
    low = []
    for task, evidence in tasks.items():
        kinds = evidence.kinds
        closed = kinds.take(~np.isinf(kinds.k))
        if not closed.items:
            continue
        sample = closed.sample
        right = sample.mean(closed.tally(f"right_{side}") / closed.given(side))
        luck = sample.mean(1 / closed.k)
        error = math.sqrt(luck * (1 - luck) / sample.n)
        if right < luck - MAX_STANDARD_ERRORS * error:
            low.append(f"{task} ({percent(right)}, guessing {percent(luck)})")
    if not low:
        return []
    message = (
        f"fewer right answers {side} than by guessing in {listed(low, 'tasks')}: a wrong format "
        "or failed extraction can look like lost knowledge."
    )
    return [Notice("below_chance", message)]


def ceiling_warnings(total: GroupResult, tasks: Sequence[GroupResult]) -> list[Notice]:
    """Report tasks so easy for the model before that nothing is left to gain; not beside a gain."""
    if any((group.gain.low or 0.0) > 0 for group in (total, *tasks)):
        return []
    high = [
        f"{task.name} ({percent((task.n11 + task.n10) / task.n)})"
        for task in tasks
        if task.items >= MIN_ITEMS and task.n11 + task.n10 >= CEILING * task.n
    ]
    if not high:
        return []
    message = f"nearly all right before in {listed(high, 'tasks')}: gains cannot show there."
    return [Notice("ceiling", message)]


def _failures_differ(failures: tuple[Failures | None, ...]) -> list[Notice]:
    """Report a difference in unreadable answers, which count as wrong and look like a loss."""
    known = [failure for failure in failures if failure is not None]
    if len(known) < len(SIDES):
        return []
    shares = [failed / answers for failed, answers in known]
    pooled = sum(failed for failed, _ in known) / sum(answers for _, answers in known)
    error = math.sqrt(pooled * (1 - pooled) * sum(1 / answers for _, answers in known))
    apart = abs(shares[0] - shares[1])
    if apart < FAILURE_DIFFERENCE or apart <= MAX_STANDARD_ERRORS * error:
        return []
    message = (
        f"{percent(shares[0])} of the answers before and {percent(shares[1])} after could not be "
        "read (none found, misread or cut off): part of the change may be extraction, not "
        "knowledge."
    )
    return [Notice("failures_differ", message)]
