"""Validation of results: as sums over a whole table, and for a single row.

The sums show in one pass *whether* anything is wrong; only then are rows read one by one, to show
*where*.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import duckdb
import narwhals as nw
import pyarrow as pa

from forgetmap.errors import (
    DuplicateKeyError,
    EmptyInputError,
    FieldError,
    ForgetmapError,
    InputError,
)
from forgetmap.records.engine import unreadable
from forgetmap.records.identity import parse_options
from forgetmap.records.manifest import MetricInfo, RunInfo
from forgetmap.records.outcome import FAILED, MISSING, Outcome
from forgetmap.records.run import Frame, Run
from forgetmap.records.schema import BY_NAME, CONTENT_HASHES, RESULT_KEY
from forgetmap.records.spark import spark_error, spark_failures

SCORE_HINT = (
    "scores must be between 0 and 1; use --range WORST:BEST for another scale, such as --range "
    "0:100 for percentages, and leave the cell empty (null) if there is no score."
)
WORD_HINT = (
    "a score must be a number, true or false: use 1 for right and 0 for wrong, and leave the "
    "cell empty if there is no score."
)
Fault = tuple[str, str, str]
"""Field, sentence, hint."""


class FileRow(dict[str, Any]):
    """A raw row with the name of its file."""

    def __init__(self, cells: Mapping[str, Any], *, file: str) -> None:
        super().__init__(cells)
        self.file = file


def check_run(run: Run, *, unique: bool = False, sums: Mapping[str, Any] | None = None) -> int:
    """Raise a typed error for the first fault, else return the number of rows.

    Args:
        run: the run to check.
        unique: whether two rows of the same result are a fault.
        sums: number of rows and number of faults by field, if already counted.
    """
    if sums is None:
        with reading(run):
            sums = _sums(run.scores, run.columns, run.info)
    if not sums["rows"]:
        raise EmptyInputError(
            "there are no results",
            file=run.origin,
            hint="give a table with at least one row, or the folder of a finished run.",
        )
    faults = {field: int(sums[field] or 0) for field in sums if field != "rows"}
    if any(faults.values()):
        raise locate_fault(run, faults)
    if unique:
        names = (*RESULT_KEY, *CONTENT_HASHES)
        refuse_duplicates(run, run.scores, [name for name in names if name in run.columns])
    return int(sums["rows"])


@contextmanager
def reading(*runs: Run) -> Iterator[None]:
    """If reading a run fails, raise an error that names file, column and row, if possible.

    Raises:
        FieldError: a value is invalid.
        UnreadableError: the file is damaged.
    """
    try:
        yield
    except ForgetmapError:
        raise
    except spark_failures() as error:
        raise spark_error(error, " or ".join(run.origin for run in runs)) from None
    except (duckdb.Error, pa.ArrowException, OSError) as error:
        for run in runs:
            fault = first_fault(_raw(run), run.info, run.origin)
            if fault is not None:
                raise fault from None
        raise unreadable(" or ".join(run.origin for run in runs), error) from None


def locate_error(
    rows: Iterable[tuple[int, Mapping[str, Any]]], origin: str, error: Exception
) -> InputError:
    """Return the error for the first faulty row of an unreadable table, else that of the engine."""
    fault = first_fault(rows, RunInfo(), origin)
    if fault is not None:
        return fault
    return error if isinstance(error, FieldError) else unreadable(origin, error)


def refuse_duplicates(run: Run, scores: Frame, by: Sequence[str]) -> None:
    """Raise if two rows agree in all of `by`.

    Raises:
        DuplicateKeyError: names the line of the second row, if rows can be read again.
    """
    counted = scores.group_by(*by).agg(nw.len().alias("n")).filter(nw.col("n") > 1)
    with reading(run):
        duplicates = counted.sort(*by).head(1).collect().rows(named=True)
    if not duplicates:
        return
    row = duplicates[0]
    key = ", ".join(f"{name} {row[name]!r}" for name in RESULT_KEY if name in row)
    file, line = _second_row(run, row["task"], row["item"])
    raise DuplicateKeyError(
        f"{row['n']} rows have {key}",
        file=file,
        line=line,
        field="item",
        hint="check whether the file was written twice. Number several answers to one item in a "
        "'repeat' column, and name several metrics in a 'metric' column.",
    )


def locate_fault(run: Run, faults: Mapping[str, int]) -> InputError:
    """Return the error for the first faulty row, with its line if rows can be read again."""
    fault = first_fault(_raw(run), run.info, run.origin)
    if fault is not None:
        return fault
    field = next(name for name, count in faults.items() if count)
    return FieldError(
        f"{faults[field]:,} values are empty, invalid or out of range",
        file=run.origin,
        field=field,
        hint=SCORE_HINT
        if field == "score"
        else "see docs/records.md for the values of each field.",
    )


def first_fault(
    rows: Iterable[tuple[int, Mapping[str, Any]]], info: RunInfo, origin: str
) -> FieldError | None:
    """Return the error for the first faulty row; None if there is none."""
    for line, row in rows:
        fault = row_fault(row, info)
        if fault:
            field, sentence, hint = fault
            return FieldError(
                sentence, file=file_of(row, origin), line=line, field=field, hint=hint
            )
    return None


def row_fault(row: Mapping[str, Any], info: RunInfo) -> Fault | None:
    """Return the fault of a row; None if there is none."""
    score, fault = _number(row.get("score"))
    metric = info.metrics.get(str(row.get("metric")), MetricInfo())
    if fault or (score is not None and not _within(score, metric)):
        return "score", f"score is {_short_repr(row['score'])}", _score_hint(row["score"])
    return (
        _key_fault(row)
        or _k_fault(row)
        or _outcome_fault(row, score, info)
        or _options_fault(row)
        or _number_fault(row)
    )


def _score_hint(score: object) -> str:
    if isinstance(score, Mapping) and score:
        path = shlex.quote(f"score=COLUMN.{next(iter(score))}")
        return f"a score must be a number; choose one of the object, such as --columns {path}."
    is_word = isinstance(score, str) and _number(score)[1]
    return WORD_HINT if is_word else SCORE_HINT


def _raw(run: Run) -> Iterable[tuple[int, Mapping[str, Any]]]:
    return run.rows() if run.rows else ()


def file_of(row: Mapping[str, Any], origin: str) -> str:
    """Return the file of a raw row."""
    return row.file if isinstance(row, FileRow) else origin


def _second_row(run: Run, task: str, item: str) -> tuple[str, int | None]:
    """Return file and line of the second row of the same result."""
    seen = set()
    for line, row in _raw(run):
        if str(row.get("item")) != item or str(row.get("task", task)) != task:
            continue
        key = tuple(str(row.get(name)) for name in (*RESULT_KEY, *CONTENT_HASHES, *_CONTENT))
        if key in seen:
            return file_of(row, run.origin), line
        seen.add(key)
    return run.origin, None


_CONTENT = ("question", "options", "gold")


def _key_fault(row: Mapping[str, Any]) -> Fault | None:
    # Without ids, the question identifies the item.
    identity = "item" if "item" in row else "question"
    for field in ("task", identity, "repeat"):
        if field in row and row[field] in (None, ""):
            hint = "every result needs a task and an item, and a repeat if the column exists."
            return field, f"{field} is empty", hint
    return None


def _k_fault(row: Mapping[str, Any]) -> Fault | None:
    k, fault = _number(row.get("k"))
    if fault or (
        k is not None and not (k.is_integer() and 2 <= k <= _LARGEST_INT)
    ):  # two options make a choice
        hint = "k is the number of options, 2 or more; leave it empty for open-ended items."
        return "k", f"k is {_short_repr(row['k'])}", hint
    return None


def _options_fault(row: Mapping[str, Any]) -> Fault | None:
    try:
        parse_options(row.get("options"))
    except ValueError:
        hint = 'write options as a JSON list, such as ["Paris", "Rome"].'
        return "options", f"options are not a list: {_short_repr(row['options'])}", hint
    return None


def _number_fault(row: Mapping[str, Any]) -> Fault | None:
    """Return the fault of a number that is only stored, but must fit its column."""
    for field in _OTHER_NUMBERS:
        number, fault = _number(row.get(field))
        is_integer = pa.types.is_integer(BY_NAME[field].type)
        largest = _LARGEST_INT if BY_NAME[field].type == pa.int32() else _LARGEST_HASH
        if fault or (is_integer and number is not None and not abs(number) <= largest):
            return (
                field,
                f"{field} is {_short_repr(row[field])}",
                "write a number, or leave it empty.",
            )
    return None


_OTHER_NUMBERS = tuple(
    field.name
    for field in BY_NAME.values()
    if field.name not in {"repeat", "score", "k"}
    and (pa.types.is_integer(field.type) or pa.types.is_floating(field.type))
)
_LARGEST_INT, _LARGEST_HASH = 2**31 - 1, 2.0**63


def _outcome_fault(row: Mapping[str, Any], score: float | None, info: RunInfo) -> Fault | None:
    outcome = row.get("outcome")
    if outcome is None:
        return None
    if outcome not in tuple(Outcome):
        return (
            "outcome",
            f"outcome is {_short_repr(outcome)}",
            "use one of " + ", ".join(Outcome) + ".",
        )
    if outcome in MISSING and score is not None:
        hint = "leave the score empty; an error or unscored item is missing, never right or wrong."
        return "outcome", f"outcome is {outcome} but score is {score:g}", hint
    if outcome in FAILED and score and str(row.get("metric")) not in info.metrics:
        hint = (
            f"set the score to 0, or the outcome to correct; {', '.join(FAILED)} never count as "
            "right."
        )
        return "outcome", f"outcome is {outcome} but score is {score:g}", hint
    return None


def fault_columns(columns: frozenset[str], info: RunInfo) -> dict[str, nw.Expr]:
    """Return by field whether a row has a fault; keys are checked separately."""
    faults = {"score": _bad_score(info, has_metric="metric" in columns)}
    if "k" in columns:
        faults["k"] = nw.col("k") < 2
    if "outcome" in columns:
        outcome = nw.col("outcome")
        known = outcome.is_in(list(Outcome)) | outcome.is_null()
        score = nw.col("score")
        scored = outcome.is_in(list(MISSING)) & ~score.is_null()
        failed = outcome.is_in(list(FAILED)) & ~score.is_null() & (score != 0)
        if "metric" in columns and info.metrics:
            failed = failed & ~nw.col("metric").is_in(list(info.metrics))
        faults["outcome"] = ~known | scored | failed
    return faults


def _sums(scores: Frame, columns: frozenset[str], info: RunInfo) -> dict[str, Any]:
    """Return the number of rows and the number of faults in each field."""
    faults = fault_columns(columns, info)
    counts = {name: fault.cast(nw.Int64).sum() for name, fault in faults.items()}
    sums = _only_row(scores.select(**counts, total=nw.col("score").sum()))
    # DuckDB answers comparisons from the minimum and maximum in a Parquet footer, which ignore NaN;
    # a sum must be computed.
    total = sums.pop("total")
    if total is not None and math.isnan(total):
        sums["score"] = max(sums["score"], 1)
    return _empty_keys(scores, columns) | sums


def _empty_keys(scores: Frame, columns: frozenset[str]) -> dict[str, Any]:
    """Count rows and empty keys; with Parquet, the footer is enough."""
    names = [name for name in ("task", "item", "repeat") if name in columns]
    counts = {f"{name}_count": nw.col(name).count() for name in names}
    # An empty text sorts first, so the minimum finds it.
    firsts = {f"{name}_first": nw.col(name).min() for name in names}
    totals = _only_row(scores.select(nw.len().alias("rows"), **counts, **firsts))
    missing = {name: totals["rows"] - int(totals[f"{name}_count"]) for name in names}
    empty = {name: missing[name] + (totals[f"{name}_first"] == "") for name in names}
    return {"rows": totals["rows"]} | empty


def _only_row(frame: Frame) -> dict[str, Any]:
    return dict(frame.collect().rows(named=True)[0])


def _bad_score(info: RunInfo, *, has_metric: bool) -> nw.Expr:
    """Whether a score is outside the range of its metric, or NaN, which fails every comparison."""
    score = nw.col("score")
    good = (score >= 0.0) & (score <= 1.0)
    if has_metric:
        for name, metric in info.metrics.items():
            low = metric.low if metric.low is not None else -_MAX_FLOAT
            high = metric.high if metric.high is not None else _MAX_FLOAT
            good = (
                nw.when(nw.col("metric") == name)
                .then((score >= low) & (score <= high))
                .otherwise(good)
            )
    return ~(good & ~score.is_nan()) & ~score.is_null()


_MAX_FLOAT = 1.7976931348623157e308


def _within(score: float, metric: MetricInfo) -> bool:
    low = metric.low if metric.low is not None else -_MAX_FLOAT
    high = metric.high if metric.high is not None else _MAX_FLOAT
    return math.isfinite(score) and low <= score <= high


def _number(value: object) -> tuple[float | None, bool]:
    """Return the value as a number or None, and whether it is neither number nor empty."""
    if isinstance(value, str):
        value = value.strip().lower()
    if value is None or value == "":
        return None, False
    if isinstance(value, str) and not value.isascii():
        return None, True
    try:
        return float({"true": 1.0, "false": 0.0}.get(value, value)), False  # type: ignore[call-overload]
    except (TypeError, ValueError, OverflowError):
        return None, True


def _short_repr(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
