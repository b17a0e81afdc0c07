"""From a comparison to the payload of a report."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import PurePath

import forgetmap
from forgetmap.comparison import (
    Chain,
    Comparison,
    ComparisonResult,
    FanOut,
    PairingResult,
    RunResult,
)
from forgetmap.records import Frame, Run
from forgetmap.report.items import items_of
from forgetmap.report.packing import packed_size
from forgetmap.report.payload import Histories, Items, Kind, Payload
from forgetmap.report.rows import make_rows
from forgetmap.report.texts import (
    LEAST_BYTES,
    Secret,
    blacken,
    blackened,
    cut,
    fair_cap,
    patterns_of,
    sizes,
    without_texts,
)
from forgetmap.results import Notice

MOST_ITEMS = 10_000
"""Flips in a report, over all its comparisons."""
MOST_HISTORIES = 20_000
MOST_PACKED = 10_000_000
"""Bytes of all items in gzip, so that the file stays below 15 MB; the longest texts are cut."""


def make_payload(
    result: Comparison | FanOut | Chain,
    *,
    texts: bool = True,
    redact: Sequence[str] | None = None,
    limit: int = MOST_ITEMS,
    title: str | None = None,
    made: str | None = None,
) -> Payload:
    r"""Everything a report says about a result.

    Args:
        result: what `compare` returned.
        texts: with questions, answers and responses; without them the report says which items
            flipped and how their answers ended, and not what was asked.
        redact: regular expressions; what they match in texts and warnings is blackened.
        limit: most flipped items in the report; every task has its share.
        title: of the report; made of the names of the runs where there is none.
        made: date to be shown.

    Example:
        >>> import forgetmap as fm
        >>> comparison = fm.compare("runs/base", "runs/tuned")  # doctest: +SKIP
        >>> payload = fm.make_payload(comparison, redact=[r"\w+@\w+"])  # doctest: +SKIP
        >>> fm.write_report(payload, "for-partners.html")  # doctest: +SKIP
    """
    each, histories = _parts(result)
    share = max(limit // len(each), 1)
    items = [
        items_of(comparison, place, texts=texts, limit=share) for place, comparison in each.items()
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
    """Put the parts together; what must not leave the house is taken out here, and only here."""
    secrets = patterns_of(redact or ())
    discreet = not texts or bool(secrets)
    if discreet:
        results = [_discreet(each, secrets) for each in results]
    return Payload(
        kind=_kind(results),
        title=title or _title(results),
        made=made,
        version=forgetmap.__version__,
        redacted=discreet,
        comparisons=list(results),
        rows=make_rows(results),
        items=fitted([shown(each, secrets, texts=texts) for each in items]),
        histories=histories,
    )


def _parts(
    result: Comparison | FanOut | Chain,
) -> tuple[dict[int, Comparison], Histories | None]:
    """The comparisons to list items of, by their place in the payload; and the histories."""
    if isinstance(result, Comparison):
        return {0: result}, None
    if isinstance(result, FanOut):
        return dict(enumerate(result)), None
    # Place 0 is first against last, which is also the last of the comparisons.
    *earlier, last = result.comparisons
    names = [last.before.name, *(stage.name for stage in result.stages)]
    return {0: last, **dict(enumerate(earlier, start=1))}, histories_of(result.items, names)


def _results(result: Comparison | FanOut | Chain) -> list[ComparisonResult]:
    if isinstance(result, Comparison):
        return [result.result]
    first = [result.result] if isinstance(result, Chain) else []
    return [*first, *(each.result for each in result.comparisons)]


def histories_of(items: Frame, stages: Sequence[str]) -> Histories:
    """The way of every item through a chain; of very many, the first that changed."""
    columns = ["task", "item", "path", "kind"]
    followed = items.select(*columns, "repeat").sort("task", "item", "repeat").collect()
    rows = sorted(followed.select(*columns).rows(), key=lambda row: row[3] in ("kept", "never"))
    kept = {
        name: [row[place] for row in rows[:MOST_HISTORIES]] for place, name in enumerate(columns)
    }
    return Histories(stages=list(stages), total=len(rows), **kept)


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


def shown(items: Items, secrets: Sequence[Secret], *, texts: bool) -> Items:
    """Items with only those texts that may leave the house."""
    columns = items.columns if texts else without_texts(items.columns)
    return items.model_copy(update={"columns": blacken(columns, secrets) if secrets else columns})


def fitted(items: Sequence[Items]) -> list[Items]:
    """All items with their texts so short that one file can be mailed."""
    found = [size for each in items for size in sizes(each.columns)]
    longest, kept = max(found, default=0), list(items)
    if sum(found) < MOST_PACKED:
        return kept
    while (packed := sum(map(packed_size, kept))) > MOST_PACKED and longest > LEAST_BYTES:
        held = sum(min(size, longest) for size in found)
        # Long texts pack better than what is left of them, so this takes several turns.
        longest = max(fair_cap(found, int(0.98 * held * MOST_PACKED / packed)), LEAST_BYTES)
        kept = [_cut(each, longest) for each in items]
    return kept


def _cut(items: Items, longest: int) -> Items:
    columns, shorter = cut(items.columns, longest)
    return items.model_copy(update={"columns": columns, "shortened": shorter})


def _discreet(result: ComparisonResult, secrets: Sequence[Secret]) -> ComparisonResult:
    """Without the folders of this machine, and without rows quoted from logs."""

    def quiet(pairing: PairingResult) -> PairingResult:
        warnings = [_discreet_notice(each, result, secrets) for each in pairing.warnings]
        return pairing.model_copy(update={"warnings": warnings})

    stages = result.stages and [
        stage.model_copy(update={"pairing": quiet(stage.pairing)}) for stage in result.stages
    ]
    changed = {
        "before": _without_place(result.before),
        "after": _without_place(result.after),
        "pairing": quiet(result.pairing),
        "stages": stages,
    }
    return result.model_copy(update=changed)


def _without_place(run: RunResult) -> RunResult:
    return run.model_copy(update={"origin": _place_name(run)})


def _discreet_notice(notice: Notice, result: ComparisonResult, secrets: Sequence[Secret]) -> Notice:
    message = notice.message
    if notice.code == "problems":
        message = re.sub(r", such as .*", ".", message, flags=re.DOTALL)
    return Notice(notice.code, discreet_words(message, (result.before, result.after), secrets))


def discreet_words(message: str, runs: Iterable[Run | RunResult], secrets: Iterable[Secret]) -> str:
    """A warning without the folders that these runs are in, blackened."""
    for run in runs:
        message = message.replace(run.origin, _place_name(run))
    return blackened(message, secrets)


def _place_name(run: Run | RunResult) -> str:
    return PurePath(run.origin).name or run.name
