"""The parameters of instructions, where an item gives none: read from the prompt, if it is exact.

The rule: the prompt says it in the wording IFEval has for this type of instruction (below), and
all places where it does so agree. Prompts that say it in other words, and items that carry the same
type twice, get no parameters: their value is missing, never guessed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

_RELATION = r"(?P<relation>less than|at least)"
_WORDED: Mapping[str, str] = {
    "length_constraints:number_words": rf"\b{_RELATION} (?P<num_words>\d{{1,6}}) words\b",
    "length_constraints:number_sentences": (
        rf"\b{_RELATION} (?P<num_sentences>\d{{1,4}}) sentences\b"
    ),
    "length_constraints:number_paragraphs": (
        r"\b(?P<num_paragraphs>\d{1,3}) paragraphs\b(?=[^*]{0,200}\*\*\*)"
    ),
    "detectable_content:number_placeholders": (
        r"\bat least (?P<num_placeholders>\d{1,3}) placeholders?\b"
    ),
    "detectable_content:postscript": (
        r"\bpostscript starting with (?P<postscript_marker>P\.P\.S|P\.S\.)"
    ),
    "detectable_format:number_bullet_lists": r"\bexactly (?P<num_bullets>\d{1,3}) bullet points?\b",
    "detectable_format:number_highlighted_sections": (
        r"\bhighlight at least (?P<num_highlights>\d{1,3}) (?:sections|parts)\b"
    ),
    "detectable_format:multiple_sections": (
        r"\bmust have (?P<num_sections>\d{1,3}) sections\.[^.]{0,80}"
        r"\bwith (?P<section_spliter>\w{1,30}) X\b"
    ),
    "language:response_language": (
        r"\bin (?:the )?(?P<language>[A-Za-z]{3,20}) language, no other language is allowed\b"
    ),
    "keywords:frequency": (
        r"\bthe word (?P<keyword>[^\s,.]{1,40}) should appear "
        rf"{_RELATION} (?P<frequency>\d{{1,4}}) times\b"
    ),
    "keywords:letter_frequency": (
        r"\bthe letter (?P<letter>[a-z]) should appear "
        r"(?P<let_relation>less than|at least) (?P<let_frequency>\d{1,4}) times\b"
    ),
    "change_case:capital_word_frequency": (
        r"\bwords with all capital letters should appear "
        r"(?P<capital_relation>less than|at least) (?P<capital_frequency>\d{1,4}) times\b"
    ),
    "startend:end_checker": (
        r"\bwith this exact phrase:? \"?(?P<end_phrase>[^\"\n]{1,200}?)\"?\. "
        r"No other words should follow"
    ),
}
_PATTERNS = {each: re.compile(pattern, re.IGNORECASE) for each, pattern in _WORDED.items()}
_NUMERIC = re.compile(r"\d+")
_QUOTES = "\"'`\u201c\u201d\u2018\u2019"
_LANGUAGES = {
    "english": "en", "spanish": "es", "portuguese": "pt", "arabic": "ar", "hindi": "hi",
    "french": "fr", "russian": "ru", "german": "de", "japanese": "ja", "italian": "it",
    "bengali": "bn", "ukrainian": "uk", "thai": "th", "urdu": "ur", "tamil": "ta", "telugu": "te",
    "bulgarian": "bg", "korean": "ko", "polish": "pl", "hebrew": "he", "persian": "fa",
    "vietnamese": "vi", "nepali": "ne", "swahili": "sw", "kannada": "kn", "marathi": "mr",
    "gujarati": "gu", "punjabi": "pa", "malayalam": "ml", "finnish": "fi", "chinese": "zh",
}  # fmt: skip


def parameters_in(prompt: str, kinds: Sequence[str], kind: str) -> dict[str, Any]:
    """The parameters the prompt states for one of its kinds of instruction; empty if in doubt."""
    if kind not in _PATTERNS or kinds.count(kind) != 1:
        return {}
    stated = [_read(found) for found in _PATTERNS[kind].finditer(prompt)]
    same = stated and all(each == stated[0] for each in stated)
    return stated[0] if same else {}


def _read(found: re.Match[str]) -> dict[str, Any]:
    return {name: _value(name, said) for name, said in found.groupdict().items()}


def _value(name: str, said: str) -> Any:
    if name == "language":
        return _LANGUAGES.get(said.lower(), "")
    if name.endswith("relation"):
        return said.lower()
    if name == "postscript_marker":
        return said.upper()
    if name in {"keyword", "end_phrase"}:
        return said.strip(_QUOTES)
    return int(said) if _NUMERIC.fullmatch(said) else said
