"""From the samples of logs to a run folder: hashes, letters and repeats settled, rows streamed."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from operator import attrgetter
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyarrow as pa
import pyarrow.parquet as pq

from forgetmap.records.folder import SCORES, TEXTS
from forgetmap.records.identity import option_text, options_hash, text_hash
from forgetmap.records.manifest import MetricInfo, RunInfo, TaskInfo
from forgetmap.records.outcome import FAILED, MISSING, Outcome
from forgetmap.records.schema import KEY, SCORE_NAMES, TEXT_NAMES, scores_schema, texts_schema
from forgetmap.sources.adapter import Problems, Sample, Score
from forgetmap.sources.reasons import why_wrong

ROWS = 10_000
MOST_TEXT = 64 << 20
"""Characters of text held before they are written."""

REPEATED = ("task", "metric", "scorer", "outcome", "category", "gold", "choice", "answer")
"""Columns whose values occur again and again; for others a dictionary costs more than it saves."""
_WRITTEN = 0x5DEECE66D
"""Turns the key of a result into the key that says it was written."""

Measure = tuple[str, str]
"""Metric and scorer."""
_COPIED = tuple(
    name
    for name in SCORE_NAMES
    if name not in {"task", "item", "repeat", "metric", "scorer", "score", "outcome"}
    and not name.endswith("_hash")
)
_HASHED = ("question_hash", "options_hash", "gold_hash", "prompt_hash")
_copied, _texts_of = attrgetter(*_COPIED), attrgetter(*TEXT_NAMES)


class RunWriter:
    """Writes samples as `scores.parquet` and `texts.parquet`, batch by batch.

    A context manager; afterwards `measures` and `ranges` say what was seen.

    Args:
        folder: where to write.
        texts: whether questions, prompts and responses are kept.
        problems: where doubled results are reported.
    """

    def __init__(self, folder: Path, *, texts: bool, problems: Problems) -> None:
        self.folder = folder
        self._problems = problems
        self._scores = _Table(folder / SCORES, scores_schema())
        self._texts = _Table(folder / TEXTS, texts_schema()) if texts else None
        self._seen: dict[int, int] = {}
        self._answers: Counter[tuple[object, ...]] = Counter()
        self.samples = 0
        self.measures: dict[str, dict[Measure, None]] = defaultdict(dict)
        """Task -> its measures, in the order they were first seen."""
        self.ranges: dict[str, tuple[float, float]] = {}
        """Metric -> smallest and largest value."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
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
            self._note(sample.task, score)
            own = (score.metric, score.scorer, score.value, score.outcome)
            self._scores.add((*key, *own, *shared, *hashes))
        if self._texts is not None and self._is_first(key):
            self._texts.add((*key, *_texts_of(sample)))

    def told(self) -> dict[str, Any]:
        """What was seen, for `take`."""
        measures = {task: list(seen) for task, seen in self.measures.items()}
        return {"samples": self.samples, "measures": measures, "ranges": self.ranges}

    def take(self, folder: Path, told: Mapping[str, Any]) -> None:
        """Take over what another writer wrote about other tasks, and told."""
        self._scores.append(folder / SCORES)
        if self._texts is not None:
            self._texts.append(folder / TEXTS)
        self.samples += told["samples"]
        for task, seen in told["measures"].items():
            self.measures[task].update(dict.fromkeys((metric, scorer) for metric, scorer in seen))
        for metric, (low, high) in told["ranges"].items():
            mine = self.ranges.get(metric, (low, high))
            self.ranges[metric] = (min(low, mine[0]), max(high, mine[1]))

    def _is_first(self, key: tuple[object, ...]) -> bool:
        """Whether this is the first sample of an answer: others only score it by another scorer."""
        place = hash((key, "texts"))
        if place in self._seen:
            return False
        self._seen[place] = 0
        return True

    def _fresh(self, sample: Sample, hashes: Sequence[int | None]) -> list[Score]:
        """The scores that are not there yet. The same id may stand for another item."""
        content = hash((hashes[0] or 0, hashes[1] or 0, hashes[2] or 0))
        answer = (sample.task, sample.item, sample.repeat)
        fresh = []
        for score in sample.scores:
            key = hash((answer, score.metric, score.scorer))
            before = self._seen.setdefault(key, content)
            if before != content:
                sample.item = f"{sample.item}~{_digest(hashes[:3]) & 0xFFFFFFFF:08x}"
                return self._fresh(sample, hashes)
            place = key ^ _WRITTEN
            if place in self._seen:
                self._report_doubled(sample, score)
                continue
            self._seen[place] = content
            fresh.append(score)
        return fresh

    def _report_doubled(self, sample: Sample, score: Score) -> None:
        self._problems.add(
            sample.file or "",
            f"a second result of item {sample.item!r} of task {sample.task!r} under "
            f"{score.metric}; the first one counts",
            line=sample.line,
        )

    def _note(self, task: str, score: Score) -> None:
        measure = (score.metric, score.scorer)
        measures = self.measures[task]
        if measure not in measures:
            measures[measure] = None
        value = score.value
        if value is None:
            return
        low, high = self.ranges.get(score.metric, (value, value))
        if not low <= value <= high or score.metric not in self.ranges:
            self.ranges[score.metric] = (min(low, value), max(high, value))


class _Table:
    """Columns that are written whenever they have become long."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._schema = schema
        order = [*KEY, "metric", "scorer", "score", "outcome", *_COPIED, *_HASHED]
        self._has_texts = "score" not in schema.names
        self._names = [*KEY, *TEXT_NAMES] if self._has_texts else order
        self._writer = pq.ParquetWriter(
            path,
            schema,
            compression="zstd",
            compression_level=1,
            use_dictionary=[name for name in REPEATED if name in schema.names],
        )
        self._rows: list[Sequence[Any]] = []
        self._size = 0

    def add(self, row: Sequence[Any]) -> None:
        self._rows.append(row)
        if self._has_texts:
            self._size += sum(len(cell) for cell in row[-5:] if isinstance(cell, str))
        if len(self._rows) >= ROWS or self._size > MOST_TEXT:
            self._write()

    def append(self, path: Path) -> None:
        """Take over the rows of another such file."""
        self._write()
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(ROWS):
                self._writer.write_batch(batch.cast(self._schema))

    def close(self) -> None:
        self._write()
        self._writer.close()

    def _write(self) -> None:
        if self._rows:
            columns = dict(zip(self._names, zip(*self._rows, strict=True), strict=True))
            arrays = [_array(columns[f.name], f.type) for f in self._schema]
            self._writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=self._schema))
        self._rows, self._size = [], 0


def _array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    try:
        return pa.array(values, kind)
    except UnicodeEncodeError:  # half of a character that takes two: JSON can hold it, UTF-8 cannot
        return pa.array([_encodable(value) for value in values], kind)


def _encodable(value: Any) -> Any:
    if isinstance(value, list):
        return [_encodable(each) for each in value]
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
        if score.value is None:
            score.outcome = score.outcome if score.outcome in MISSING else Outcome.UNSCORED
        elif score.outcome in MISSING or (score.outcome in FAILED and score.value):
            score.outcome = None
    _settle_reasons(sample)


def _settle_reasons(sample: Sample) -> None:
    """Answers with score 0 get a reason where the harness gives none."""
    wrong = [s for s in sample.scores if s.value == 0 and s.outcome in (None, Outcome.INCORRECT)]
    if wrong and sample.response:
        reason = why_wrong(sample)
        for score in wrong:
            score.outcome = reason or score.outcome


def _hashes(sample: Sample) -> list[int | None]:
    """Hashes in the order of `_HASHED`."""
    return [
        _text_hash(sample.question),
        options_hash(sample.options) if sample.options else None,
        _text_hash(sample.gold),
        _prompt_hash(sample),
    ]


def _prompt_hash(sample: Sample) -> int | None:
    if sample.prompt_key is not None:
        data = sample.prompt_key.encode("utf-8", "surrogatepass")
        digest = blake2b(data, digest_size=8).digest()
        return int.from_bytes(digest, "big", signed=True)
    return _text_hash(sample.prompt)


def _digest(hashes: Sequence[int | None]) -> int:
    return int.from_bytes(blake2b(repr(hashes).encode(), digest_size=8).digest(), "big")


def _text_hash(text: str | None) -> int | None:
    return text_hash(text) if text and not text.isspace() else None


def describe(
    info: RunInfo,
    writer: RunWriter,
    preferred: Mapping[str, Sequence[str]],
) -> RunInfo:
    """The manifest with the main measure of each task and the range of each metric filled in.

    Args:
        info: as the harness says.
        writer: what was seen in the samples.
        preferred: metrics to prefer, task by task.
    """
    tasks = {
        task: _with_main(info.tasks.get(task, TaskInfo()), list(seen), preferred.get(task, ()))
        for task, seen in writer.measures.items()
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


def _with_main(info: TaskInfo, seen: Sequence[Measure], preferred: Iterable[str]) -> TaskInfo:
    """The harness's own main metric, else the first preferred one, else the first one logged."""
    if info.main_metric is not None and any(metric == info.main_metric for metric, _ in seen):
        chosen = [m for m in seen if m[0] == info.main_metric]
        named = [m for m in chosen if m[1] == info.main_scorer]
        metric, scorer = (named or chosen)[0]
    else:
        metric, scorer = next(filter(None, (_find(name, seen) for name in preferred)), seen[0])
    return info.model_copy(update={"main_metric": metric, "main_scorer": scorer})


def _find(name: str, seen: Sequence[Measure]) -> Measure | None:
    metric, _, scorer = name.partition("/")
    fitting = [m for m in seen if m[0] == metric and scorer in ("", m[1])]
    return fitting[0] if fitting else None
