"""Writing the samples of logs to a run folder, in batches, with what they lack filled in."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from operator import attrgetter
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from forgetmap.records import (
    FAILED,
    KEY,
    MISSING,
    SCORES,
    TEXTS,
    HashColumn,
    Outcome,
    option_text,
    options_hashes,
    scores_schema,
    text_hash,
    text_hashes,
    texts_schema,
)
from forgetmap.sources.adapter import Log, Problems, Sample, Score, Verdicts
from forgetmap.sources.decode import encodable
from forgetmap.sources.registry import adapter

SAMPLES_PER_BATCH = 1_000
"""Enough to amortise calls on columns, few enough for the cache of a core."""
MIN_ROWS, MIN_BYTES = 10_000, 16 << 20
"""Rows and bytes of a table that are collected before they are written."""
REPEATED = ("task", "metric", "scorer", "outcome", "category", "gold", "choice", "answer")
"""Columns with repeated values; for others a dictionary costs more than it saves."""
_SHA256 = re.compile(r"(?=[0-9a-fA-F]{64}\Z)(.{15})")
"""A hash, of which as many digits are kept as fit into a signed 64-bit integer."""
CONTENT = ("question_hash", "options_hash", "gold_hash")
"""Columns of hashes that identify an item."""
_FACTORS = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9)
Measure = tuple[str, str]
"""Metric and scorer."""
_OF_SCORES = {"metric": "metric", "scorer": "scorer", "score": "value", "outcome": "outcome"}
"""Columns with a value for each score, and the field of `Score`."""
_OF_SAMPLES = tuple(
    name for name in scores_schema().names if name not in {*_OF_SCORES, *CONTENT, "prompt_hash"}
)
Columns = dict[str, Any]
"""Name -> values; None for a column without any."""


class RunWriter:
    """Writes samples as `scores.parquet` and, if asked for, `texts.parquet`, a batch at a time.

    A context manager; afterwards `measures` and `ranges` describe the samples.
    """

    def __init__(self, folder: Path, *, texts: bool, problems: Problems) -> None:
        self._problems = problems
        self._scores = _Table(folder / SCORES, scores_schema())
        self._texts = _Table(folder / TEXTS, texts_schema()) if texts else None
        # Hash of task, item, repeat, metric and scorer -> number of the content of the item.
        self._seen: dict[int, int] = {}
        self._answered: set[int] = set()
        # Task, item and content -> number of answers, if they are not numbered in the log.
        self._answers: dict[tuple[object, ...], int] = defaultdict(int)
        self.samples = 0
        self.measures: dict[str, dict[Measure, None]] = defaultdict(dict)
        """Task -> its measures, in order of appearance."""
        self.ranges: dict[str, tuple[float, float]] = {}
        """Metric -> smallest and largest value."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._scores.close()
        if self._texts is not None:
            self._texts.close()

    def add(self, samples: Sequence[Sample]) -> None:
        """Write samples, except for duplicate scores."""
        if not samples:
            return
        for sample in samples:
            _settle(sample)
        hashes, content = _hashes(samples)
        for sample, number in zip(samples, content, strict=True):
            if sample.repeat is None:  # not numbered in the log: in order of appearance
                same = (sample.task, sample.item, number)
                sample.repeat = self._answers[same]
                self._answers[same] += 1
        cells, rows = _expanded(samples)
        keys = _keys(cells, "metric", "scorer")
        if len(set(keys)) < len(keys) or not self._seen.keys().isdisjoint(keys):
            for row, (sample, number) in enumerate(zip(samples, content, strict=True)):
                while (fresh := self._fresh(sample, number)) is None:  # another item
                    own = [(hashes[name].values[row], hashes[name].known[row]) for name in CONTENT]
                    text = repr([int(value) if known else None for value, known in own])
                    digest = blake2b(text.encode(), digest_size=8).hexdigest()[8:]
                    sample.item = f"{sample.item}~{digest}"
                sample.scores = fresh
            cells, rows = _expanded(samples)
        else:
            self._seen.update(zip(keys, map(content.__getitem__, rows), strict=True))
        if not rows:
            return
        for name, column in hashes.items():
            values, known = column.values[rows], column.known[rows]
            cells[name] = pa.array(values, mask=None if known.all() else ~known)
        self._scores.add(cells, len(rows))
        names = ("task", "metric", "scorer")
        for task, metric, scorer in dict.fromkeys(zip(*map(cells.get, names), strict=True)):
            self.measures[task][metric, scorer] = None
        for metric, score in dict.fromkeys(zip(cells["metric"], cells["score"], strict=True)):
            if score is not None:
                low, high = self.ranges.get(metric, (score, score))
                self.ranges[metric] = (min(low, score), max(high, score))
        written = [sample for sample in samples if sample.scores]
        self.samples += len(written)
        if self._texts is not None:
            self._add_texts(self._texts, written)

    def _add_texts(self, table: _Table, samples: Sequence[Sample]) -> None:
        """Write the texts of answers that have none yet; later ones have another scorer."""
        firsts = []
        for sample, key in zip(samples, _keys(_columns(samples, KEY)), strict=True):
            if key not in self._answered:
                self._answered.add(key)
                firsts.append(sample)
        if firsts:
            table.add(_columns(firsts, texts_schema().names), len(firsts))

    def _fresh(self, sample: Sample, content: int) -> list[Score] | None:
        """Return the scores that are no duplicates; None if another item has the same id."""
        fresh = []
        for score in sample.scores:
            key = hash((sample.task, sample.item, sample.repeat, score.metric, score.scorer))
            before = self._seen.get(key)
            if before is None:
                self._seen[key] = content
                fresh.append(score)
            elif before != content:
                return None
            else:
                of = f"item {sample.item!r} of task {sample.task!r} for {score.metric}"
                message = f"duplicate result of {of}; the first one is used"
                self._problems.add(sample.file or "", message, line=sample.line)
        return fresh


class _Table:
    """A Parquet file that is written in parts of many rows."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._fields = [(field.name, field.type) for field in schema]
        self._schema = schema
        repeated = [name for name in REPEATED if name in schema.names]
        self._writer = pq.ParquetWriter(path, schema, use_dictionary=repeated)
        self._batches: list[pa.RecordBatch] = []
        self._rows = self._bytes = 0

    def add(self, cells: Columns, rows: int) -> None:
        """Add rows as columns."""
        arrays = [_array(cells[name], kind, rows) for name, kind in self._fields]
        batch = pa.RecordBatch.from_arrays(arrays, schema=self._schema)
        self._batches.append(batch)
        self._rows, self._bytes = self._rows + rows, self._bytes + batch.nbytes
        if self._rows >= MIN_ROWS or self._bytes >= MIN_BYTES:
            self._writer.write_table(pa.Table.from_batches(self._batches))
            self._batches, self._rows, self._bytes = [], 0, 0

    def close(self) -> None:
        """Write the rest and close the file."""
        with self._writer:
            if self._batches:
                self._writer.write_table(pa.Table.from_batches(self._batches))


def _settle(sample: Sample) -> None:
    """Complete a sample: letters become options, and indices and outcomes are filled in."""
    options = sample.options
    if options:
        if sample.gold_index is not None and 0 <= sample.gold_index < len(options):
            sample.gold = options[sample.gold_index]
        elif sample.gold is not None:
            sample.gold = option_text(sample.gold, options)
            sample.gold_index = options.index(sample.gold) if sample.gold in options else None
        if sample.choice is not None and sample.choice not in options:
            sample.choice = option_text(sample.choice, options)
        if sample.k is None and len(options) > 1:
            sample.k = len(options)
    wrong = []
    for score in sample.scores:
        outcome = score.outcome
        if score.value is None:
            score.outcome = outcome if outcome in MISSING else Outcome.UNSCORED
        elif outcome is not None and (outcome in MISSING or (outcome in FAILED and score.value)):
            score.outcome = None  # it contradicts the value
        if score.value == 0 and score.outcome in (None, Outcome.INCORRECT):
            wrong.append(score)
    if wrong and sample.response:  # the harness gives no reason
        from forgetmap.sources.reasons import why_wrong  # large

        reason = why_wrong(sample)
        for score in wrong:
            score.outcome = reason or score.outcome


def _hashes(samples: Sequence[Sample]) -> tuple[dict[str, HashColumn], list[int]]:
    """Return columns of hashes, and numbers that tell items with the same id apart."""
    count = len(samples)
    both = text_hashes([s.question for s in samples] + [s.gold for s in samples])
    columns = {
        "question_hash": HashColumn(both.values[:count], both.known[:count]),
        "options_hash": options_hashes([sample.options for sample in samples]),
        "gold_hash": HashColumn(both.values[count:], both.known[count:]),
    }
    numbers = sum(
        columns[name].values.view(np.uint64) * np.uint64(factor)
        for name, factor in zip(CONTENT, _FACTORS, strict=True)
    )
    prompts = text_hashes([None if sample.prompt_key else sample.prompt for sample in samples])
    for row, sample in enumerate(samples):
        if (key := sample.prompt_key) is not None:
            digits = _SHA256.match(key)
            prompts.values[row] = int(digits[1], 16) if digits else text_hash(key)
            prompts.known[row] = True
    return {**columns, "prompt_hash": prompts}, np.asarray(numbers).tolist()


def _expanded(samples: Sequence[Sample]) -> tuple[Columns, list[int]]:
    """Return the columns of a table with a row for each score, and the sample of each row."""
    scores = [score for sample in samples for score in sample.scores]
    rows = [row for row, sample in enumerate(samples) for _ in sample.scores]
    cells = _columns(samples, _OF_SAMPLES)
    if rows != list(range(len(samples))):
        for name, values in cells.items():
            cells[name] = values and [values[row] for row in rows]
    for name, field in _OF_SCORES.items():
        cells[name] = list(map(attrgetter(field), scores))
    return cells, rows


def _columns(samples: Sequence[Sample], names: Sequence[str]) -> Columns:
    columns = zip(*map(attrgetter(*names), samples), strict=True)
    empty = (None,) * len(samples)
    return {n: None if c == empty else c for n, c in zip(names, columns, strict=True)}


def _keys(cells: Columns, *more: str) -> list[int]:
    """Return a hash of task, item, repeat and further columns for each row."""
    return list(map(hash, zip(*(cells[name] for name in (*KEY, *more)), strict=True)))


def _array(values: Any, kind: pa.DataType, rows: int) -> pa.Array:
    """Return a column; characters that cannot be encoded as UTF-8 are replaced."""
    if values is None:
        return pa.nulls(rows, kind)
    if isinstance(values, pa.Array):
        return values
    try:
        return pa.array(values, kind)
    except UnicodeEncodeError:  # a lone surrogate: valid in JSON, but not in UTF-8
        return pa.array(list(map(encodable, values)), kind)


def samples_of(
    logs: Iterable[Log], problems: Problems, *, texts: bool, verdicts: Verdicts | None = None
) -> Iterator[Sample]:
    """Yield all samples of logs; without `verdicts`, with those of the log where it has any."""
    for log in logs:
        # Grading needs the text of an answer even if it is not kept.
        samples = adapter(log.adapter).read(log, problems, texts=texts or verdicts == "own")
        if verdicts is None:
            yield from samples
            continue
        from forgetmap.sources.reasons import settle_verdicts  # large

        for sample in samples:
            yield settle_verdicts(sample, verdicts, problems)


def in_batches(samples: Iterable[Sample]) -> Iterator[list[Sample]]:
    """Collect samples for `RunWriter.add`; few if their texts are long."""
    batch: list[Sample] = []
    size = 0
    for sample in samples:
        batch.append(sample)
        size += len(sample.prompt or "") + len(sample.response or "")
        if len(batch) >= SAMPLES_PER_BATCH or size >= MIN_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
