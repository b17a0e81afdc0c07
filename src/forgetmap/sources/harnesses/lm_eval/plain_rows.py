"""Fast reading of the common rows of lm-eval 0.4.7 and later, as columns.

A row is plain if it names its filter and metrics, has a number for each metric, and either has the
log-likelihoods of its document's options or a generated answer without options. Only the fields
needed are decoded, by type, and rows are processed column by column. All other rows go to
`RowReader`, which can read every row and returns the same samples.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, groupby, pairwise
from operator import attrgetter
from typing import Any, Literal

import msgspec
import numpy as np
import numpy.typing as npt

from forgetmap.sources.adapter import Sample
from forgetmap.sources.columns import SampleColumns
from forgetmap.sources.datasets import ItemColumns, items_of
from forgetmap.sources.decode import UNDECODABLE, decode
from forgetmap.sources.files import MAX_BLANK_LINES, LineBlock, LogFile
from forgetmap.sources.harnesses.lm_eval.rows import (
    ARGUMENTS,
    CONTINUATION,
    ENDS_IN_LABEL,
    FILTERED,
    OWN,
    RESPONSES,
    TRUTHS,
    UNSCORED,
    RowReader,
    extracted,
    is_scalar,
    length_texts,
    of_first_request,
)
from forgetmap.sources.typed_lines import ROWS_AT_A_TIME

BY_LENGTH = frozenset({"acc_norm", "acc_bytes"})
"""Metrics that divide log-likelihoods by the lengths of options."""
LABEL_BYTES = 24
_NULL = msgspec.Raw(b"null")
_decode_text = msgspec.json.Decoder(str).decode
_filter_of, _answers_of, _doc_of = map(attrgetter, ("filter", "filtered_resps", "doc"))
Reals = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]


class _Line(msgspec.Struct, gc=False):
    """A line of a file.

    Attributes:
        number: line number.
        offset: position of its first byte in the file.
        size: number of bytes.
        raw: the bytes; None if they can be read from the file again when needed.
        row: the decoded fields; None if the row is not plain.
        prompt: prompt of the first request, if texts are kept.
        is_label: whether the last continuation is a letter or digit; only set if a metric divides
            by lengths.
    """

    number: int
    offset: int
    size: int
    raw: bytes | None = None
    row: Any = None
    prompt: str | None = None
    is_label: bool = False


class PlainRows:
    """Reader of the rows of a file, plain ones as columns.

    Args:
        task: name of the task.
        file: file with one row per line.
        layout: types of the fields of a plain row.
        reader: reads all other rows.
        texts: whether prompts and responses are kept.
    """

    def __init__(
        self, task: str, file: LogFile, layout: Layout, reader: RowReader, *, texts: bool
    ) -> None:
        self._task, self._file, self._layout = task, file, layout
        self._reader, self._texts = reader, texts

    def samples(self) -> Iterator[Sample | SampleColumns]:
        """Iterate over all samples in the order of the rows, single or as columns."""
        self._reader.look_at(self._file)
        lines: list[_Line] = []
        number = blank = 0
        for block in self._file.blocks():
            lines += self._lines(block, number)
            number = lines[-1].number
            if len(lines) >= ROWS_AT_A_TIME:
                blank += sum(line.raw is not None and line.raw.isspace() for line in lines)
                if blank > MAX_BLANK_LINES:
                    self._file.require_lines()
                yield from self._samples(lines)
                lines = []
        yield from self._samples(lines)

    def _samples(self, lines: Sequence[_Line]) -> Iterator[Sample | SampleColumns]:
        for has_row, run in groupby(lines, _has_row):
            if has_row:
                yield from self._plain_runs(list(run))
                continue
            for line in run:
                yield from self._careful(line)

    def _plain_runs(self, lines: list[_Line]) -> Iterator[Sample | SampleColumns]:
        """Yield runs of rows with the same filter, number of answers and document fields."""
        rows = [line.row for line in lines]
        filters, answers = map(_filter_of, rows), map(len, map(_answers_of, rows))
        kinds = list(zip(filters, answers, map(tuple, map(_doc_of, rows)), strict=True))
        start = 0
        for _, run in groupby(kinds):
            end = start + len(list(run))
            yield from self._plain(lines[start:end])
            start = end

    def _careful(self, line: _Line) -> list[Sample]:
        raw = line.raw or self._file.bytes_at(line.offset, line.size)
        return [] if raw.isspace() else self._reader.row_samples(raw, self._file, line.number)

    def _lines(self, block: LineBlock, number: int) -> list[_Line]:
        """Return all lines of a block, with the decoded fields of those that may be plain."""
        data, offset = block.data, block.offset
        by_length, texts = self._layout.by_length, self._texts
        find, rfind = data.find, data.rfind
        kept = RESPONSES if texts else FILTERED
        lines: list[_Line] = []
        candidates: list[_Line] = []
        fields: list[bytes] = []
        for start, end in block.lines():
            number += 1
            line = _Line(number, (offset or 0) + start, end - start)
            lines.append(line)
            requests_start, requests_end = find(ARGUMENTS, start, end), rfind(RESPONSES, start, end)
            after = find(kept, requests_end, end) if start < requests_start < requests_end else -1
            prompt = _prompt(data, requests_start, requests_end) if texts and after >= 0 else None
            if after < 0 or (texts and prompt is None):
                line.raw = data[start:end]
                continue
            line.prompt = prompt
            candidates.append(line)
            fields.append(data[start:requests_start] + data[after + 1 : end])
            if offset is None:
                line.raw = data[start:end]
            if by_length:
                label = ENDS_IN_LABEL.search(data, requests_end + 1 - LABEL_BYTES, requests_end + 1)
                line.is_label = label is not None
        for line, row in zip(candidates, self._layout.decode_rows(fields), strict=True):
            line.row = row
        return lines

    def _plain(self, lines: list[_Line]) -> Iterator[Sample | SampleColumns]:
        """Yield rows of one kind as columns, and those with an unusual document one by one."""
        rows = [line.row for line in lines]
        items = items_of([row.doc for row in rows])
        logliks = _logliks(rows) if self._layout.weighs else None
        if logliks is not None:
            flags = _weighs_options(rows, items, logliks)
        else:
            flags = _answers_openly(rows, items) & (not self._layout.weighs)
        for part in _stretches(flags):
            if flags[part.start]:
                own = None if logliks is None else logliks[part]
                yield self._columns(lines[part], items.part(part), own)
                continue
            for line in lines[part]:
                yield from self._careful(line)

    def _columns(
        self, lines: Sequence[_Line], items: ItemColumns, logliks: Reals | None
    ) -> SampleColumns:
        rows, fields = [line.row for line in lines], self._layout.value_fields
        columns = SampleColumns(
            task=self._task,
            scorer=rows[0].filter,
            metrics=self._layout.metrics,
            file=self._file.name,
            line=[line.number for line in lines],
            item=[str(row.doc_id) for row in rows],
            values=[[float(getattr(row, field)) for row in rows] for field in fields],
            question=items.question,
            gold=items.gold,
            category=items.category,
            prompt_key=[row.prompt_hash for row in rows],
            prompt=[line.prompt for line in lines] if self._texts else None,
        )
        if logliks is None:
            _add_answers(columns, rows, items)
            if self._texts:
                columns.response = [_response(row.resps) for row in rows]
        else:
            _add_choices(columns, items, logliks, self._lengths(lines, items))
        return columns

    def _lengths(self, lines: Sequence[_Line], items: ItemColumns) -> Mapping[str, Reals]:
        """Return the lengths of options per metric that divides by them; 1 if they are letters."""
        by_metric: dict[str, Reals] = {}
        is_label = np.array([line.is_label for line in lines])
        for metric in self._layout.by_length:
            texts = [
                length_texts(line.row.doc, options) or ()
                for line, options in zip(lines, items.options, strict=True)
            ]
            cells = chain.from_iterable(texts)
            sizes = map(len, cells if metric == "acc_norm" else map(str.encode, cells))
            lengths = np.array(list(sizes), float).reshape(len(lines), -1)
            lengths[is_label] = 1
            by_metric[metric] = np.maximum(lengths, 1)
        return by_metric


class Layout(msgspec.Struct):
    """Types of the fields of the plain rows of a file.

    Attributes:
        metrics: names of the metrics, in order.
        weighs: whether rows have log-likelihoods of options instead of a generated answer.
        decoder: decodes the JSON of rows into structs.
        value_fields: names of the fields of this struct that hold the metrics.
        by_length: metrics that divide by the lengths of options.
    """

    metrics: list[str]
    weighs: bool
    decoder: Any
    value_fields: list[str]
    by_length: frozenset[str]

    def decode_rows(self, fields: Sequence[bytes]) -> Sequence[Any]:
        """Decode the fields of several rows at once; None for each one that is not plain."""
        together = b"".join(fields)
        try:
            if not together.isascii():
                together.decode()
            rows: list[Any] = self.decoder.decode_lines(together)
        except UNDECODABLE:
            rows = []
        return rows if len(rows) == len(fields) else [self._decode_row(each) for each in fields]

    def _decode_row(self, fields: bytes) -> Any:
        try:
            if not fields.isascii():
                fields.decode()
            return self.decoder.decode(fields)
        except UNDECODABLE:
            return None


def find_layout(file: LogFile, *, texts: bool) -> Layout | None:
    """Return the layout of plain rows, judging by one of the first rows; None if there is none."""
    first = file.peek.first
    metrics, responses = first.get("metrics"), first.get("filtered_resps")
    if file.kind != "json" or file.peek.shape == "array" or not isinstance(metrics, list):
        return None
    answers = _answers_type(responses)
    is_usual = metrics and all(isinstance(name, str) and name in first for name in metrics)
    if answers is None or not is_usual or len(set(metrics)) < len(metrics):
        return None
    if any(name in OWN or name == UNSCORED or not is_scalar(first[name]) for name in metrics):
        return None
    value_fields = [f"value_{index}" for index in range(len(metrics))]
    row = msgspec.defstruct(
        "PlainRow",
        [
            ("doc", dict[str, Any]),
            ("doc_id", int | str),
            ("filter", str),
            ("metrics", tuple[*(Literal[name] for name in metrics)]),  # type: ignore[misc]
            ("prompt_hash", str),
            ("filtered_resps", answers),
            *((name, float | bool) for name in value_fields),
            ("target", msgspec.Raw, _NULL),
            ("scores_per_repeat", None, None),
            *([("resps", Any, None)] if texts and answers == list[str] else []),
        ],
        rename=dict(zip(value_fields, metrics, strict=True)),
        gc=False,
    )
    by_length = BY_LENGTH & set(metrics)
    weighs = answers != list[str]
    return Layout(metrics, weighs, msgspec.json.Decoder(row), value_fields, by_length)


def _has_row(line: _Line) -> bool:
    return line.row is not None


def _answers_type(responses: object) -> Any:
    """Return the type of log-likelihoods or of generated answers; None for anything else."""
    match responses:
        case [[str(), str()], *_]:
            return list[tuple[str, str]]
        case [[float(), bool()], *_]:
            return list[tuple[float, bool]]
        case [str(), *_]:
            return list[str]
    return None


def _response(responses: object) -> str | None:
    first = next(iter(of_first_request(responses)), None)
    return first if isinstance(first, str) else None


def _logliks(rows: Sequence[Any]) -> Reals | None:
    """Return log-likelihoods (rows x options); None if one is invalid or a row has only one."""
    count = len(rows[0].filtered_resps)
    if count < 2:  # no choice
        return None
    pairs = chain.from_iterable([row.filtered_resps for row in rows])
    values, truths = zip(*pairs, strict=True)
    if not TRUTHS.issuperset(truths):
        return None
    try:
        return np.array(list(map(float, values))).reshape(len(rows), count)
    except ValueError:
        return None


def _weighs_options(rows: Sequence[Any], items: ItemColumns, logliks: Reals) -> Flags:
    """Return which rows have one log-likelihood per option of the document and a right option."""
    count = logliks.shape[1]
    # lm-eval measures the lengths of these options if a document has them; see `length_texts`.
    cleaned = [row.doc.get("choices") for row in rows]
    is_plain = [
        options is not None
        and len(options) == count
        and index is not None
        and (not isinstance(texts, list) or len(texts) == count)
        for options, index, texts in zip(items.options, items.gold_index, cleaned, strict=True)
    ]
    flags: Flags = np.array(is_plain) & np.isfinite(logliks).all(axis=1)
    return flags


def _answers_openly(rows: Sequence[Any], items: ItemColumns) -> Flags:
    """Return which rows answer a question without options and have a textual target or none."""
    return np.array(
        [
            bool(row.filtered_resps)
            and options is None
            and index is None
            and (gold is not None or isinstance(decode(row.target), str | None))
            for row, options, gold, index in zip(
                rows, items.options, items.gold, items.gold_index, strict=True
            )
        ]
    )


def _stretches(flags: Flags) -> Iterator[slice]:
    """Yield the parts of a column in which all flags are equal."""
    changes = (np.flatnonzero(flags[1:] != flags[:-1]) + 1).tolist()
    for start, end in pairwise([0, *changes, len(flags)]):
        yield slice(start, end)


def _prompt(data: bytes, requests_start: int, requests_end: int) -> str | None:
    """Return the prompt of the first request; None if it is not a text."""
    start, end = requests_start + len(ARGUMENTS), requests_end + 1
    after = data.find(CONTINUATION, start, end)
    try:
        return _decode_text(data[start : after if after > 0 else end - 2])
    except UNDECODABLE:
        return None


def _add_answers(columns: SampleColumns, rows: Sequence[Any], items: ItemColumns) -> None:
    """Add the extracted answers, and the target as right answer if the document has none."""
    answers = [extracted(row.filtered_resps[0]) for row in rows]
    columns.answer, columns.outcome = map(list, zip(*answers, strict=True))
    if items.has_gold:
        columns.gold = [
            decode(row.target) if gold is None else gold
            for row, gold in zip(rows, items.gold, strict=True)
        ]


def _add_choices(
    columns: SampleColumns, items: ItemColumns, logliks: Reals, lengths: Mapping[str, Reals]
) -> None:
    """Add the choice of each metric, unless a score contradicts it, as `RowReader` does."""
    every, gold = np.arange(len(logliks)), np.array(items.gold_index)
    picks = [
        np.argmax(logliks / lengths[metric] if metric in lengths else logliks, axis=1)
        for metric in columns.metrics
    ]
    contradicts = [
        (np.array(values) != (pick == gold)) & metric.startswith("acc")
        for metric, values, pick in zip(columns.metrics, columns.values, picks, strict=True)
    ]
    columns.options = [options for options in items.options if options is not None]
    columns.gold_index = [index for index in items.gold_index if index is not None]
    columns.logprob_gold = logliks[every, gold].tolist()
    columns.picks, columns.choice, columns.logprob_answer = [], [], []
    for pick in picks:
        is_doubtful = np.zeros(len(every), bool)
        for other, contradiction in zip(picks, contradicts, strict=True):
            is_doubtful |= (other == pick) & contradiction
        answers, indexes = logliks[every, pick].tolist(), pick.tolist()
        texts = [options[index] for options, index in zip(columns.options, indexes, strict=True)]
        for row in np.flatnonzero(is_doubtful).tolist():
            answers[row] = texts[row] = None
        columns.picks.append(indexes)
        columns.choice.append(texts)
        columns.logprob_answer.append(answers)
