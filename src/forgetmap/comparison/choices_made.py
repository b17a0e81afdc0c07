"""How answers ended, as expressions over a joined row."""

from __future__ import annotations

import narwhals as nw

from forgetmap.pairing import RIGHT, side_value
from forgetmap.records import FAILED

ANSWERS = ("right", "option", "none", "unknown")
"""How an answer ended: right, a wrong option, none found, or wrong and not recorded."""
TWO_OPTIONS = 2
"""Number of options of an item with a single wrong option."""


def options_of(columns: frozenset[str]) -> nw.Expr:
    """Return the number of options of a joined row; null if open-ended or a single option."""
    if not columns & {"k_before", "k_after"}:
        return nw.lit(None, dtype=nw.Float64)  # pandas has no nullable integer
    k = side_value("k", columns)
    return nw.when(k >= TWO_OPTIONS).then(k)


def answer_kind(side: str, columns: frozenset[str]) -> nw.Expr:
    """Return how the answer of a side ended, as its place in `ANSWERS`.

    An answer counts as given unless its outcome says otherwise: outcomes alone show whether an item
    is no longer answered, and recorded options show which one was chosen.
    """
    right, option, none, unknown = (nw.lit(code, dtype=nw.Int8) for code in range(len(ANSWERS)))
    kind = unknown
    if f"outcome_{side}" in columns:
        outcome = nw.col(f"outcome_{side}")
        failed = ~outcome.is_null() & outcome.is_in([*map(str, FAILED)])
        kind = nw.when(failed).then(none).otherwise(kind)
    if f"wrong_{side}" in columns:
        kind = nw.when(~nw.col(f"wrong_{side}").is_null()).then(option).otherwise(kind)
    return nw.when(nw.col(f"state_{side}") == RIGHT).then(right).otherwise(kind)


def same_choice(columns: frozenset[str]) -> nw.Expr:
    """Return whether both answers of a joined row are the same wrong option, as 1 or 0."""
    yes, no = nw.lit(1, dtype=nw.Int8), nw.lit(0, dtype=nw.Int8)
    if not columns >= {"wrong_before", "wrong_after"}:
        return no
    return nw.when(nw.col("wrong_before") == nw.col("wrong_after")).then(yes).otherwise(no)


def knows_answers(columns: frozenset[str]) -> bool:
    """Return whether some column shows how wrong answers ended."""
    shown = {f"{name}_{side}" for name in ("wrong", "outcome") for side in ("before", "after")}
    return not columns.isdisjoint(shown)
