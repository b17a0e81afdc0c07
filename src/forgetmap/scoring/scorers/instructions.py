"""The 25 instruction types of IFEval, implemented from their public description.

Every check takes the response and the parameters of the instruction. If the meaning is ambiguous
(does "art" count in "party"?), it follows the public IFEval checkers, so that values are comparable
with published ones; but not where those use random values, fail, or read punctuation as a pattern.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from forgetmap.scoring.extract.json_text import NotJson, read_json
from forgetmap.scoring.extract.prose import count_words, sentences

Parameters = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Instruction:
    """The check of a type of instruction, and its required parameters."""

    follows: Callable[[str, Parameters], bool]
    needs: tuple[str, ...] = ()


def _compares(number: int, relation: str, threshold: float) -> bool:
    return number < threshold if relation == "less than" else number >= threshold


def _holds_keywords(text: str, parameters: Parameters) -> bool:
    folded = text.lower()
    return all(word.lower() in folded for word in parameters["keywords"])


def _repeats_keyword(text: str, parameters: Parameters) -> bool:
    count = text.lower().count(parameters["keyword"].strip().lower())
    return _compares(count, parameters["relation"], parameters["frequency"])


def _avoids_words(text: str, parameters: Parameters) -> bool:
    return not any(
        re.search(rf"\b{re.escape(word)}\b", text, re.IGNORECASE)
        for word in parameters["forbidden_words"]
    )


def _repeats_letter(text: str, parameters: Parameters) -> bool:
    count = text.lower().count(parameters["letter"].strip().lower())
    return _compares(count, parameters["let_relation"], parameters["let_frequency"])


def _is_in_language(text: str, parameters: Parameters) -> bool:
    expected: str = parameters["language"]
    return language(text) == expected.lower().partition("-")[0]


def _counts_sentences(text: str, parameters: Parameters) -> bool:
    return _compares(len(sentences(text)), parameters["relation"], parameters["num_sentences"])


def _counts_words(text: str, parameters: Parameters) -> bool:
    return _compares(count_words(text), parameters["relation"], parameters["num_words"])


def _counts_paragraphs(text: str, parameters: Parameters) -> bool:
    """Whether there are this many paragraphs, separated by `***`; none may be empty."""
    parts = text.split("***")
    inner = parts[1:-1]
    ends = [part for part in {0: parts[0], len(parts) - 1: parts[-1]}.values() if part.strip()]
    return all(map(str.strip, inner)) and len(inner) + len(ends) == parameters["num_paragraphs"]


def _starts_paragraph(text: str, parameters: Parameters) -> bool:
    """Whether a given paragraph, separated by blank lines, starts with a given word."""
    paragraphs = [part.strip() for part in text.split("\n\n") if part.strip()]
    number = int(parameters["nth_paragraph"])
    if len(paragraphs) != parameters["num_paragraphs"] or not 1 <= number <= len(paragraphs):
        return False
    first = paragraphs[number - 1].split()[0].lstrip("'\"")
    return bool(re.split(r"[.,?!'\"]", first)[0].lower() == parameters["first_word"].lower())


def _has_placeholders(text: str, parameters: Parameters) -> bool:
    count = sum(1 for line in text.split("\n") for _ in _bracketed(line))
    return bool(count >= parameters["num_placeholders"])


def _bracketed(line: str) -> Iterator[str]:
    start = line.find("[")
    while start >= 0 and (end := line.find("]", start)) >= 0:
        yield line[start + 1 : end]
        start = line.find("[", end)


_POSTSCRIPTS = {"P.S.": r"p\.\s?s\.", "P.P.S": r"p\.\s?p\.\s?s"}


def _has_postscript(text: str, parameters: Parameters) -> bool:
    marker = parameters["postscript_marker"].strip()
    pattern = _POSTSCRIPTS.get(marker, re.escape(marker))
    return re.search(pattern, text, re.IGNORECASE) is not None


_RULE = r"[ \t]*+[-*][-* \t]*+$"
_BULLET = re.compile(rf"^[ \t]*+(?:\*(?!\*)|-)(?!{_RULE})[ \t]*+\S", re.MULTILINE)


def _counts_bullets(text: str, parameters: Parameters) -> bool:
    return bool(len(_BULLET.findall(text)) == parameters["num_bullets"])


_OFFERED = ("My answer is yes.", "My answer is no.", "My answer is maybe.")


def _is_offered(text: str, _parameters: Parameters) -> bool:
    return any(option in text for option in _OFFERED)


_HIGHLIGHT = re.compile(r"\*{1,3}([^*\n]+)\*{1,3}")


def _has_highlights(text: str, parameters: Parameters) -> bool:
    count = sum(1 for part in _HIGHLIGHT.findall(text) if part.strip())
    return bool(count >= parameters["num_highlights"])


def _has_sections(text: str, parameters: Parameters) -> bool:
    mark = re.escape(parameters["section_spliter"].strip())
    return bool(len(re.findall(rf"{mark}\s?\d+", text)) >= parameters["num_sections"])


_FENCE_START = re.compile(r"```(?:json|Json|JSON)?")


def _is_json(text: str, _parameters: Parameters) -> bool:
    text = text.strip()
    fence = _FENCE_START.match(text)
    inside = text[fence.end() :] if fence else text
    try:
        read_json(inside.removesuffix("```").strip())
    except NotJson:
        return False
    return True


def _has_title(text: str, _parameters: Parameters) -> bool:
    """Whether a line has text between its first `<<` and its last `>>`."""
    for line in text.split("\n"):
        start, end = line.find("<<"), line.rfind(">>")
        if start >= 0 and start + 2 < end and line[start:end].lstrip("<").rstrip(">").strip():
            return True
    return False


_TWO = 2


def _is_two_responses(text: str, _parameters: Parameters) -> bool:
    """Whether there are two different responses, separated by six asterisks."""
    parts = [part.strip() for part in text.split("******")]
    responses = [part for part in parts if part]
    return all(parts[1:-1]) and len(responses) == _TWO and responses[0] != responses[1]


def _repeats_prompt(text: str, parameters: Parameters) -> bool:
    return text.strip().lower().startswith(parameters["prompt_to_repeat"].strip().lower())


def _ends_with(text: str, parameters: Parameters) -> bool:
    return text.strip().strip('"').lower().endswith(parameters["end_phrase"].strip().lower())


def _is_quoted(text: str, _parameters: Parameters) -> bool:
    text = text.strip()
    return len(text) > 1 and text[0] == text[-1] == '"'


_CAPITAL_WORD = re.compile(r"[^\W_](?:[\w&./'\u2019-]*[^\W_])?")


def _counts_capital_words(text: str, parameters: Parameters) -> bool:
    """Count words in capitals, also "I" and "A"; hyphenated words are one word."""
    count = sum(1 for word in _CAPITAL_WORD.findall(text) if word.isupper())
    return _compares(count, parameters["capital_relation"], parameters["capital_frequency"])


def _is_english_capitals(text: str, _parameters: Parameters) -> bool:
    return text.isupper() and language(text) == "en"


def _is_english_lowercase(text: str, _parameters: Parameters) -> bool:
    return text.islower() and language(text) == "en"


def _has_no_comma(text: str, _parameters: Parameters) -> bool:
    return "," not in text


INSTRUCTIONS: Mapping[str, Instruction] = {
    "keywords:existence": Instruction(_holds_keywords, ("keywords",)),
    "keywords:frequency": Instruction(_repeats_keyword, ("keyword", "frequency", "relation")),
    "keywords:forbidden_words": Instruction(_avoids_words, ("forbidden_words",)),
    "keywords:letter_frequency": Instruction(
        _repeats_letter, ("letter", "let_frequency", "let_relation")
    ),
    "language:response_language": Instruction(_is_in_language, ("language",)),
    "length_constraints:number_sentences": Instruction(
        _counts_sentences, ("num_sentences", "relation")
    ),
    "length_constraints:number_paragraphs": Instruction(_counts_paragraphs, ("num_paragraphs",)),
    "length_constraints:number_words": Instruction(_counts_words, ("num_words", "relation")),
    "length_constraints:nth_paragraph_first_word": Instruction(
        _starts_paragraph, ("num_paragraphs", "nth_paragraph", "first_word")
    ),
    "detectable_content:number_placeholders": Instruction(_has_placeholders, ("num_placeholders",)),
    "detectable_content:postscript": Instruction(_has_postscript, ("postscript_marker",)),
    "detectable_format:number_bullet_lists": Instruction(_counts_bullets, ("num_bullets",)),
    "detectable_format:constrained_response": Instruction(_is_offered),
    "detectable_format:number_highlighted_sections": Instruction(
        _has_highlights, ("num_highlights",)
    ),
    "detectable_format:multiple_sections": Instruction(
        _has_sections, ("section_spliter", "num_sections")
    ),
    "detectable_format:json_format": Instruction(_is_json),
    "detectable_format:title": Instruction(_has_title),
    "combination:two_responses": Instruction(_is_two_responses),
    "combination:repeat_prompt": Instruction(_repeats_prompt, ("prompt_to_repeat",)),
    "startend:end_checker": Instruction(_ends_with, ("end_phrase",)),
    "startend:quotation": Instruction(_is_quoted),
    "change_case:capital_word_frequency": Instruction(
        _counts_capital_words, ("capital_frequency", "capital_relation")
    ),
    "change_case:english_capital": Instruction(_is_english_capitals),
    "change_case:english_lowercase": Instruction(_is_english_lowercase),
    "punctuation:no_comma": Instruction(_has_no_comma),
}

_TEXTS = {
    "keyword", "letter", "language", "first_word", "postscript_marker", "section_spliter",
    "prompt_to_repeat", "end_phrase",
}  # fmt: skip
_LISTS = {"keywords", "forbidden_words"}
_RELATIONS = ("less than", "at least")


def find_parameter_fault(needed: Iterable[str], parameters: Parameters) -> str | None:
    """Return what is wrong with the parameters of an instruction; None if nothing is."""
    for name in needed:
        value = parameters.get(name)
        if value is None or value in ("", []):
            return f"the parameter {name} is missing"
        if not _is_usable(name, value):
            return f"the parameter {name} is {value!r}"
    return None


def _is_usable(name: str, value: Any) -> bool:
    if name.endswith("relation"):
        return value in _RELATIONS
    if name in _LISTS:
        return isinstance(value, list | tuple) and all(isinstance(v, str) and v for v in value)
    if name in _TEXTS:
        return isinstance(value, str) and bool(value.strip())
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 0


_SEED = 0
_MAX_CHARS = 5_000


def language(text: str) -> str | None:
    """Return the ISO 639-1 code of the language of a text; None if it is not recognised.

    langdetect is random, so it gets a fixed seed. The first 5,000 characters are used, in lower
    case, since it does not recognise capitals.
    """
    return _detected(text[:_MAX_CHARS].lower())


@lru_cache(maxsize=256)
def _detected(text: str) -> str | None:
    from langdetect import LangDetectException  # type: ignore[import-untyped]

    detector = _factory().create()
    detector.append(text)
    try:
        code: str = detector.detect()
    except LangDetectException:
        return None
    return None if code == detector.UNKNOWN_LANG else code.partition("-")[0]


@lru_cache(maxsize=1)
def _factory() -> Any:
    """Load the profiles of all languages, which takes a second."""
    from langdetect import PROFILES_DIRECTORY, DetectorFactory

    factory = DetectorFactory()
    factory.seed = _SEED
    factory.load_profile(PROFILES_DIRECTORY)
    return factory
