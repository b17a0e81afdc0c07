"""Conversion of a comparison, in memory or on disk, into the payload of a report."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path, PurePath

import narwhals as nw
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pydantic import ValidationError

from forgetmap import __version__
from forgetmap.comparison import (
    Chain,
    Comparison,
    ComparisonResult,
    FanOut,
    FanOutResult,
    PairingResult,
    RunResult,
    headline,
    summarize,
)
from forgetmap.errors import UnknownFormatError, UnreadableError
from forgetmap.records import Frame, Run, connection, readable, scan, sort_items
from forgetmap.report.choices import MAX_ITEMS
from forgetmap.report.payloads.items import columns_of, count_flips, items_of, shares
from forgetmap.report.payloads.packing import packed_size
from forgetmap.report.payloads.rows import make_rows, verdicts_of
from forgetmap.report.payloads.schema import Histories, Items, Kind, Payload
from forgetmap.report.payloads.texts import (
    MIN_BYTES,
    Secret,
    cut,
    parse_patterns,
    redact,
    redact_columns,
    sizes,
    without_texts,
)
from forgetmap.results import Notice
from forgetmap.stats import fair_cap

MAX_HISTORIES = 20_000
MAX_PACKED_BYTES = 10_000_000
"""Size limit of all items in gzip, for files below 15 MB; the longest texts are shortened."""
RESULT, FLIPS, HISTORIES = "comparison.json", "flips.parquet", "histories.parquet"
MISSING_IN_FOLDER = (
    "a saved comparison contains no questions, options, prompts or responses, and of a chain "
    "only its ends: use the runs themselves for a complete report."
)
"""What a report from a folder cannot show."""


def make_payload(
    result: Comparison | FanOut | Chain,
    *,
    texts: bool = True,
    redact: Sequence[str] | None = None,
    limit: int = MAX_ITEMS,
    title: str | None = None,
    made: str | None = None,
) -> Payload:
    r"""Collect everything that a report shows about a result.

    Args:
        result: a result of `compare`.
        texts: include questions, answers and responses; without them the report lists which items
            flipped and their outcomes, but not their texts.
        redact: regular expressions; what they match in texts and warnings is redacted.
        limit: maximum number of changed items in the report; every task gets its share.
        title: title of the report; by default the names of the runs.
        made: date to show.

    Example:
        >>> import forgetmap as fm
        >>> comparison = fm.compare("runs/base", "runs/tuned")  # doctest: +SKIP
        >>> payload = fm.make_payload(comparison, redact=[r"\w+@\w+"])  # doctest: +SKIP
        >>> fm.write_report(payload, "for-partners.html")  # doctest: +SKIP
    """
    comparisons, histories = _parts(result)
    share = max(limit // len(comparisons), 1)
    items = [
        items_of(comparison, index, texts=texts, limit=share)
        for index, comparison in comparisons.items()
    ]
    return assemble(
        _results(result), items, histories, texts=texts, redact=redact, title=title, made=made
    )


def assemble(
    results: Sequence[ComparisonResult],
    items: Sequence[Items],
    histories: Histories | None = None,
    *,
    texts: bool = True,
    redact: Sequence[str] | None = None,
    title: str | None = None,
    made: str | None = None,
) -> Payload:
    """Assemble a payload; texts that must not be shared are removed here, and only here."""
    secrets = parse_patterns(redact or ())
    discreet = not texts or bool(secrets)
    if discreet:
        results = [_shareable_result(result, secrets) for result in results]
    return Payload(
        kind=_kind(results),
        title=title or _title(results),
        made=made,
        version=__version__,
        redacted=discreet,
        comparisons=list(results),
        summaries=[summarize(result) for result in results],
        verdicts=[verdicts_of(result) for result in results],
        rows=make_rows(results),
        items=cut_to_fit([shareable(item, secrets, texts=texts) for item in items]),
        histories=histories,
    )


def _parts(
    result: Comparison | FanOut | Chain,
) -> tuple[dict[int, Comparison], Histories | None]:
    """Return the comparisons whose items are listed, by index in the payload, and the histories."""
    if isinstance(result, Comparison):
        return {0: result}, None
    if isinstance(result, FanOut):
        return dict(enumerate(result)), None
    # Index 0 compares the first with the last run; it is also the last of the comparisons.
    *earlier, last = result.comparisons
    names = [last.before.name, *(stage.name for stage in result.stages)]
    return {0: last, **dict(enumerate(earlier, start=1))}, histories_of(result.items, names)


def _results(result: Comparison | FanOut | Chain) -> list[ComparisonResult]:
    if isinstance(result, Comparison):
        return [result.result]
    first = [result.result] if isinstance(result, Chain) else []
    return [*first, *(comparison.result for comparison in result.comparisons)]


def histories_of(items: Frame, stages: Sequence[str]) -> Histories:
    """Return the history of every item of a chain; if too many, of the first that changed."""
    columns = ["task", "item", "path", "kind"]
    followed = sort_items(items.select(*columns, "repeat"), "repeat").collect()
    rows = sorted(followed.select(*columns).rows(), key=lambda row: row[3] in ("kept", "never"))
    lists = {
        name: [row[index] for row in rows[:MAX_HISTORIES]] for index, name in enumerate(columns)
    }
    return Histories(stages=list(stages), total=len(rows), **lists)


def _kind(results: Sequence[ComparisonResult]) -> Kind:
    if results[0].stages is not None:
        return "chain"
    return "pair" if len(results) == 1 else "many"


def _title(results: Sequence[ComparisonResult]) -> str:
    first = results[0]
    if first.stages is not None:
        return " → ".join([first.before.name, *(stage.name for stage in first.stages)])
    if len(results) > 1:
        return f"{len(results)} models against {first.before.name}"
    return f"{first.after.name} against {first.before.name}"


def shareable(items: Items, secrets: Sequence[Secret], *, texts: bool) -> Items:
    """Return items with only the texts that may be shared."""
    columns = items.columns if texts else without_texts(items.columns)
    return items.model_copy(
        update={"columns": redact_columns(columns, secrets) if secrets else columns}
    )


def cut_to_fit(items: Sequence[Items]) -> list[Items]:
    """Shorten the texts of all items so that one file can be sent by mail."""
    lengths = [size for item in items for size in sizes(item.columns)]
    longest, kept = max(lengths, default=0), list(items)
    if sum(lengths) < MAX_PACKED_BYTES:
        return kept
    while (packed := sum(map(packed_size, kept))) > MAX_PACKED_BYTES and longest > MIN_BYTES:
        length = sum(min(size, longest) for size in lengths)
        # Long texts compress better than shortened ones, so this takes several rounds.
        longest = max(fair_cap(lengths, int(0.98 * length * MAX_PACKED_BYTES / packed)), MIN_BYTES)
        kept = [_cut(item, longest) for item in items]
    return kept


def _cut(items: Items, longest: int) -> Items:
    columns, shorter = cut(items.columns, longest)
    return items.model_copy(update={"columns": columns, "shortened": shorter})


def _shareable_result(result: ComparisonResult, secrets: Sequence[Secret]) -> ComparisonResult:
    """Return the result without local folders, redacted."""
    runs = (result.before, result.after)

    def quiet(notices: Iterable[Notice]) -> list[Notice]:
        return [
            replace(notice, message=without_paths(notice.message, runs, secrets))
            for notice in notices
        ]

    def quiet_pairing(pairing: PairingResult) -> PairingResult:
        return replace(
            pairing,
            warnings=quiet(pairing.warnings),
            contradictions=quiet(pairing.contradictions),
        )

    stages = result.stages and [
        replace(stage, pairing=quiet_pairing(stage.pairing)) for stage in result.stages
    ]
    pairing = quiet_pairing(result.pairing)
    return replace(
        result,
        headline=headline(result.after.name, result.total, pairing),
        before=_without_folder(result.before),
        after=_without_folder(result.after),
        pairing=pairing,
        stages=stages,
    )


def _without_folder(run: RunResult) -> RunResult:
    return replace(run, origin=_folder_name(run))


def without_paths(message: str, runs: Iterable[Run | RunResult], secrets: Iterable[Secret]) -> str:
    """Return a warning without the folders of these runs, redacted."""
    for run in runs:
        message = message.replace(run.origin, _folder_name(run))
    return redact(message, secrets)


def _folder_name(run: Run | RunResult) -> str:
    return PurePath(run.origin).name or run.name


def is_comparison_folder(path: Path) -> bool:
    """Whether the folder was written by `compare --out`."""
    return (path / RESULT).is_file()


def payload_from_folder(
    folder: Path,
    *,
    texts: bool = True,
    redact: Sequence[str] | None = None,
    limit: int = MAX_ITEMS,
    title: str | None = None,
    made: str | None = None,
) -> Payload:
    """Return the payload of a comparison on disk; see `make_payload`.

    Raises:
        UnreadableError: a file of the folder is damaged, or was written by another version of
            forgetmap.
    """
    results = _read_results(folder / RESULT)
    folders = [folder] if len(results) == 1 else sorted(folder.glob("[0-9]*-*"))
    items = [
        _read_items(inner / FLIPS, result, index, max(limit // len(results), 1))
        for index, (inner, result) in enumerate(zip(folders, results, strict=False))
    ]
    histories = _read_histories(folder / HISTORIES, results[0])
    if results[0].stages is not None:
        results.append(replace(results[0], stages=None, paths=None))
    return assemble(results, items, histories, texts=texts, redact=redact, title=title, made=made)


def _read_results(path: Path) -> list[ComparisonResult]:
    if not path.is_file():
        raise UnknownFormatError(
            f"the folder contains no {RESULT}",
            file=str(path.parent),
            hint="pass a folder written by `forgetmap compare --out`, or two runs to compare.",
        )
    content = path.read_bytes()
    try:
        if b'"comparisons"' in content[:200]:
            return FanOutResult.from_json(content).comparisons
        return [ComparisonResult.from_json(content)]
    except ValidationError as error:
        raise UnreadableError(
            f"not a comparison of this version of forgetmap: {error.errors()[0]['msg']}",
            file=str(path),
            hint="create it again with `forgetmap compare --out`.",
        ) from None


def _read_items(path: Path, result: ComparisonResult, index: int, limit: int) -> Items:
    total = count_flips(result.total)
    with readable(str(path)):
        flips = pq.read_table(path)
        kept = [
            flips.filter(pc.equal(flips["transition"], kind)).slice(0, most)
            for kind, most in shares(total, limit).items()
        ]
    return Items(comparison=index, total=total, columns=columns_of(pa.concat_tables(kept)))


def _read_histories(path: Path, result: ComparisonResult) -> Histories | None:
    if result.stages is None:
        return None
    names = [result.before.name, *(stage.name for stage in result.stages)]
    with readable(str(path)):
        frame = nw.from_native(connection().sql(f"FROM {scan('read_parquet', path)}"))
        return histories_of(frame.lazy(), names)
