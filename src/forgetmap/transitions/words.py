"""Sentences made of numbers."""

from __future__ import annotations

from forgetmap.transitions.result import GroupResult


def headline(before: str, after: str, total: GroupResult) -> str:
    """What happened, in one sentence a manager can repeat."""
    known = total.n11 + total.n10
    if not total.n:
        return f"Nothing can be said: no pair of {before} and {after} is scored on both sides."
    if not known:
        return f"{before} had nothing right that {after} could forget; it gained {total.n01:,}."
    return (
        f"{after} lost {total.n10:,} of the {known:,} {_noun(total)} that {before} had right "
        f"({percent(total.n10 / known)}) and gained {total.n01:,}; accuracy "
        f"{percent(total.acc_before)} -> {percent(total.acc_after)} {_contrast(total)}."
    )


def percent(value: float | None, digits: int = 1) -> str:
    """A share as people read it; a dash where there is none."""
    return "-" if value is None else f"{100 * value:.{digits}f} %"


def _noun(total: GroupResult) -> str:
    return "items" if total.items == total.n else "answers"


def _contrast(total: GroupResult) -> str:
    if not total.n10:
        return "hides no loss"
    net = (total.conventional_forgetting or 0.0) * total.n
    if net < 1:
        return "shows none of these losses"
    return f"shows only {net:,.0f} of these losses" if net < total.n10 else "shows all of them"
