"""Pairs of two runs as tables on disk, with filters, search and pages.

The tables are those of `tables`, in reusable files (`disk_cache`). Complete texts are only read for
single items, from the run itself.
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
"""Maximum span of rows that are read at once rather than one by one."""
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
"""Sort parameter -> SQL expression that is never null."""
_COMMON = " etaonisrhldcumfpgwybvkxjqz"
"""Letters from frequent to rare; all others are rarer."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Filters and order of items; an empty filter matches everything."""

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
        database: name of its database.
        texts: tables of the texts of each side; None if not recorded.
        sources: SQL of the complete texts of each side; None if not recorded.
        columns: visible columns.
        asked_alike: whether all prompts are the same on both sides.
        facets: values of each filter, with numbers of items.
        answer: response that is stored with it.
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
        """Name of the table of pairs."""
        return f"{self.database}.pairs"


class Store:
    """Tables of pairs in database files, read by several threads.

    Args:
        memory: memory limit of the engine, such as `512MB`; the rest goes to disk.
        persistent: reuse the tables when the server is restarted.
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
        """Return the table of the texts of a run, created if it is not in the cache.

        Args:
            run: the run.
            cache_key: determines the texts; None is never reused.
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
        """Return the scored pairs of a comparison, created if they are not in the cache.

        Must not be called by several threads at once.

        Args:
            runs: both runs, as compared.
            texts: tables of their texts.
            compare: returns the pairs, and the response to store with them.
            cache_key: determines the comparison; None is never reused.
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
        """Return a short text, computed if it is not in the cache; not for concurrent calls."""
        return self._disk_cache.text(cache_key, make)

    def drop(self, table: PairTable) -> None:
        """Drop a comparison."""
        self._disk_cache.close(table.database)

    def search(self, table: PairTable, texts: Sequence[str]) -> list[str]:
        """Return for every text a table with the row numbers of all items that contain it.

        A single pass over the texts serves all searches. Case is ignored.
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
        """Drop the result of a search."""
        with self._reader() as cursor:
            cursor.execute(f"DROP TABLE IF EXISTS {hits}")

    def page(
        self, table: PairTable, chosen: Selection, hits: str | None, *, offset: int, limit: int
    ) -> tuple[int, list[dict[str, Any]]]:
        """Return the number of items, and some of them for display in a list."""
        where, values = _where(chosen, hits)
        # Without an order the engine returns rows as stored, and stops when it has enough.
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
        """Return an item with all its texts, and its position in the selection, if any."""
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
        """Stop all running work, and reset the memory limit of the engine."""
        for cursor in (self._engine, *self._cursors):
            cursor.interrupt()
        # The engine is shared by the whole process, which may continue with something else.
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
    """Return the end of a text from its rarest letter on: searching for it first is faster."""
    starts = range(max(len(text) - 2, 1))
    rarest = max(starts, key=lambda index: _rarity(text[index]), default=0)
    return text[rarest:]


def _rarity(letter: str) -> int:
    return _COMMON.find(letter) % (len(_COMMON) + 1)


def _searched(table: PairTable) -> list[tuple[str, str, tuple[str, ...]]]:
    """Return for each searched table: the linking column, its name, and its columns."""
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
    """Write the rows of a table that contain any of the texts, and which texts."""
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
    """Return the columns of a list, with long answers cut."""
    names = [name for name in table.columns if name != "question"]
    return ", ".join(
        f"{cut(quote(name))} AS {quote(name)}" if is_text(name) else quote(name) for name in names
    )


def _with_questions(
    cursor: duckdb.DuckDBPyConnection, table: PairTable, rows: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Add the questions to rows of a list, from the first side that recorded them."""
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
    """Return the questions of these rows.

    Neighbouring rows are read together; for distant ones the engine would read everything between
    them, but it finds single rows directly.
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
    """Return the number of items of the selection before this one; None if it is not included."""
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
    """Return question and options once, and prompt, response and error of both sides."""
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
