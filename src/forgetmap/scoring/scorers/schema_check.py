"""Validation against JSON schemas with jsonschema, with a time limit and without the network.

An external `$ref` is refused, not fetched. Patterns run on RE2 (in pyarrow), which takes time
proportional to the text for any pattern; lookaround and back references, which it does not support,
are refused. A schema may follow references 2,000 times per value.

Separate from json_schema.py, because jsonschema is not part of the core installation.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from jsonschema import exceptions, validators
from jsonschema_specifications import REGISTRY  # type: ignore[import-untyped]

from forgetmap.errors import FieldError

_MAX_REFERENCES = 2_000


class SchemaCheck:
    """Check of values against a schema."""

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
        """Whether a value is valid; None if the schema is circular.

        Raises:
            FieldError: the schema is unusable.
        """
        self._followed = 0
        try:
            return bool(self._validator.is_valid(value))
        except (RecursionError, _EndlessError):
            return None
        except exceptions._WrappedReferencingError as error:  # noqa: SLF001
            raise _unusable(f"the schema refers to a missing definition: {error}") from error

    def _counted(self, kind: Any) -> Any:
        """Return the rule for `$ref`, which raises an error if it is followed too often."""
        rule = kind.VALIDATORS.get("$ref")

        def follow(validator: Any, ref: Any, instance: Any, schema: Any) -> Any:
            self._followed += 1
            if self._followed > _MAX_REFERENCES:
                raise _EndlessError
            return rule(validator, ref, instance, schema)

        return follow

    @staticmethod
    def _beside_patterns(kind: Any) -> Any:
        """Return the rule for `additionalProperties`, which apply if no name or pattern matches."""
        rule = kind.VALIDATORS.get("additionalProperties")

        def check(validator: Any, extra: Any, instance: Any, schema: Any) -> Iterator[Any]:
            patterns = schema.get("patternProperties", {})
            if not patterns or not isinstance(instance, dict):
                yield from rule(validator, extra, instance, schema) or ()
                return
            rest = {
                name: value
                for name, value in instance.items()
                if not any(_matches(pattern, name) for pattern in patterns)
            }
            plain = {key: value for key, value in schema.items() if key != "patternProperties"}
            yield from rule(validator, extra, rest, plain) or ()

        return check


class _EndlessError(Exception):
    """A schema refers to itself too often."""


@lru_cache(maxsize=512)
def schema_check(schema: str) -> SchemaCheck:
    """Return the check of a schema in JSON text.

    Raises:
        FieldError: the text is not a schema, or not one that can be checked safely.
    """
    try:
        return SchemaCheck(json.loads(schema))
    except (ValueError, RecursionError) as error:
        if isinstance(error, FieldError):
            raise
        raise _unusable(f"the schema is not valid JSON: {error}") from error


def _refuse_unusable(schema: Any, kind: Any) -> None:
    try:
        kind.check_schema(schema)
    except exceptions.SchemaError as error:
        raise _unusable(f"the schema is invalid: {error.message}") from error
    for part in _parts(schema):
        for key in ("$ref", "$dynamicRef", "$recursiveRef"):
            ref = part.get(key)
            if isinstance(ref, str) and not ref.startswith("#") and ref.rstrip("#") not in REGISTRY:
                raise _unusable(f"the schema refers to the external definition {ref!r}")
        if "patternProperties" in part and "unevaluatedProperties" in part:
            raise _unusable("the schema combines unevaluatedProperties with patternProperties")
        by_pattern = part.get("patternProperties")
        patterns = list(by_pattern) if isinstance(by_pattern, dict) else []
        for pattern in [*patterns, part.get("pattern")]:
            if isinstance(pattern, str):
                _matches(pattern, "")


def _parts(schema: Any) -> Iterator[Mapping[str, Any]]:
    """Iterate over the schema and all objects in it."""
    if isinstance(schema, dict):
        yield schema
    if isinstance(schema, dict | list):
        for part in schema.values() if isinstance(schema, dict) else schema:
            yield from _parts(part)


def _unusable(message: str) -> FieldError:
    return FieldError(
        message,
        field="schema",
        hint="use a self-contained JSON schema with patterns without lookaround.",
    )


def _matches(pattern: str, text: str) -> bool:
    readable = text.encode("utf-8", "replace").decode("utf-8")  # replaces lone surrogates
    try:
        matches = pc.match_substring_regex(pa.array([readable], pa.string()), pattern=pattern)
    except pa.ArrowInvalid as error:
        raise _unusable(f"the pattern {pattern!r} cannot be checked") from error
    return bool(matches[0].as_py())


def _pattern(_validator: Any, pattern: str, instance: Any, _schema: Any) -> Iterator[Any]:
    if isinstance(instance, str) and not _matches(pattern, instance):
        yield exceptions.ValidationError(f"does not match {pattern!r}")


def _pattern_properties(
    validator: Any, patterns: Any, instance: Any, _schema: Any
) -> Iterator[Any]:
    if not isinstance(instance, dict):
        return
    for pattern, part in patterns.items():
        for name, value in instance.items():
            if _matches(pattern, name):
                yield from validator.descend(value, part, path=name, schema_path=pattern)


def _unique_items(_validator: Any, unique: Any, instance: Any, _schema: Any) -> Iterator[Any]:
    if unique and isinstance(instance, list):
        distinct = {json.dumps(_as_integers(item), sort_keys=True) for item in instance}
        if len(distinct) < len(instance):
            yield exceptions.ValidationError("has equal items")


def _as_integers(value: Any) -> Any:
    """Convert whole floats to integers, since 1.0 and 1 are equal in JSON."""
    if isinstance(value, dict):
        return {key: _as_integers(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_as_integers(part) for part in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
