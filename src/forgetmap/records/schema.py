"""The schema of a per-item result: the only list of its fields.

The Arrow schemas, the JSON schema, validation and the table in docs/records.md are derived from it.
To add a field, add a line here and run `make docs`.

Migration rule: `SCHEMA_VERSION` rises when a field is renamed, removed or changes its meaning, and
`records.manifest.MIGRATIONS` gets the step from the version before. A new optional field does not
raise it: readers fill absent fields with null and ignore unknown ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa

from forgetmap.records.outcome import Outcome

SCHEMA_VERSION = 1
SCORES, TEXTS = "scores.parquet", "texts.parquet"
"""Tables of a run folder."""

Part = Literal["key", "scores", "texts"]


@dataclass(frozen=True, slots=True)
class Field:
    """A column of the canonical table.

    Attributes:
        name: name of the column.
        type: Arrow type.
        part: `key` is in both files of a run folder, `scores` and `texts` in one of them.
        doc: meaning, in one sentence.
        required: whether it is never null in a run folder.
        allowed: the allowed values; None for any.
    """

    name: str
    type: pa.DataType
    part: Part
    doc: str
    required: bool = False
    allowed: tuple[str, ...] | None = None


_text, _int, _real, _hash = pa.string(), pa.int32(), pa.float64(), pa.int64()

FIELDS: tuple[Field, ...] = (
    Field("task", _text, "key", "Benchmark or sub-benchmark of the item.", required=True),
    Field("item", _text, "key", "Id of the item in its source, as text.", required=True),
    Field(
        "repeat",
        _int,
        "key",
        "Number of the answer to this item by the same model (seed, epoch, sample), from 0.",
        required=True,
    ),
    Field("metric", _text, "scores", "Name of the metric, such as `acc`.", required=True),
    Field(
        "scorer",
        _text,
        "scores",
        "What computed the score: filter, extraction or judge.",
        required=True,
    ),
    Field("score", _real, "scores", "Value of the metric; null if it is missing."),
    Field(
        "outcome",
        _text,
        "scores",
        "How the answer ended; null if not recorded.",
        allowed=tuple(Outcome),
    ),
    Field("k", _int, "scores", "Number of options; null for an open-ended item."),
    Field("category", _text, "scores", "Group of the task or item."),
    Field("tags", _text, "scores", "Additional groups, separated by `;`."),
    Field(
        "cluster",
        _text,
        "scores",
        "Group of dependent items, such as the questions on one passage.",
    ),
    Field(
        "gold",
        _text,
        "scores",
        "The right answer as text (never a letter if options are known).",
    ),
    Field(
        "gold_index",
        _int,
        "scores",
        "Position of the right answer among the options as shown, from 0.",
    ),
    Field("answer", _text, "scores", "Answer extracted from the response."),
    Field(
        "choice",
        _text,
        "scores",
        "The chosen option by content, so that two wrong answers can be compared.",
    ),
    Field("question_hash", _hash, "scores", "Hash of the question's normalised text."),
    Field(
        "options_hash",
        _hash,
        "scores",
        "Hash of the normalised options, independent of their order.",
    ),
    Field("gold_hash", _hash, "scores", "Hash of the normalised right answer."),
    Field(
        "prompt_hash",
        _hash,
        "scores",
        "Hash of the rendered prompt; used for warnings, never as a key.",
    ),
    Field("seed", _hash, "scores", "Seed of this repeat."),
    Field("tokens_in", _int, "scores", "Number of tokens of the prompt."),
    Field("tokens_out", _int, "scores", "Number of tokens of the response."),
    Field("finish_reason", _text, "scores", "Why generation ended, as reported by the backend."),
    Field(
        "logprob_answer",
        _real,
        "scores",
        "Log-probability of the given answer, summed over tokens.",
    ),
    Field(
        "logprob_gold", _real, "scores", "Log-probability of the right answer, summed over tokens."
    ),
    Field(
        "logprob_next",
        _real,
        "scores",
        "Log-probability of the most likely option other than the given answer, summed over "
        "tokens.",
    ),
    Field("question", _text, "texts", "The question, without template or examples."),
    Field("options", pa.list_(_text), "texts", "The options as shown, in order."),
    Field(
        "prompt", _text, "texts", "The prompt given to the model; for a chat, the messages as JSON."
    ),
    Field("response", _text, "texts", "The complete response, including thinking."),
    Field(
        "material",
        _text,
        "texts",
        "Further data for the scorer as a JSON object: context, schema, tests, ...",
    ),
    Field("error", _text, "texts", "The error message, if the outcome is `error`."),
)

BY_NAME = {field.name: field for field in FIELDS}
"""All fields by their names."""
KEY = tuple(field.name for field in FIELDS if field.part == "key")
"""Fields that identify an answer."""
RESULT_KEY = (*KEY, "metric", "scorer")
"""Fields that identify a row of scores; a second row is an error."""

CONTENT_HASHES = ("question_hash", "gold_hash", "options_hash")
"""Fields that identify an item by its content, independent of its id."""
HASHES = (*CONTENT_HASHES, "prompt_hash")
"""Fields that are hashes of texts."""
SCORE_NAMES = tuple(field.name for field in FIELDS if field.part != "texts")
"""Columns of `scores.parquet`, in order."""
TEXT_NAMES = tuple(field.name for field in FIELDS if field.part == "texts")
"""Columns of `texts.parquet` besides the key, in order."""


def scores_schema() -> pa.Schema:
    """Return the Arrow schema of `scores.parquet`."""
    return _arrow(SCORE_NAMES)


def texts_schema() -> pa.Schema:
    """Return the Arrow schema of `texts.parquet`."""
    return _arrow((*KEY, *TEXT_NAMES))


def json_schema() -> dict[str, Any]:
    """Return the JSON schema of a record, with scores and texts."""
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
    """Return the table of fields for the documentation."""
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
