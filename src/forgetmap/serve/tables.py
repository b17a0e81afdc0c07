"""The SQL that makes the tables of the explorer.

`texts`: prompts and responses, once per run, in lower case and uncompressed, which makes a search
through all of them fast. `pairs`: one narrow table per comparison, in the order of the list. They
are linked by row numbers, so that no text is joined or sorted. They are created in steps of one
join each: several at once need too much memory.
"""

from __future__ import annotations

from collections.abc import Sequence

import narwhals as nw

from forgetmap.comparison import KINDS, REASONS, SHARED_COLUMNS, SIDE_COLUMNS
from forgetmap.pairing import SIDES, Pairs
from forgetmap.records import Frame, fill_texts, item_order_sql, literal

MAX_CHARACTERS = 500
"""Maximum length of a question or an answer in a list; the item itself has all of it."""
TEXT_COLUMNS = (
    "(key UBIGINT, question VARCHAR, length BIGINT, asked_key UBIGINT, "
    "asked VARCHAR USING COMPRESSION uncompressed, said VARCHAR USING COMPRESSION uncompressed)"
)
HIDDEN = ("searched", "row_before", "row_after", "length_after", "asked_alike")
"""Columns of the pairs that are not shown."""


def frame_sql(frame: Frame) -> str:
    """Return a frame of the engine as SQL."""
    return str(nw.to_native(frame).sql_query())


def texts_sql(texts: Frame) -> str:
    """Return SQL for the rows of `texts`."""
    # Prompts usually contain the question.
    prompt = (
        "concat_ws(chr(10), CASE WHEN contains(prompt::VARCHAR, question::VARCHAR) THEN NULL "
        "ELSE question::VARCHAR END, prompt::VARCHAR, options::VARCHAR)"
    )
    return (
        f"SELECT {_key('item')} AS key, {cut('question::VARCHAR')} AS question, "
        f"length(response::VARCHAR) AS length, hash({prompt}) AS asked_key, "
        f"lower({prompt}) AS asked, "
        "lower(concat_ws(chr(10), response::VARCHAR, error::VARCHAR)) AS said "
        f"FROM ({frame_sql(fill_texts(texts))})"
    )


def doubled_sql(texts: Frame) -> str:
    """Return SQL that tests for repeated texts, as in tables with several metrics."""
    return f"SELECT count(*) > count(DISTINCT {_key('item')}) FROM ({frame_sql(fill_texts(texts))})"


def scored_sql(pairs: Pairs) -> str:
    """Return SQL for all scored pairs, in any order."""
    both = [f"{name}_{side}" for name in SIDE_COLUMNS for side in SIDES]
    values = {
        "transition": _transition(),
        "task": "p.task",
        "item": "p.item_before",
        "item_after": "p.item_after",
        "repeat": "p.repeat",
        **{name: _either(name, pairs) for name in SHARED_COLUMNS},
        "reason": _reason(pairs),
        **{name: f"p.{name}" for name in both if name in pairs.columns},
    }
    selected = ", ".join(f"{value} AS {name}" for name, value in values.items())
    return (
        f"SELECT {selected} FROM ({frame_sql(pairs.frame)}) p WHERE ({_transition()}) IS NOT NULL"
    )


def linked_sql(pairs: str, side: str, texts: str | None) -> str:
    """Return SQL that adds the row number of the text on one side, and its columns."""
    if texts is None:
        linked = f"NULL::BIGINT AS row_{side}, NULL::UBIGINT AS asked_{side}"
        return f"SELECT *, {linked}, NULL::BIGINT AS length_{side} FROM {pairs}"
    item = "item" if side == "before" else "item_after"
    return (
        f"SELECT p.*, t.row AS row_{side}, t.asked_key AS asked_{side}, t.length AS length_{side} "
        f"FROM {pairs} p LEFT JOIN (SELECT key, rowid AS row, asked_key, length FROM {texts}) t "
        f"ON t.key = {_key(item, 'p.')}"
    )


def listed_sql(pairs: str, columns: Sequence[str]) -> str:
    """Return SQL for linked pairs in the order of the list, with their searched text."""
    texts = ["task", "item", "nullif(item_after, item)", "gold"]
    texts += [name for name in ("answer_before", "answer_after") if name in columns]
    return (
        "SELECT * EXCLUDE (asked_before, asked_after, length_before), "
        "coalesce(asked_before = asked_after, false) AS asked_alike, "
        f"lower(concat_ws(chr(10), {', '.join(texts)})) AS searched "
        f"FROM (SELECT * FROM {pairs} ORDER BY transition, task, {item_order_sql('item')}, "
        "repeat)"
    )


def cut(value: str) -> str:
    """Return SQL that shortens a text for a list; dots show that there is more."""
    short = f"left({value}, {MAX_CHARACTERS}) || '…'"
    return f"CASE WHEN length({value}) > {MAX_CHARACTERS} THEN {short} ELSE {value} END"


def is_text(column: str) -> bool:
    """Whether a column may have long texts."""
    return column.startswith(("gold", "answer", "choice"))


def _key(item: str, table: str = "") -> str:
    """Return SQL for a hash of task, item and repeat.

    Joining the columns themselves takes ten times the memory. Of a hundred million items, two have
    the same hash in one of 4,000 runs.
    """
    return f"hash({table}task, {table}{item}, {table}repeat::INTEGER)"


def _transition() -> str:
    cases = " ".join(
        f"WHEN p.state_before = {before} AND p.state_after = {after} THEN '{kind}'"
        for kind, (before, after) in KINDS.items()
    )
    return f"CASE {cases} END"


def _reason(pairs: Pairs) -> str:
    """Return SQL for the reason of a loss, with the names used by the counts."""
    if "outcome_after" not in pairs.columns:
        return f"CASE WHEN ({_transition()}) = 'forgotten' THEN 'unknown' END"
    known = ", ".join(map(literal, REASONS))
    return (
        f"CASE WHEN ({_transition()}) <> 'forgotten' THEN NULL "
        "WHEN p.outcome_after IS NULL THEN 'unknown' "
        f"WHEN p.outcome_after IN ({known}) THEN p.outcome_after ELSE 'wrong' END"
    )


def _either(name: str, pairs: Pairs) -> str:
    columns = [f"p.{name}_{side}" for side in SIDES if f"{name}_{side}" in pairs.columns]
    return f"coalesce({', '.join(columns)})" if columns else "NULL::VARCHAR"
