"""Types, columns and docs that derive from the one list of fields."""

from __future__ import annotations

import re

import pytest
from jsonschema import Draft202012Validator, ValidationError

from forgetmap.records.manifest import MIGRATIONS
from forgetmap.records.outcome import FAILED, MISSING, Outcome
from forgetmap.records.schema import (
    FIELDS,
    KEY,
    RESULT_KEY,
    SCHEMA_VERSION,
    json_schema,
    markdown_table,
    scores_schema,
    texts_schema,
)

NAMES = [field.name for field in FIELDS]
LEAST = {
    "task": "t",
    "item": "1",
    "repeat": 0,
    "metric": "acc",
    "scorer": "default",
}


def test_names_are_unique() -> None:
    assert len(set(NAMES)) == len(NAMES)


def test_every_field_stands_in_the_files_it_belongs_to() -> None:
    scores, texts = scores_schema().names, texts_schema().names
    assert set(scores) | set(texts) == set(NAMES)
    assert set(scores) & set(texts) == set(KEY) == {"task", "item", "repeat"}
    own = {"question", "options", "prompt", "response", "material", "error"}
    assert set(texts) - set(KEY) == own


def test_the_arrow_schema_says_what_may_be_null() -> None:
    required = {field.name for field in scores_schema() if not field.nullable}
    assert required == {*RESULT_KEY}
    assert scores_schema().field("score").nullable


def test_the_json_schema_names_every_field() -> None:
    schema = json_schema()
    Draft202012Validator.check_schema(schema)
    assert list(schema["properties"]) == NAMES
    assert schema["x-schema-version"] == SCHEMA_VERSION
    assert all(entry["description"] for entry in schema["properties"].values())


def test_a_record_needs_its_key_and_nothing_else() -> None:
    validator = Draft202012Validator(json_schema())
    validator.validate(LEAST)
    for name in LEAST:
        with pytest.raises(ValidationError):
            validator.validate({key: value for key, value in LEAST.items() if key != name})


@pytest.mark.parametrize(
    "wrong",
    [
        {"score": "1"},
        {"outcome": "great"},
        {"repeat": 0.5},
        {"task": None},
        {"options": "a"},
        {"options": [1]},
        {"colour": "red"},
        {"k": 2.5},
    ],
)
def test_the_json_schema_refuses(wrong: dict[str, object]) -> None:
    assert not Draft202012Validator(json_schema()).is_valid(LEAST | wrong)


def test_the_table_for_the_docs_has_a_line_for_every_field() -> None:
    lines = markdown_table().splitlines()
    named = [re.match(r"\| `(\w+)` \|", line) for line in lines[2:]]
    assert [match and match[1] for match in named] == NAMES
    assert len({line.count("|") for line in lines}) == 1
    assert all(f"`{outcome}`" in markdown_table() for outcome in Outcome)


def test_every_older_version_has_its_step() -> None:
    assert set(MIGRATIONS) == set(range(1, SCHEMA_VERSION))


def test_every_way_an_answer_can_end() -> None:
    words = "correct incorrect partial no_answer refused truncated degenerate misread error"
    words += " unscored"
    assert [str(outcome) for outcome in Outcome] == words.split()
    assert set(map(str, MISSING)) == {"error", "unscored"}
    assert set(map(str, FAILED)) == {"no_answer", "refused", "truncated", "degenerate", "misread"}
