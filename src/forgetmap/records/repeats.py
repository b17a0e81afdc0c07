"""Repeats of a run: several seeds of the same model and decoding."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import narwhals as nw

from forgetmap.errors import ManifestError
from forgetmap.records.folder import fill_scores, fill_texts
from forgetmap.records.manifest import RunInfo, ServiceInfo
from forgetmap.records.run import Frame, Run
from forgetmap.records.validate import FileRow, file_of, reading

SHARED_FIELDS = (
    "model", "stage", "harness", "template_hash", "system_prompt_hash", "protocol", "decoding",
    "simulated", "tasks", "metrics",
)  # fmt: skip


def as_repeats(runs: Sequence[Run], *, origin: str) -> Run:
    """Join runs into one run with the repeats of all of them, in order.

    Raises:
        ManifestError: the runs differ in the model or in settings.
    """
    first = runs[0]
    for run in runs[1:]:
        _require_same(first, run, origin)
    counts = [count_repeats(run) for run in runs]
    starts = [sum(counts[:index]) for index in range(len(runs))]
    scores = [
        _shift(fill_scores(run.scores), start) for run, start in zip(runs, starts, strict=True)
    ]
    texts = [
        _shift(fill_texts(run.texts), start)
        for run, start in zip(runs, starts, strict=True)
        if run.texts is not None
    ]

    def rows() -> Iterator[tuple[int, Mapping[str, Any]]]:
        return chain.from_iterable(map(_shift_rows, runs, starts))

    return Run(
        info=_merge_infos([run.info for run in runs]),
        scores=nw.concat(scores),
        texts=nw.concat(texts) if texts else None,
        name=first.info.run_id or origin.rstrip("/").rsplit("/", 1)[-1],
        origin=origin,
        rows=rows,
        contradictions=tuple(chain.from_iterable(run.contradictions for run in runs)),
    )


def count_repeats(run: Run) -> int:
    """Return the largest number of answers to an item."""
    if "repeat" not in run.columns:
        return 1
    with reading(run):
        return int(run.scores.select(nw.col("repeat").max()).collect().item() or 0) + 1


def _require_same(first: Run, other: Run, origin: str) -> None:
    for field in SHARED_FIELDS:
        first_value, other_value = (
            _without_seed(getattr(run.info, field)) for run in (first, other)
        )
        if isinstance(first_value, dict) and field != "decoding":
            # Seeds may cover different tasks, but must agree on those they share.
            first_value, other_value = (
                {n: values[n] for n in first_value.keys() & other_value}
                for values in (first_value, other_value)
            )
        if first_value != other_value:
            raise ManifestError(
                f"{first.name} and {other.name} differ in {field}: {first_value} and {other_value}",
                file=origin,
                field=field,
                hint="only runs of the same model with different seeds are repeats; compare "
                "other runs separately.",
            )


def _without_seed(value: Any) -> Any:
    """Remove the seed from decoding parameters, since repeats differ in it."""
    if not isinstance(value, dict):
        return value
    return {name: part for name, part in value.items() if name != "seed"}


def _merge_infos(infos: Sequence[RunInfo]) -> RunInfo:
    seeds = [seed for info in infos for seed in info.seeds]
    tasks = {name: task for info in infos for name, task in info.tasks.items()}
    metrics = {name: metric for info in infos for name, metric in info.metrics.items()}
    merged = {"seeds": seeds, "tasks": tasks, "metrics": metrics, "service": _total_service(infos)}
    return infos[0].model_copy(update=merged)


def _total_service(infos: Sequence[RunInfo]) -> ServiceInfo | None:
    """Return the totals of requests, tokens and cost of all runs; None without a server."""
    services = [info.service for info in infos if info.service is not None]
    if not services:
        return None
    totals = {}
    for name in ("requests", "retries", "tokens_in", "tokens_out", "cost"):
        known = [getattr(service, name) for service in services]
        totals[name] = None if None in known else sum(known)
    notes = list(dict.fromkeys(note for service in services for note in service.notes))
    return services[0].model_copy(update={**totals, "notes": notes})


def _shift_rows(run: Run, start: int) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for line, row in run.rows() if run.rows else ():
        repeat = row.get("repeat", 0)
        shifted = {**row, "repeat": None if repeat is None else repeat + start}
        yield line, FileRow(shifted, file=file_of(row, run.origin))


def _shift(frame: Frame, start: int) -> Frame:
    return frame.with_columns(repeat=(nw.col("repeat") + start).cast(nw.Int32))
