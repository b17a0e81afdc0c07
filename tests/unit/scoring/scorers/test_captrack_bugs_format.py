"""Bugs of CapTrack's format, tool, citation, instruction and style metrics, by number."""

from __future__ import annotations

import random
import socket
import time
from dataclasses import replace
from typing import Any

import pytest

from forgetmap.errors import FieldError
from forgetmap.records.outcome import FAILED, Outcome
from forgetmap.scoring.scorer import RuleScorer, ScorerInput
from forgetmap.scoring.scorers.calls import calls
from forgetmap.scoring.scorers.citations import citations
from forgetmap.scoring.scorers.constraints import constraints
from forgetmap.scoring.scorers.instructions import _detected, language
from forgetmap.scoring.scorers.json_schema import json_schema
from forgetmap.scoring.scorers.style import style

TITLES = ["France", "Spain", "Peru", "Oslo"]
FACTS = {"supporting_facts": {"title": ["France"], "sent_id": [0]}, "context_titles": TITLES}


def values(scorer: RuleScorer, response: str, gold: Any = None, **material: Any) -> dict[str, Any]:
    fields = scorer.score(ScorerInput(response, gold=gold, material=material))
    return {name: judged.score for name, judged in fields.items()}


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("the network was used")

    monkeypatch.setattr(socket.socket, "connect", refuse)


# 13: tool calls


def test_bug_13_a_dotted_name_is_read_and_an_unreadable_response_gets_nothing() -> None:
    gold = ["geo.route.find(start='Rome')"]
    assert values(calls, "geo.route.find(start='Rome')", gold)["exact"] == 1
    assert values(calls, "find(start='Rome')", gold)["exact"] == 1
    for unreadable in ("geo.route.", "???", "I would find the route."):
        assert values(calls, unreadable, gold)["selection"] == 0


def test_bug_13_the_last_part_of_a_name_will_not_do_if_it_is_another_tool() -> None:
    tools = [
        {"name": "find", "parameters": ["start"]},
        {"name": "geo.find", "parameters": ["start"]},
    ]
    assert values(calls, "find('Rome')", ["geo.find(start='Rome')"], tools=tools)["selection"] == 0
    assert values(calls, "find('Rome')", ["geo.find(start='Rome')"], tools=tools[1:])["exact"] == 1


def test_bug_13_an_unreadable_gold_is_an_error_not_a_free_point() -> None:
    with pytest.raises(FieldError, match=r"the expected call 'geo\.\.find\(\(' is invalid"):
        values(calls, "((((", ["geo..find(("])


@pytest.mark.parametrize(
    "response",
    [
        "```python\nopen_door(room='hall')\n```",
        "[open_door(room='hall')]",
        '{"name": "open_door", "arguments": {"room": "hall"}}',
        '<tool_call>\n{"name": "open_door", "arguments": {"room": "hall"}}\n</tool_call>',
        '{"tool_calls": [{"function": {"name": "open_door", "arguments": {"room": "hall"}}}]}',
        '[{"name": "open_door", "arguments": "{\\"room\\": \\"hall\\"}"}]',
        "I shall open the door (the large one).\nopen_door(room='hall')\nThat is all.",
        "1. `open_door(room='hall')`",
        "door = open_door(\n    room='hall',\n)",
    ],
)
def test_bug_13_fences_lists_json_and_prose_change_nothing(response: str) -> None:
    found = values(calls, response, ["open_door(room='hall')"])
    assert found["acc"] == found["selection"] == found["arguments"] == found["exact"] == 1
    assert found["spurious"] == 0
    assert found["acc_strict"] == float(response.startswith(("[open", "door =")))


def test_bug_13_order_does_not_matter_and_the_wanted_calls_are_the_denominator() -> None:
    gold = ["a(x=1)", "a(x=2)", "b(y=3)"]
    assert values(calls, "b(y=3)\na(x=2)\na(x=1)", gold)["acc"] == 1
    found = values(calls, "b(y=3)\nc(z=1)\nc(z=2)\nd()", gold)
    assert found["selection"] == found["exact"] == pytest.approx(1 / 3)
    assert found["spurious"] == pytest.approx(3 / 4)


def test_bug_13_right_arguments_of_a_wrong_tool_count_for_nothing() -> None:
    found = values(calls, "close_door(room='hall')", ["open_door(room='hall')"])
    assert found["selection"] == found["exact"] == 0
    assert "arguments" not in found


# 16: citations


def test_bug_16_a_letter_is_no_citation_of_every_title_that_has_it() -> None:
    found = values(citations, "It is Paris [e].", FACTS)
    assert (found["precision"], found["recall"], found["f1"]) == (0, 0, 0)


def test_bug_16_citing_every_document_costs_precision() -> None:
    everything = " ".join(f"[{title}]" for title in TITLES)
    found = values(citations, f"It is Paris {everything}.", FACTS)
    assert (found["precision"], found["recall"]) == (0.25, 1)
    assert found["f1"] == pytest.approx(2 * 0.25 / 1.25)
    assert values(citations, "It is Paris [France].", FACTS)["f1"] == 1


# 17: emoji


@pytest.mark.parametrize(
    "text", ["你好世界", "こんにちは", "안녕하세요", "┌─┐ │ │", "✓ done", "© ™ → ★"]
)
def test_bug_17_scripts_boxes_and_signs_are_no_emoji(text: str) -> None:
    assert values(style, text)["emoji"] == 0


@pytest.mark.parametrize(
    ("text", "count"), [("🤖", 1), ("❤️ and 👩‍👩‍👧", 2), ("👍🏽🇫🇷", 2), ("1️⃣ first", 1)]
)
def test_bug_17_pictures_are(text: str, count: int) -> None:
    found = values(style, text)
    assert (found["emoji"], found["emoji_count"]) == (1, count)


# 18: IFEval


def test_bug_18_an_item_without_parameters_is_missing_never_matched_to_another() -> None:
    kinds = ["length_constraints:number_words", "punctuation:no_comma"]
    found = constraints.score(ScorerInput("No comma here.", gold=kinds, question=("Unheard of.",)))
    assert found["acc"].score is found["acc_strict"].score is found["followed"].score is None
    assert found["acc"].outcome is Outcome.ERROR
    assert "num_words" in str(found["acc"].error)
    assert found["punctuation"].score == 1


def test_bug_18_what_needs_no_parameter_is_scored() -> None:
    found = values(constraints, "Hello there", ["punctuation:no_comma"])
    assert found == {"acc": 1, "acc_strict": 1, "followed": 1, "punctuation": 1}


def test_bug_18_a_broken_instruction_beside_an_unknown_one_does_not_decide() -> None:
    kinds = ["length_constraints:number_words", "punctuation:no_comma"]
    assert values(constraints, "Yes, here.", kinds)["acc_strict"] is None
    assert values(constraints, "", kinds)["acc_strict"] is None


@pytest.mark.parametrize(
    ("prompt", "score"),
    [
        ("Write at least 3 words.", 1),
        ("Write at least 3 words, I mean at least 9 words.", None),
        ("Write some three words.", None),
        ("Write less than 3 words.", 0),
    ],
)
def test_bug_18_only_an_exact_wording_gives_parameters(prompt: str, score: int | None) -> None:
    sample = ScorerInput(
        "one two three", gold=["length_constraints:number_words"], question=(prompt,)
    )
    assert constraints.score(sample)["acc"].score == score


@pytest.mark.usefixtures("no_network")
def test_bug_18_nothing_is_downloaded() -> None:
    given = [{"num_sentences": 2, "relation": "at least"}, {"language": "en"}]
    kinds = ["length_constraints:number_sentences", "language:response_language"]
    sentence = "The river runs past the mill. Nobody knows where it goes to."
    assert values(constraints, sentence, kinds, kwargs=given)["acc"] == 1


# 25: empty responses


def test_bug_25_an_empty_response_is_counted_and_says_so() -> None:
    found = style.score(ScorerInput(" \n"))
    assert found["words"].score == found["bullets"].score == found["directness"].score == 0
    assert {judged.outcome for judged in found.values()} == {Outcome.NO_ANSWER}
    assert found.keys() == style.fields.keys() - {"sentence_words", "non_latin"}


@pytest.mark.parametrize(
    ("scorer", "gold", "material"),
    [
        (calls, ["f(x=1)"], {}),
        (calls, "NONE", {}),
        (citations, FACTS, {}),
        (constraints, ["punctuation:no_comma"], {}),
        (json_schema, "4", {"schema": {"type": "object"}}),
    ],
)
def test_bug_25_an_empty_response_never_scores(
    scorer: RuleScorer, gold: Any, material: dict[str, Any]
) -> None:
    found = scorer.score(ScorerInput("", gold=gold, material=material))
    assert {judged.score for judged in found.values()} == {0}
    assert {judged.outcome for judged in found.values()} == {Outcome.NO_ANSWER}


# 29: languages and words


def test_bug_29_the_language_of_a_text_is_always_the_same() -> None:
    doubtful = "Hotel Taxi Bar Museum Radio"
    _detected.cache_clear()
    first = language(doubtful)
    for _ in range(20):
        _detected.cache_clear()
        assert language(doubtful) == first


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("你好世界 再见", 6),
        ("こんにちは", 5),
        ("नमस्ते दुनिया", 2),
        ("안녕 세계", 2),
        ("two words", 2),
    ],
)
def test_bug_29_words_are_counted_in_every_script(text: str, words: int) -> None:
    assert values(style, text)["words"] == words


# H2: JSON by schema


def test_bug_15_deep_json_and_the_answer_in_it_both_count() -> None:
    deep = {"type": "object", "required": ["a"], "properties": {"a": {"$ref": "#/$defs/d"}}}
    deep |= {"$defs": {"d": {"type": "object", "required": ["b"]}}}
    response = 'Sure:\n{"a": {"b": {"c": {"d": {"answer": "1,200"}}}}}\nDone.'
    found = values(json_schema, response, "1200", schema=deep)
    assert (found["valid"], found["valid_strict"], found["content"]) == (1, 0, 1)
    assert values(json_schema, response, "1201", schema=deep)["content"] == 0


@pytest.mark.usefixtures("no_network")
@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "https://example.org/schema.json"},
        {"properties": {"a": {"$ref": "other.json#/a"}}},
        {"$ref": "#/nowhere"},
        {"type": "triangle"},
        {"pattern": "(?=a)b"},
        None,
        "{",
    ],
)
def test_an_unusable_schema_is_an_error_of_the_item(schema: Any) -> None:
    with pytest.raises(FieldError) as caught:
        values(json_schema, '{"a": "b"}', schema=schema)
    assert caught.value.field == "schema"


SCORED: list[tuple[RuleScorer, ScorerInput]] = [
    (style, ScorerInput("")),
    (calls, ScorerInput("", gold=["f(a='b')", "g.h(x=1)"])),
    (citations, ScorerInput("", gold=["France"], material={"titles": TITLES})),
    (
        json_schema,
        ScorerInput("", gold="42", material={"schema": {"patternProperties": {"a": {}}}}),
    ),
    (constraints, ScorerInput("", gold=["detectable_format:json_format", "punctuation:no_comma"])),
]
PIECES = [
    "f(", "g.h(x=1)", "f(a='b')", "[", "]", "{", "}", '"', "'", ",", "\n", "\n\n", "- ",
    "| a | b |", "|---|", "# ", "```", "```json", "<think>", "</think>", "[France]", "(",
    "word ", "42", "你好", "😀", "\ud800", "\x00", "\\", "***", "NaN", '{"a": "x1"}',
    '{"name": "f", "arguments": {}}', "<node-0>.image", "=", "+1" * 50, "NONE", "\u0301", "**x",
]  # fmt: skip


@pytest.mark.parametrize(("scorer", "sample"), SCORED, ids=lambda each: getattr(each, "name", ""))
def test_any_response_gets_values_on_the_scale(scorer: RuleScorer, sample: ScorerInput) -> None:
    draw = random.Random(17)
    for _ in range(300):
        response = "".join(draw.choices(PIECES, k=draw.randint(0, 30)))
        for field, judged in scorer.score(replace(sample, response=response)).items():
            scale = scorer.fields[field]
            assert judged.score is not None
            assert scale.low <= judged.score <= (scale.high or judged.score)
            assert not scale.binary or judged.score in {scale.low, scale.high}
            assert judged.outcome not in FAILED or judged.score == 0


@pytest.mark.parametrize(("scorer", "sample"), SCORED, ids=lambda each: getattr(each, "name", ""))
@pytest.mark.parametrize("piece", ["[", '{"a":', "f(\n", "- ", "`", "f(1+", "\n* a\n  * b"])
def test_a_long_response_takes_no_longer_than_its_length(
    scorer: RuleScorer, sample: ScorerInput, piece: str
) -> None:
    began = time.process_time()
    scorer.score(replace(sample, response=piece * (30_000 // len(piece))))
    assert time.process_time() - began < 5
