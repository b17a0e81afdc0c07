"""Verifiable instructions, as in IFEval: the response must follow all of them.

    acc                  every instruction followed, loosely: by the response or by the response
                         without its first line, its last line, both, or its asterisks
    acc_strict           every instruction followed by the unchanged response
    followed             share of instructions followed, strictly
    keywords, language, length_constraints, ...
                         the same share within a family; absent if the item has none of it

The item has the ids of its instructions (`instructions` in its material, else its gold) and their
parameters (`kwargs`, one object per instruction). A required parameter that is absent is searched
in the prompt, where only an exact wording counts; otherwise all values that depend on it are
missing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from forgetmap.errors import FieldError
from forgetmap.scoring.extract.failures import why_nothing
from forgetmap.scoring.extract.thinking import visible_text
from forgetmap.scoring.grade import Grade, grade_failure, grade_missing, grade_share
from forgetmap.scoring.scorer import RIGHT_OR_WRONG, SHARE, Fields, Scale, ScorerInput
from forgetmap.scoring.scorers.instructions import INSTRUCTIONS, find_parameter_fault

FAMILIES = tuple(dict.fromkeys(kind.partition(":")[0] for kind in INSTRUCTIONS))


@dataclass(frozen=True, slots=True)
class _InstructionCheck:
    """Result of an instruction: whether it is followed, or None and why it cannot be checked."""

    kind: str
    strict: bool | None
    loose: bool | None
    why: str = ""

    @property
    def family(self) -> str:
        return self.kind.partition(":")[0]


class ConstraintsScorer:
    """Scorer of verifiable instructions."""

    name = "constraints"
    version = 1
    packages = ("langdetect",)
    fields: Mapping[str, Scale] = {
        "acc": RIGHT_OR_WRONG,
        "acc_strict": RIGHT_OR_WRONG,
        "followed": SHARE,
    } | dict.fromkeys(FAMILIES, SHARE)

    def score(self, sample: ScorerInput) -> Fields:
        """Return the values.

        Raises:
            FieldError: the item has no instructions.
        """
        kinds = _kinds(sample)
        text, cut = visible_text(sample.response, sample.finish_reason)
        checked = [
            _check(text, kind, parameters) for kind, parameters in _instructions(sample, kinds)
        ]
        strict = all(check.strict for check in checked)
        fields = {
            "acc": _verdict(checked, float(all(check.loose for check in checked)), strict=strict),
            "acc_strict": _verdict(checked, float(strict), strict=strict),
            "followed": _share(checked),
        }
        for family in FAMILIES:
            if own := [check for check in checked if check.family == family]:
                fields[family] = _share(own)
        if text.strip():
            return fields
        nothing = grade_failure(why_nothing(text, cut=cut))
        return {field: check if check.score is None else nothing for field, check in fields.items()}


constraints = ConstraintsScorer()


def _kinds(sample: ScorerInput) -> list[str]:
    value = _unpacked(sample.material.get("instructions") or sample.gold)
    kinds = [value] if isinstance(value, str) else value
    if isinstance(kinds, Sequence) and kinds and all(isinstance(k, str) and k for k in kinds):
        return [kind.strip() for kind in kinds]
    raise FieldError(
        "the item has no instructions",
        field="instructions",
        hint="add their ids as a list, for example punctuation:no_comma.",
    )


def _instructions(sample: ScorerInput, kinds: list[str]) -> list[tuple[str, Mapping[str, Any]]]:
    """Return each instruction with its parameters, from the item, else from the prompt."""
    all_parameters = _unpacked(sample.material.get("kwargs"))
    all_parameters = (
        [all_parameters]
        if isinstance(all_parameters, Mapping)
        else all_parameters or [{}] * len(kinds)
    )
    if not isinstance(all_parameters, list | tuple) or len(all_parameters) != len(kinds):
        raise FieldError(
            f"invalid parameters for {len(kinds)} instructions: {all_parameters!r:.80}",
            field="kwargs",
            hint="add one object per instruction, in the same order.",
        )
    prompt = "\n".join(sample.question)
    return [
        (kind, _known(parameters) or parameters_in(prompt, kinds, kind))
        for kind, parameters in zip(kinds, all_parameters, strict=True)
    ]


def _unpacked(value: Any) -> Any:
    """Return a list or object, which is JSON text in some files."""
    if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
        try:
            return json.loads(value)
        except ValueError:
            return None
    return value


def _known(parameters: Any) -> dict[str, Any]:
    """Return parameters without nulls, which a table has for those of other instructions."""
    parameters = _unpacked(parameters)
    if not isinstance(parameters, Mapping):
        return {}
    return {name: value for name, value in parameters.items() if value is not None}


def _check(response: str, kind: str, parameters: Mapping[str, Any]) -> _InstructionCheck:
    known = INSTRUCTIONS.get(kind)
    if known is None:
        return _InstructionCheck(kind, None, None, f"unknown instruction {kind}")
    if fault := find_parameter_fault(known.needs, parameters):
        return _InstructionCheck(kind, None, None, f"{kind}: {fault}")
    if not response.strip():
        return _InstructionCheck(kind, strict=False, loose=False)
    strict = known.follows(response, parameters)
    loose = strict or any(known.follows(variant, parameters) for variant in _loosened(response))
    return _InstructionCheck(kind, strict, loose)


def _loosened(response: str) -> list[str]:
    """Return the response without first line, last line, or both; each also without asterisks."""
    lines = response.split("\n")
    cuts = ["\n".join(part).strip() for part in (lines[1:], lines[:-1], lines[1:-1])]
    variants = [*cuts, *(variant.replace("*", "") for variant in (response, *cuts))]
    return [
        variant for variant in dict.fromkeys(variants) if variant.strip() and variant != response
    ]


def _share(checks: Sequence[_InstructionCheck]) -> Grade:
    return _verdict(checks, sum(check.strict or False for check in checks) / len(checks))


def _verdict(
    checks: Sequence[_InstructionCheck], value: float, *, strict: bool | None = None
) -> Grade:
    """Return the grade; missing if any instruction cannot be checked, even if another is broken.

    Otherwise such items could only count as failures.
    """
    reasons = [check.why for check in checks if check.why]
    if reasons:
        return grade_missing("; ".join(reasons))
    broken = ", ".join(check.kind for check in checks if not check.strict)
    return grade_share(value, broken or None, strict=strict)


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
_PATTERNS = {kind: re.compile(pattern, re.IGNORECASE) for kind, pattern in _WORDED.items()}
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
    """Return the parameters of an instruction that the prompt states; empty if ambiguous."""
    if kind not in _PATTERNS or kinds.count(kind) != 1:
        return {}
    readings = [_read(match) for match in _PATTERNS[kind].finditer(prompt)]
    same = readings and all(parameters == readings[0] for parameters in readings)
    return readings[0] if same else {}


def _read(match: re.Match[str]) -> dict[str, Any]:
    return {name: _value(name, text) for name, text in match.groupdict().items()}


def _value(name: str, text: str) -> Any:
    if name == "language":
        return _LANGUAGES.get(text.lower(), "")
    if name.endswith("relation"):
        return text.lower()
    if name == "postscript_marker":
        return text.upper()
    if name in {"keyword", "end_phrase"}:
        return text.strip(_QUOTES)
    return int(text) if _NUMERIC.fullmatch(text) else text
