"""Flipped items of a comparison as columns, sampled by task if there are too many."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import narwhals as nw
import pyarrow as pa

from forgetmap.comparison import (
    CELL_NAMES,
    KINDS,
    Comparison,
    GroupResult,
    Kind,
    reason_of,
    select_flips,
    with_texts,
)
from forgetmap.records import Frame, Run, parse_options, reading
from forgetmap.report.payloads.schema import Cell, Items
from forgetmap.report.payloads.texts import Columns
from forgetmap.stats import fair_cap

FLIPS: tuple[Kind, Kind] = ("forgotten", "gained")
ALWAYS = ("task", "item", "repeat", "transition")
SEPARATOR = "\x1f"
WHOLE_NUMBERS = ("k", "repeat")


def items_of(comparison: Comparison, index: int, *, texts: bool, limit: int) -> Items:
    """Return forgotten and gained items, at most `limit`, with texts if requested."""
    total = count_flips(comparison.result.total)
    tables = []
    for kind, most in shares(total, limit).items():
        with reading(comparison.before, comparison.after):
            flips = _chosen(select_flips(comparison.pairs, kind), total[kind], most)
            if texts:
                flips = _with_texts(flips, comparison)
            table = flips.collect().to_arrow().slice(0, most)
        tables.append(table.append_column("transition", pa.array([kind] * len(table), pa.string())))
    return Items(comparison=index, total=total, columns=columns_of(pa.concat_tables(tables)))


def count_flips(group: GroupResult, kinds: Iterable[str] = FLIPS) -> dict[str, int]:
    """Return the number of items of each kind."""
    return {kind: getattr(group, CELL_NAMES[KINDS[kind]]) for kind in kinds}


def shares(total: Mapping[str, int], limit: int) -> dict[Kind, int]:
    """Return the number of each kind to show: half each, and the unused room of the other kind."""
    lost, gained = total["forgotten"], total["gained"]
    lost = min(lost, max(limit - gained, (limit + 1) // 2))
    return {"forgotten": lost, "gained": min(gained, limit - lost)}


def columns_of(flips: pa.Table) -> Columns:
    """Return flips as columns, without unrecorded ones; columns that identify items are kept."""
    columns: Columns = {}
    for name in flips.column_names:
        cells = flips[name].to_pylist()
        if name in WHOLE_NUMBERS:
            cells = [None if cell is None else int(cell) for cell in cells]
        if name == "options":
            cells = [parse_options(cell) if isinstance(cell, str) else cell for cell in cells]
        columns[name] = cells
    columns["reason"] = _reasons(columns)
    if columns.get("item_after") == columns["item"]:
        del columns["item_after"]
    return {
        name: cells
        for name, cells in columns.items()
        if name in ALWAYS or any(cell is not None for cell in cells)
    }


def _reasons(columns: Columns) -> list[Cell]:
    """Return the reason of each loss, with the names used by the counts."""
    transitions = columns["transition"]
    ended = columns.get("outcome_after", [None] * len(transitions))
    return [
        reason_of(how) if transition == "forgotten" else None
        for transition, how in zip(transitions, ended, strict=True)
    ]


def _with_texts(flips: Frame, comparison: Comparison) -> Frame:
    """Add questions, prompts and responses to these items."""
    keys = flips.select("task", "item", "item_after").collect()
    before = _narrowed(comparison.before, keys.select("task", "item").rows())
    after = _narrowed(comparison.after, keys.select("task", "item_after").rows())
    return with_texts(flips, before, after)


def _narrowed(run: Run, keys: Iterable[tuple[str, str]]) -> Run:
    """Keep only the texts of these items: a join would hold those of all items in memory."""
    if run.texts is None:
        return run
    names = [SEPARATOR.join(key) for key in keys]
    if not names:
        # Arrow cannot compare texts with an empty list, which has no type.
        return replace(run, texts=run.texts.head(0))
    key = nw.concat_str("task", "item", separator=SEPARATOR)
    return replace(run, texts=run.texts.filter(key.is_in(names)))


def _chosen(flips: Frame, total: int, most: int) -> Frame:
    """Return the first items of every task, as many of each as fit."""
    if total <= most:
        return flips
    key: Any = nw.concat_str("task", "item", nw.col("repeat").cast(nw.String), separator=SEPARATOR)
    keys = flips.select("task", key=key).collect()
    by_task: dict[str, list[str]] = {}
    for task, name in keys.rows():
        by_task.setdefault(task, []).append(name)
    cap = max(fair_cap([len(names) for names in by_task.values()], most), 1)
    return flips.filter(key.is_in([name for names in by_task.values() for name in names[:cap]]))
