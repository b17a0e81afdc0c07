"""Pairs of two runs as tables on disk, with filters, search and pages.

The tables are those of `tables`, in files that are found again (`disk_cache`). Whole texts are only
ever read for one item, from the run itself.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Any

import duckdb

from forgetmap._cache import temporary_path
from forgetmap.pairing import SIDES, Pairs
from forgetmap.records import (
    Frame,
    Run,
    connection,
    fill_texts,
    fresh_name,
    literal,
    quote,
)
from forgetmap.serve.disk_cache import DiskCache
from forgetmap.serve.tables import (
    HIDDEN,
    TEXT_COLUMNS,
    cut,
    doubled_sql,
    frame_sql,
    is_text,
    linked_sql,
    listed_sql,
    scored_sql,
    texts_sql,
)

READER_THREADS = 4
MAX_ROW_SPAN = 200_000
"""Rows of a table that are read at once rather than one by one."""
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
        database: what it lies in.
        texts: tables of what was asked and said; None where nobody recorded it.
        sources: SQL of the whole texts of each side, likewise.
        columns: those that a reader sees.
        asked_alike: whether both sides were asked the same, always.
        facets: the values of what can be filtered by, and how many items have each.
        answer: what was kept with it.
    """

    database: str
    texts: tuple[str | None, ...]
    sources: tuple[str | None, ...]
    columns: tuple[str, ...]
    asked_alike: bool
    facets: Mapping[str, Sequence[tuple[str, int]]] = field(default_factory=dict)
    answer: bytes = b""

    @property
    def name(self) -> str:
        """The table of pairs."""
        return f"{self.database}.pairs"


class Store:
    """Tables of pairs in database files, read by several threads at once.

    Args:
        memory: most that the engine may hold in memory, such as `512MB`; the rest goes to disk.
        persistent: find the tables again when the server is started again.
    """

    def __init__(self, memory: str | None = None, *, persistent: bool = False) -> None:
        self._engine = connection()
        if memory is not None:
            self._engine.execute(f"SET memory_limit = {literal(memory)}")
        self._disk_cache = DiskCache(self._engine, persistent=persistent)
        self._hits = fresh_name()
        file = temporary_path(".duckdb")
        self._engine.execute(f"ATTACH {literal(str(file))} AS {self._hits}")
        self._cursors = [self._engine.cursor() for _ in range(READER_THREADS)]
        self._free: SimpleQueue[duckdb.DuckDBPyConnection] = SimpleQueue()
        for cursor in self._cursors:
            self._free.put(cursor)

    def add_texts(self, run: Run, cache_key: object = None) -> str | None:
        """The table of what a run was asked and said, made if it is not in the cache.

        Args:
            run: the run.
            cache_key: what its texts follow from; None is like nothing else.
        """
        texts = run.texts
        if texts is None:
            return None
        return (
            self._disk_cache.open(cache_key, lambda name: self._write_texts(name, texts)) + ".texts"
        )

    def add(
        self,
        runs: Sequence[Run],
        texts: Sequence[str | None],
        compare: Callable[[], tuple[Pairs, bytes]],
        cache_key: object = None,
    ) -> PairTable:
        """The scored pairs of a comparison, made if they are not in the cache.

        To be called by one thread at a time.

        Args:
            runs: both, as they are compared.
            texts: the tables of their texts.
            compare: gives the pairs, and what is to be kept with them.
            cache_key: what the comparison follows from; None is like nothing else.
        """
        database = self._disk_cache.open(
            cache_key, lambda name: self._write_pairs(name, texts, *compare())
        )
        described = self._engine.execute(f"DESCRIBE {database}.pairs").fetchall()
        columns = tuple(name for name, *_ in described if name not in HIDDEN)
        rows = self._engine.execute(f"SELECT alike, facets, answer FROM {database}.kept")
        alike, facets, answer = rows.fetchall()[0]
        return PairTable(
            database=database,
            texts=tuple(texts),
            sources=tuple(_source(run.texts) for run in runs),
            columns=(*columns, "question"),
            asked_alike=alike,
            facets=json.loads(facets),
            answer=answer,
        )

    def keep_text(self, cache_key: object, make: Callable[[], str]) -> str:
        """A short text, made if it is not in the cache; to be called by one thread at a time."""
        return self._disk_cache.text(cache_key, make)

    def drop(self, table: PairTable) -> None:
        """Let go of a comparison."""
        self._disk_cache.close(table.database)

    def search(self, table: PairTable, texts: Sequence[str]) -> list[str]:
        """For every text, a table with the places of all items that mention it.

        One pass over what was asked and said serves all of them. The case does not matter.
        """
        lowered = [text.lower() for text in texts]
        with self._reader() as cursor:
            mentions = [
                (column, _note_mentions(cursor, self._fresh(), source, columns, lowered))
                for column, source, columns in _searched(table)
            ]
            hits = [self._fresh() for _ in texts]
            for index, name in enumerate(hits):
                mentioned = " OR ".join(
                    f"{column} IN (SELECT row FROM {rows} WHERE m{index})"
                    for column, rows in mentions
                )
                cursor.execute(
                    f"CREATE TABLE {name} AS SELECT rowid AS place FROM {table.name} "
                    f"WHERE {mentioned}"
                )
            for _, rows in mentions:
                cursor.execute(f"DROP TABLE {rows}")
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
        with self._reader() as cursor:
            total = cursor.execute(f"SELECT count(*) FROM {table.name} WHERE {where}", values)
            count = _one(total)
            if offset >= count:
                return count, []
            rows = cursor.execute(
                f"SELECT {_list_columns(table)}, row_before, row_after "
                f"FROM {table.name} WHERE {where} {order} "
                f"LIMIT {int(limit)} OFFSET {int(offset)}",
                values,
            )
            return count, _with_questions(cursor, table, _records(rows))

    def find(
        self, table: PairTable, chosen: Selection, hits: str | None, key: tuple[str, str, int]
    ) -> tuple[dict[str, Any] | None, int | None]:
        """An item with all its texts, and its place in the selection, if it is in it."""
        columns = ", ".join(quote(name) for name in table.columns if name != "question")
        with self._reader() as cursor:
            items = _records(
                cursor.execute(
                    f"SELECT rowid AS place, {SORTS[chosen.sort]} AS rank, {columns} "
                    f"FROM {table.name} WHERE task = ? AND item = ? AND repeat = ? "
                    "ORDER BY rowid LIMIT 1",
                    list(key),
                )
            )
            if not items:
                return None, None
            item = items[0]
            index = _position(cursor, table, chosen, hits, item.pop("place"), item.pop("rank"))
            return item | _whole_texts(cursor, table, item), index

    def close(self) -> None:
        """Stop whatever is running, and let the process have its memory again."""
        for cursor in (self._engine, *self._cursors):
            cursor.interrupt()
        # The engine is that of the whole process, which may go on with something else.
        self._engine.cursor().execute("RESET memory_limit")

    def _write_texts(self, database: str, texts: Frame) -> None:
        rows = texts_sql(texts)
        if _one(self._engine.execute(doubled_sql(texts))):
            rows = f"SELECT DISTINCT ON (key) * FROM ({rows})"
        self._engine.execute(f"CREATE TABLE {database}.texts {TEXT_COLUMNS}")
        self._engine.execute(f"INSERT INTO {database}.texts {rows}")

    def _write_pairs(
        self, database: str, texts: Sequence[str | None], pairs: Pairs, answer: bytes
    ) -> None:
        name = f"{database}.pairs"
        last = self._write(self._fresh(), scored_sql(pairs))
        for side, table in zip(SIDES, texts, strict=True):
            linked = self._write(self._fresh(), linked_sql(last, side, table))
            self._engine.execute(f"DROP TABLE {last}")
            last = linked
        self._write(name, listed_sql(last, tuple(pairs.columns)))
        self._engine.execute(f"DROP TABLE {last}")
        self._engine.execute(
            f"CREATE TABLE {database}.kept AS SELECT $facets AS facets, $answer::BLOB AS answer, "
            f"(SELECT coalesce(bool_and(asked_alike), true) FROM {name}) AS alike",
            {"facets": json.dumps(self._facets(name)), "answer": answer},
        )

    def _write(self, name: str, sql: str) -> str:
        self._engine.execute(f"CREATE TABLE {name} AS {sql}")
        return name

    def _facets(self, name: str) -> dict[str, list[tuple[str, int]]]:
        return {
            facet: self._engine.execute(
                f"SELECT {facet}, count(*) FROM {name} WHERE {facet} IS NOT NULL "
                f"GROUP BY {facet} ORDER BY {facet}"
            ).fetchall()
            for facet in FACETS
        }

    def _fresh(self) -> str:
        return f"{self._hits}.main.{fresh_name()}"

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
    rarest = max(starts, key=lambda index: _rarity(text[index]), default=0)
    return text[rarest:]


def _rarity(letter: str) -> int:
    return _COMMON.find(letter) % (len(_COMMON) + 1)


def _searched(table: PairTable) -> list[tuple[str, str, tuple[str, ...]]]:
    """What links a pair to a table, the table, and its columns to look through."""
    sources: list[tuple[str, str, tuple[str, ...]]] = [("rowid", table.name, ("searched",))]
    for side, texts in zip(SIDES, table.texts, strict=True):
        if texts is not None:
            is_known = side == "after" and table.asked_alike
            sources.append((f"row_{side}", texts, ("said",) if is_known else ("asked", "said")))
    return sources


def _note_mentions(
    cursor: duckdb.DuckDBPyConnection,
    name: str,
    source: str,
    columns: Sequence[str],
    texts: Sequence[str],
) -> str:
    """Write the rows of a table that mention any of the texts, and which of them."""
    flags = {
        f"m{index}": " OR ".join(
            f"(contains({column}, $rare{index}) AND contains({column}, $q{index}))"
            for column in columns
        )
        for index in range(len(texts))
    }
    values = {f"q{index}": text for index, text in enumerate(texts)}
    values |= {f"rare{index}": rare_part(text) for index, text in enumerate(texts)}
    selected = ", ".join(
        f"coalesce({flag}, false) AS {name_of_flag}" for name_of_flag, flag in flags.items()
    )
    cursor.execute(
        f"CREATE TABLE {name} AS SELECT rowid AS row, {selected} FROM {source} "
        f"WHERE {' OR '.join(flags.values())}",
        values,
    )
    return name


def _list_columns(table: PairTable) -> str:
    """What a list shows, long answers cut."""
    names = [name for name in table.columns if name != "question"]
    return ", ".join(
        f"{cut(quote(name))} AS {quote(name)}" if is_text(name) else quote(name) for name in names
    )


def _with_questions(
    cursor: duckdb.DuckDBPyConnection, table: PairTable, rows: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Rows of a list with what was asked: of the first side that recorded it."""
    for row in rows:
        row["question"] = None
    for side, texts in zip(SIDES, table.texts, strict=True):
        numbers = [row.pop(f"row_{side}") for row in rows]
        lacking = [row for row in zip(numbers, rows, strict=True) if row[1]["question"] is None]
        questions = _questions(
            cursor, texts, {number for number, _ in lacking if number is not None}
        )
        for number, row in lacking:
            row["question"] = questions.get(number)
    return rows


def _questions(
    cursor: duckdb.DuckDBPyConnection, texts: str | None, numbers: Collection[int]
) -> dict[int, str | None]:
    """What was asked in these rows.

    Rows that lie together are read together; for others the engine would read through all that lies
    between them, but goes straight to a single one.
    """
    if texts is None or not numbers:
        return {}
    chosen = f"SELECT rowid, question FROM {texts} WHERE rowid"
    if max(numbers) - min(numbers) < MAX_ROW_SPAN:
        return dict(cursor.execute(f"{chosen} IN (SELECT unnest($1))", [list(numbers)]).fetchall())
    single = (f"{chosen} = {int(number)}" for number in numbers)
    return dict(cursor.execute(" UNION ALL ".join(single)).fetchall())


def _source(texts: Frame | None) -> str | None:
    return None if texts is None else frame_sql(fill_texts(texts))


def _where(chosen: Selection, hits: str | None) -> tuple[str, dict[str, str]]:
    values = {name: getattr(chosen, name) for name in FACETS if getattr(chosen, name)}
    conditions = [f"{name} = ${name}" for name in values]
    if hits is not None:
        conditions.append(f"rowid IN (SELECT place FROM {hits})")
    return " AND ".join(conditions) or "true", values


def _position(
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
    for side, sql, own in zip(SIDES, table.sources, ("item", "item_after"), strict=True):
        if sql is None:
            continue
        rows = cursor.execute(
            "SELECT question, options, prompt, response, error "
            f"FROM ({sql}) WHERE task = ? AND item = ? AND repeat = ? LIMIT 1",
            [item["task"], item[own], item["repeat"]],
        )
        for row in _records(rows):
            shared = {name: row.pop(name) for name in ("question", "options")}
            texts = {**shared, **{k: v for k, v in texts.items() if v is not None}}
            texts |= {f"{name}_{side}": value for name, value in row.items()}
    return {name: value for name, value in texts.items() if value is not None}


def _one(result: duckdb.DuckDBPyConnection) -> int:
    return int(result.fetchall()[0][0])


def _records(result: duckdb.DuckDBPyConnection) -> list[dict[str, Any]]:
    names = [name for name, *_ in result.description or ()]
    return [dict(zip(names, row, strict=True)) for row in result.fetchall()]
