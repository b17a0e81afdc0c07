"""Scores on other scales than 0 to 1: 1 to 10, 1 or 2, percent."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import narwhals as nw

from forgetmap.errors import FieldError, UsageError
from forgetmap.records import FileRow, MetricInfo, Run, listed
from forgetmap.sources.decode import number
from forgetmap.sources.table_map import ScoreRange

if TYPE_CHECKING:
    import duckdb


def rescaled(
    relation: duckdb.DuckDBPyRelation, scale: ScoreRange | None
) -> duckdb.DuckDBPyRelation:
    """Convert scores to shares of the scale; scores beyond the scale are then beyond 0 to 1."""
    if scale is None:
        return relation
    share = f"(score - ({scale.worst!r})) / ({scale.best - scale.worst!r})"
    return relation.project(f"* REPLACE ({share} AS score)")


def rescaled_rows(
    rows: Iterator[tuple[int, FileRow]], scale: ScoreRange | None
) -> Iterator[tuple[int, FileRow]]:
    """Convert the scores of raw rows to shares of the scale.

    Raises:
        FieldError: a score is outside the scale.
    """
    for line, row in rows:
        score = number(row.get("score")) if scale else None
        if scale is None or score is None:
            yield line, row
            continue
        if not scale.holds(score):
            raise FieldError(
                f"score is {score:g}, outside of --range {scale}",
                file=row.file,
                line=line,
                field="score",
                hint="give the worst and the best possible score, such as --range 0:100.",
            )
        yield line, FileRow({**row, "score": scale.share(score)}, file=row.file)


def rescale_frame(run: Run, scale: ScoreRange | None) -> Run:
    """Convert all scores of a run of a dataframe to shares of the scale."""
    if scale is None:
        return run
    return replace(run, scores=run.scores.with_columns(score=_share(scale)), rows=None)


def _share(scale: ScoreRange) -> nw.Expr:
    return (nw.col("score") - scale.worst) / (scale.best - scale.worst)


def rescale_run(run: Run, scale: ScoreRange) -> Run:
    """Convert the metrics of a run that are not between 0 and 1 to shares of the scale.

    Raises:
        UsageError: there is no such metric, or one is outside the scale.
    """
    beyond = {name: info for name, info in run.info.metrics.items() if _is_beyond(info)}
    if not beyond:
        raise UsageError(
            f"--range {scale} is not needed for {run.name}: its scores are between 0 and 1",
            hint="remove --range.",
        )
    for name, info in beyond.items():
        ends = [end for end in (info.low, info.high) if end is not None]
        if not all(map(scale.holds, ends)):
            raise UsageError(
                f"{name} of {run.name} is {' to '.join(f'{end:g}' for end in ends)}, outside of "
                f"--range {scale}",
                hint="give the worst and the best possible score.",
            )
    is_beyond = nw.col("metric").is_in(list(beyond))
    score = nw.when(is_beyond).then(_share(scale)).otherwise(nw.col("score"))
    scores = run.scores.with_columns(score=score)
    metrics = {**run.info.metrics, **dict.fromkeys(beyond, MetricInfo())}
    notice = f"{listed(list(beyond))}: {scale} is read as 0 to 1."
    return replace(
        run,
        scores=scores,
        info=run.info.model_copy(update={"metrics": metrics}),
        notices=(*run.notices, notice),
    )


def _is_beyond(info: MetricInfo) -> bool:
    return (info.low is not None and info.low < 0) or (info.high is not None and info.high > 1)
