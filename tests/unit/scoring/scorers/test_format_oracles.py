"""Format scorers, checked against jsonschema, exhaustive matching and counting."""

from __future__ import annotations

import itertools
import json
import random
from typing import Any

import jsonschema
import pytest

from forgetmap.scoring.scorer import ScorerInput
from forgetmap.scoring.scorers.calls import calls
from forgetmap.scoring.scorers.citations import citations
from forgetmap.scoring.scorers.json_schema import json_schema
from forgetmap.scoring.scorers.style import style

KEYS = ("name", "size", "x_1", "x_2")
LEAVES: tuple[Any, ...] = ("abc", "a1", "", "42", 0, 1, 1.0, 2.5, -3, True, False, None)


def random_value(draw: random.Random, depth: int = 3) -> Any:
    kind = draw.random()
    if depth == 0 or kind < 0.4:
        return draw.choice(LEAVES)
    if kind < 0.6:
        return [random_value(draw, depth - 1) for _ in range(draw.randint(0, 3))]
    chosen = draw.sample(KEYS, draw.randint(0, 3))
    return {key: random_value(draw, depth - 1) for key in chosen}


def random_schema(draw: random.Random, depth: int = 3) -> Any:
    if depth == 0 or draw.random() < 0.2:
        return draw.choice(
            ({}, True, {"type": "string"}, {"type": "integer"}, {"enum": [1, "abc", None]},
             {"pattern": "^[a-z]+[0-9]?$"}, {"minimum": 1}, {"minLength": 2}, {"$ref": "#"})
        )  # fmt: skip
    part = random_schema(draw, depth - 1)
    return draw.choice(
        (
            {"type": ["object", "string"], "properties": {"name": part}, "required": ["name"]},
            {"patternProperties": {"^x_": part}, "additionalProperties": draw.random() < 0.5},
            {"properties": {"size": True}, "patternProperties": {"1$": part}}
            | {"additionalProperties": {"type": "string"}},
            {"type": "array", "items": part, "uniqueItems": True},
            {"anyOf": [part, random_schema(draw, depth - 1)]},
            {"not": part},
            {"type": "array", "contains": part, "maxItems": 2},
        )
    )


def said_by_jsonschema(schema: Any, value: Any) -> bool | None:
    """None where a schema refers to itself without end."""
    try:
        return bool(jsonschema.Draft202012Validator(schema).is_valid(value))
    except RecursionError:
        return None
    except BaseException as error:
        # Its Rust part panics if the limit of recursion is met there, by the depth of the caller.
        if type(error).__name__ != "PanicException":
            raise
        return None


@pytest.mark.parametrize("seed", range(4))
def test_json_is_valid_where_jsonschema_says_so(seed: int) -> None:
    draw = random.Random(seed)
    verdicts: list[bool] = []
    while len(verdicts) < 150:
        schema, value = random_schema(draw), random_value(draw)
        if not isinstance(value, dict | list):
            continue
        expected = said_by_jsonschema(schema, value)
        if expected is None:
            continue
        sample = ScorerInput(f"So:\n{json.dumps(value)}.", material={"schema": json.dumps(schema)})
        assert json_schema.score(sample)["valid"].score == expected, (schema, value)
        verdicts.append(expected)
    assert 20 < sum(verdicts) < 130


def written(call: tuple[str, dict[str, int]], style_of: str) -> str:
    name, arguments = call
    if style_of == "json":
        return json.dumps({"name": name, "arguments": arguments})
    return f"{name}({', '.join(f'{key}={value}' for key, value in arguments.items())})"


def best_match(wanted: list[Any], made: list[Any]) -> tuple[int, int]:
    """The most tools, and then the most right arguments, over all ways to pair them."""
    size = max(len(wanted), len(made))
    padded = made + [None] * (size - len(made))
    return max(
        (
            sum(other is not None and one[0] == other[0] for one, other in pairs),
            sum(other is not None and one == other for one, other in pairs),
        )
        for order in itertools.permutations(padded, len(wanted))
        for pairs in [list(zip(wanted, order, strict=True))]
    )


@pytest.mark.parametrize("seed", range(3))
def test_calls_match_as_well_as_trying_all_ways(seed: int) -> None:
    draw = random.Random(seed)

    def some(least: int) -> list[tuple[str, dict[str, int]]]:
        return [
            (
                draw.choice(("f", "g.h", "k")),
                {key: draw.randint(0, 1) for key in draw.sample("ab", 1)},
            )
            for _ in range(draw.randint(least, 4))
        ]

    for _ in range(150):
        wanted, made, form = some(1), some(0), draw.choice(("python", "json"))
        if draw.random() < 0.4:
            made = draw.sample(wanted, len(wanted)) + made[:1]
        response = "Well.\n" + "\n".join(written(call, form) for call in made)
        gold = [written(call, "python") for call in wanted]
        found = {k: v.score for k, v in calls.score(ScorerInput(response, gold=gold)).items()}
        tools, exact = best_match(wanted, made)
        assert found["selection"] == pytest.approx(tools / len(wanted))
        assert found["exact"] == pytest.approx(exact / len(wanted))
        assert found["acc"] == (exact == len(wanted) == len(made))
        assert found.get("arguments") == (pytest.approx(exact / tools) if tools else None)
        if made:
            assert found["spurious"] == pytest.approx((len(made) - tools) / len(made))


def test_citations_agree_with_set_arithmetic() -> None:
    draw = random.Random(5)
    titles = [f"Title {word}" for word in ("one", "two, three", "four", "five", "Six!", "Ünïque")]
    for _ in range(300):
        right = set(draw.sample(titles, draw.randint(1, 3)))
        cited = set(draw.sample([*titles, "Elsewhere", "Title"], draw.randint(1, 5)))
        shown = [f"[{draw.choice((title, title.upper(), f'Source: {title}'))}]" for title in cited]
        sample = ScorerInput(
            f"As said {' '.join(shown)}.", gold=sorted(right), material={"titles": titles}
        )
        found = citations.score(sample)
        hits = len(cited & right)
        assert found["precision"].score == pytest.approx(hits / len(cited))
        assert found["recall"].score == pytest.approx(hits / len(right))


def test_style_counts_what_was_put_in() -> None:
    draw = random.Random(9)
    for _ in range(200):
        put = {kind: draw.randint(0, 3) for kind in ("bullet", "table", "heading", "code", "emoji")}
        blocks = ["\n".join("- a stone" for _ in range(put["bullet"]))]
        blocks += ["| a | b |\n|---|---|\n| 1 | 2 |"] * put["table"]
        blocks += ["## A head"] * put["heading"] + ["```py\n# no head\n- no list\n```"] * put[
            "code"
        ]
        blocks += ["Plain words | with a bar."] + ["so 🤖"] * put["emoji"]
        draw.shuffle(blocks)
        found = style.score(ScorerInput("\n\n".join(blocks)))
        assert {kind: found[f"{kind}_count"].score for kind in put} == put
        names = {"bullet": "bullets", "table": "tables", "heading": "headings"}
        assert all(found[names.get(k, k)].score == float(n > 0) for k, n in put.items())
