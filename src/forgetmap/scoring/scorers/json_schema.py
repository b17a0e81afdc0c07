"""Output as JSON that a schema describes. A "table schema" is a JSON schema like any other.

    valid         JSON that the schema accepts stands somewhere in the response
    valid_fenced  the response is nothing but that JSON, a code fence around it allowed
    valid_strict  the response is nothing but that JSON
    parsed        the response holds JSON at all, accepted or not
    content       the JSON (the accepted one, else the last) gives the right answer, too

Where the item has no right answer, `content` is left out. The answer is looked for under keys that
call themselves answer, solution or result; where there are none, everywhere.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from jsonschema import exceptions, validators
from jsonschema_specifications import REGISTRY  # type: ignore[import-untyped]

from forgetmap.errors import FieldError
from forgetmap.records import Outcome
from forgetmap.scoring.extract.failures import why_nothing
from forgetmap.scoring.extract.golds import letter_place
from forgetmap.scoring.extract.json_text import NotJson, json_within, leaves, read_json, unfenced
from forgetmap.scoring.extract.thinking import visible_text
from forgetmap.scoring.grade import AnswerKind, Grade, failed, graded, undecided
from forgetmap.scoring.grading import grade_response
from forgetmap.scoring.scorer import RIGHT_OR_WRONG, Answered, Fields, Scale

_FORMS = ("valid", "valid_fenced", "valid_strict")
_ANSWER_KEY = re.compile(r"answer|solution|result", re.IGNORECASE)
_NUMBER = re.compile(r"[-+$€£]?\s?\d[\d,. ]*%?")
_LONGEST_LEAF = 500
_MOST_LEAVES = 50
_MOST_FOUND = 50


class JsonSchemaScorer:
    """Scores whether a response is the JSON that was asked for."""

    name = "json_schema"
    version = 1
    fields: Mapping[str, Scale] = dict.fromkeys((*_FORMS, "parsed", "content"), RIGHT_OR_WRONG)

    def score(self, sample: Answered) -> Fields:
        """The values; `material` gives the `schema`, as an object or as JSON text.

        Raises:
            FieldError: there is no schema, or it is unusable.
        """
        check = _check(sample.material.get("schema"))
        aloud, cut = visible_text(sample.response, sample.finish_reason)
        found = list(deque(json_within(aloud), maxlen=_MOST_FOUND))
        if not found and (whole := _whole(aloud)) is not None:
            found = [whole]
        if not found:
            nothing = failed(why_nothing(aloud, cut=cut))
            return {field: nothing for field in self.fields if _applies(field, sample)}
        verdicts = [check.accepts(value) for _, value in found]
        taken = _last(verdicts)
        fields = _forms(aloud, found[taken][0], accepted=verdicts[taken])
        fields["parsed"] = graded(found[taken][0], right=True)
        if _applies("content", sample):
            fields["content"] = _content(found[taken][1], sample)
        return fields


json_schema = JsonSchemaScorer()


def _check(schema: Any) -> SchemaCheck:
    if isinstance(schema, str) and schema.strip():
        return schema_check(schema)
    if isinstance(schema, Mapping | bool):
        return schema_check(json.dumps(schema, sort_keys=True))
    raise FieldError(
        "the item has no schema",
        field="schema",
        hint="give the JSON schema as `schema` in the material of the item.",
    )


def _whole(text: str) -> tuple[str, Any] | None:
    """A response that is nothing but JSON, perhaps fenced; it may be a bare number or text."""
    text = unfenced(text).strip()
    try:
        return text, read_json(text)
    except NotJson:
        return None


def _last(verdicts: list[bool | None]) -> int:
    """The last accepted JSON, else the last of all."""
    accepted = [place for place, verdict in enumerate(verdicts) if verdict]
    return accepted[-1] if accepted else len(verdicts) - 1


def _forms(text: str, written: str, *, accepted: bool | None) -> dict[str, Grade]:
    if accepted is None:
        return dict.fromkeys(_FORMS, undecided("the schema goes round in circles", written))
    bare = text.strip() == written
    alone = bare or unfenced(text).strip() == written
    return {
        "valid": graded(written, right=accepted, strict=alone),
        "valid_fenced": graded(written, right=accepted and alone, strict=alone),
        "valid_strict": graded(written, right=accepted and bare, strict=bare),
    }


def _applies(field: str, sample: Answered) -> bool:
    return field != "content" or bool(_gold(sample))


def _gold(sample: Answered) -> str:
    gold = sample.gold.get("answer") if isinstance(sample.gold, Mapping) else sample.gold
    if gold is None or isinstance(gold, list | Mapping):
        return ""
    said = json.dumps(gold) if isinstance(gold, bool) else str(gold)
    return said.rpartition("####")[2].strip()


def _content(value: Any, sample: Answered) -> Grade:
    """Right if one of the values that can be the answer is the right one."""
    every = [(key, each) for key, each in leaves(value) if each is not None]
    named = [each for key, each in every if _ANSWER_KEY.search(key)]
    said = [_said(each) for each in named or [each for _, each in every]][:_MOST_LEAVES]
    if not said:
        return failed(Outcome.NO_ANSWER)
    right = [each for each in said if _is_answer(each, sample)]
    return graded((right or said)[-1], right=bool(right))


def _said(leaf: Any) -> str:
    return json.dumps(leaf) if isinstance(leaf, bool) else str(leaf)[:_LONGEST_LEAF]


def _is_answer(said: str, sample: Answered) -> bool:
    """Whether this is the right answer; a letter may stand for its option, and its text for it."""
    gold = _gold(sample)
    place = letter_place(gold)
    kind: AnswerKind = "number" if _NUMBER.fullmatch(gold) else "text"
    if place is not None and place < len(sample.options):
        gold, kind = sample.options[place], "option"
    return bool(
        grade_response(f"Answer: {said}", gold=gold, kind=kind, options=sample.options).score
    )


_MOST_REFERENCES = 2_000


class SchemaCheck:
    """One schema, ready to check values."""

    def __init__(self, schema: Any) -> None:
        self._followed = 0
        kind = validators.validator_for(schema, default=validators.Draft202012Validator)
        _refuse_unusable(schema, kind)
        bounded = {
            "pattern": _pattern,
            "patternProperties": _pattern_properties,
            "additionalProperties": self._beside_patterns(kind),
            "uniqueItems": _unique_items,
            "$ref": self._counted(kind),
        }
        known = {key: rule for key, rule in bounded.items() if key in kind.VALIDATORS}
        self._validator = validators.extend(kind, known)(schema, registry=REGISTRY)

    def accepts(self, value: Any) -> bool | None:
        """Whether a value is valid; None if the schema goes round in circles.

        Raises:
            FieldError: the schema turns out to be unusable.
        """
        self._followed = 0
        try:
            return bool(self._validator.is_valid(value))
        except (RecursionError, _EndlessError):
            return None
        except exceptions._WrappedReferencingError as error:  # noqa: SLF001
            raise _unusable(f"the schema refers to something that is not there: {error}") from error

    def _counted(self, kind: Any) -> Any:
        """`$ref`, as long as it is not followed too often."""
        rule = kind.VALIDATORS.get("$ref")

        def follow(validator: Any, ref: Any, instance: Any, schema: Any) -> Any:
            self._followed += 1
            if self._followed > _MOST_REFERENCES:
                raise _EndlessError
            return rule(validator, ref, instance, schema)

        return follow

    @staticmethod
    def _beside_patterns(kind: Any) -> Any:
        """`additionalProperties`: of what neither a name nor a pattern mentions."""
        rule = kind.VALIDATORS.get("additionalProperties")

        def check(validator: Any, extra: Any, instance: Any, schema: Any) -> Iterator[Any]:
            patterns = schema.get("patternProperties", {})
            if not patterns or not isinstance(instance, dict):
                yield from rule(validator, extra, instance, schema) or ()
                return
            rest = {
                name: each
                for name, each in instance.items()
                if not any(_matches(pattern, name) for pattern in patterns)
            }
            plain = {key: value for key, value in schema.items() if key != "patternProperties"}
            yield from rule(validator, extra, rest, plain) or ()

        return check


class _EndlessError(Exception):
    """A schema refers to itself too often."""


@lru_cache(maxsize=512)
def schema_check(schema: str) -> SchemaCheck:
    """The check of a schema given as JSON text.

    Raises:
        FieldError: it is no schema, or not one that can be checked safely.
    """
    try:
        return SchemaCheck(json.loads(schema))
    except (ValueError, RecursionError) as error:
        if isinstance(error, FieldError):
            raise
        raise _unusable(f"the schema is no JSON: {error}") from error


def _refuse_unusable(schema: Any, kind: Any) -> None:
    try:
        kind.check_schema(schema)
    except exceptions.SchemaError as error:
        raise _unusable(f"the schema is none: {error.message}") from error
    for part in _parts(schema):
        for key in ("$ref", "$dynamicRef", "$recursiveRef"):
            ref = part.get(key)
            if isinstance(ref, str) and not ref.startswith("#") and ref.rstrip("#") not in REGISTRY:
                raise _unusable(f"the schema refers to {ref!r}, which is elsewhere")
        if "patternProperties" in part and "unevaluatedProperties" in part:
            raise _unusable("the schema has unevaluatedProperties beside patternProperties")
        named = part.get("patternProperties")
        patterns = list(named) if isinstance(named, dict) else []
        for pattern in [*patterns, part.get("pattern")]:
            if isinstance(pattern, str):
                _matches(pattern, "")


def _parts(schema: Any) -> Iterator[Mapping[str, Any]]:
    """The schema and all objects in it."""
    if isinstance(schema, dict):
        yield schema
    if isinstance(schema, dict | list):
        for each in schema.values() if isinstance(schema, dict) else schema:
            yield from _parts(each)


def _unusable(message: str) -> FieldError:
    return FieldError(
        message,
        field="schema",
        hint="give a self-contained JSON schema, its patterns without look around.",
    )


def _matches(pattern: str, text: str) -> bool:
    readable = text.encode("utf-8", "replace").decode("utf-8")  # half a surrogate pair is not
    try:
        found = pc.match_substring_regex(pa.array([readable], pa.string()), pattern=pattern)
    except pa.ArrowInvalid as error:
        raise _unusable(f"the pattern {pattern!r} cannot be checked") from error
    return bool(found[0].as_py())


def _pattern(_validator: Any, pattern: str, instance: Any, _schema: Any) -> Iterator[Any]:
    if isinstance(instance, str) and not _matches(pattern, instance):
        yield exceptions.ValidationError(f"does not match {pattern!r}")


def _pattern_properties(
    validator: Any, patterns: Any, instance: Any, _schema: Any
) -> Iterator[Any]:
    if not isinstance(instance, dict):
        return
    for pattern, part in patterns.items():
        for name, each in instance.items():
            if _matches(pattern, name):
                yield from validator.descend(each, part, path=name, schema_path=pattern)


def _unique_items(_validator: Any, unique: Any, instance: Any, _schema: Any) -> Iterator[Any]:
    if unique and isinstance(instance, list):
        distinct = {json.dumps(_as_integers(each), sort_keys=True) for each in instance}
        if len(distinct) < len(instance):
            yield exceptions.ValidationError("has equal items")


def _as_integers(value: Any) -> Any:
    """1.0 as 1: they are the same number."""
    if isinstance(value, dict):
        return {key: _as_integers(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_as_integers(each) for each in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
