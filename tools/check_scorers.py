"""Our checks of instructions against lm-eval's, on generated responses: docs/scorers.md.

    python tools/check_scorers.py PYTHON [OUTPUTS]

PYTHON is the interpreter of an environment with lm-eval, langdetect, immutabledict and nltk. Prints
a table, and fails if a disagreement remains after its known reason is removed.
"""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from forgetmap.scoring.scorer import ScorerInput
from forgetmap.scoring.scorers.constraints import constraints
from forgetmap.scoring.scorers.instructions import INSTRUCTIONS

SEED = 20
OUTPUTS = 400
LEFT_OUT = {"length_constraints:number_sentences": "needs the downloaded sentence splitter"}
PROMPT = "Tell me of the river and the mill"

Given = dict[str, Any]
_WORDS = (
    "river", "mill", "Art", "party", "garden", "the", "a", "of", "and", "NASA", "I", "quick",
    "don't", "DON'T", "AT&T", "well-known", "C++", "art", "stone", "water", "wheel", "turns",
    "U.S.", "light", "42", "3.5", "Hope", "EMAIL", "e-mail", "(new",
)  # fmt: skip
_SENTENCES = {
    "en": "the river runs past the old mill and nobody knows where it goes",
    "de": "der Fluss läuft an der alten Mühle vorbei und niemand weiß wohin",
    "fr": "la rivière passe devant le vieux moulin et personne ne sait où elle va",
    "es": "el río pasa junto al viejo molino y nadie sabe adónde va",
    "hi": "नदी पुरानी चक्की के पास से बहती है और कोई नहीं जानता कि वह कहाँ जाती है",
    "ru": "река течёт мимо старой мельницы и никто не знает куда она идёт",
}
_LINES = {
    "length_constraints:number_paragraphs": ("***", "WORDS\n***\nWORDS", "* * *"),
    "length_constraints:number_words": ("WORDS", "WORDS", _SENTENCES["hi"]),
    "length_constraints:nth_paragraph_first_word": ("River, WORDS", "river WORDS", '"River! WORDS'),
    "detectable_content:number_placeholders": ("[name] [a]", "[[x]]", "[", "x] [y]"),
    "detectable_content:postscript": ("P.S. more", "P. S. x", "P.P.S x", "PS x", "p.p.s."),
    "detectable_format:number_bullet_lists": (
        "* one", "- two", "---", "* * *", "*it* is", "**b**", "-", "  - sub", "+ no", "1. no",
    ),
    "detectable_format:constrained_response": (
        "My answer is yes.", "My answer is no", "My answer is maybe.",
    ),
    "detectable_format:number_highlighted_sections": (
        "*one*", "**two** and *three*", "***x***", "* one", "**", "*a* b *c", "* *",
    ),
    "detectable_format:multiple_sections": (
        "Section 1", "SECTION 2:", "## Section 3", "Section one", "section 4", "Section12",
    ),
    "detectable_format:title": (
        "<<title>>", "<< >>", "<title>", "<<<t>>>", "<<>>", "<<a>> b >>", ">> <<",
    ),
    "combination:two_responses": ("WORDS\n******\nWORDS x", "******", "a******a", "*** ***"),
    "combination:repeat_prompt": (PROMPT, PROMPT.upper() + ".", f'"{PROMPT}"'),
    "startend:end_checker": (
        "Is there anything else I can help with?", 'is there anything else I can help with?"',
        "Is there anything else?",
    ),
    "change_case:english_capital": (_SENTENCES["en"], _SENTENCES["en"], _SENTENCES["de"]),
    "change_case:english_lowercase": (_SENTENCES["en"], _SENTENCES["en"], _SENTENCES["de"]),
}  # fmt: skip
_JSON = ('{"a": 1}', "[1, 2]", '{"a": }', "NaN", '"text"', "plain words", "{'a': 1}")
_AROUND_JSON = ("{}", "```json\n{}\n```", "```\n{}```", "```JSON {} ```", "Here:\n{}", "{} done")
_RELATIONS = ("less than", "at least")


Case = dict[str, Any]
"""One question: kind, prompt, parameters and response."""

Mend = Callable[[Case], Case]
"""Removes the cause of a disagreement from a case; then the two must agree."""


def _without(pattern: str, instead: str = "") -> Mend:
    def mend(case: Case) -> Case:
        response = re.sub(pattern, instead, case["response"], flags=re.MULTILINE)
        return case | {"response": response}

    return mend


def _plain_words(case: Case) -> Case:
    """Remove punctuation from keywords, in the parameters and in the response."""
    plain = json.loads(re.sub(r"C\+\+|\(new|[.]|-", "x", json.dumps(case["given"])))
    return case | {"given": plain, "response": re.sub(r"C\+\+|\(new|[.]|-", "x", case["response"])}


def _in_small_letters(case: Case) -> Case:
    kind = "change_case:english_lowercase"
    return case | {"kind": kind, "response": case["response"].lower()}


REASONS: Mapping[str, tuple[str, Mend]] = {
    "keywords:existence": ("a keyword is no pattern", _plain_words),
    "keywords:frequency": ("a keyword is no pattern", _plain_words),
    "keywords:forbidden_words": ("a word is no pattern", _plain_words),
    "language:response_language": (
        "a line without letters is in no language", _without(r"^[\W\d]*$\n?"),
    ),
    "length_constraints:number_words": (
        "vowel signs end no word", _without(r"[^\x00-\u02ff]+", "w"),
    ),
    "length_constraints:nth_paragraph_first_word": (
        "a blank paragraph has no number", _without(r"\n(?:\s*\n){2,}|\A\s+", "\n\n"),
    ),
    "detectable_format:number_bullet_lists": (
        "a rule or a lone mark is no bullet", _without(r"^[ \t]*[-*][-* \t]*$", "x"),
    ),
    "detectable_format:number_highlighted_sections": (
        "bold italics are one highlight", _without(r"\*{3}", "*"),
    ),
    "detectable_format:json_format": ("NaN is no JSON", _without("NaN", "0")),
    "change_case:capital_word_frequency": (
        "DON'T and AT&T are one word", _without(r"(?<=\w)['&](?=\w)", ""),
    ),
    "change_case:english_capital": ("capitals mislead langdetect", _in_small_letters),
}  # fmt: skip


def main() -> int:
    """Compare, print the result, and return whether everything is explained."""
    python, outputs = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else OUTPUTS
    kinds = [kind for kind in INSTRUCTIONS if kind not in LEFT_OUT]
    draw = random.Random(SEED)
    cases = [_case(kind, draw) for kind in kinds for _ in range(outputs)]
    compared = _compared(python, cases)
    unexplained = _unexplained(python, [case for case, *both in compared if both[0] != both[1]])
    print("| instruction | outputs | followed | same strictly | same loosely | why not |")
    print("|---|---|---|---|---|---|")
    for kind in kinds:
        _print_row([each for each in compared if each[0]["kind"] == kind])
    for kind, why in LEFT_OUT.items():
        print(f"| {kind} | | | | | left out: {why} |")
    print(f"\n{len(unexplained)} disagreements unexplained")
    for case in unexplained[:9]:
        print(f"    {case}", file=sys.stderr)
    return int(bool(unexplained))


Verdict = list[bool] | str
"""Whether it is followed strictly and loosely; or the error of the checker."""


def _compared(python: str, cases: list[Case]) -> list[tuple[Case, Verdict, Verdict]]:
    """Return every case with the verdict of lm-eval and ours."""
    script = Path(__file__).with_name("peer_ifeval.py")
    command, lines = [python, str(script)], "".join(json.dumps(case) + "\n" for case in cases)
    ran = subprocess.run(command, input=lines, capture_output=True, text=True, check=True)
    theirs = [json.loads(line) for line in ran.stdout.splitlines()]
    return [(case, said, _ours(case)) for case, said in zip(cases, theirs, strict=True)]


def _unexplained(python: str, differing: list[Case]) -> list[Case]:
    """Return the cases that differ for another reason than the known one."""
    known = [case for case in differing if case["kind"] in REASONS]
    mended = [REASONS[case["kind"]][1](case) for case in known]
    again = zip(known, _compared(python, mended), strict=True)
    still = [case for case, (_, theirs, ours) in again if theirs != ours]
    return [case for case in differing if case["kind"] not in REASONS] + still


def _ours(case: Case) -> Verdict:
    material = {"kwargs": [case["given"]]}
    fields = constraints.score(
        ScorerInput(case["response"], gold=[case["kind"]], material=material)
    )
    return [bool(fields["acc_strict"].score), bool(fields["acc"].score)]


def _print_row(compared: list[tuple[Case, Verdict, Verdict]]) -> None:
    kind = compared[0][0]["kind"]
    followed = sum(ours[0] is True for _, _, ours in compared)
    same = [
        sum(
            not isinstance(theirs, str) and theirs[place] == ours[place]
            for _, theirs, ours in compared
        )
        for place in (0, 1)
    ]
    differing = sum(theirs != ours for _, theirs, ours in compared)
    why = f"{REASONS[kind][0]}: {differing}" if differing and kind in REASONS else ""
    print(f"| {kind} | {len(compared)} | {followed} | {same[0]} | {same[1]} | {why} |")


def _case(kind: str, draw: random.Random) -> Case:
    given = _given(kind, draw)
    response = _response(kind, given, draw)
    return {"kind": kind, "prompt": PROMPT, "given": given, "response": response}


def _given(kind: str, draw: random.Random) -> Given:
    """Return parameters as in the public set."""
    few, relation = draw.randint(1, 4), draw.choice(_RELATIONS)
    words = draw.sample(_WORDS, 2)
    every: dict[str, Given] = {
        "keywords:existence": {"keywords": words},
        "keywords:frequency": {"keyword": words[0], "frequency": few, "relation": relation},
        "keywords:forbidden_words": {"forbidden_words": words},
        "keywords:letter_frequency": {
            "letter": draw.choice("aeimrt"), "let_frequency": 5 * few, "let_relation": relation,
        },
        "language:response_language": {"language": draw.choice(list(_SENTENCES))},
        "length_constraints:number_paragraphs": {"num_paragraphs": few},
        "length_constraints:number_words": {"num_words": 20 * few, "relation": relation},
        "length_constraints:nth_paragraph_first_word": {
            "num_paragraphs": few, "nth_paragraph": draw.randint(1, few), "first_word": "river",
        },
        "detectable_content:number_placeholders": {"num_placeholders": few},
        "detectable_content:postscript": {"postscript_marker": draw.choice(("P.S.", "P.P.S"))},
        "detectable_format:number_bullet_lists": {"num_bullets": few},
        "detectable_format:number_highlighted_sections": {"num_highlights": few},
        "detectable_format:multiple_sections": {
            "num_sections": few, "section_spliter": draw.choice(("Section", "SECTION")),
        },
        "combination:repeat_prompt": {"prompt_to_repeat": PROMPT},
        "startend:end_checker": {"end_phrase": "Is there anything else I can help with?"},
        "change_case:capital_word_frequency": {
            "capital_frequency": 2 * few, "capital_relation": relation,
        },
    }  # fmt: skip
    return every.get(kind, {})


def _response(kind: str, given: Given, draw: random.Random) -> str:
    """Return various lines, often including the requested one; sometimes all in one case."""
    if kind == "detectable_format:json_format":
        return _json_response(draw)
    if draw.random() < 0.02:
        return draw.choice(("", " \n", "...", "42"))
    count = draw.randint(1, 3) if kind.endswith(("paragraphs", "word", "responses")) else 6
    parts = [_line(kind, given, draw) for _ in range(draw.randint(1, count))]
    text = draw.choice(("\n", "\n", "\n\n", "\n\n\n\n")).join(parts)
    if kind == "language:response_language":
        spoken = draw.choice([given["language"], *_SENTENCES])
        text = _SENTENCES[spoken] + draw.choice(("", "", "\n12\n"))
    return _dressed(kind, text, draw)


def _json_response(draw: random.Random) -> str:
    return draw.choice(_AROUND_JSON).replace("{}", draw.choice(_JSON))


def _line(kind: str, given: Given, draw: random.Random) -> str:
    words = " ".join(draw.choices(_WORDS, k=draw.randint(1, 12)))
    named = [*given.get("keywords", []), given.get("keyword", "")]
    lines = _LINES.get(kind, ("WORDS", "NAMED NAMED"))
    special = draw.choice(lines).replace("WORDS", words).replace("NAMED", " ".join(named))
    return special if draw.random() < 0.6 else words


def _dressed(kind: str, text: str, draw: random.Random) -> str:
    chance = draw.random()
    cases: Mapping[str, Callable[[str], str]] = {
        "change_case:english_capital": str.upper,
        "change_case:english_lowercase": str.lower,
    }
    if kind in cases and chance < 0.7:
        return cases[kind](text)
    if kind == "startend:quotation":
        return draw.choice((f'"{text}"', f' "{text}" \n', f'"{text}', f'Here:\n"{text}"', '"'))
    if kind == "punctuation:no_comma":
        return draw.choice((text, text + ", you", f"Sure, here:\n{text}"))
    return f"Sure, here it is:\n{text}" if chance > 0.9 else text


if __name__ == "__main__":
    sys.exit(main())
