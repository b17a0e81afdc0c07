"""JSON output described by a schema. A "table schema" is a JSON schema like any other.

    valid         the response contains JSON that the schema accepts
    valid_fenced  the response is only that JSON, possibly in a code fence
    valid_strict  the response is only that JSON
    parsed        the response contains JSON, accepted or not
    content       the JSON (the accepted one, else the last) contains the right answer

`content` is absent if the item has no right answer. The answer is searched under keys that contain
answer, solution or result; if there are none, everywhere.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from forgetmap.errors import FieldError
from forgetmap.records import Outcome
from forgetmap.scoring.extract.failures import why_nothing
from forgetmap.scoring.extract.golds import letter_index
from forgetmap.scoring.extract.json_text import NotJson, json_within, leaves, read_json, strip_fence
from forgetmap.scoring.extract.thinking import visible_text
from forgetmap.scoring.grade import AnswerKind, Grade, grade_answer, grade_failure, grade_missing
from forgetmap.scoring.grading import grade_response
from forgetmap.scoring.scorer import RIGHT_OR_WRONG, Fields, Scale, ScorerInput

if TYPE_CHECKING:
    from forgetmap.scoring.scorers.schema_check import SchemaCheck

_FORMS = ("valid", "valid_fenced", "valid_strict")
_ANSWER_KEY = re.compile(r"answer|solution|result", re.IGNORECASE)
_NUMBER = re.compile(r"[-+$€£]?\s?\d[\d,. ]*%?")
_MAX_LEAF_CHARS = 500
_MAX_LEAVES = 50
_MAX_VALUES = 50


class JsonSchemaScorer:
    """Scorer of JSON output."""

    name = "json_schema"
    version = 1
    packages = ("jsonschema",)
    fields: Mapping[str, Scale] = dict.fromkeys((*_FORMS, "parsed", "content"), RIGHT_OR_WRONG)

    def score(self, sample: ScorerInput) -> Fields:
        """Return the values; `material` has the `schema`, as an object or as JSON text.

        Raises:
            FieldError: there is no schema, or it is unusable.
        """
        check = _check(sample.material.get("schema"))
        text, cut = visible_text(sample.response, sample.finish_reason)
        values = list(deque(json_within(text), maxlen=_MAX_VALUES))
        if not values and (pair := _read_whole(text)) is not None:
            values = [pair]
        if not values:
            nothing = grade_failure(why_nothing(text, cut=cut))
            return {field: nothing for field in self.fields if _applies(field, sample)}
        verdicts = [check.accepts(value) for _, value in values]
        index = _last(verdicts)
        fields = _forms(text, values[index][0], accepted=verdicts[index])
        fields["parsed"] = grade_answer(values[index][0], right=True)
        if _applies("content", sample):
            fields["content"] = _content(values[index][1], sample)
        return fields


json_schema = JsonSchemaScorer()


def _check(schema: Any) -> SchemaCheck:
    from forgetmap.scoring.scorers.schema_check import schema_check  # needs jsonschema

    if isinstance(schema, str) and schema.strip():
        return schema_check(schema)
    if isinstance(schema, Mapping | bool):
        return schema_check(json.dumps(schema, sort_keys=True))
    raise FieldError(
        "the item has no schema",
        field="schema",
        hint="add the JSON schema as `schema` to the material of the item.",
    )


def _read_whole(text: str) -> tuple[str, Any] | None:
    """Read a response that is only JSON, possibly fenced, also a number or text; else None."""
    text = strip_fence(text).strip()
    try:
        return text, read_json(text)
    except NotJson:
        return None


def _last(verdicts: list[bool | None]) -> int:
    """Return the index of the last accepted JSON, else of the last one."""
    accepted = [index for index, verdict in enumerate(verdicts) if verdict]
    return accepted[-1] if accepted else len(verdicts) - 1


def _forms(text: str, answer: str, *, accepted: bool | None) -> dict[str, Grade]:
    if accepted is None:
        return dict.fromkeys(_FORMS, grade_missing("the schema is circular", answer))
    bare = text.strip() == answer
    alone = bare or strip_fence(text).strip() == answer
    return {
        "valid": grade_answer(answer, right=accepted, strict=alone),
        "valid_fenced": grade_answer(answer, right=accepted and alone, strict=alone),
        "valid_strict": grade_answer(answer, right=accepted and bare, strict=bare),
    }


def _applies(field: str, sample: ScorerInput) -> bool:
    return field != "content" or bool(_gold(sample))


def _gold(sample: ScorerInput) -> str:
    gold = sample.gold.get("answer") if isinstance(sample.gold, Mapping) else sample.gold
    if gold is None or isinstance(gold, list | Mapping):
        return ""
    text = json.dumps(gold) if isinstance(gold, bool) else str(gold)
    return text.rpartition("####")[2].strip()


def _content(value: Any, sample: ScorerInput) -> Grade:
    """Grade the content: right if one of the possible answers is the right one."""
    every = [(key, leaf) for key, leaf in leaves(value) if leaf is not None]
    marked = [leaf for key, leaf in every if _ANSWER_KEY.search(key)]
    answers = [_leaf_text(leaf) for leaf in marked or [leaf for _, leaf in every]][:_MAX_LEAVES]
    if not answers:
        return grade_failure(Outcome.NO_ANSWER)
    right = [leaf for leaf in answers if _is_answer(leaf, sample)]
    return grade_answer((right or answers)[-1], right=bool(right))


def _leaf_text(leaf: Any) -> str:
    return json.dumps(leaf) if isinstance(leaf, bool) else str(leaf)[:_MAX_LEAF_CHARS]


def _is_answer(answer: str, sample: ScorerInput) -> bool:
    """Whether this is the right answer; with options, by letter or text."""
    gold = _gold(sample)
    index = letter_index(gold)
    kind: AnswerKind = "number" if _NUMBER.fullmatch(gold) else "text"
    if index is not None and index < len(sample.options):
        gold, kind = sample.options[index], "option"
    return bool(
        grade_response(f"Answer: {answer}", gold=gold, kind=kind, options=sample.options).score
    )
