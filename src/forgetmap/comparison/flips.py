"""Lists of flipped and unpaired items with both answers."""

from __future__ import annotations

import narwhals as nw
import pyarrow as pa

from forgetmap.comparison.coverage import conflicting
from forgetmap.errors import UsageError
from forgetmap.pairing import (
    RIGHT,
    SIDES,
    WRONG,
    Pairs,
    both_sides,
    is_in,
    is_transition,
    scored_pair,
    side_value,
)
from forgetmap.records import KEY, Frame, Run, sort_items

KINDS: dict[str, tuple[int, int]] = {
    "forgotten": (RIGHT, WRONG),
    "gained": (WRONG, RIGHT),
    "kept": (RIGHT, RIGHT),
    "never": (WRONG, WRONG),
}
"""Transition -> states before and after."""
SHARED_COLUMNS = ("category", "k", "gold")
"""Columns of an item, the same on both sides."""
SIDE_COLUMNS = ("score", "outcome", "answer", "choice")
"""Columns of an answer, one for each side."""
QUESTION_COLUMNS = ("question", "options")


def select_flips(pairs: Pairs, kind: str) -> Frame:
    """Select the pairs of one transition: task, both ids, gold and both answers."""
    if kind not in KINDS:
        raise UsageError(
            f"there is no transition {kind!r}", hint=f"choose from {', '.join(KINDS)}."
        )
    shared = [
        side_value(name, pairs.columns).alias(name)
        for name in SHARED_COLUMNS
        if any(f"{name}_{side}" in pairs.columns for side in SIDES)
    ]
    both = [
        f"{name}_{side}"
        for name in SIDE_COLUMNS
        for side in SIDES
        if f"{name}_{side}" in pairs.columns
    ]
    rows = pairs.frame.filter(is_transition(*KINDS[kind]))
    flips = rows.select(
        "task", nw.col("item_before").alias("item"), "item_after", "repeat", *shared, *both
    )
    return sort_items(flips, "repeat", "item_after")


def with_texts(flips: Frame, before: Run, after: Run) -> Frame:
    """Add question and options once, and prompt and response of both sides."""
    columns = flips.collect_schema().names()
    for run, side, own in ((before, "before", "item"), (after, "after", "item_after")):
        if run.texts is not None:
            names = {name: f"{name}_{side}" for name in ("prompt", "response", "error")}
            flips = _join_texts(flips, run.texts, names, own)
    source, own = (before, "item") if before.texts is not None else (after, "item_after")
    if source.texts is not None:
        # Last, because Arrow cannot join a table that already has lists.
        flips = _join_texts(flips, source.texts, {name: name for name in QUESTION_COLUMNS}, own)
    present = flips.collect_schema().names()
    first = [*columns, *(name for name in QUESTION_COLUMNS if name in present)]
    rest = (name for name in present if name not in first)
    return sort_items(flips.select(*first, *rest), "repeat", "item_after")


def select_unpaired(pairs: Pairs) -> Frame:
    """Select every result that is not in the cells, with the reason; a conflict is one row."""
    key = ["task", "item", "repeat"]
    unscored = _select_keys(pairs, "before", both_sides() & ~scored_pair())
    parts = {
        "only before": _select_keys(pairs, "before", ~is_in("after")),
        "only after": _select_keys(pairs, "after", ~is_in("before")),
    }
    if pairs.keys.use_content:
        clashes = conflicting(pairs)
        parts = {why: rows.join(clashes, on=key, how="anti") for why, rows in parts.items()}
        parts["same id, other content"] = clashes
    parts["unscored"] = unscored
    rows = [rows.select(*key, why=nw.lit(why)) for why, rows in parts.items()]
    return sort_items(nw.concat(rows), "repeat", "why")


def _select_keys(pairs: Pairs, side: str, which: nw.Expr) -> Frame:
    item = nw.col(f"item_{side}").alias("item")
    return pairs.frame.filter(which).select("task", item, "repeat")


def _join_texts(flips: Frame, texts: Frame, names: dict[str, str], own: str) -> Frame:
    present = texts.collect_schema().names()
    columns = {name: new for name, new in names.items() if name in present}
    if not columns:
        return flips
    key = [name for name in KEY if name in present]
    # A table with several metrics repeats the texts of an item.
    once = texts.select(*key, *columns).unique(subset=key, keep="any")
    once = once.select(
        *(nw.col(name).alias(f"text_{name}") for name in key),
        *(nw.col(name).alias(new) for name, new in columns.items()),
    )
    on = {own if name == "item" else name: f"text_{name}" for name in key}
    join = _join_arrow if flips.implementation.is_pyarrow() else _join
    return join(flips, once, on).select(*flips.collect_schema().names(), *columns.values())


def _join(flips: Frame, once: Frame, on: dict[str, str]) -> Frame:
    return flips.join(once, left_on=list(on), right_on=list(on.values()), how="left")


def _join_arrow(flips: Frame, once: Frame, on: dict[str, str]) -> Frame:
    """Join the row index and look up the lists by it, because Arrow cannot join lists."""
    table = nw.to_native(once)
    lists = [name for name, dtype in once.collect_schema().items() if dtype == nw.List]
    indices = pa.array(range(len(table)), pa.int64())
    places = table.drop_columns(lists).append_column("place", indices)
    joined = nw.to_native(_join(flips, nw.from_native(places).lazy(), on))
    for name in lists:
        joined = joined.append_column(name, table[name].take(joined["place"]))
    looked_up: Frame = nw.from_native(joined).lazy()
    return looked_up
