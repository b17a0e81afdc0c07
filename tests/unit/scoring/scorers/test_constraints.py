"""Every instruction of IFEval, with hand-written responses that follow it or not."""

from __future__ import annotations

from typing import Any

import pytest

from forgetmap.errors import FieldError
from forgetmap.scoring.extract.prose import sentences
from forgetmap.scoring.scorer import ScorerInput
from forgetmap.scoring.scorers.constraints import FAMILIES, constraints, parameters_in
from forgetmap.scoring.scorers.instructions import INSTRUCTIONS

CASES: dict[str, tuple[dict[str, Any], str, str]] = {
    "keywords:existence": ({"keywords": ["mill", "C++"]}, "A Mill in c++", "A mill in C"),
    "keywords:frequency": (
        {"keyword": "mill", "frequency": 2, "relation": "at least"}, "mill, windmill", "mill",
    ),
    "keywords:forbidden_words": ({"forbidden_words": ["art"]}, "a party", "the Art of it"),
    "keywords:letter_frequency": (
        {"letter": "a", "let_frequency": 3, "let_relation": "less than"}, "A banjo", "A banal",
    ),
    "language:response_language": (
        {"language": "de"}, "Der Fluss läuft an der alten Mühle vorbei.", "The river runs past it.",
    ),
    "length_constraints:number_sentences": (
        {"num_sentences": 3, "relation": "less than"},
        "Dr. Ray paid 3.5 pounds. So?", "It is. Is it! No? Yes.",
    ),
    "length_constraints:number_paragraphs": ({"num_paragraphs": 2}, "a\n***\nb", "a\n\nb"),
    "length_constraints:number_words": (
        {"num_words": 3, "relation": "at least"}, "one two three", "one two",
    ),
    "length_constraints:nth_paragraph_first_word": (
        {"num_paragraphs": 2, "nth_paragraph": 2.0, "first_word": "River"},
        'a\n\n"River," he said', "River\n\nb",
    ),
    "detectable_content:number_placeholders": ({"num_placeholders": 2}, "[a] and [b]", "[a]\n[b"),
    "detectable_content:postscript": ({"postscript_marker": "P.S."}, "x\np. s. more", "x\nPS more"),
    "detectable_format:number_bullet_lists": ({"num_bullets": 2}, "* a\n- b\n---", "* a\n* b\n* c"),
    "detectable_format:constrained_response": ({}, "My answer is no.", "No."),
    "detectable_format:number_highlighted_sections": (
        {"num_highlights": 2}, "*a* and **b**", "***a*** and * b",
    ),
    "detectable_format:multiple_sections": (
        {"num_sections": 2, "section_spliter": "PART"}, "PART 1\nx\nPART 2\ny", "Part 1\nPart 2",
    ),
    "detectable_format:json_format": ({}, '```json\n{"a": 1}\n```', "{'a': 1}"),
    "detectable_format:title": ({}, "<<A poem>>\nx", "<< >>\n<A poem>"),
    "combination:two_responses": ({}, "a\n******\nb", "a\n******\na"),
    "combination:repeat_prompt": ({"prompt_to_repeat": "Say it"}, "say it. It.", "It. Say it."),
    "startend:end_checker": ({"end_phrase": "The end."}, '"So it was. the end."', "The end. Or?"),
    "startend:quotation": ({}, ' "So." ', '"So.'),
    "change_case:capital_word_frequency": (
        {"capital_frequency": 2, "capital_relation": "at least"}, "I say STOP", "Say WELL-KNOWN",
    ),
    "change_case:english_capital": ({}, "THE RIVER RUNS PAST THE MILL", "The river runs PAST"),
    "change_case:english_lowercase": ({}, "the river runs past the mill", "The river runs past"),
    "punctuation:no_comma": ({}, "one and two", "one, two"),
}  # fmt: skip


def followed(kind: str, response: str, given: dict[str, Any]) -> float | None:
    fields = constraints.score(ScorerInput(response, gold=[kind], material={"kwargs": [given]}))
    assert fields["followed"].score == fields[kind.partition(":")[0]].score
    return fields["acc_strict"].score


def test_all_instructions_have_a_case() -> None:
    assert CASES.keys() == INSTRUCTIONS.keys()
    assert len(INSTRUCTIONS) == 25
    assert len(FAMILIES) == 9


@pytest.mark.parametrize("kind", CASES)
def test_followed_and_not(kind: str) -> None:
    given, good, bad = CASES[kind]
    assert followed(kind, good, given) == 1
    assert followed(kind, bad, given) == 0


@pytest.mark.parametrize("kind", [kind for kind, known in INSTRUCTIONS.items() if known.needs])
def test_a_parameter_that_is_not_given_leaves_the_value_missing(kind: str) -> None:
    given, good, _ = CASES[kind]
    for name in INSTRUCTIONS[kind].needs:
        assert followed(kind, good, given | {name: None}) is None


def test_a_parameter_of_the_wrong_kind_leaves_the_value_missing() -> None:
    assert followed("detectable_format:number_bullet_lists", "* a", {"num_bullets": "many"}) is None
    odd = {"num_words": 3, "relation": "about"}
    assert followed("length_constraints:number_words", "a b c", odd) is None
    assert constraints.score(ScorerInput("a b c", gold=["poetry:rhyme"]))["followed"].score is None


def test_loosely_an_opening_line_and_asterisks_do_not_matter() -> None:
    kinds = ["startend:quotation", "punctuation:no_comma"]
    found = constraints.score(ScorerInput('Sure, here:\n**"So it is"**', gold=kinds))
    assert (found["acc"].score, found["acc_strict"].score, found["followed"].score) == (1, 0, 0)
    assert found["acc_strict"].answer == "startend:quotation, punctuation:no_comma"


def test_parameters_may_be_json_text_with_nulls() -> None:
    kwargs = '[{"num_words": 2, "relation": "at least", "language": null}]'
    sample = ScorerInput(
        "a b", gold='["length_constraints:number_words"]', material={"kwargs": kwargs}
    )
    assert constraints.score(sample)["acc"].score == 1


def test_thinking_is_not_part_of_the_response() -> None:
    sample = ScorerInput("<think>one, two</think>three", gold=["punctuation:no_comma"])
    assert constraints.score(sample)["acc_strict"].score == 1


@pytest.mark.parametrize(
    ("gold", "material"),
    [(None, {}), ([], {}), ([3], {}), (["punctuation:no_comma"], {"kwargs": [{}, {}]})],
)
def test_an_item_without_usable_instructions_is_refused(
    gold: Any, material: dict[str, Any]
) -> None:
    with pytest.raises(FieldError):
        constraints.score(ScorerInput("x", gold=gold, material=material))


@pytest.mark.parametrize(
    ("kind", "prompt", "given"),
    [
        ("detectable_format:number_bullet_lists", "Use exactly 3 bullet points.",
         {"num_bullets": 3}),
        ("language:response_language", "Reply in German language, no other language is allowed.",
         {"language": "de"}),
        ("keywords:frequency", 'Here the word "mill" should appear at least 2 times.',
         {"keyword": "mill", "relation": "at least", "frequency": 2}),
        ("detectable_content:postscript", "Add a postscript starting with P.S.",
         {"postscript_marker": "P.S."}),
        ("startend:end_checker",
         "With this exact phrase That is it. No other words should follow this phrase.",
         {"end_phrase": "That is it"}),
        ("keywords:existence", "Include the keyword mill.", {}),
    ],
)  # fmt: skip
def test_what_a_prompt_states_exactly(kind: str, prompt: str, given: dict[str, Any]) -> None:
    assert parameters_in(prompt, [kind], kind) == given
    assert parameters_in(prompt, [kind, kind], kind) == {}


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("One. Two! Three?", 3),
        ("Mr. Ray lives at no. 5, i.e. here. He does.", 2),
        ("It cost 3.50 in the U.S. Then it rose...  and fell.", 2),
        ('He said "Go." Then he left.', 2),
        ("今日は。元気\uff1fはい\uff01", 3),
        ("यह एक है। वह दो है।", 2),
        ("- one\n- two\n\n# Head\nText here", 4),
        ("| a | b |\n|---|---|", 0),
        ("...", 0),
    ],
)
def test_sentences(text: str, count: int) -> None:
    assert len(sentences(text)) == count
