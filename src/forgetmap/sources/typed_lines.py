"""Fast reading of JSON lines: common rows are decoded into typed structs and joined as columns.

An adapter declares a type with the fields of its common rows, and a function that makes cells of
such a row. All other rows go to the slower reader, which handles every row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Annotated, Any

import msgspec

from forgetmap.sources.adapter import Sample
from forgetmap.sources.columns import SampleColumns
from forgetmap.sources.decode import UNDECODABLE
from forgetmap.sources.fields import MAX_COUNT
from forgetmap.sources.files import MAX_BLANK_LINES, LineBlock, LogFile

ROWS_AT_A_TIME = 256
"""Rows per block: enough to amortise calls on columns, few enough for the cache of a core."""
Decode = Callable[[bytes], Any]
_OF_OPTIONS = ("options", "gold_index", "choice")
_Count = Annotated[float, msgspec.Meta(ge=0, le=MAX_COUNT, multiple_of=1)]


class TokenUsage(msgspec.Struct, gc=False):
    """Tokens of a request, as many harnesses write them: integers, also as floats."""

    input_tokens: _Count | None = None
    output_tokens: _Count | None = None


def token_counts(usage: TokenUsage | None) -> tuple[int | None, int | None]:
    """Return the tokens of the prompt and of the response."""
    if usage is None:
        return None, None
    prompt, response = usage.input_tokens, usage.output_tokens
    return None if prompt is None else int(prompt), None if response is None else int(response)


class RowForm(msgspec.Struct, frozen=True):
    """Common properties of rows that become columns together; see `SampleColumns`."""

    task: str
    metrics: tuple[str, ...]
    has_options: bool = False


class PlainRow(msgspec.Struct, gc=False):
    """A common row.

    Attributes:
        form: rows of equal form are joined as columns.
        values: the score of each metric.
        cells: values of the columns that its reader names.
    """

    form: RowForm
    values: tuple[float, ...]
    cells: tuple[Any, ...]


class TypedLine(msgspec.Struct, gc=False):
    """A line of a file; `plain` is None if the slower reader must read it."""

    number: int
    raw: bytes
    plain: PlainRow | None = None


class TypedLines:
    """Reader of the rows of a file, common ones as columns.

    Args:
        file: file with one row per line.
        decode: decodes a row into a struct; fails for an unusual row.
        plain: returns the cells of a row; None for an unusual row.
        names: columns of these cells.
        careful: reads the samples of any other line.
        constants: further fields of all columns.
    """

    def __init__(
        self,
        file: LogFile,
        decode: Decode,
        plain: Callable[[Any], PlainRow | None],
        names: Sequence[str],
        careful: Callable[[int, bytes], Iterable[Sample]],
        constants: Mapping[str, Any],
    ) -> None:
        self._file, self._decode, self._plain = file, decode, plain
        self._names, self._careful, self._constants = names, careful, constants

    def samples(self) -> Iterator[Sample | SampleColumns]:
        """Iterate over all samples in the order of the rows, single or as columns."""
        lines: list[TypedLine] = []
        number = blank = 0
        for block in self._file.blocks():
            lines += self._lines(block, number)
            number = lines[-1].number
            if len(lines) >= ROWS_AT_A_TIME:
                blank += sum(line.plain is None and line.raw.isspace() for line in lines)
                if blank > MAX_BLANK_LINES:
                    self._file.require_lines()
                yield from self._samples(lines)
                lines = []
        yield from self._samples(lines)

    def _lines(self, block: LineBlock, number: int) -> list[TypedLine]:
        lines = []
        data, decode, plain = block.data, self._decode, self._plain
        for start, end in block.lines():
            number += 1
            line = TypedLine(number, data[start:end])
            lines.append(line)
            try:
                row = decode(line.raw)
                if not line.raw.isascii():
                    line.raw.decode()  # checks fields that the type skips, too
            except UNDECODABLE:
                continue
            line.plain = plain(row)
        return lines

    def _samples(self, lines: Sequence[TypedLine]) -> Iterator[Sample | SampleColumns]:
        for form, run in groupby(lines, _form):
            if form is not None:
                yield self._columns(form, list(run))
                continue
            for line in run:
                if not line.raw.isspace():
                    yield from self._careful(line.number, line.raw)

    def _columns(self, form: RowForm, lines: Sequence[TypedLine]) -> SampleColumns:
        rows = [line.plain for line in lines if line.plain is not None]
        cells = map(list, zip(*[row.cells for row in rows], strict=True))
        columns: dict[str, Any] = dict(zip(self._names, cells, strict=True))
        if not form.has_options:
            columns |= dict.fromkeys(_OF_OPTIONS)
        elif "choice" in columns:
            columns["choice"] = [columns["choice"]] * len(form.metrics)
        return SampleColumns(
            task=form.task,
            metrics=form.metrics,
            scorer="default",
            file=self._file.name,
            line=[line.number for line in lines],
            values=list(map(list, zip(*[row.values for row in rows], strict=True))),
            **columns,
            **self._constants,
        )


def _form(line: TypedLine) -> RowForm | None:
    return None if line.plain is None else line.plain.form
