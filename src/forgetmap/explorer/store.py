"""The pairs of two runs as tables on disk: filtered, searched and paged where they lie.

Every comparison becomes one narrow table in the order of the list: a filter reads little of it, and
a page lies together. What the models said is kept once per run, lowered and uncompressed, which is
what makes a search through all of it quick; whole texts are only ever read for one item, from the
run itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from queue import SimpleQueue
from typing import Any

import duckdb
import narwhals as nw

from forgetmap.pairing.pair import SIDES, Pairs
from forgetmap.records.engine import connection, fresh_name, literal, quote, spill_folder
from forgetmap.records.folder import fill_texts
from forgetmap.records.run import Frame, Run
from forgetmap.transitions.cells import REASONS
from forgetmap.transitions.comparison import Comparison
from forgetmap.transitions.flips import BOTH, KINDS, SHARED

READERS = 4
SHOWN = 500
"""Characters of a question or an answer in a list; the item itself has all of it."""
FACETS = ("transition", "task", "category", "reason")
SORTS = {
    "": "rowid",
    "task": "task",
    "category": "coalesce(category, chr(65535))",
    "transition": "transition",
    "reason": "coalesce(reason, chr(65535))",
    "longest": "-coalesce(length_after, 0)",
    "shortest": "coalesce(length_after, 0)",
}
"""What is asked for -> what rows are put in order by; never null."""
HIDDEN = ("searched", "row_before", "row_after", "length_after")
_COMMON = " etaonisrhldcumfpgwybvkxjqz"
"""From frequent to rare; what is not in it is rarer still."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Which items, and in which order; empty is any."""

    transition: str = ""
    task: str = ""
    category: str = ""
    reason: str = ""
    q: str = ""
    sort: str = ""


@dataclass(frozen=True, slots=True)
class PairTable:
    """A comparison in the store.

    Attributes:
        name: the table of pairs.
        said: tables of what the models said; None where nobody recorded it.
        texts: SQL of the whole texts of each side, likewise.
        columns: those that a list shows.
        facets: the values of what can be filtered by, and how many items have each.
    """

    name: str
    said: tuple[str | None, ...]
    texts: tuple[str | None, ...]
    columns: tuple[str, ...] = ()
    facets: Mapping[str, Sequence[tuple[str, int]]] = field(default_factory=dict)


class Store:
    """Tables of pairs in a temporary database file, read by several threads at once.

    Args:
        memory: most that the engine may hold in memory, such as `512MB`; the rest goes to disk.
    """

    def __init__(self, memory: str | None = None) -> None:
        self._engine = connection()
        if memory is not None:
            self._engine.execute(f"SET memory_limit = {literal(memory)}")
        self._database = fresh_name()
        file = spill_folder() / f"{self._database}.duckdb"
        self._engine.execute(f"ATTACH {literal(str(file))} AS {self._database}")
        self._said: dict[str, str] = {}
        self._cursors = [self._engine.cursor() for _ in range(READERS)]
        self._free: SimpleQueue[duckdb.DuckDBPyConnection] = SimpleQueue()
        for cursor in self._cursors:
            self._free.put(cursor)

    def add(self, comparison: Comparison) -> PairTable:
        """Write the scored pairs of a comparison; to be called by one thread at a time."""
        runs = (comparison.before, comparison.after)
        said = tuple(None if run.texts is None else self._add_said(run.texts) for run in runs)
        table = PairTable(self._fresh(), said, tuple(map(_texts_sql, runs)))
        sql = _pairs_sql(comparison.pairs, table)
        self._engine.execute(f"CREATE TABLE {table.name} AS {sql}")
        if self._count(table.name) != comparison.result.total.n:
            # A table with several metrics repeats the texts of an item.
            self.drop(table)
            for each in filter(None, set(said)):
                self._forget_doubles(each)
            self._engine.execute(f"CREATE TABLE {table.name} AS {sql}")
        names = self._engine.execute(f"DESCRIBE {table.name}").fetchall()
        columns = tuple(name for name, *_ in names if name not in HIDDEN)
        return replace(table, columns=columns, facets=self._facets(table.name))

    def drop(self, table: PairTable) -> None:
        """Forget a comparison; the room is used again."""
        self.drop_hits(table.name)

    def search(self, table: PairTable, text: str) -> str:
        """A table with the places of all items that mention a text; the case does not matter."""
        hits = self._fresh()
        where = " OR ".join([_mentions("searched"), *_said_by(table)])
        wanted = text.lower()
        with self._reader() as cursor:
            cursor.execute(
                f"CREATE TABLE {hits} AS SELECT rowid AS place FROM {table.name} WHERE {where}",
                {"q": wanted, "rare": rare_part(wanted)},
            )
        return hits

    def drop_hits(self, hits: str) -> None:
        """Forget the result of a search."""
        with self._reader() as cursor:
            cursor.execute(f"DROP TABLE IF EXISTS {hits}")

    def page(
        self, table: PairTable, chosen: Selection, hits: str | None, *, offset: int, limit: int
    ) -> tuple[int, list[dict[str, Any]]]:
        """How many items there are, and some of them as a list shows them."""
        where, values = _where(chosen, hits)
        # Without an order the engine returns rows as they lie, and stops when it has enough.
        is_as_it_lies = not chosen.sort and hits is None
        order = "" if is_as_it_lies else f"ORDER BY {SORTS[chosen.sort]}, rowid"
        columns = ", ".join(map(quote, table.columns))
        with self._reader() as cursor:
            total = cursor.execute(f"SELECT count(*) FROM {table.name} WHERE {where}", values)
            count = _one(total)
            if offset >= count:
                return count, []
            rows = cursor.execute(
                f"SELECT {columns} FROM {table.name} WHERE {where} {order} "
                f"LIMIT {int(limit)} OFFSET {int(offset)}",
                values,
            )
            return count, _records(rows)

    def find(
        self, table: PairTable, chosen: Selection, hits: str | None, key: tuple[str, str, int]
    ) -> tuple[dict[str, Any] | None, int | None]:
        """An item with all its texts, and its place in the selection, if it is in it."""
        columns = ", ".join(map(quote, table.columns))
        with self._reader() as cursor:
            found = _records(
                cursor.execute(
                    f"SELECT rowid AS place, {SORTS[chosen.sort]} AS rank, {columns} "
                    f"FROM {table.name} WHERE task = ? AND item = ? AND repeat = ? "
                    "ORDER BY rowid LIMIT 1",
                    list(key),
                )
            )
            if not found:
                return None, None
            item = found[0]
            place = _place(cursor, table, chosen, hits, item.pop("place"), item.pop("rank"))
            return item | _whole_texts(cursor, table, item), place

    def close(self) -> None:
        """Stop whatever is running."""
        for each in (self._engine, *self._cursors):
            each.interrupt()

    def _add_said(self, texts: Frame) -> str:
        """What a model said, once per run, however often it is compared."""
        sql = nw.to_native(fill_texts(texts)).sql_query()
        if sql not in self._said:
            name = self._fresh()
            self._engine.execute(
                f"CREATE TABLE {name} (task VARCHAR, item VARCHAR, repeat INTEGER, "
                "question VARCHAR, options VARCHAR, length BIGINT, "
                "said VARCHAR USING COMPRESSION uncompressed)"
            )
            self._engine.execute(
                f"INSERT INTO {name} SELECT task, item, repeat, "
                "question::VARCHAR, options::VARCHAR, "
                "length(response::VARCHAR), "
                f"lower(concat_ws(chr(10), response::VARCHAR, error::VARCHAR)) FROM ({sql})"
            )
            self._said[sql] = name
        return self._said[sql]

    def _forget_doubles(self, said: str) -> None:
        self._engine.execute(
            f"DELETE FROM {said} WHERE rowid NOT IN "
            f"(SELECT min(rowid) FROM {said} GROUP BY task, item, repeat)"
        )

    def _facets(self, name: str) -> dict[str, list[tuple[str, int]]]:
        return {
            facet: self._engine.execute(
                f"SELECT {facet}, count(*) FROM {name} WHERE {facet} IS NOT NULL "
                f"GROUP BY {facet} ORDER BY {facet}"
            ).fetchall()
            for facet in FACETS
        }

    def _count(self, name: str) -> int:
        return _one(self._engine.execute(f"SELECT count(*) FROM {name}"))

    def _fresh(self) -> str:
        return f"{self._database}.main.{fresh_name()}"

    @contextmanager
    def _reader(self) -> Iterator[duckdb.DuckDBPyConnection]:
        cursor = self._free.get()
        try:
            yield cursor
        finally:
            self._free.put(cursor)


def rare_part(text: str) -> str:
    """The end of a text from its rarest letter on: looking for that first skips most of a text."""
    starts = range(max(len(text) - 2, 1))
    rarest = max(starts, key=lambda place: _rarity(text[place]), default=0)
    return text[rarest:]


def _rarity(letter: str) -> int:
    return _COMMON.find(letter) % (len(_COMMON) + 1)


def _mentions(column: str) -> str:
    return f"(contains({column}, $rare) AND contains({column}, $q))"


def _said_by(table: PairTable) -> list[str]:
    return [
        f"row_{side} IN (SELECT rowid FROM {said} WHERE {_mentions('said')})"
        for side, said in zip(SIDES, table.said, strict=True)
        if said is not None
    ]


def _texts_sql(run: Run) -> str | None:
    return None if run.texts is None else str(nw.to_native(fill_texts(run.texts)).sql_query())


def _pairs_sql(pairs: Pairs, table: PairTable) -> str:
    """All scored pairs in the order of the list, with the rows of their texts."""
    shared = {name: _either(name, pairs) for name in SHARED}
    both = [f"{name}_{side}" for name in BOTH for side in SIDES]
    values = {
        "transition": _transition(),
        "task": "p.task",
        "item": "p.item_before",
        "item_after": "p.item_after",
        "repeat": "p.repeat",
        **{name: _shown(name, value) for name, value in shared.items()},
        "reason": _reason(pairs),
        **{name: _shown(name, f"p.{name}") for name in both if name in pairs.columns},
        **_from_texts(table),
    }
    searched = ["p.task", "p.item_before", shared["gold"], *_said_columns(pairs, table)]
    values["searched"] = f"lower(concat_ws(chr(10), {', '.join(searched)}))"
    selected = ", ".join(f"{value} AS {name}" for name, value in values.items())
    joins = "".join(_text_join(side, said) for side, said in zip(SIDES, table.said, strict=True))
    return (
        f"SELECT {selected} FROM ({nw.to_native(pairs.frame).sql_query()}) p {joins} "
        f"WHERE ({_transition()}) IS NOT NULL ORDER BY transition, p.task, item, p.repeat"
    )


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


def _shown(name: str, value: str) -> str:
    is_text = name.startswith(("gold", "answer", "choice"))
    return f"left({value}, {SHOWN})" if is_text else value


def _from_texts(table: PairTable) -> dict[str, str]:
    """Where the texts of a pair are, and what a list shows of them."""
    present = [side for side, said in zip(SIDES, table.said, strict=True) if said is not None]
    values = {f"row_{side}": f"t_{side}.rowid" for side in present}
    asked = ", ".join(f"t_{side}.question" for side in present)
    values["question"] = f"left(coalesce({asked}), {SHOWN})" if asked else "NULL::VARCHAR"
    values["length_after"] = "t_after.length" if "after" in present else "NULL::BIGINT"
    return values


def _said_columns(pairs: Pairs, table: PairTable) -> list[str]:
    answers = [f"answer_{side}" for side in SIDES if f"answer_{side}" in pairs.columns]
    asked = [
        f"t_{side}.{name}"
        for side, said in zip(SIDES, table.said, strict=True)
        if said is not None
        for name in ("question", "options")
    ]
    # Both sides were asked the same, as a rule: what the first one says will do.
    return [*(f"p.{name}" for name in answers), *asked[:2]]


def _text_join(side: str, said: str | None) -> str:
    if said is None:
        return ""
    return (
        f" LEFT JOIN {said} t_{side} ON t_{side}.task = p.task "
        f"AND t_{side}.item = p.item_{side} AND t_{side}.repeat = p.repeat"
    )


def _where(chosen: Selection, hits: str | None) -> tuple[str, dict[str, str]]:
    values = {name: getattr(chosen, name) for name in FACETS if getattr(chosen, name)}
    conditions = [f"{name} = ${name}" for name in values]
    if hits is not None:
        conditions.append(f"rowid IN (SELECT place FROM {hits})")
    return " AND ".join(conditions) or "true", values


def _place(
    cursor: duckdb.DuckDBPyConnection,
    table: PairTable,
    chosen: Selection,
    hits: str | None,
    own: int,
    rank: Any,
) -> int | None:
    """How many items of the selection stand before this one; None if it is not in it."""
    where, values = _where(chosen, hits)
    before, is_in = cursor.execute(
        f"SELECT count(*) FILTER (({SORTS[chosen.sort]}, rowid) < ($rank, $own)), "
        f"count(*) FILTER (rowid = $own) FROM {table.name} WHERE {where}",
        {**values, "rank": rank, "own": own},
    ).fetchall()[0]
    return int(before) if is_in else None


def _whole_texts(
    cursor: duckdb.DuckDBPyConnection, table: PairTable, item: Mapping[str, Any]
) -> dict[str, Any]:
    """Question and options once, prompt, response and error of both sides."""
    texts: dict[str, Any] = {}
    for side, sql, own in zip(SIDES, table.texts, ("item", "item_after"), strict=True):
        if sql is None:
            continue
        rows = cursor.execute(
            "SELECT question, options, prompt, response, error "
            f"FROM ({sql}) WHERE task = ? AND item = ? AND repeat = ? LIMIT 1",
            [item["task"], item[own], item["repeat"]],
        )
        for found in _records(rows):
            asked = {name: found.pop(name) for name in ("question", "options")}
            texts = {**asked, **{k: v for k, v in texts.items() if v is not None}}
            texts |= {f"{name}_{side}": value for name, value in found.items()}
    return {name: value for name, value in texts.items() if value is not None}


def _one(found: duckdb.DuckDBPyConnection) -> int:
    return int(found.fetchall()[0][0])


def _records(found: duckdb.DuckDBPyConnection) -> list[dict[str, Any]]:
    names = [name for name, *_ in found.description or ()]
    return [dict(zip(names, row, strict=True)) for row in found.fetchall()]
