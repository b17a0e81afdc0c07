"""The order of items in lists: by task, then by id."""

from __future__ import annotations

import narwhals as nw

from forgetmap.records.run import Frame

WHOLE_NUMBER = "^0$|^[1-9][0-9]*$"
"""Zeros in front make an id a text: those of one width are in order anyway."""
LAST = 1_000_000
"""The rank of texts, behind whole numbers of any length."""


def sort_items(frame: Frame, *names: str) -> Frame:
    """Sort by task and item, then by `names`: whole numbers by value (2, 10), then texts.

    Of two whole numbers the longer one is larger, and of the same length text order is the order
    of values; so no number is too large.
    """
    item = nw.col("item")
    length = item.str.len_chars().cast(nw.Int64)
    rank = nw.when(item.str.contains(WHOLE_NUMBER)).then(length).otherwise(nw.lit(LAST))
    ranked = frame.with_columns(item_rank=rank)
    return ranked.sort("task", "item_rank", "item", *names).drop("item_rank")


def item_order_sql(column: str) -> str:
    """Return the same order of ids for ORDER BY."""
    is_number = f"regexp_matches({column}, '{WHOLE_NUMBER}')"
    return f"CASE WHEN {is_number} THEN length({column}) ELSE {LAST} END, {column}"
