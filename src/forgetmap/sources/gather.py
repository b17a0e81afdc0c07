"""From the samples of logs to a run folder: hashes, letters and repeats settled, rows streamed."""

from __future__ import annotations

import shutil
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from operator import attrgetter
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
import pyarrow.parquet as pq

from forgetmap.records import (
    FAILED,
    KEY,
    MISSING,
    MORE_TEXTS,
    SCORE_NAMES,
    SCORES,
    TEXT_NAMES,
    TEXTS,
    MetricInfo,
    Outcome,
    RunInfo,
    TaskInfo,
    option_text,
    options_hash,
    scores_schema,
    text_hash,
    texts_schema,
)
from forgetmap.sources.adapter import Adapter, Log, Problems, Sample, Score, Verdicts

ROWS_PER_BATCH = 10_000
MAX_TEXT_LENGTH = 64 << 20
"""Characters of text held before they are written."""

REPEATED = ("task", "metric", "scorer", "outcome", "category", "gold", "choice", "answer")
"""Columns whose values occur again and again; for others a dictionary costs more than it saves."""
MAX_ITEMS_CACHED = 1 << 15
"""Items without options whose hashes are not computed again."""
SHA256_DIGITS = 64
HASH_DIGITS = 15
"""Of a hash in hexadecimal; as many as fit into a signed 64-bit number."""

Measure = tuple[str, str]
"""Metric and scorer."""
_COPIED = tuple(
    name
    for name in SCORE_NAMES
    if name not in {"task", "item", "repeat", "metric", "scorer", "score", "outcome"}
    and not name.endswith("_hash")
)
_HASHED = ("question_hash", "options_hash", "gold_hash", "prompt_hash")
_OWN = ("metric", "scorer", "score", "outcome")
_copied, _texts_of = attrgetter(*_COPIED), attrgetter(*TEXT_NAMES)


@dataclass(frozen=True, slots=True)
class WriterSummary:
    """What a writer wrote; see the attributes of `RunWriter`."""

    folder: Path
    samples: int
    measures: dict[str, dict[Measure, None]]
    ranges: dict[str, tuple[float, float]]


class RunWriter:
    """Writes samples as `scores.parquet` and `texts.parquet`, batch by batch.

    A context manager; afterwards `measures` and `ranges` say what was seen.

    Args:
        folder: where to write.
        texts: whether questions, prompts and responses are kept.
        problems: where doubled results are reported.
        is_part: whether another writer takes it over; then scores are left as they are in memory.
    """

    def __init__(
        self, folder: Path, *, texts: bool, problems: Problems, is_part: bool = False
    ) -> None:
        self.folder = folder
        self._problems = problems
        names = (*KEY, *_OWN, *_COPIED, *_HASHED)
        self._scores = _Table(folder / SCORES, scores_schema(), names, is_part=is_part)
        self._texts: _Table | None = None
        if texts:
            names = (*KEY, *TEXT_NAMES)
            self._texts = _Table(folder / TEXTS, texts_schema(), names, is_part=False)
        self._seen: dict[int, int] = {}
        self._answers: Counter[tuple[object, ...]] = Counter()
        self._size = 0
        self.samples = 0
        self.measures: dict[str, dict[Measure, None]] = defaultdict(dict)
        """Task -> its measures, in the order they were first seen."""
        self.ranges: dict[str, tuple[float, float]] = {}
        """Metric -> smallest and largest value."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._flush()
        self._scores.close()
        if self._texts is not None:
            self._texts.close()

    def add(self, sample: Sample) -> None:
        """Write one sample, unless it was written before."""
        _settle_answers(sample)
        hashes = _hashes(sample)
        if sample.repeat is None:
            same = (sample.task, sample.item, *hashes[:3])
            sample.repeat = self._answers[same]
            self._answers[same] += 1
        scores = self._fresh(sample, hashes)
        if not scores:
            return
        self.samples += 1
        key, shared = (sample.task, sample.item, sample.repeat), _copied(sample)
        for score in scores:
            own = (score.metric, score.scorer, score.value, score.outcome)
            self._scores.add(key, own, shared, hashes)
        if self._texts is not None and self._is_first(key):
            self._texts.add(key, texts := _texts_of(sample))
            self._size += sum([len(text) for text in texts if text.__class__ is str])
        if self._scores.rows >= ROWS_PER_BATCH or self._size > MAX_TEXT_LENGTH:
            self._flush()

    def summary(self) -> WriterSummary:
        """What was seen, for `append`."""
        return WriterSummary(self.folder, self.samples, dict(self.measures), self.ranges)

    def append(self, part: WriterSummary) -> None:
        """Take over the files that another writer wrote about other tasks.

        Its texts become a further file: to write them once more would take as long as to wait.
        """
        self._flush()
        self._scores.append(part.folder / SCORES)
        if self._texts is not None:
            number = str(len(list(self.folder.glob(MORE_TEXTS))) + 1)
            (part.folder / TEXTS).rename(self.folder / MORE_TEXTS.replace("*", number))
        shutil.rmtree(part.folder)
        self.samples += part.samples
        for task, measures in part.measures.items():
            self.measures[task].update(measures)
        for metric, (low, high) in part.ranges.items():
            own = self.ranges.get(metric, (low, high))
            self.ranges[metric] = (min(low, own[0]), max(high, own[1]))

    def _is_first(self, key: tuple[object, ...]) -> bool:
        """Whether this is the first sample of an answer: others only score it by another scorer."""
        digest = hash((key, "texts"))
        if digest in self._seen:
            return False
        self._seen[digest] = 0
        return True

    def _fresh(self, sample: Sample, hashes: Sequence[int | None]) -> list[Score]:
        """The scores that are not there yet. The same id may stand for another item."""
        content = hash((hashes[0] or 0, hashes[1] or 0, hashes[2] or 0))
        answer = (sample.task, sample.item, sample.repeat)
        fresh = []
        for score in sample.scores:
            key = hash((answer, score.metric, score.scorer))
            before = self._seen.get(key)
            if before is None:
                self._seen[key] = content
                fresh.append(score)
            elif before == content:
                self._report_doubled(sample, score)
            else:
                sample.item = f"{sample.item}~{_digest(hashes[:3]) & 0xFFFFFFFF:08x}"
                return self._fresh(sample, hashes)
        return fresh

    def _report_doubled(self, sample: Sample, score: Score) -> None:
        self._problems.add(
            sample.file or "",
            f"a second result of item {sample.item!r} of task {sample.task!r} under "
            f"{score.metric}; the first one counts",
            line=sample.line,
        )

    def _flush(self) -> None:
        """Write what is held, and note which measures and values there are."""
        columns = self._scores.write()
        if self._texts is not None:
            self._texts.write()
        self._size = 0
        if columns:
            for task, metric, scorer in dict.fromkeys(
                zip(columns["task"], columns["metric"], columns["scorer"], strict=True)
            ):
                self.measures[task][metric, scorer] = None
            self._widen(columns["metric"], columns["score"])

    def _widen(self, metrics: Sequence[str], scores: Sequence[float | None]) -> None:
        """Let the ranges of metrics hold these values."""
        values: dict[str, set[float]] = defaultdict(set)
        for metric, score in set(zip(metrics, scores, strict=True)):
            if score is not None:
                values[metric].add(score)
        for metric, numbers in values.items():
            numbers.update(self.ranges.get(metric, ()))
            self.ranges[metric] = (min(numbers), max(numbers))


@dataclass(frozen=True, slots=True)
class LogPart:
    """Logs that one process reads, each with its adapter, and where it writes their samples.

    Attributes:
        scores: whose verdicts are used; None for those of the log where it stores any.
    """

    folder: Path
    logs: Sequence[tuple[Adapter, Log]]
    texts: bool
    scores: Verdicts | None = None


def read_part(part: LogPart) -> tuple[WriterSummary, Problems]:
    """Read a part of large logs, in a worker."""
    shutil.rmtree(part.folder, ignore_errors=True)  # of a worker that died
    part.folder.mkdir()
    problems = Problems()
    with RunWriter(part.folder, texts=part.texts, problems=problems, is_part=True) as writer:
        for sample in samples_of(part, problems):
            writer.add(sample)
    return writer.summary(), problems


def samples_of(part: LogPart, problems: Problems) -> Iterator[Sample]:
    """All samples of all logs of a part."""
    for reader, log in part.logs:
        # To grade an answer its text is needed, whether it is kept or not.
        samples = reader.read(log, problems, texts=part.texts or part.scores == "own")
        yield from samples if part.scores is None else _settled(samples, part.scores, problems)


def _settled(samples: Iterable[Sample], verdicts: Verdicts, problems: Problems) -> Iterator[Sample]:
    from forgetmap.sources.verdicts import settle_verdicts  # large

    for sample in samples:
        yield settle_verdicts(sample, verdicts, problems)


class _Table:
    """Rows that are written as columns once there are many.

    Args:
        path: where to write.
        schema: of the file.
        names: of the cells of a row as they come.
    """

    def __init__(
        self, path: Path, schema: pa.Schema, names: Sequence[str], *, is_part: bool
    ) -> None:
        self._schema, self._names = schema, names
        self._writer = pa.ipc.new_file(path, schema) if is_part else _parquet(path, schema)
        self._cells: list[Any] = []
        self.rows = 0

    def add(self, *parts: Sequence[Any]) -> None:
        """Hold a row, part by part."""
        for part in parts:
            self._cells += part
        self.rows += 1

    def append(self, path: Path) -> None:
        """Take over the rows of another writer's part."""
        with pa.memory_map(str(path)) as source, pa.ipc.open_file(source) as part:
            for index in range(part.num_record_batches):
                self._writer.write_batch(part.get_batch(index))

    def close(self) -> None:
        """Complete the file."""
        self._writer.close()

    def write(self) -> dict[str, list[Any]]:
        """Write the rows held and forget them.

        Returns:
            Their columns; nothing if there were no rows.
        """
        if not self.rows:
            return {}
        cells, width = self._cells, len(self._names)
        columns = {name: cells[index::width] for index, name in enumerate(self._names)}
        self._cells, self.rows = [], 0
        arrays = [_array(columns[field.name], field.type) for field in self._schema]
        self._writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=self._schema))
        return columns


def _parquet(path: Path, schema: pa.Schema) -> pq.ParquetWriter:
    repeated = [name for name in REPEATED if name in schema.names]
    return pq.ParquetWriter(
        path, schema, compression="zstd", compression_level=1, use_dictionary=repeated
    )


def _array(values: list[Any], kind: pa.DataType) -> pa.Array:
    if values[0] is None and values.count(None) == len(values):
        return pa.nulls(len(values), kind)
    try:
        return pa.array(values, kind)
    except UnicodeEncodeError:  # half of a character that takes two: JSON can hold it, UTF-8 cannot
        return pa.array([_encodable(value) for value in values], kind)


def _encodable(value: Any) -> Any:
    if isinstance(value, list):
        return [_encodable(element) for element in value]
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


def _settle_answers(sample: Sample) -> None:
    """Letters become the options they stand for, and places are found."""
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
    for score in sample.scores:
        _settle_outcome(score)
    if sample.response:
        _settle_reasons(sample)


def _settle_outcome(score: Score) -> None:
    """An outcome that fits the value."""
    outcome = score.outcome
    if score.value is None:
        score.outcome = outcome if outcome in MISSING else Outcome.UNSCORED
    elif outcome is not None and (outcome in MISSING or (outcome in FAILED and score.value)):
        score.outcome = None


def _settle_reasons(sample: Sample) -> None:
    """Answers with score 0 get a reason where the harness gives none."""
    wrong = [s for s in sample.scores if s.value == 0 and s.outcome in (None, Outcome.INCORRECT)]
    if wrong:
        from forgetmap.sources.reasons import why_wrong  # large

        reason = why_wrong(sample)
        for score in wrong:
            score.outcome = reason or score.outcome


def _hashes(sample: Sample) -> tuple[int | None, ...]:
    """Hashes in the order of `_HASHED`."""
    key = sample.prompt_key
    prompt = _text_hash(sample.prompt) if key is None else _key_hash(key)
    if not sample.options:
        return *_open_hashes(sample.question, sample.gold), prompt
    question, gold = _text_hash(sample.question), _text_hash(sample.gold)
    return question, options_hash(sample.options), gold, prompt


@lru_cache(MAX_ITEMS_CACHED)
def _open_hashes(question: str | None, gold: str | None) -> tuple[int | None, None, int | None]:
    """Of an item without options; several filters log its answer, each with the same item."""
    return _text_hash(question), None, _text_hash(gold)


def _key_hash(key: str) -> int:
    """A number for a hash that is one already, or for a key of any other kind."""
    if len(key) == SHA256_DIGITS:
        try:
            return int(key[:HASH_DIGITS], 16)
        except ValueError:
            pass
    return text_hash(key)


def _digest(hashes: Sequence[int | None]) -> int:
    return int.from_bytes(blake2b(repr(list(hashes)).encode(), digest_size=8).digest(), "big")


def _text_hash(text: str | None) -> int | None:
    return text_hash(text) if text and not text.isspace() else None


def describe(info: RunInfo, writer: RunWriter, preferred: Mapping[str, Sequence[str]]) -> RunInfo:
    """The manifest with the main measure of each task and the range of each metric filled in.

    Args:
        info: as the harness says.
        writer: what was seen in the samples.
        preferred: metrics to prefer, task by task.
    """
    tasks = {
        task: _with_main(info.tasks.get(task, TaskInfo()), list(measures), preferred.get(task, ()))
        for task, measures in writer.measures.items()
    }
    metrics = {
        name: info.metrics.get(name, MetricInfo()).model_copy(update=_range(*writer.ranges[name]))
        for name in writer.ranges
        if name in info.metrics or _range(*writer.ranges[name])
    }
    return info.model_copy(update={"tasks": tasks, "metrics": metrics})


def _range(low: float, high: float) -> dict[str, None]:
    """Bounds that do not hold are no bounds."""
    return {**({"low": None} if low < 0 else {}), **({"high": None} if high > 1 else {})}


def _with_main(info: TaskInfo, measures: Sequence[Measure], preferred: Iterable[str]) -> TaskInfo:
    """The harness's own main metric, else the first preferred one, else the first one logged."""
    if info.main_metric is not None and any(metric == info.main_metric for metric, _ in measures):
        chosen = [m for m in measures if m[0] == info.main_metric]
        main = [m for m in chosen if m[1] == info.main_scorer]
        metric, scorer = (main or chosen)[0]
    else:
        metric, scorer = next(
            filter(None, (_find(name, measures) for name in preferred)), measures[0]
        )
    return info.model_copy(update={"main_metric": metric, "main_scorer": scorer})


def _find(name: str, measures: Sequence[Measure]) -> Measure | None:
    metric, _, scorer = name.partition("/")
    fitting = [m for m in measures if m[0] == metric and scorer in ("", m[1])]
    return fitting[0] if fitting else None
