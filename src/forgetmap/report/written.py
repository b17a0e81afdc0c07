"""A report from what `compare --out` wrote: all numbers and all flips, but no questions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import narwhals as nw
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pydantic import ValidationError

from forgetmap.comparison import ComparisonResult, FanOutResult
from forgetmap.errors import UnknownFormatError, UnreadableError
from forgetmap.records import connection, readable, scan
from forgetmap.report.build import MOST_ITEMS, assemble, histories_of
from forgetmap.report.items import columns_of, count_flips, shares
from forgetmap.report.payload import Histories, Items, Payload

RESULT, FLIPS, HISTORIES = "comparison.json", "flips.parquet", "histories.parquet"
LACKS = (
    "a written comparison holds no questions, options, prompts or responses, and of a chain only "
    "its ends: name the runs themselves for a report with everything."
)
"""What a report from a folder cannot show."""


def is_comparison_folder(path: Path) -> bool:
    """Whether `compare --out` wrote this folder."""
    return (path / RESULT).is_file()


def payload_from_folder(
    folder: Path,
    *,
    texts: bool = True,
    redact: Sequence[str] | None = None,
    limit: int = MOST_ITEMS,
    title: str | None = None,
    made: str | None = None,
) -> Payload:
    """Everything a report can say about a comparison on disk; see `make_payload`.

    Raises:
        UnreadableError: a file of the folder is damaged, or of another version of forgetmap.
    """
    results = _read_results(folder / RESULT)
    folders = [folder] if len(results) == 1 else sorted(folder.glob("[0-9]*-*"))
    items = [
        _read_items(inner / FLIPS, result, place, max(limit // len(results), 1))
        for place, (inner, result) in enumerate(zip(folders, results, strict=False))
    ]
    histories = _read_histories(folder / HISTORIES, results[0])
    if results[0].stages is not None:
        results.append(results[0].model_copy(update={"stages": None, "paths": None}))
    return assemble(results, items, histories, texts=texts, redact=redact, title=title, made=made)


def _read_results(path: Path) -> list[ComparisonResult]:
    if not path.is_file():
        raise UnknownFormatError(
            f"there is no {RESULT} in it",
            file=str(path.parent),
            hint="name a folder that `forgetmap compare --out` wrote, or two runs to compare.",
        )
    content = path.read_bytes()
    try:
        if b'"comparisons"' in content[:200]:
            return FanOutResult.model_validate_json(content).comparisons
        return [ComparisonResult.model_validate_json(content)]
    except ValidationError as error:
        raise UnreadableError(
            f"is no comparison of this version of forgetmap: {error.errors()[0]['msg']}",
            file=str(path),
            hint="write it again with `forgetmap compare --out`.",
        ) from None


def _read_items(path: Path, result: ComparisonResult, place: int, limit: int) -> Items:
    total = count_flips(result.total)
    with readable(str(path)):
        flips = pq.read_table(path)
        kept = [
            flips.filter(pc.equal(flips["transition"], kind)).slice(0, most)
            for kind, most in shares(total, limit).items()
        ]
    return Items(comparison=place, total=total, columns=columns_of(pa.concat_tables(kept)))


def _read_histories(path: Path, result: ComparisonResult) -> Histories | None:
    if result.stages is None:
        return None
    names = [result.before.name, *(stage.name for stage in result.stages)]
    with readable(str(path)):
        frame = nw.from_native(connection().sql(f"FROM {scan('read_parquet', path)}"))
        return histories_of(frame.lazy(), names)
