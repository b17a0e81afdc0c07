"""Fresh answers to items that flipped: the cheapest proof of a loss.

Only items that were right before and wrong after in the first answers (or the other way round) are
asked again. The first answers choose the items and do not count; the fresh ones are not biased by
the choice.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import narwhals as nw

from forgetmap.comparison.copies import copied_rerun, is_copy
from forgetmap.comparison.kinds import FRESH
from forgetmap.comparison.reruns import refuse_exchanged, refuse_other_model
from forgetmap.comparison.result import DecidesResult, Rule
from forgetmap.errors import PairingError, UsageError
from forgetmap.pairing import (
    RIGHT,
    SIDES,
    UNSCORED,
    Pairs,
    Side,
    compare_conditions,
    is_in,
    match,
    match_twins,
    scored_pair,
)
from forgetmap.records import Frame, Run, reading
from forgetmap.results import Notice
from forgetmap.stats import PairedAnswers
from forgetmap.text import counted, listed

MIN_OTHERS = 20
"""Items that did not flip, from which on equal results of all items are those of a copy."""
MIN_FLIPS = 2
"""One item has no spread, so it proves nothing."""
EXACTLY = (
    "this setup repeats exactly, also in other batches: no flip is noise, and all count as "
    "confirmed in this setup."
)


def fresh_answers(
    pairs: Pairs, sides: tuple[Side, Side], fresh: tuple[Side, Side], rule: Rule
) -> tuple[Frame, list[Notice]]:
    """Return flips and fresh answers of every flipped item, one row each, with the `FRESH` columns.

    Args:
        pairs: the first answers.
        sides: both models, with their first answers.
        fresh: both models, with fresh answers to flipped items; other items are ignored.
        rule: rule of the comparison.

    Raises:
        UsageError: the reruns are exchanged or of other models, or took their answers from the
            cache of the first run.
        PairingError: a rerun has none of the items.
    """
    refuse_exchanged([side.run for side in sides], [side.run for side in fresh])
    for side, rerun in zip(sides, fresh, strict=True):
        refuse_other_model(side.run, rerun.run)
    item = ["task", *pairs.item_columns]
    flips = first_flips(pairs)
    repeats_exactly = _is_one_setup([side.run for side in (*sides, *fresh)])
    rows = flips.select(*item, "item_before", "item_after", "flip")
    notices = []
    is_copied = False
    for name, side, rerun in zip(SIDES, sides, fresh, strict=True):
        _refuse_cached(side.run, rerun.run)
        answers = _answers(pairs, side, rerun, rule, name)
        own = f"item_{name}"
        if _is_copied(side, rerun, flips.select("task", item=own)):
            if not repeats_exactly:
                notices.append(Notice("copies", copied_rerun(side.run, rerun.run)))
                is_copied = True
            elif not notices:
                notices.append(Notice("repeats_exactly", EXACTLY))
        rows = rows.join(answers, left_on=["task", own], right_on=["task", "item"], how="left")
        notices += _other_conditions(side, rerun)
    if is_copied:
        return rows.select(*item, "flip", **dict.fromkeys(FRESH[1:], nw.lit(0))), notices
    rows = rows.with_columns(**_zero_if_not_asked())
    notices = [*_missing(rows, [rerun.run for rerun in fresh]), *notices]
    return rows.select(*item, "flip", **_counts()), notices


def _is_copied(side: Side, rerun: Side, flips: Frame) -> bool:
    """Return whether a rerun repeats the first outputs of the flips, or all first results.

    Without outputs, the scores of flips alone tell nothing: those that held are equal. Items that
    did not flip tell a copy of the file, if the rerun has some.
    """
    if is_copy(side, rerun, flips):
        return True
    asked = rerun.measured.scores.select("task", "item").unique()
    others = asked.join(flips, on=["task", "item"], how="anti").select(nw.len()).collect().item()
    return int(others) >= MIN_OTHERS and is_copy(side, rerun)


def _zero_if_not_asked() -> dict[str, nw.Expr]:
    names = (*FRESH[1:], *(f"asked_{side}" for side in SIDES))
    return {name: nw.coalesce(nw.col(name), nw.lit(0)) for name in names}


def _given(side: str) -> nw.Expr:
    """Return the number of answers that a side should have to each item: 0 if it was not asked.

    One that is in either rerun was asked: answers that failed may have no row.
    """
    asked = (nw.col("asked_before") > 0) | (nw.col("asked_after") > 0)
    most = nw.col(f"asked_{side}").max().over("task")
    return nw.when(asked).then(nw.when(most > 0).then(most).otherwise(1)).otherwise(0)


def _counts() -> dict[str, nw.Expr]:
    """Return the fresh answers of the items that were asked again.

    Those that are missing are no random part, so they count against the flip: of one that was lost,
    as wrong before and as right after, so that the limit stays a lower one.
    """
    counts: dict[str, nw.Expr] = {}
    for side, flip in zip(SIDES, (-1, 1), strict=True):
        given, right = _given(side), nw.col(f"fresh_right_{side}")
        missing = nw.when(nw.col("flip") == flip).then(given - nw.col(f"fresh_{side}"))
        counts |= {f"fresh_right_{side}": right + missing.otherwise(0), f"fresh_{side}": given}
    return counts


def _missing(rows: Frame, reruns: Sequence[Run]) -> list[Notice]:
    """Say how many fresh answers are missing, absent or failed."""
    missing = {side: (_given(side) - nw.col(f"fresh_{side}")).alias(side) for side in SIDES}
    counts = rows.select(*missing.values()).select(nw.col(*SIDES).sum()).collect()
    found = [(int(counts[side][0] or 0), run) for side, run in zip(SIDES, reruns, strict=True)]
    return [
        Notice(
            "fresh_missing",
            f"{counted(count, 'answer')} of {run.name} {'is' if count == 1 else 'are'} "
            "missing or failed, and counted against a loss or gain.",
        )
        for count, run in found
        if count
    ]


def first_flips(pairs: Pairs) -> Frame:
    """Return the pairs of first answers of which one is right, with `flip`: 1 lost, -1 gained."""
    before, after = (nw.col(f"state_{side}") for side in SIDES)
    flip = nw.when(before == RIGHT).then(nw.lit(1)).otherwise(nw.lit(-1))
    flips = pairs.frame.filter(scored_pair() & (nw.col("repeat") == 0) & (before != after))
    return flips.with_columns(flip=flip)


def _refuse_cached(run: Run, rerun: Run) -> None:
    """Refuse answers from the cache of the first run: they are the answers that chose the items."""
    if rerun.info.cache is not None and rerun.info.cache == run.info.cache:
        raise UsageError(
            f"{rerun.name} was asked with the cache of responses of {run.name} "
            f"({rerun.info.cache}), so its answers are not fresh",
            hint="ask the items again without a cache.",
        )


def _is_one_setup(runs: Sequence[Run]) -> bool:
    """Return whether forgetmap asked all four in one setup, and the reruns in other batches.

    Then equal outputs are not a copy of a file: neither model has noise here, so what flipped is
    gone for good.
    """
    asked = [run.info.asked for run in runs]
    setups = {None if one is None else one.setup for one in asked}
    return len(setups) == 1 and None not in setups and all(one and one.again for one in asked[2:])


def _other_conditions(side: Side, rerun: Side) -> list[Notice]:
    """Say that a rerun was asked in another way, if it was."""
    measures = (side.measured.measures, rerun.measured.measures)
    codes = [
        notice.code
        for notice in compare_conditions(side.run.info, rerun.run.info, measures)
        if notice.code != "sampled"
    ]
    if not codes:
        return []
    words = listed([code.replace("_", " ") for code in dict.fromkeys(codes)])
    message = (
        f"{rerun.run.name} was not asked as {side.run.name} was ({words}): the fresh answers tell "
        "what is lost when asked in that way."
    )
    return [Notice("confirmed_differently", message)]


def asking_again(answers: PairedAnswers, flips: int, alpha: float) -> DecidesResult:
    """Return how many answers it takes to ask the flips again, and what that could prove.

    Args:
        answers: all items.
        flips: number of items whose first answers went from right to wrong.
        alpha: one-sided error of the other lower limits.
    """
    provable = provable_loss(answers, flips, flips, alpha)
    return DecidesResult(items=None, flips=flips, answers=2 * flips, provable=provable)


def provable_loss(answers: PairedAnswers, flips: int, asked: int, alpha: float) -> float | None:
    """Return the lower limit if every flip that is asked again holds; None if it is not above 0.

    Args:
        answers: all items, whose clusters widen it.
        flips: number of items whose first answers went from right to wrong.
        asked: number of them that are asked again.
        alpha: one-sided error of the other lower limits; asked later, flips get a quarter of it.
    """
    if asked < MIN_FLIPS:
        return None
    sample, scores, scale = answers.sample, answers.x * (1 - answers.y), flips / asked

    def squares(total: float, of_squares: float, largest: float) -> float:
        return of_squares - total**2 / sample.n + largest**2

    # Of repeats, counts do not say which items flipped in the first answers, only how many.
    known = squares(answers.flips[0], float(sample.count @ scores**2), 1.0)
    wider = math.sqrt(squares(flips, flips * scale, scale) / known)
    mean = sample.mean(scores)
    limit = mean * flips / answers.flips[0] - wider * (mean - sample.lower(scores, alpha / 4))
    return limit if limit > 0 else None


def _answers(pairs: Pairs, side: Side, rerun: Side, rule: Rule, name: str) -> Frame:
    """Return the number of right and of all fresh answers to each item, by its id in the side."""
    with reading(side.run, rerun.run):
        linked = match(side, rerun, correct_at=rule.correct_at, pair_by=rule.pair_by)
        if "tie" in pairs.columns and "tie" not in linked.columns:
            linked = match_twins(side, rerun, linked.keys, correct_at=rule.correct_at)
        shared = linked.frame.filter(is_in("before") & is_in("after")).select(nw.len())
        count = int(shared.collect().item())
    if not count:
        raise PairingError(
            f"{rerun.run.name} has none of the items of {side.run.name}",
            hint="write the items with `forgetmap confirm BEFORE AFTER --out FOLDER`, and ask "
            "these.",
        )
    key = ["task", *linked.item_columns]
    ids = linked.frame.filter(is_in("before")).select(*key, item="item_before").unique()
    state, zero, one = nw.col("state_after"), nw.lit(0), nw.lit(1)
    marks = {
        f"fresh_right_{name}": nw.when(state == RIGHT).then(one).otherwise(zero),
        f"fresh_{name}": nw.when(state != UNSCORED).then(one).otherwise(zero),
        f"asked_{name}": one,
    }
    given = linked.frame.filter(is_in("after")).select(*key, **marks)
    counts = given.group_by(*key).agg(*(nw.col(mark).sum() for mark in marks))
    return counts.join(ids, on=key).select("task", "item", *marks)
