"""Conversion of a drift result into the payload of a report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from forgetmap import __version__
from forgetmap.capabilities import Caution, DriftResult, DriftWithRuns, Taxonomy, changed_items
from forgetmap.report.choices import MAX_ITEMS
from forgetmap.report.payloads.comparison import cut_to_fit, shareable, without_paths
from forgetmap.report.payloads.drift_rows import make_drift_rows
from forgetmap.report.payloads.items import columns_of
from forgetmap.report.payloads.schema import Capabilities, Items, Payload, Rows, Withheld
from forgetmap.report.payloads.texts import Secret, parse_patterns


def make_drift_payload(
    drifted: DriftWithRuns,
    *,
    texts: bool = True,
    redact: Sequence[str] | None = None,
    limit: int = MAX_ITEMS,
    title: str | None = None,
    made: str | None = None,
) -> Payload:
    """Return the payload of a drift.

    Args:
        drifted: a result of `drift_with_runs`.
        texts: include questions, answers and responses.
        redact: regular expressions; matches in texts and warnings are redacted.
        limit: maximum number of changed items in the report; every metric gets its share.
        title: title of the report; by default the names of the models.
        made: date to show.
    """
    secrets = parse_patterns(redact or ())
    discreet = not texts or bool(secrets)
    result = _shareable_result(drifted, secrets) if discreet else drifted.result
    items = _items(drifted, texts=texts, limit=limit)
    return Payload(
        kind="drift",
        title=title or _title(result),
        made=made,
        version=__version__,
        redacted=discreet,
        comparisons=[],
        rows=Rows.model_validate({name: [] for name in Rows.model_fields}),
        items=cut_to_fit([shareable(item, secrets, texts=texts) for item in items]),
        capabilities=_capabilities(result),
    )


def _items(drifted: DriftWithRuns, *, texts: bool, limit: int) -> list[Items]:
    return [
        Items(
            comparison=index,
            total=dict(changes.total),
            columns={"task": [], "item": []}
            if changes.table is None
            else columns_of(changes.table),
        )
        for index, changes in enumerate(changed_items(drifted, texts=texts, limit=limit))
    ]


def payload_of_numbers(result: DriftResult) -> Payload:
    """Return a payload without items."""
    return make_drift_payload(
        DriftWithRuns(result, Taxonomy(result.taxonomy, "", (), (), (), ()), (), "auto")
    )


def _capabilities(result: DriftResult) -> Capabilities:
    rows, scales = make_drift_rows(result)
    return Capabilities(
        result=result,
        headlines=[result.headline(model) for model in result.models],
        leads=[result.lead(model) for model in result.models],
        compared=None if result.ranking is None else result.comparison(result.ranking),
        said=[
            {cell.id: result.sentence(cell) for cell in result.capabilities
             if cell.model == model}
            for model in result.models
        ],
        scales=scales,
        rows=rows,
        withheld=_withheld(result),
    )  # fmt: skip


def _withheld(result: DriftResult) -> list[Withheld]:
    """Return cells without a value, grouped by reason."""
    by_note: dict[str, dict[str, dict[str, None]]] = {}
    for cell in result.metrics:
        if cell.note:
            by_note.setdefault(cell.note, {}).setdefault(cell.id, {})[cell.model] = None
    parts = []
    for note, ids in by_note.items():
        by_models: dict[tuple[str, ...], list[str]] = {}
        for id_, models in ids.items():
            by_models.setdefault(tuple(models), []).append(id_)
        parts += [
            Withheld(note=note, level="metric", models=list(models), ids=items)
            for models, items in by_models.items()
        ]
    return parts


def _title(result: DriftResult) -> str:
    if len(result.models) == 1:
        return f"Drift of {result.models[0]} from {result.before}"
    return f"Drift of {len(result.models)} models from {result.before}"


def _shareable_result(drifted: DriftWithRuns, secrets: Sequence[Secret]) -> DriftResult:
    """Return the result without local folders, redacted."""

    def quiet(caution: Caution) -> Caution:
        return replace(caution, message=without_paths(caution.message, drifted.runs, secrets))

    return replace(drifted.result, cautions=tuple(map(quiet, drifted.result.cautions)))
