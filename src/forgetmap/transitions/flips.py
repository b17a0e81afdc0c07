"""Which items: those that flipped, and those that did not pair, with both answers side by side."""

from __future__ import annotations

from typing import Literal

import narwhals as nw

from forgetmap.errors import UsageError
from forgetmap.pairing.pair import RIGHT, SIDES, UNSCORED, WRONG, Pairs, either, is_in, went
from forgetmap.records.run import Frame, Run
from forgetmap.records.schema import KEY
from forgetmap.transitions.coverage import conflicting

Kind = Literal["forgotten", "gained", "kept", "never"]
KINDS: dict[str, tuple[int, int]] = {
    "forgotten": (RIGHT, WRONG),
    "gained": (WRONG, RIGHT),
    "kept": (RIGHT, RIGHT),
    "never": (WRONG, WRONG),
}
SHARED = ("category", "k", "gold")
BOTH = ("score", "outcome", "answer", "choice")


def select_flips(pairs: Pairs, kind: str) -> Frame:
    """The pairs of one transition: task, both ids, what was asked for and both answers."""
    if kind not in KINDS:
        raise UsageError(
            f"there is no transition {kind!r}", hint=f"choose from {', '.join(KINDS)}."
        )
    shared = [
        either(name, pairs.columns).alias(name)
        for name in SHARED
        if any(f"{name}_{side}" in pairs.columns for side in SIDES)
    ]
    both = [
        f"{name}_{side}" for name in BOTH for side in SIDES if f"{name}_{side}" in pairs.columns
    ]
    rows = pairs.frame.filter(went(*KINDS[kind]))
    return rows.select(
        "task", nw.col("item_before").alias("item"), "item_after", "repeat", *shared, *both
    ).sort("task", "item", "repeat")


def with_texts(flips: Frame, before: Run, after: Run) -> Frame:
    """Add question and options once, and prompt and response of both sides."""
    key = list(KEY)
    asked = before if before.texts is not None else after
    if asked.texts is not None:
        own = "item" if asked is before else "item_after"
        flips = _join_texts(flips, asked.texts, {"question": "question", "options": "options"}, own)
    for run, side, own in ((before, "before", "item"), (after, "after", "item_after")):
        if run.texts is not None:
            names = {name: f"{name}_{side}" for name in ("prompt", "response", "error")}
            flips = _join_texts(flips, run.texts, names, own)
    return flips.sort(*key)


def select_unpaired(pairs: Pairs) -> Frame:
    """Every result that is not in the cells, and why."""
    lone = [
        pairs.frame.filter(is_in(side) & ~is_in(other)).select(
            "task", nw.col(f"item_{side}").alias("item"), "repeat", why=nw.lit(f"only {side}")
        )
        for side, other in (SIDES, SIDES[::-1])
    ]
    unscored = pairs.frame.filter(
        is_in("before")
        & is_in("after")
        & ((nw.col("state_before") == UNSCORED) | (nw.col("state_after") == UNSCORED))
    ).select("task", nw.col("item_before").alias("item"), "repeat", why=nw.lit("unscored"))
    rows = nw.concat([*lone, unscored])
    if pairs.keys.use_content:
        key = ["task", "item", "repeat"]
        clashes = conflicting(pairs).with_columns(clash=nw.lit(1))
        rows = rows.join(clashes, on=key, how="left")
        is_clash = ~nw.col("clash").is_null() & (nw.col("why") != "unscored")
        why = nw.when(is_clash).then(nw.lit("same id, other content")).otherwise(nw.col("why"))
        rows = rows.with_columns(why=why).select(*key, "why").unique()
    return rows.sort("task", "item", "repeat", "why")


def _join_texts(flips: Frame, texts: Frame, names: dict[str, str], own: str) -> Frame:
    present = texts.collect_schema().names()
    wanted = {name: new for name, new in names.items() if name in present}
    if not wanted:
        return flips
    key = [name for name in KEY if name in present]
    # A table with several metrics repeats the texts of an item.
    once = texts.select(*key, *wanted).unique(subset=key, keep="any")
    once = once.select(
        *(nw.col(name).alias(f"text_{name}") for name in key),
        *(nw.col(name).alias(new) for name, new in wanted.items()),
    )
    left = [own if name == "item" else name for name in key]
    joined = flips.join(once, left_on=left, right_on=[f"text_{name}" for name in key], how="left")
    return joined.select(*flips.collect_schema().names(), *wanted.values())
