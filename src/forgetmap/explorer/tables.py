"""The SQL that makes the tables of the explorer.

`texts`: what was asked and said, once per run, lowered and uncompressed, which is what makes a
search through all of it quick. `pairs`: one narrow table per comparison, in the order of the list.
They are linked by the numbers of rows, so that no text is ever joined or sorted.
"""

from __future__ import annotations

from collections.abc import Sequence

import narwhals as nw

from forgetmap.pairing.pair import SIDES, Pairs
from forgetmap.records.engine import literal
from forgetmap.records.folder import fill_texts
from forgetmap.records.run import Frame
from forgetmap.transitions.cells import REASONS
from forgetmap.transitions.flips import BOTH, KINDS, SHARED

SHOWN = 500
"""Characters of a question or an answer in a list; the item itself has all of it."""
TEXT_COLUMNS = (
    "(key UBIGINT, question VARCHAR, length BIGINT, asked_key UBIGINT, "
    "asked VARCHAR USING COMPRESSION uncompressed, said VARCHAR USING COMPRESSION uncompressed)"
)
HIDDEN = ("searched", "row_before", "row_after", "length_after", "asked_alike")
"""Columns of the pairs that no reader sees."""


def frame_sql(frame: Frame) -> str:
    """A frame of the engine as SQL."""
    return str(nw.to_native(frame).sql_query())


def texts_sql(texts: Frame) -> str:
    """The rows of `texts`."""
    # Prompts repeat the question, as a rule.
    asked = (
        "concat_ws(chr(10), CASE WHEN contains(prompt::VARCHAR, question::VARCHAR) THEN NULL "
        "ELSE question::VARCHAR END, prompt::VARCHAR, options::VARCHAR)"
    )
    return (
        f"SELECT {_key('item')} AS key, {cut('question::VARCHAR')} AS question, "
        f"length(response::VARCHAR) AS length, hash({asked}) AS asked_key, "
        f"lower({asked}) AS asked, "
        "lower(concat_ws(chr(10), response::VARCHAR, error::VARCHAR)) AS said "
        f"FROM ({frame_sql(fill_texts(texts))})"
    )


def doubled_sql(texts: Frame) -> str:
    """Whether texts stand several times, as those of a table with several metrics do."""
    return f"SELECT count(*) > count(DISTINCT {_key('item')}) FROM ({frame_sql(fill_texts(texts))})"


def pairs_sql(pairs: Pairs, texts: Sequence[str | None]) -> str:
    """All scored pairs in the order of the list, with the rows of their texts."""
    shared = {name: _either(name, pairs) for name in SHARED}
    both = [f"{name}_{side}" for name in BOTH for side in SIDES]
    values = {
        "transition": _transition(),
        "task": "p.task",
        "item": "p.item_before",
        "item_after": "p.item_after",
        "repeat": "p.repeat",
        **shared,
        "reason": _reason(pairs),
        **{name: f"p.{name}" for name in both if name in pairs.columns},
        **_from_texts(texts),
    }
    selected = ", ".join(f"{value} AS {name}" for name, value in values.items())
    joins = "".join(_text_join(side, table) for side, table in zip(SIDES, texts, strict=True))
    answers = [f"answer_{side}" for side in SIDES if f"answer_{side}" in pairs.columns]
    searched = ", ".join(["task", "item", "nullif(item_after, item)", "gold", *answers])
    return (
        f"SELECT *, lower(concat_ws(chr(10), {searched})) AS searched FROM ("
        f"SELECT {selected} FROM ({frame_sql(pairs.frame)}) p {joins} "
        f"WHERE ({_transition()}) IS NOT NULL ORDER BY transition, p.task, item, p.repeat)"
    )


def cut(value: str) -> str:
    """A text as a list shows it; dots say that there is more."""
    return (
        f"CASE WHEN length({value}) > {SHOWN} THEN left({value}, {SHOWN}) || '…' ELSE {value} END"
    )


def is_text(column: str) -> bool:
    """Whether a column may hold long texts."""
    return column.startswith(("gold", "answer", "choice"))


def _key(item: str, table: str = "") -> str:
    """A number that stands for task, item and repeat.

    Joining those themselves takes ten times the memory. Of a hundred million items, two have the
    same number in one run of 4,000.
    """
    return f"hash({table}task, {table}{item}, {table}repeat::INTEGER)"


def _transition() -> str:
    cases = " ".join(
        f"WHEN p.state_before = {before} AND p.state_after = {after} THEN '{kind}'"
        for kind, (before, after) in KINDS.items()
    )
    return f"CASE {cases} END"


def _reason(pairs: Pairs) -> str:
    """Why an item was lost, in the words of the counts."""
    if "outcome_after" not in pairs.columns:
        return f"CASE WHEN ({_transition()}) = 'forgotten' THEN 'unknown' END"
    known = ", ".join(map(literal, REASONS))
    return (
        f"CASE WHEN ({_transition()}) <> 'forgotten' THEN NULL "
        "WHEN p.outcome_after IS NULL THEN 'unknown' "
        f"WHEN p.outcome_after IN ({known}) THEN p.outcome_after ELSE 'wrong' END"
    )


def _either(name: str, pairs: Pairs) -> str:
    found = [f"p.{name}_{side}" for side in SIDES if f"{name}_{side}" in pairs.columns]
    return f"coalesce({', '.join(found)})" if found else "NULL::VARCHAR"


def _from_texts(texts: Sequence[str | None]) -> dict[str, str]:
    """Where the texts of a pair are, and what a list is put in order by."""
    present = [side for side, table in zip(SIDES, texts, strict=True) if table is not None]
    values = {
        f"row_{side}": f"t_{side}.row" if side in present else "NULL::BIGINT" for side in SIDES
    }
    values["length_after"] = "t_after.length" if "after" in present else "NULL::BIGINT"
    both = len(present) == len(SIDES)
    values["asked_alike"] = "t_before.asked_key = t_after.asked_key" if both else "false"
    return values


def _text_join(side: str, table: str | None) -> str:
    if table is None:
        return ""
    columns = "key, rowid AS row, asked_key" + (", length" if side == "after" else "")
    return (
        f" LEFT JOIN (SELECT {columns} FROM {table}) t_{side} "
        f"ON t_{side}.key = {_key(f'item_{side}', 'p.')}"
    )
