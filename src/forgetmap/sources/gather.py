"""Writing the samples of logs to a run folder, in batches."""

from __future__ import annotations

import gc
import shutil
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain, groupby
from operator import attrgetter
from pathlib import Path
from typing import Self

import pyarrow as pa
import pyarrow.parquet as pq

from forgetmap.records import (
    KEY,
    MORE_TEXTS,
    SCORE_NAMES,
    SCORES,
    TEXT_NAMES,
    TEXTS,
    scores_schema,
    texts_schema,
)
from forgetmap.sources.adapter import Adapter, Log, Problems, Sample, Score, Verdicts
from forgetmap.sources.batch_table import BatchTable, parquet_writer
from forgetmap.sources.columns import (
    SampleColumns,
)
from forgetmap.sources.overlaps import ResultDigests, result_digests, text_row_digests
from forgetmap.sources.score_columns import (
    ScoreColumns,
    score_batch,
    score_columns,
    text_batch,
)
from forgetmap.sources.settle import (
    HASHED,
    content_of,
    contents,
    digest_of,
    hash_columns,
    sample_hashes,
    settle_answers,
    settled_outcomes,
)

ROWS_PER_BATCH = 10_000
MIN_ROWS_OF_COLUMNS = 8
"""Minimum number of rows for which whole columns are faster than single samples."""
MAX_TEXT_LENGTH = 64 << 20
"""Maximum number of characters of text in memory."""


Measure = tuple[str, str]
"""Metric and scorer."""
_COPIED = tuple(
    name
    for name in SCORE_NAMES
    if name not in {"task", "item", "repeat", "metric", "scorer", "score", "outcome"}
    and not name.endswith("_hash")
)
_OWN = ("metric", "scorer", "score", "outcome")
_copied, _texts_of = attrgetter(*_COPIED), attrgetter(*TEXT_NAMES)


@dataclass(frozen=True, slots=True)
class WriterSummary:
    """Results of a writer; see the attributes of `RunWriter`.

    Attributes:
        digests: hashes of the results, to detect results that another part also has.
        text_digests: hashes of the rows of texts, for the same purpose.
    """

    folder: Path
    samples: int
    measures: dict[str, dict[Measure, None]]
    ranges: dict[str, tuple[float, float]]
    digests: ResultDigests = field(default_factory=dict)
    text_digests: list[int] = field(default_factory=list)


class RunWriter:
    """Writes samples as `scores.parquet` and `texts.parquet`, batch by batch.

    A context manager; afterwards `measures` and `ranges` describe the samples.

    Args:
        folder: the folder to write to.
        texts: whether questions, prompts and responses are kept.
        problems: receives duplicate results.
        is_part: whether another writer reads the result; scores are then written as Arrow IPC.
    """

    def __init__(
        self, folder: Path, *, texts: bool, problems: Problems, is_part: bool = False
    ) -> None:
        self.folder = folder
        self._problems = problems
        self._has_texts, self._is_part = texts, is_part
        self._open()

    def _open(self) -> None:
        names = (*KEY, *_OWN, *_COPIED, *HASHED)
        path = self.folder / SCORES
        self._scores = BatchTable(path, scores_schema(), names, is_part=self._is_part)
        self._texts: BatchTable | None = None
        if self._has_texts:
            names = (*KEY, *TEXT_NAMES)
            self._texts = BatchTable(self.folder / TEXTS, texts_schema(), names, is_part=False)
        # Task, repeat, metric and scorer -> items and hashes of their content.
        self._seen: dict[tuple[str, int, str, str], dict[str, int]] = defaultdict(dict)
        self._answered: set[int] = set()
        # Task, item and content -> number of answers, if they are not numbered in the log.
        self._answers: dict[tuple[object, ...], int] = {}
        self._held: list[ScoreColumns] = []
        self._text_digests: set[int] = set()
        self._more_texts = 0
        self._size = 0
        self.samples = 0
        self.measures: dict[str, dict[Measure, None]] = defaultdict(dict)
        """Task -> its measures, in order of appearance."""
        self.ranges: dict[str, tuple[float, float]] = {}
        """Metric -> smallest and largest value."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._flush()
        self._close()

    def _close(self) -> None:
        self._scores.close()
        if self._texts is not None:
            self._texts.close()

    def start_over(self) -> None:
        """Remove everything written so far and begin with empty files."""
        self._close()
        for texts in self.folder.glob(MORE_TEXTS):
            texts.unlink()
        self._open()

    def add(self, samples: Sample | SampleColumns) -> None:
        """Write samples, except for duplicates."""
        if isinstance(samples, Sample):
            self._add_sample(samples)
        else:
            self._add_columns(samples)
        if self._scores.rows >= ROWS_PER_BATCH or self._size > MAX_TEXT_LENGTH:
            self._flush()

    def _add_sample(self, sample: Sample) -> None:
        """Write one sample, except for duplicate scores."""
        settle_answers(sample)
        hashes = sample_hashes(sample)
        content = content_of(hashes[:3])
        if sample.repeat is None:
            same = (sample.task, sample.item, content)
            sample.repeat = self._answers.get(same, 0)
            self._answers[same] = sample.repeat + 1
        scores = self._fresh(sample, hashes, content)
        if not scores:
            return
        self.samples += 1
        self._let_go()
        key, shared = (sample.task, sample.item, sample.repeat), _copied(sample)
        for score in scores:
            own = (score.metric, score.scorer, score.value, score.outcome)
            self._scores.add(key, own, shared, hashes)
        if self._texts is not None and self._is_first(key):
            self._texts.add(key, texts := _texts_of(sample))
            self._size += sum([len(text) for text in texts if text.__class__ is str])

    def _add_columns(self, columns: SampleColumns) -> None:
        """Write many samples; one by one if any may be a duplicate."""
        if len(columns) < MIN_ROWS_OF_COLUMNS:
            for sample in columns.samples():
                self._add_sample(sample)
            return
        hashes = hash_columns(columns)
        items = list(zip(columns.item, contents(hashes), strict=True))
        repeats = self._count_repeats(columns.task, items) if columns.repeat is None else None
        task, scorer = columns.task, columns.scorer
        if not self._are_fresh(columns, items, repeats):
            for sample in columns.samples():
                self._add_sample(sample)
            return
        if repeats is not None:
            for same, repeat in zip(items, repeats, strict=True):
                self._answers[task, *same] = repeat + 1
        self._note_rows()
        self.samples += columns.sample_count
        for place in chain.from_iterable(columns.groups(0)):
            metric, values = columns.metrics[place], columns.values[place]
            self.measures[task][metric, scorer] = None
            self._widen_to(metric, min(values), max(values))
        self._add_texts(columns, repeats)
        self._held.append(score_columns(columns, hashes, settled_outcomes(columns), repeats))
        self._scores.rows += len(columns) * len(columns.metrics)

    def _count_repeats(self, task: str, items: Iterable[tuple[str, int]]) -> list[int]:
        """Return the number of earlier answers to each item."""
        own: dict[tuple[str, int], int] = {}
        repeats = []
        for same in items:
            repeat = own[same] if same in own else self._answers.get((task, *same), 0)
            own[same] = repeat + 1
            repeats.append(repeat)
        return repeats

    def _are_fresh(
        self,
        columns: SampleColumns,
        items: Sequence[tuple[str, int]],
        repeats: Sequence[int] | None,
    ) -> bool:
        """Whether no item is a duplicate; if so, all of them are marked as written.

        Args:
            columns: the samples.
            items: their ids and hashes of their content.
            repeats: repeat of each sample; None if all have the repeat of the columns.
        """
        of_repeats: dict[int, list[tuple[str, int]]] = defaultdict(list)
        if repeats is None:
            of_repeats[columns.repeat or 0] = list(items)
        else:
            for repeat, same in zip(repeats, items, strict=True):
                of_repeats[repeat].append(same)
        fresh = []
        for repeat, of_repeat in of_repeats.items():
            contents_of = dict(of_repeat)
            measures = [(columns.task, repeat, m, columns.scorer) for m in columns.metrics]
            known = [self._seen[measure] for measure in measures]
            if len(contents_of) < len(of_repeat) or any(
                not before.keys().isdisjoint(contents_of) for before in known
            ):
                return False
            fresh.append((known, contents_of))
        for known, contents_of in fresh:
            for before in known:
                before.update(contents_of)
        return True

    def _add_texts(self, columns: SampleColumns, repeats: Sequence[int] | None) -> None:
        """Write the texts of answers that have none yet."""
        if self._texts is None:
            return
        every = repeats or [columns.repeat or 0] * len(columns)
        keys = ((columns.task, *answer) for answer in zip(columns.item, every, strict=True))
        firsts = [row for row, key in enumerate(keys) if self._is_first(key)]
        if firsts:
            self._texts.add_batch(text_batch(columns, firsts, repeats))
        for column in (columns.question, columns.prompt, columns.response):
            self._size += sum(len(column[row] or "") for row in firsts) if column else 0

    def summary(self) -> WriterSummary:
        """Return the results for `append`."""
        return WriterSummary(self.folder, self.samples, dict(self.measures), self.ranges)

    def append(self, part: WriterSummary) -> None:
        """Add the files of another writer.

        Its texts become a further file, because rewriting them would take as long as reading.
        """
        self._note_rows()
        self._scores.append(part.folder / SCORES)
        if self._scores.rows >= ROWS_PER_BATCH:
            self._flush()
        if self._texts is not None:
            self._append_texts(part)
        shutil.rmtree(part.folder)
        self.samples += part.samples
        for task, measures in part.measures.items():
            self.measures[task].update(measures)
        for metric, (low, high) in part.ranges.items():
            self._widen_to(metric, low, high)

    def _append_texts(self, part: WriterSummary) -> None:
        """Add texts as a further file, except for answers that another part already has."""
        is_fresh = [digest not in self._text_digests for digest in part.text_digests]
        self._text_digests.update(part.text_digests)
        if is_fresh and not any(is_fresh):
            return
        self._more_texts += 1
        target = self.folder / MORE_TEXTS.replace("*", f"{self._more_texts:06}")
        if all(is_fresh):
            (part.folder / TEXTS).rename(target)
            return
        with (
            parquet_writer(target, texts_schema()) as writer,
            pq.ParquetFile(part.folder / TEXTS) as own,
        ):
            at = 0
            for batch in own.iter_batches(ROWS_PER_BATCH):
                rows = pa.array(is_fresh[at : at + len(batch)], pa.bool_())
                writer.write_batch(batch.filter(rows))
                at += len(batch)

    def _is_first(self, key: tuple[object, ...]) -> bool:
        """Whether this is the first sample of an answer; later ones have another scorer."""
        digest = hash(key)
        if digest in self._answered:
            return False
        self._answered.add(digest)
        return True

    def _fresh(self, sample: Sample, hashes: Sequence[int | None], content: int) -> list[Score]:
        """Return the scores that are no duplicates; an id with other content becomes a new item."""
        task, repeat = sample.task, sample.repeat or 0
        fresh = []
        for score in sample.scores:
            known = self._seen[task, repeat, score.metric, score.scorer]
            before = known.get(sample.item)
            if before is None:
                known[sample.item] = content
                fresh.append(score)
            elif before == content:
                self._report_doubled(sample, score)
            else:
                sample.item = f"{sample.item}~{digest_of(hashes[:3]) & 0xFFFFFFFF:08x}"
                return self._fresh(sample, hashes, content)
        return fresh

    def _report_doubled(self, sample: Sample, score: Score) -> None:
        self._problems.add(
            sample.file or "",
            f"duplicate result of item {sample.item!r} of task {sample.task!r} for "
            f"{score.metric}; the first one is used",
            line=sample.line,
        )

    def _flush(self) -> None:
        """Write the rows in memory."""
        self._note_rows()
        self._let_go()
        self._scores.write()
        if self._texts is not None:
            self._texts.write()
        self._size = 0

    def _let_go(self) -> None:
        """Add the columns in memory to the table, so that single rows can follow."""
        for _, alike in groupby(self._held, attrgetter("form")):
            self._scores.add_batch(score_batch(list(alike)))
        self._held = []

    def _note_rows(self) -> None:
        """Update measures and ranges from the single rows in memory."""
        columns = self._scores.take_rows()
        if self._texts is not None:
            self._texts.take_rows()
        if columns:
            for task, metric, scorer in dict.fromkeys(
                zip(columns["task"], columns["metric"], columns["scorer"], strict=True)
            ):
                self.measures[task][metric, scorer] = None
            self._widen(columns["metric"], columns["score"])

    def _widen(self, metrics: Sequence[str], scores: Sequence[float | None]) -> None:
        """Extend the ranges of metrics to these values."""
        values: dict[str, set[float]] = defaultdict(set)
        for metric, score in set(zip(metrics, scores, strict=True)):
            if score is not None:
                values[metric].add(score)
        for metric, numbers in values.items():
            self._widen_to(metric, min(numbers), max(numbers))

    def _widen_to(self, metric: str, low: float, high: float) -> None:
        own = self.ranges.get(metric, (low, high))
        self.ranges[metric] = (min(low, own[0]), max(high, own[1]))


@dataclass(frozen=True, slots=True)
class LogPart:
    """Logs for one process, each with its adapter, and the folder for their samples.

    Attributes:
        scores: whose verdicts are used; None for those of the log where it stores any.
        place: index of its first log among all logs.
        is_range: whether it is a range of a file; parts can then contain the same results.
    """

    folder: Path
    logs: Sequence[tuple[Adapter, Log]]
    texts: bool
    scores: Verdicts | None = None
    place: int = 0
    is_range: bool = False


def read_part(part: LogPart) -> tuple[WriterSummary, Problems]:
    """Read a part of large logs; called in workers."""
    shutil.rmtree(part.folder, ignore_errors=True)  # left over from a worker that was killed
    part.folder.mkdir()
    problems = Problems()
    with (
        without_collection(),
        RunWriter(part.folder, texts=part.texts, problems=problems, is_part=True) as writer,
    ):
        for samples in samples_of(part, problems):
            writer.add(samples)
    summary = replace(writer.summary(), digests=result_digests(part.folder / SCORES))
    if part.texts and part.is_range:
        summary = replace(summary, text_digests=text_row_digests(part.folder / TEXTS))
    return summary, problems


@contextmanager
def without_collection() -> Iterator[None]:
    """Disable garbage collection of cycles; rows of logs have none."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def samples_of(part: LogPart, problems: Problems) -> Iterator[Sample | SampleColumns]:
    """Yield all samples of a part, one by one or as columns."""
    for reader, log in part.logs:
        if part.scores is None:
            by_columns = getattr(reader, "read_columns", reader.read)
            yield from by_columns(log, problems, texts=part.texts)
        else:
            # Grading needs the text of an answer even if it is not kept.
            samples = reader.read(log, problems, texts=part.texts or part.scores == "own")
            yield from _settled(samples, part.scores, problems)


def _settled(samples: Iterable[Sample], verdicts: Verdicts, problems: Problems) -> Iterator[Sample]:
    from forgetmap.sources.verdicts import settle_verdicts  # large

    for sample in samples:
        yield settle_verdicts(sample, verdicts, problems)
