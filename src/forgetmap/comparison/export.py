"""Output files of a comparison: JSON, Parquet and CSV."""

from __future__ import annotations

import re
from dataclasses import asdict, replace
from pathlib import Path

import narwhals as nw
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from forgetmap.comparison.api import FanOut
from forgetmap.comparison.chains import Chain
from forgetmap.comparison.comparison import Comparison
from forgetmap.comparison.flips import select_unpaired
from forgetmap.comparison.frames import flat_table
from forgetmap.comparison.result import GroupResult
from forgetmap.records import complete_folder, quote_formulas, sort_items


def write_result(
    result: Comparison | FanOut | Chain, path: Path, *, overwrite: bool = False
) -> Path:
    """Write every table and number of a result into a folder, all or nothing.

    Files: comparison.json; tasks, categories, tags and totals as CSV and Parquet; flips.parquet and
    unpaired.parquet with one row per item (for a chain, of the first checkpoint and the last). A
    chain also has against_previous, against_first and paths, and histories.parquet with one row per
    item. Several models after have one such folder each.
    """
    with complete_folder(path, overwrite=overwrite) as partial:
        _write_json(result, partial)
        if isinstance(result, FanOut):
            for number, comparison in enumerate(result, start=1):
                inner = partial / f"{number:02d}-{_file_name(comparison.after.name)}"
                inner.mkdir()
                _write_json(comparison, inner)
                _write_comparison(comparison, inner)
        elif isinstance(result, Chain):
            _write_chain(result, partial)
            _write_comparison(result.comparisons[-1], partial)
        else:
            _write_comparison(result, partial)
    return path


def _write_json(result: Comparison | FanOut | Chain, folder: Path) -> None:
    (folder / "comparison.json").write_text(result.to_json() + "\n", encoding="utf-8")


def _write_chain(chain: Chain, folder: Path) -> None:
    for name in ("against_previous", "against_first"):
        groups = [replace(getattr(stage, name), name=stage.name) for stage in chain.stages]
        _write_table(flat_table(groups), folder, name)
    paths = [asdict(path) for path in chain.paths]
    schema = pa.schema([("path", pa.string()), ("n", pa.int64()), ("kind", pa.string())])
    _write_table(pa.Table.from_pylist(paths, schema), folder, "paths")
    histories = sort_items(chain.items, "repeat").collect().to_arrow()
    pq.write_table(histories, folder / "histories.parquet")


def _write_comparison(comparison: Comparison, folder: Path) -> None:
    result = comparison.result
    tables: dict[str, list[GroupResult]] = {
        "totals": [result.total, result.total_macro],
        "tasks": result.tasks,
        "categories": result.categories,
        "tags": result.tags,
    }
    for name, groups in tables.items():
        _write_table(flat_table(groups), folder, name)
    flips = [
        comparison.flip_frame(kind).with_columns(transition=nw.lit(kind)).collect().to_arrow()
        for kind in ("forgotten", "gained")
    ]
    pq.write_table(pa.concat_tables(flips, promote_options="default"), folder / "flips.parquet")
    pq.write_table(
        select_unpaired(comparison.pairs).collect().to_arrow(), folder / "unpaired.parquet"
    )


def _write_table(table: pa.Table, folder: Path, name: str) -> None:
    pq.write_table(table, folder / f"{name}.parquet")
    safe = pa.Table.from_arrays(quote_formulas(table), schema=table.schema)
    pa.csv.write_csv(safe, folder / f"{name}.csv")


def _file_name(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.") or "run"
