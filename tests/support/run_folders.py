"""Small runs, in memory and on disk."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from forgetmap.records.folder import write_run
from forgetmap.records.frames import run_from_frame
from forgetmap.records.manifest import RunInfo
from forgetmap.records.run import Run
from forgetmap.records.schema import BY_NAME

ENDINGS = ["csv", "jsonl", "parquet"]
Row = dict[str, Any]


def run_of(rows: Sequence[Row], **info: Any) -> Run:
    """Return a run in memory; `info` holds fields of its manifest."""
    names = [name for name in BY_NAME if any(name in row for row in rows)]
    cells = {name: pa.array([row.get(name) for row in rows], BY_NAME[name].type) for name in names}
    run = run_from_frame(pa.table(cells))
    return Run(RunInfo(**info), run.scores, run.texts, run.name, run.origin, run.rows)


def results(scores: Sequence[float | None], task: str = "t", **same: Any) -> list[Row]:
    """Return one row per score; `same` holds cells for every row."""
    return [{"task": task, "item": f"i{n}", "score": s, **same} for n, s in enumerate(scores)]


def write(folder: Path, rows: Sequence[Row], **info: Any) -> Path:
    """Write a run folder."""
    return write_run(run_of(rows, **info), folder)


def on_disk(folder: Path, name: str) -> list[Row]:
    """Return the rows of a table of a run folder, in the order of their keys."""
    rows: list[Row] = pq.read_table(folder / f"{name}.parquet").to_pylist()
    keys = [key for key in ("task", "item", "repeat", "metric", "scorer") if key in rows[0]]
    return sorted(rows, key=lambda row: tuple(row[key] for key in keys))


def scores_of(run: Run) -> list[tuple[Any, ...]]:
    """Return task, item, repeat and score of every result."""
    frame = run.scores.select("task", "item", "repeat", "score").collect()
    return sorted((tuple(row) for row in frame.iter_rows()), key=str)


def both_tables(folder: Path) -> tuple[list[Row], list[Row]]:
    """Return scores and texts, with texts once per item and repeat."""
    texts = {(row["task"], row["item"], row["repeat"]): row for row in on_disk(folder, "texts")}
    return on_disk(folder, "scores"), list(texts.values())
