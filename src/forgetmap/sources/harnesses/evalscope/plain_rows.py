"""Fast reading of the common reviews of EvalScope 1.x, as columns.

A review is plain if its messages are texts, one of them the question, and every score is a usable
number. All others go to `reviews`, which can read every row and returns the same samples.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import isfinite
from typing import Annotated, Any, Literal

import msgspec

from forgetmap.records import option_text
from forgetmap.sources.decode import UNDECODABLE, Malformed, decode
from forgetmap.sources.fields import MAX_COUNT, as_json_text
from forgetmap.sources.harnesses.evalscope.reviews import count_last_answers, item_id
from forgetmap.sources.harnesses.evalscope.templates import split_question
from forgetmap.sources.typed_lines import PlainRow, RowForm, TokenUsage, token_counts


class _Message(msgspec.Struct, gc=False):
    role: str | None = None
    content: str | None = None
    perf_metrics: TokenUsage | None = None


class _ReviewScore(msgspec.Struct, gc=False):
    value: dict[str, float | bool]
    extracted_prediction: str | None = None
    prediction: str | None = None
    status: Literal["success", "fallback", "degraded"] | None = None


class _ReviewMetadata(msgspec.Struct, gc=False):
    collection_info: None = None


class _Reviewed(msgspec.Struct, gc=False):
    score: _ReviewScore
    sample_id: int | str | None = None
    group_id: int | str | None = None
    generation_index: Literal[0] | None = None
    sample_metadata: _ReviewMetadata | None = None


class _Review(msgspec.Struct, gc=False):
    """A row of the common form."""

    index: Annotated[int, msgspec.Meta(ge=0, le=MAX_COUNT)]
    messages: list[_Message]
    sample_score: _Reviewed
    target: str | None = None


class _Ids(msgspec.Struct, gc=False):
    sample_id: int | str | None = None
    group_id: int | str | None = None


class _ReviewIds(msgspec.Struct, gc=False):
    sample_score: _Ids
    index: int | str | None = None


decode_review = msgspec.json.Decoder(_Review).decode
_decode_ids = msgspec.json.Decoder(_ReviewIds).decode
_NAMES = (
    "item", "question", "options", "gold", "gold_index", "choice", "answer", "tokens_in",
    "tokens_out",
)  # fmt: skip
COLUMNS = {False: _NAMES, True: (*_NAMES, "prompt", "response")}


def plain_review(
    row: _Review, *, task: str, failed: Mapping[int | None, str], texts: bool
) -> PlainRow | None:
    """Return the cells of a review; None if it is not plain and `reviews` must read it."""
    score, messages = row.sample_score.score, row.messages
    item = _typed_id(row)
    values = tuple(map(float, score.value.values()))
    query = next((message.content for message in messages if message.role == "user"), None)
    if item is None or row.index in failed or query is None or not values:
        return None
    if not all(map(isfinite, values)):
        return None
    question, options = split_question(query, row.target)
    gold, index, choice = row.target or None, None, None
    if options:
        gold = option_text(row.target or "", options)
        choice = score.extracted_prediction
        if gold not in options:
            return None
        index = options.index(gold)
        if choice is not None and choice not in options:
            choice = option_text(choice, options)
    answers = count_last_answers([message.role for message in messages])
    usage = messages[-1].perf_metrics if answers else None
    cells: tuple[Any, ...] = (
        item, question, options, gold, index, choice, score.extracted_prediction,
        *token_counts(usage),
    )  # fmt: skip
    if texts:
        before = messages[: len(messages) - answers]
        turns = [{"role": message.role, "content": message.content} for message in before]
        response = messages[-1].content if answers else None
        response = response if score.prediction is None else score.prediction
        cells = (*cells, as_json_text(turns), response)
    return PlainRow(RowForm(task, tuple(score.value), bool(options)), values, cells)


def has_repeats(rows: Iterable[bytes | msgspec.Raw]) -> bool:
    """Return whether an item has several reviews; numbering repeats requires all of them."""
    known: set[str | None] = set()
    for item in map(_raw_id, rows):
        if item in known:
            return True
        if item is not None:
            known.add(item)
    return False


def _raw_id(raw: bytes | msgspec.Raw) -> str | None:
    try:
        row = _decode_ids(raw)
    except UNDECODABLE:
        try:
            value = decode(raw)
        except Malformed:
            return None
        return item_id(value) if isinstance(value, dict) else None
    return _typed_id(row)


def _typed_id(row: _Review | _ReviewIds) -> str | None:
    """Return the same as `item_id`."""
    for own in (row.sample_score.group_id, row.sample_score.sample_id, row.index):
        if own is not None and own != "":
            return str(own)
    return None
