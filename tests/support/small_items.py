"""Tables of a few items, in a short notation."""

from __future__ import annotations

from typing import Any

import polars as pl

import forgetmap as fm
from forgetmap.comparison.comparison import Comparison

Item = tuple[str, float | None, dict[str, Any]]


def item(name: str, score: float | None, **more: Any) -> Item:
    return name, score, more


def table(*items: Item, task: str = "t") -> pl.DataFrame:
    rows = [{"task": task, "item": name, "score": score} | more for name, score, more in items]
    return pl.DataFrame(rows, infer_schema_length=None)


def compare(before: pl.DataFrame, after: pl.DataFrame, **options: Any) -> Comparison:
    return fm.compare(before, after, **({"min_paired": 0.01} | options))


def paired_ids(comparison: Comparison) -> set[tuple[str, str]]:
    """Return the ids before and after of all scored pairs."""
    kinds: list[Any] = ["kept", "never", "forgotten", "gained"]
    frames = [comparison.flips(kind) for kind in kinds]
    return {(row["item"], row["item_after"]) for f in frames for row in f.rows(named=True)}


def warned(comparison: Comparison, code: str) -> str:
    """Return the message of the only warning with this code."""
    (notice,) = [each for each in comparison.result.pairing.warnings if each.code == code]
    return notice.message
