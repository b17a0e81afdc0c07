"""Repeats that are copies: an answer that was not drawn anew says nothing about noise."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import narwhals as nw

from forgetmap.pairing import Side, with_results
from forgetmap.records import Frame, Run, count_repeats, reading
from forgetmap.text import counted, listed

RESPONSE = "response"
LOGPROBS = ("logprob_answer", "logprob_gold")
"""What is compared where options are weighed and no text is written."""
READ = ("answer", "score")
"""What is compared where no output is recorded."""
SHORT = 3
"""Characters of a text up to which it is a bare choice, such as `(A)`: equal ones are normal."""
MIN_LONGER = 10
"""Outputs that are no bare choices, from which on those of a single task tell a copy."""

Copied = Mapping[str, set[int]]
"""Task -> repeats that are copies of an earlier one."""


def without_copies(side: Side) -> Side:
    """Return a side whose repeats were all drawn anew, and with what there is to say about it.

    Repeats are numbered anew, so that those of both sides have counterparts.
    """
    if side.copies is not None or side.repeats < 2:
        return side
    with reading(side.run):
        copied = _copied_repeats(side.run, side.measured.scores)
        if not copied:
            return replace(side, copies=())
        run = _without(side.run, copied)
        left = with_results(side, run, _renumbered(side.measured.scores, copied))
        return replace(left, copies=(_what_was_copied(side.run, run, copied),))


def distinct_repeats(run: Run) -> tuple[Run, str | None]:
    """Return a run without the repeats that are copies, and what there is to say about them."""
    if count_repeats(run) < 2:
        return run, None
    with reading(run):
        copied = _copied_repeats(run, run.scores)
        if not copied:
            return run, None
        left = _without(run, copied)
        return left, _what_was_copied(run, left, copied)


def copied_rerun(run: Run, rerun: Run) -> str:
    """Return that a rerun is a copy, and how to get another one."""
    return (
        f"{rerun.name} repeats the outputs of {run.name}: this setup repeats exactly, so the rerun "
        f"is a copy and does not count. {ask_anew(run)}"
    )


def _without(run: Run, copied: Copied) -> Run:
    texts = None if run.texts is None else _renumbered(run.texts, copied)
    return replace(run, scores=_renumbered(run.scores, copied), texts=texts)


def ask_anew(run: Run) -> str:
    """Return how to ask for answers that are drawn anew."""
    change = "seed" if run.info.is_sampled else "seed, batch size, number format or engine"
    return f"Ask again with another {change}."


def _what_was_copied(run: Run, left: Run, copied: Copied) -> str:
    if count_repeats(left) < 2:
        words = f"all repeats of {run.name} are identical: they count as one answer"
    else:
        numbers = sorted(set().union(*copied.values()))
        which = listed([str(number) for number in numbers])
        words = (
            f"{run.name}: the outputs of repeat {which} equal those of an earlier repeat, in all "
            f"items of {counted(len(copied), 'task')}: a copy counts once"
        )
    return f"{words}. This setup repeats exactly, which says nothing about noise. {ask_anew(run)}"


class _Equal(NamedTuple):
    """How the outputs of two repeats compare in a task.

    Attributes:
        differ: outputs that differ.
        longer: outputs that are no bare choices.
    """

    differ: int = 0
    longer: int = 0


def _copied_repeats(run: Run, scores: Frame) -> Copied:
    """Return the repeats whose raw outputs equal those of an earlier one, wherever both have some.

    Either over all tasks or, as some tasks may be weighed and others sampled, in a task with more
    than bare choices. Without raw outputs, answers and scores that never differ in any repeat
    cannot show noise; two repeats of more may well agree in them.
    """
    shared: dict[tuple[int, int], dict[str, _Equal]] = defaultdict(dict)
    for column in (RESPONSE, *LOGPROBS):
        frame = run.texts if column == RESPONSE else scores
        for task, earlier, later, more in _equal_outputs(frame, column):
            tasks = shared[later, earlier]
            known = tasks.get(task, _Equal())
            tasks[task] = _Equal(*(a + b for a, b in zip(known, more, strict=True)))
    if not shared:
        return {} if _differ(scores) else _all_but_first(scores)
    copied: dict[str, set[int]] = defaultdict(set)
    for (later, _), tasks in shared.items():
        everywhere = not any(one.differ for one in tasks.values())
        for task, one in tasks.items():
            if everywhere or (not one.differ and one.longer >= MIN_LONGER):
                copied[task].add(later)
    return dict(copied)


def _equal_outputs(frame: Frame | None, column: str) -> list[tuple[str, int, int, _Equal]]:
    """Compare the outputs of every two repeats of a task."""
    names = set() if frame is None else set(frame.collect_schema().names())
    if frame is None or not {column, "repeat"} <= names:
        return []
    known = frame.filter(~nw.col(column).is_null())
    key = ("task", "item")
    first = known.select(*key, earlier="repeat", first=column)
    again = known.select(*key, later="repeat", again=column)
    one, zero = nw.lit(1), nw.lit(0)
    longer = one
    if column == RESPONSE:
        is_longer = nw.col("first").str.len_chars() > SHORT
        longer = nw.when(is_longer).then(one).otherwise(zero)
    both = first.join(again, on=[*key]).filter(nw.col("earlier") < nw.col("later"))
    marks = {
        "differ": nw.when(nw.col("first") != nw.col("again")).then(one).otherwise(zero),
        "longer": longer,
    }
    by = ("task", "earlier", "later")
    counts = both.select(*by, **marks).group_by(*by).agg(*(nw.col(mark).sum() for mark in marks))
    return [
        (str(row["task"]), int(row["earlier"]), int(row["later"]),
         _Equal(*(int(row[mark]) for mark in marks)))
        for row in counts.collect().rows(named=True)
    ]  # fmt: skip


def _differ(scores: Frame) -> bool:
    """Return whether some item has two different answers or scores, or none has two at all."""
    frame = scores.filter(~nw.col("score").is_null())
    names = frame.collect_schema().names()
    columns = [name for name in READ if name in names]
    key = [name for name in ("task", "item", "metric", "scorer") if name in names]
    different = [nw.col(name).n_unique().alias(f"_{name}") for name in columns]
    items = frame.group_by(*key).agg(nw.len().alias("_given"), *different)
    most = items.select(nw.col("_given", *(f"_{name}" for name in columns)).max()).collect()
    given, *found = (int(most[name][0] or 0) for name in most.columns)
    return given < 2 or max(found) > 1


def _all_but_first(scores: Frame) -> Copied:
    ends = scores.group_by("task").agg(nw.col("repeat").max()).collect().rows(named=True)
    return {str(row["task"]): {*range(1, last + 1)} for row in ends if (last := int(row["repeat"]))}


def _renumbered(frame: Frame, copied: Copied) -> Frame:
    """Return a frame without copies, with the other repeats numbered without gaps."""
    if "repeat" not in frame.collect_schema().names():
        return frame
    kind = frame.collect_schema()["repeat"]
    tasks: dict[frozenset[int], list[str]] = defaultdict(list)
    for task, repeats in copied.items():
        tasks[frozenset(repeats)].append(task)
    repeat = nw.col("repeat")
    is_copied: nw.Expr = nw.lit(False)  # noqa: FBT003
    left = repeat
    for numbers, own in tasks.items():
        here = nw.col("task").is_in(own)
        is_copied = is_copied | (here & repeat.is_in([*numbers]))
        for first, last in _spans(sorted(numbers)):
            gone = nw.when(here & (repeat > last)).then(nw.lit(last - first + 1))
            left = left - gone.otherwise(nw.lit(0))
    return frame.filter(~is_copied).with_columns(repeat=left.cast(kind))


def _spans(numbers: Sequence[int]) -> list[tuple[int, int]]:
    """Return the first and last of each run of consecutive numbers."""
    spans: list[tuple[int, int]] = []
    for number in numbers:
        is_next = bool(spans) and number == spans[-1][1] + 1
        first = spans.pop()[0] if is_next else number
        spans.append((first, number))
    return spans


def is_copy(side: Side, rerun: Side, among: Frame | None = None) -> bool:
    """Return whether raw outputs of a rerun all equal the first ones, or those of another repeat.

    Of several answers per item, one that repeats the first answers is enough: they chose the
    items that are asked again. If no output is recorded, a rerun of all items is a copy if it has
    the same answers and scores; items that are asked again because they flipped may well keep
    theirs.

    Args:
        side: the first run.
        rerun: another run of the same model, over the same items or some of them.
        among: task and item of the items that count, which the answers number 0 chose; by default
            all items, and all repeats of the first run.
    """
    with reading(side.run, rerun.run):
        different = _differences(side, rerun, (RESPONSE, *LOGPROBS), among)
        if not different and among is None:
            different = _differences(side, rerun, READ, among)
    return not all(different.values())


def _differences(
    side: Side, rerun: Side, columns: Sequence[str], among: Frame | None
) -> dict[tuple[int, int], int]:
    """Count differences to the first answers, for each two repeats with a known output."""
    found: Counter[tuple[int, int]] = Counter()
    for column in columns:
        first, again = _outputs(side, column), _outputs(rerun, column)
        if first is None or again is None:
            continue
        first = first.select("task", "item", earlier="repeat", first=column)
        if among is not None:
            first = first.filter(nw.col("earlier") == 0)
            first = first.join(among, on=["task", "item"], how="semi")
        both = first.join(again, on=["task", "item"])
        differ = nw.when(nw.col("first") != nw.col(column)).then(1).otherwise(0)
        by = ("earlier", "repeat")
        counts = both.select(*by, differ=differ).group_by(*by).agg(nw.col("differ").sum())
        found.update({(int(row[0]), int(row[1])): int(row[2]) for row in counts.collect().rows()})
    return found


def _outputs(side: Side, column: str) -> Frame | None:
    """Return task, item, repeat and one kind of raw output; None if it is not recorded."""
    frame = side.run.texts if column == RESPONSE else side.measured.scores
    names = set() if frame is None else set(frame.collect_schema().names())
    if frame is None or column not in names:
        return None
    repeat = nw.col("repeat") if "repeat" in names else nw.lit(0).alias("repeat")
    return frame.filter(~nw.col(column).is_null()).select("task", "item", repeat, column)
