"""Content hashes for tables with texts, one Arrow batch at a time."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa

from forgetmap.errors import FieldError
from forgetmap.records.column_hashes import text_hashes
from forgetmap.records.identity import option_text, options_hash, parse_options
from forgetmap.records.schema import BY_NAME

DERIVED_FROM = {
    "question_hash": "question",
    "options_hash": "options",
    "gold_hash": "gold",
    "prompt_hash": "prompt",
    "gold": "gold",
    "choice": "choice",
    "k": "options",
    "gold_index": "options",
}

Column = list[Any]


class ContentDeriver:
    """Add hashes, resolve letters to option texts and count options, batch by batch.

    In a table without ids, items are numbered within equal content, so batches must come in the
    order of the file.
    """

    def __init__(self, columns: tuple[str, ...], *, origin: str) -> None:
        self._columns = columns
        self._origin = origin
        self._rows = 0
        self._seen: Counter[tuple[object, ...]] = Counter()
        derived = [name for name, source in DERIVED_FROM.items() if source in columns]
        self.needs_item = "item" not in columns
        self.adds = (*derived, "item") if self.needs_item else tuple(derived)

    def schema(self, source: pa.Schema) -> pa.Schema:
        """Return the schema of a batch with the derived columns."""
        kept = [field for field in source if field.name not in self.adds]
        return pa.schema([*kept, *(pa.field(name, BY_NAME[name].type) for name in self.adds)])

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the batch with the derived columns added or filled in."""
        derived = self._derive(batch)
        schema = self.schema(batch.schema)
        arrays = [
            pa.array(derived[field.name], field.type)
            if field.name in derived
            else batch[field.name]
            for field in schema
        ]
        self._rows += batch.num_rows
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    def table(self, table: pa.Table) -> pa.Table:
        """Return a whole table with the derived columns added or filled in."""
        batches = [self(batch) for batch in table.to_batches()]
        return pa.Table.from_batches(batches, self.schema(table.schema))

    def _derive(self, batch: pa.RecordBatch) -> dict[str, Column]:
        options = self._options(batch)
        derived: dict[str, Column] = {}
        for name in ("gold", "choice"):
            if name in self._columns:
                derived[name] = _resolved(_cells(batch, name), options)
        for name in ("question", "prompt"):
            if name in self._columns:
                derived[f"{name}_hash"] = _hashed(_cells(batch, name))
        if "gold" in derived:
            derived["gold_hash"] = _hashed(derived["gold"])
        if "options" in self._columns:
            derived["options_hash"] = [options_hash(texts) if texts else None for texts in options]
            counts = _cells(batch, "k") if "k" in self._columns else [None] * batch.num_rows
            counted = [len(texts) if texts else None for texts in options]
            derived["k"] = [k if k is not None else n for k, n in zip(counts, counted, strict=True)]
            derived["gold_index"] = self._gold_indexes(batch, derived.get("gold"), options)
        if self.needs_item:
            derived["item"] = self._items(batch, derived)
        return derived

    def _gold_indexes(
        self, batch: pa.RecordBatch, gold: Column | None, options: list[list[str] | None]
    ) -> Column:
        """Return the index of the right answer: as recorded, else by its text."""
        indexes = [None] * batch.num_rows
        if "gold_index" in self._columns:
            indexes = _cells(batch, "gold_index")
        gold = gold or [None] * batch.num_rows
        return [
            index if index is not None else _gold_index(answer, choices)
            for index, answer, choices in zip(indexes, gold, options, strict=True)
        ]

    def _options(self, batch: pa.RecordBatch) -> list[list[str] | None]:
        if "options" not in self._columns:
            return [None] * batch.num_rows
        parsed: list[list[str] | None] = []
        for row, cell in enumerate(_cells(batch, "options"), start=self._rows + 1):
            try:
                parsed.append(parse_options(cell))
            except ValueError:
                raise FieldError(
                    f"options in row {row} are not a list: {str(cell)[:60]!r}",
                    file=self._origin,
                    line=row,
                    field="options",
                    hint='write options as a JSON list, such as ["Paris", "Rome"].',
                ) from None
        return parsed

    def _items(self, batch: pa.RecordBatch, derived: dict[str, Column]) -> Column:
        """Return an id for each row: its content and the number of earlier occurrences."""
        content = zip(
            *(
                derived[name]
                for name in ("question_hash", "gold_hash", "options_hash")
                if name in derived
            ),
            strict=True,
        )
        groups = [
            _cells(batch, name)
            for name in ("task", "repeat", "metric", "scorer")
            if name in self._columns
        ]
        ids = []
        for row, key in enumerate(content):
            if key[0] is None:
                raise FieldError(
                    "question is empty",
                    file=self._origin,
                    line=self._rows + row + 1,
                    field="question",
                    hint="add questions or an 'item' column; one of them must identify the items.",
                )
            occurrence = (*(group[row] for group in groups), *key)
            ids.append(f"{hash_id(key)}#{self._seen[occurrence]}")
            self._seen[occurrence] += 1
        return ids


def hash_id(key: tuple[int | None, ...]) -> str:
    """Return a printable id made of content hashes."""
    return "-".join(f"{part & (2**64 - 1):016x}" for part in key if part is not None)


def _cells(batch: pa.RecordBatch, name: str) -> Column:
    return batch.column(name).to_pylist()  # type: ignore[no-any-return]


def _hashed(cells: Column) -> Column:
    """Hash texts; a blank text has no hash."""
    column = text_hashes(cells)
    hashes: Column = column.values.tolist()
    for row in np.flatnonzero(~column.known).tolist():
        hashes[row] = None
    return hashes


def _gold_index(answer: str | None, choices: list[str] | None) -> int | None:
    return choices.index(answer) if choices and answer in choices else None


def _resolved(cells: Column, options: list[list[str] | None]) -> Column:
    return [
        option_text(cell, choices) if cell is not None and choices else cell
        for cell, choices in zip(cells, options, strict=True)
    ]
