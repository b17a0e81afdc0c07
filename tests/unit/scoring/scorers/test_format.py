"""Scorers of JSON, tool calls, citations and style."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from forgetmap.errors import FieldError
from forgetmap.records.outcome import Outcome
from forgetmap.scoring.scorer import RuleScorer, ScorerInput
from forgetmap.scoring.scorers.calls import calls
from forgetmap.scoring.scorers.citations import citations
from forgetmap.scoring.scorers.json_schema import json_schema
from forgetmap.scoring.scorers.style import style

OBJECT = {"type": "object", "required": ["answer"]}


def values(scorer: RuleScorer, response: str, gold: Any = None, **material: Any) -> dict[str, Any]:
    fields = scorer.score(ScorerInput(response, gold=gold, material=material))
    return {name: judged.score for name, judged in fields.items()}


# JSON


@pytest.mark.parametrize(
    ("response", "valid", "fenced", "strict"),
    [
        ('{"answer": "4"}', 1, 1, 1),
        (' \n{"answer": "4"}\n', 1, 1, 1),
        ('```json\n{"answer": "4"}\n```', 1, 1, 0),
        ('```\n{"answer": "4"}\n```', 1, 1, 0),
        ('Here: {"answer": "4"}', 1, 0, 0),
        ('```json\n{"answer": "4"}\n```\nDone.', 1, 0, 0),
        ('<think>{"answer": "5"}</think>{"answer": "4"}', 1, 1, 1),
        ('{"result": "4"}', 0, 0, 0),
        ('{"result": "4"} or rather {"answer": "4"}', 1, 0, 0),
    ],
)
def test_json_in_each_form(response: str, valid: int, fenced: int, strict: int) -> None:
    found = values(json_schema, response, "4", schema=OBJECT)
    assert (found["valid"], found["valid_fenced"], found["valid_strict"]) == (valid, fenced, strict)
    assert found["parsed"] == found["content"] == 1


@pytest.mark.parametrize("response", ["four", "{'answer': 4}", '{"answer": NaN}', '{"answer": "4"'])
def test_what_is_no_json(response: str) -> None:
    assert set(values(json_schema, response, "4", schema=OBJECT).values()) == {0}


def test_the_answer_is_looked_for_where_it_is_named() -> None:
    schema = {"type": "object"}
    both = '{"options": ["3", "4"], "answer": "3"}'
    assert values(json_schema, both, "4", schema=schema)["content"] == 0
    assert values(json_schema, '{"options": ["3", "4"]}', "4", schema=schema)["content"] == 1
    assert "content" not in values(json_schema, both, None, schema=schema)


@pytest.mark.parametrize(("said", "score"), [("B", 1), ("b)", 1), ("four", 1), ("three", 0)])
def test_a_letter_stands_for_its_option(said: str, score: int) -> None:
    response, material = json.dumps({"answer": said}), {"schema": {"type": "object"}}
    sample = ScorerInput(response, gold="B", options=("three", "four"), material=material)
    assert json_schema.score(sample)["content"].score == score


@pytest.mark.parametrize("gold", ["é", "ß"])
def test_a_letter_of_no_option_is_a_text(gold: str) -> None:
    response = json.dumps({"answer": gold})
    assert values(json_schema, response, gold, schema={"type": "object"})["content"] == 1


@pytest.mark.parametrize(
    ("items", "unique"), [([1, 1.0], 0), ([1, True], 1), ([{"a": 1}, {"a": 1.0}], 0), (["1", 1], 1)]
)
def test_unique_items(items: list[Any], unique: int) -> None:
    assert values(json_schema, json.dumps(items), schema={"uniqueItems": True})["valid"] == unique


def test_many_items_of_all_kinds_take_no_longer_than_their_number() -> None:
    items = json.dumps([each for n in range(10_000) for each in (n, str(n), [n])])
    began = time.process_time()
    assert values(json_schema, items, schema={"uniqueItems": True})["valid"] == 1
    assert time.process_time() - began < 5


def test_a_pattern_that_explodes_elsewhere_does_not_here() -> None:
    schema = {"properties": {"answer": {"pattern": "^(a+)+$"}}}
    response = json.dumps({"answer": "a" * 5_000 + "!"})
    assert values(json_schema, response, schema=schema)["valid"] == 0


def test_a_schema_that_goes_round_in_circles_leaves_the_value_missing() -> None:
    found = json_schema.score(ScorerInput("{}", material={"schema": {"$ref": "#"}}))
    assert found["valid"].score is None
    assert found["valid"].outcome is Outcome.ERROR


# tool calls


@pytest.mark.parametrize(
    ("wanted", "made", "right"),
    [
        ("f(a=1)", "f(a=1.0)", 1),
        ("f(a=1)", "f(a=1, b=2)", 0),
        ("f(a=1, b=2)", "f(a=1)", 0),
        ("f(a=1)", "f(a='1')", 0),
        ("f(a=1)", "f(a=True)", 0),
        ("f(a=True)", "f(a=true)", 1),
        ("f(a=None)", "f(a=null)", 1),
        ("f(a='New York, NY')", "f(a='new york NY')", 1),
        ("f(a='York')", "f(a='New York')", 0),
        ("f(a=[1, 2])", "f(a=(1, 2))", 1),
        ("f(a=[1, 2])", "f(a=[2, 1])", 0),
        ("f(a={'x': 1, 'y': 2})", "f(a={'y': 2, 'x': 1})", 1),
        ("f(a={'x': [1, 2]})", "f(a={'x': 1})", 0),
        ("f(1, 2)", "f(1, 2)", 1),
        ("f(1, 2)", "f(2, 1)", 0),
        ("f(a=g(1))", "f(a=g(1))", 1),
        ("f(a=g(1))", "f(a=g(2))", 0),
        ("f(a=1)", "f(**b)", 0),
    ],
)
def test_arguments(wanted: str, made: str, right: int) -> None:
    found = values(calls, made, [wanted])
    assert (found["selection"], found["arguments"], found["acc"]) == (1, right, right)


def test_positional_arguments_are_those_the_tools_name() -> None:
    tools = [{"name": "f", "parameters": {"type": "object", "properties": {"a": {}, "b": {}}}}]
    assert values(calls, "f(1, b=2)", ["f(a=1, b=2)"], tools=tools)["acc"] == 1
    assert values(calls, "f(2, 1)", ["f(a=1, b=2)"], tools=tools)["acc"] == 0
    assert values(calls, "f(1, 2)", ["f(a=1, b=2)"], tool_spec=json.dumps(tools))["acc"] == 1
    assert values(calls, "f(1, 2)", ["f(a=1, b=2)"])["acc"] == 0


def test_values_that_may_be_chosen_from_and_left_out() -> None:
    gold = [{"f": {"a": [1, 2], "b": ["x", ""], "c": [{"d": [3, ""], "e": [4]}]}}]
    assert values(calls, "f(a=2, b='X', c={'d': 3, 'e': 4})", gold)["acc"] == 1
    assert values(calls, "f(a=1, c={'e': 4})", gold)["acc"] == 1
    assert values(calls, "f(a=3, c={'e': 4})", gold)["acc"] == 0
    assert values(calls, "f(a=1, c={'d': 3})", gold)["acc"] == 0


PLAN = [
    {"id": 0, "name": "draw image", "args": {"prompt": "a red cat that sits on a mat"}},
    {"id": 1, "name": "draw image", "args": {"prompt": "one small brown dog asleep"}},
    {"id": 2, "name": "find text", "args": {"image": "<node-0>.image"}},
    {"id": 3, "name": "crop", "args": {"image": "<node-2>.image", "object": "cat"}},
]


@pytest.mark.parametrize(
    ("reference", "right"),
    [
        ("'x.png'", 1),
        ("<node-2>.image", 1),
        ("<node-0>.image", 0),
        ("<node-2>.text", 0),
        ("<node-9>.image", 0),
        ("found.image", 1),
        ("''", 0),
    ],
)
def test_what_refers_to_another_call_leads_to_the_same_tool(reference: str, right: int) -> None:
    response = (
        "draw image(prompt='a red cat that sits on the mat')\n"
        "draw_image(prompt='one small brown dog asleep')\n"
        f"find_text(image=<node-1>.image)\ncrop(image={reference}, object='cat')"
    )
    found = values(calls, response, PLAN)
    assert (found["selection"], found["exact"]) == (1, (3 + right) / 4)


def test_a_prompt_in_other_words_is_another_prompt() -> None:
    assert values(calls, "draw_image(prompt='a blue bird')", PLAN[:1])["exact"] == 0
    loose = {"name": "draw image", "args": PLAN[0]["args"]}
    almost = "draw_image(prompt='a red cat that sits on a rug')"
    assert values(calls, almost, [PLAN[0] | {"id": 5}])["exact"] == 1
    assert values(calls, almost, [loose])["exact"] == 0


def test_prose_with_brackets_is_no_call() -> None:
    found = values(calls, "Paris (France)\nf(a=1)\nNote (more)", ["f(a=1)"])
    assert (found["acc"], found["spurious"], found["acc_strict"]) == (1, 0, 0)
    assert values(calls, "Paris (France)", "NONE")["acc"] == 1


@pytest.mark.parametrize("gold", ["NONE", [], "none.", "[]"])
def test_where_no_call_is_wanted(gold: Any) -> None:
    assert values(calls, "NONE", gold) == {"acc": 1, "acc_strict": 1, "spurious": 0}
    assert values(calls, "No tool fits.", gold) == {"acc": 1, "acc_strict": 0, "spurious": 0}
    assert values(calls, "f(a=1)", gold) == {"acc": 0, "acc_strict": 0, "spurious": 1}


@pytest.mark.parametrize("gold", [None, "", 5, ["f("], [{"name": "f"}], [["f(a=1)"]]])
def test_a_gold_that_is_no_call_is_refused(gold: Any) -> None:
    with pytest.raises(FieldError):
        values(calls, "f(a=1)", gold)


# citations

FACTS = {
    "supporting_facts": {"title": ["France", "France", "Rome, Italy", "Not there"]},
    "context_titles": ["France", "Spain", "Rome, Italy"],
}


@pytest.mark.parametrize(
    ("response", "form", "precision", "recall"),
    [
        ("So [France] [Rome, Italy]", 1, 1, 1),
        ("So [france; ROME, Italy]", 1, 1, 1),
        ("So [France, Rome, Italy, Spain]", 1, 1 / 4, 1 / 2),
        ("So [Source: France, 3]", 1, 1, 1 / 2),
        ("So [France](https://example.org)", 1, 1, 1 / 2),
        ("So [France] and [Frances]", 1, 1 / 2, 1 / 2),
        ("So (France)", 0, 1, 1 / 2),
        ("So (1998)", 0, None, 0),
        ("- [x] done `a[0]`", 0, None, 0),
    ],
)
def test_citations(response: str, form: int, precision: float | None, recall: float) -> None:
    found = values(citations, response, FACTS)
    assert (found["format"], found.get("precision"), found["recall"]) == (form, precision, recall)


def test_without_right_sources_only_the_form_counts() -> None:
    elsewhere = {"supporting_facts": {"title": ["Peru"]}, "context_titles": ["France"]}
    assert values(citations, "So [France]", elsewhere) == {"format": 1}
    assert values(citations, "So.", elsewhere) == {"format": 0}
    with pytest.raises(FieldError):
        values(citations, "So [France]", {"answer": "x"})


# style


@pytest.mark.parametrize(
    ("text", "direct"),
    [
        ("Paris is the capital.", 1),
        ("Sure! Paris is the capital.", 0),
        ("That\u2019s a great question. Paris.", 0),
        ("I'm sorry, but I can't help with that.", 0),
        ("What do you mean? Paris or Rome?", 0),
        ("**Paris**", 1),
    ],
)
def test_directness(text: str, direct: int) -> None:
    assert values(style, text)["directness"] == direct


@pytest.mark.parametrize(
    ("text", "hedges"),
    [
        ("It may rain, perhaps. I think so.", 3),
        ("On May 5 it rained, to my dismay.", 0),
        ("I\u2019m not sure.", 1),
        ("It rains and it should.", 0),
    ],
)
def test_hedges(text: str, hedges: int) -> None:
    found = values(style, text)
    assert (found["hedges"], found["hedging"]) == (hedges, float(hedges > 0))


def test_lengths_and_scripts() -> None:
    found = values(style, "One two. Three four five six!")
    assert (found["words"], found["sentences"], found["sentence_words"]) == (6, 2, 3)
    assert (found["characters"], found["non_latin"]) == (29, 0)
    mixed = values(style, "abc 你好吗")
    assert mixed["non_latin"] == 0.5
    chinese = values(style, "你好")
    assert chinese["non_latin"] == 1
    assert not {"hedging", "directness"} & chinese.keys()
    assert "non_latin" not in values(style, "42")
