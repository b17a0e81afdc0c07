"""What a valid result is: once as sums over a whole table, once for a single row.

The sums say *whether* anything is wrong in one pass over the columns concerned; only then are
rows read one by one, to say *where*.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import narwhals as nw

from forgetmap.errors import DuplicateKeyError, EmptyInputError, FieldError, InputError
from forgetmap.records.manifest import MetricInfo, RunInfo
from forgetmap.records.outcome import MISSING, Outcome
from forgetmap.records.run import Frame, Run
from forgetmap.records.schema import CONTENT_HASHES, RESULT_KEY

SCORE_HINT = (
    "scores lie between 0 and 1; divide percents by 100, and leave the cell empty (null) where "
    "there is no score."
)
Fault = tuple[str, str, str]
"""Field, sentence, hint."""


def check_run(run: Run) -> int:
    """Raise a typed error for the first fault, else return the number of rows."""
    sums = _sums(run.scores, run.columns, run.info)
    if not sums["rows"]:
        raise EmptyInputError(
            "there is no result in it",
            file=run.origin,
            hint="give a table with at least one row, or the folder of a finished run.",
        )
    faults = {field: int(sums[field] or 0) for field in sums if field != "rows"}
    if any(faults.values()):
        raise locate_fault(run, faults)
    return int(sums["rows"])


def refuse_duplicates(run: Run, scores: Frame, by: Sequence[str]) -> None:
    """Raise if two rows agree in all of `by`.

    Raises:
        DuplicateKeyError: with the line of the second row, where rows can be read again.
    """
    counted = scores.group_by(*by).agg(nw.len().alias("n")).filter(nw.col("n") > 1)
    doubled = counted.sort(*by).head(1).collect().rows(named=True)
    if not doubled:
        return
    row = doubled[0]
    named = ", ".join(f"{name} {row[name]!r}" for name in RESULT_KEY if name in row)
    raise DuplicateKeyError(
        f"{row['n']} rows have {named}",
        file=run.origin,
        line=_second_line(run, row["task"], row["item"]),
        field="item",
        hint="was the file appended to twice? If they are answers to the same item, number them "
        "in a 'repeat' column; if they are metrics, name them in a 'metric' column.",
    )


def result_key(run: Run) -> list[str]:
    """The columns that tell the results of a run apart."""
    return [name for name in (*RESULT_KEY, *CONTENT_HASHES) if name in run.columns]


def locate_fault(run: Run, faults: Mapping[str, int]) -> InputError:
    """The error for the first faulty row, with its line where rows can be read again."""
    for line, row in run.rows() if run.rows else ():
        fault = row_fault(row, run.info)
        if fault:
            field, sentence, hint = fault
            return FieldError(sentence, file=run.origin, line=line, field=field, hint=hint)
    field = next(name for name, count in faults.items() if count)
    return FieldError(
        f"{faults[field]:,} values are empty, not allowed or out of range",
        file=run.origin,
        field=field,
        hint=SCORE_HINT if field == "score" else "docs/records.md lists what each field may hold.",
    )


def row_fault(row: Mapping[str, Any], info: RunInfo) -> Fault | None:
    """What is wrong with one row, if anything."""
    for field in ("task", "item"):
        if field in row and row[field] in (None, ""):
            return field, f"{field} is empty", f"every result needs a {field}."
    score, fault = _number(row.get("score"))
    metric = info.metrics.get(str(row.get("metric")), MetricInfo())
    if fault or (score is not None and not _within(score, metric)):
        return "score", f"score is {_shown(row['score'])}", SCORE_HINT
    return _k_fault(row) or _outcome_fault(row, score) or _repeat_fault(row)


def _second_line(run: Run, task: str, item: str) -> int | None:
    lines = []
    for line, row in run.rows() if run.rows else ():
        if str(row.get("item")) == item and str(row.get("task", task)) == task:
            lines.append(line)
    return lines[1] if len(lines) > 1 else None


def _repeat_fault(row: Mapping[str, Any]) -> Fault | None:
    if "repeat" in row and row["repeat"] in (None, ""):
        return "repeat", "repeat is empty", "number the repeats of an item 0, 1, 2, ..."
    return None


def _k_fault(row: Mapping[str, Any]) -> Fault | None:
    k, fault = _number(row.get("k"))
    if fault or (k is not None and (k < 2 or k != int(k))):  # noqa: PLR2004  # two options make a choice
        hint = "k is the number of options, 2 or more; leave it empty for open-ended items."
        return "k", f"k is {_shown(row['k'])}", hint
    return None


def _outcome_fault(row: Mapping[str, Any], score: float | None) -> Fault | None:
    outcome = row.get("outcome")
    if outcome in (None, ""):
        return None
    if outcome not in tuple(Outcome):
        return "outcome", f"outcome is {_shown(outcome)}", "use one of " + ", ".join(Outcome) + "."
    if outcome in MISSING and score is not None:
        hint = "an error or unscored item is missing, never right or wrong: leave its score empty."
        return "outcome", f"outcome is {outcome} but score is {score:g}", hint
    return None


def _sums(scores: Frame, columns: frozenset[str], info: RunInfo) -> dict[str, Any]:
    """Number of rows, then the number of faults in each field."""
    faults = {"score": _bad_score(info, has_metric="metric" in columns)}
    if "k" in columns:
        faults["k"] = nw.col("k") < 2  # noqa: PLR2004
    if "outcome" in columns:
        outcome = nw.col("outcome")
        known = outcome.is_in(list(Outcome)) | outcome.is_null()
        scored = outcome.is_in(list(MISSING)) & ~nw.col("score").is_null()
        faults["outcome"] = ~known | scored
    counts = {name: fault.cast(nw.Int64).sum() for name, fault in faults.items()}
    found = _only_row(scores.select(**counts))
    return _empty_keys(scores, columns) | found


def _empty_keys(scores: Frame, columns: frozenset[str]) -> dict[str, Any]:
    """Rows, and empty cells among the keys; a Parquet footer answers this without a scan."""
    names = [name for name in ("task", "item", "repeat") if name in columns]
    counts = {f"{name}_count": nw.col(name).count() for name in names}
    # An empty text sorts first, so the minimum finds it.
    firsts = {f"{name}_first": nw.col(name).min() for name in names}
    found = _only_row(scores.select(nw.len().alias("rows"), **counts, **firsts))
    missing = {name: found["rows"] - int(found[f"{name}_count"]) for name in names}
    empty = {name: missing[name] + (found[f"{name}_first"] == "") for name in names}
    return {"rows": found["rows"]} | empty


def _only_row(frame: Frame) -> dict[str, Any]:
    return dict(frame.collect().rows(named=True)[0])


def _bad_score(info: RunInfo, *, has_metric: bool) -> nw.Expr:
    """Outside the range of its metric. NaN fails every comparison, so ask for the good ones."""
    score = nw.col("score")
    good = (score >= 0.0) & (score <= 1.0)
    if has_metric:
        for name, metric in info.metrics.items():
            low = metric.low if metric.low is not None else -_LARGEST
            high = metric.high if metric.high is not None else _LARGEST
            good = (
                nw.when(nw.col("metric") == name)
                .then((score >= low) & (score <= high))
                .otherwise(good)
            )
    return ~(good & ~score.is_nan()) & ~score.is_null()


_LARGEST = 1.7976931348623157e308


def _within(score: float, metric: MetricInfo) -> bool:
    low = metric.low if metric.low is not None else -_LARGEST
    high = metric.high if metric.high is not None else _LARGEST
    return math.isfinite(score) and low <= score <= high


def _number(value: object) -> tuple[float | None, bool]:
    """The value as a number or None, and whether it is neither."""
    if value is None or value == "":
        return None, False
    if isinstance(value, str):
        value = {"true": 1.0, "false": 0.0}.get(value.strip().lower(), value)
    try:
        return float(value), False  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None, True


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."  # noqa: PLR2004
