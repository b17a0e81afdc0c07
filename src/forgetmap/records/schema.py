"""THE list of fields of a per-item result.

Everything else is derived from it: the Arrow schemas, the JSON schema, validation, the table in
docs/records.md. To add a field, add a line here and run `make docs`.

Migration rule: `SCHEMA_VERSION` rises when a field is renamed, removed or changes its meaning, and
`records.manifest.MIGRATIONS` gets the step from the version before. A new optional field does not
raise it: readers fill what is absent with null and ignore what they do not know.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa

from forgetmap.records.outcome import Outcome

SCHEMA_VERSION = 1
SCORES, TEXTS = "scores.parquet", "texts.parquet"
"""Tables of a run folder."""
MORE_TEXTS = "texts-*.parquet"
"""Further files of texts, where several processes wrote a run."""

Part = Literal["key", "scores", "texts"]


@dataclass(frozen=True, slots=True)
class Field:
    """One column of the canonical table.

    Attributes:
        name: the column.
        type: its Arrow type.
        part: `key` stands in both files of a run folder, `scores` or `texts` in one of them.
        doc: what it says, in one sentence.
        required: never null in a run folder.
        allowed: the only values it may have.
    """

    name: str
    type: pa.DataType
    part: Part
    doc: str
    required: bool = False
    allowed: tuple[str, ...] | None = None


_text, _int, _real, _hash = pa.string(), pa.int32(), pa.float64(), pa.int64()

FIELDS: tuple[Field, ...] = (
    Field("task", _text, "key", "Benchmark or sub-benchmark the item belongs to.", required=True),
    Field("item", _text, "key", "The producer's own id of the item, as text.", required=True),
    Field(
        "repeat",
        _int,
        "key",
        "0, 1, ...: which answer of the same model to this item (seed, epoch, sample).",
        required=True,
    ),
    Field("metric", _text, "scores", "What was measured, such as `acc`.", required=True),
    Field(
        "scorer", _text, "scores", "Who measured it: filter, extraction or judge.", required=True
    ),
    Field("score", _real, "scores", "The value of the metric; null when it could not be had."),
    Field(
        "outcome",
        _text,
        "scores",
        "How the answer ended; null where nobody recorded it.",
        allowed=tuple(Outcome),
    ),
    Field("k", _int, "scores", "Number of options; null for an open-ended item."),
    Field("category", _text, "scores", "Group of tasks or items this one belongs to."),
    Field("tags", _text, "scores", "Further groups, separated by `;`."),
    Field(
        "cluster",
        _text,
        "scores",
        "Items that stand or fall together, such as the questions on one passage.",
    ),
    Field(
        "gold",
        _text,
        "scores",
        "The right answer as text (never a letter where options are known).",
    ),
    Field(
        "gold_index",
        _int,
        "scores",
        "Place of the right answer among the options as shown, from 0.",
    ),
    Field("answer", _text, "scores", "What was extracted from the response."),
    Field(
        "choice",
        _text,
        "scores",
        "The chosen option by content, so that two wrong answers can be compared.",
    ),
    Field("question_hash", _hash, "scores", "Hash of the question's normalised text."),
    Field("options_hash", _hash, "scores", "Hash of the normalised options, whatever their order."),
    Field("gold_hash", _hash, "scores", "Hash of the normalised right answer."),
    Field(
        "prompt_hash",
        _hash,
        "scores",
        "Hash of the rendered prompt: a warning signal, never a key.",
    ),
    Field("seed", _hash, "scores", "Seed of this repeat."),
    Field("tokens_in", _int, "scores", "Tokens of the prompt."),
    Field("tokens_out", _int, "scores", "Tokens of the response."),
    Field("finish_reason", _text, "scores", "Why generation ended, in the backend's word."),
    Field("logprob_answer", _real, "scores", "Sum of the log-probabilities of the answer given."),
    Field("logprob_gold", _real, "scores", "Sum of the log-probabilities of the right answer."),
    Field(
        "logprob_next",
        _real,
        "scores",
        "Sum of the log-probabilities of the most likely option besides the answer given.",
    ),
    Field("question", _text, "texts", "What was asked, without template or examples."),
    Field("options", pa.list_(_text), "texts", "The options as shown, in order."),
    Field(
        "prompt", _text, "texts", "The prompt as the model saw it; for a chat the messages as JSON."
    ),
    Field("response", _text, "texts", "The whole response, thinking included."),
    Field(
        "material",
        _text,
        "texts",
        "What else a scorer needs of the item, as a JSON object: context, schema, tests, ...",
    ),
    Field("error", _text, "texts", "What went wrong, where the outcome is `error`."),
)

BY_NAME = {field.name: field for field in FIELDS}
"""All fields by their names."""
KEY = tuple(field.name for field in FIELDS if field.part == "key")
"""Fields that tell answers apart."""
RESULT_KEY = (*KEY, "metric", "scorer")
"""One row of scores per combination of these; a second one is an error."""

CONTENT_HASHES = ("question_hash", "gold_hash", "options_hash")
"""Fields that say whether two items are the same, whatever their ids."""
HASHES = (*CONTENT_HASHES, "prompt_hash")
"""Fields that are hashes of texts."""
SCORE_NAMES = tuple(field.name for field in FIELDS if field.part != "texts")
"""Columns of `scores.parquet`, in order."""
TEXT_NAMES = tuple(field.name for field in FIELDS if field.part == "texts")
"""Columns of `texts.parquet` besides the key, in order."""


def scores_schema() -> pa.Schema:
    """Arrow schema of `scores.parquet`."""
    return _arrow(SCORE_NAMES)


def texts_schema() -> pa.Schema:
    """Arrow schema of `texts.parquet`."""
    return _arrow((*KEY, *TEXT_NAMES))


def json_schema() -> dict[str, Any]:
    """JSON schema of one record, scores and texts together."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "forgetmap record",
        "description": "One result: one answer of one model to one item under one metric.",
        "type": "object",
        "properties": {field.name: _json_property(field) for field in FIELDS},
        "required": [field.name for field in FIELDS if field.required],
        "additionalProperties": False,
        "x-schema-version": SCHEMA_VERSION,
    }


def markdown_table() -> str:
    """The table of fields for the documentation."""
    head = "| field | type | file | required | meaning |\n|---|---|---|---|---|"
    return "\n".join([head, *(_markdown_row(field) for field in FIELDS)])


def _arrow(names: tuple[str, ...]) -> pa.Schema:
    fields = [BY_NAME[name] for name in names]
    return pa.schema([pa.field(f.name, f.type, nullable=not f.required) for f in fields])


def _json_property(field: Field) -> dict[str, Any]:
    kind: dict[str, Any] = {"description": field.doc}
    if pa.types.is_list(field.type):
        return kind | {"type": ["array", "null"], "items": {"type": "string"}}
    name = "string"
    if pa.types.is_integer(field.type):
        name = "integer"
    elif pa.types.is_floating(field.type):
        name = "number"
    kind["type"] = name if field.required else [name, "null"]
    if field.allowed:
        kind["enum"] = [*field.allowed, *([] if field.required else [None])]
    return kind


def _markdown_row(field: Field) -> str:
    where = {"key": "both", "scores": "scores", "texts": "texts"}[field.part]
    doc = field.doc
    if field.allowed:
        doc += " One of " + ", ".join(f"`{value}`" for value in field.allowed) + "."
    return (
        f"| `{field.name}` | {field.type} | {where} | {'yes' if field.required else ''} | {doc} |"
    )
