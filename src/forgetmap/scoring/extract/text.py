"""Answers in words."""

from __future__ import annotations

import re

from forgetmap.errors import FieldError
from forgetmap.scoring.extract.claims import find_spoken_claims, first_sentence, last_line
from forgetmap.scoring.extract.failures import is_refusal
from forgetmap.scoring.extract.wording import normalise, trim
from forgetmap.scoring.grade import Grade, grade_answer

_ASIDE = re.compile(r"\s*(?:\(|,?\s\b(?:because|since|which)\b)", re.IGNORECASE)
_COPULA = re.compile(r"\b(?:is|are|was|were|called|named)\s+", re.IGNORECASE)
_MAX_CHARS = 100
_MAX_WORDS = 8


class TextReader:
    """Reader of the answers to a question whose answer is a text."""

    def __init__(self, gold: str, also_right: tuple[str, ...]) -> None:
        self._right = {normalise(text) for text in (gold, *also_right)}
        if not normalise(gold):
            raise FieldError(
                "the right answer is empty",
                field="gold",
                hint="add the right answer as text, or remove the item.",
            )

    def read_claim(self, phrase: str) -> list[str]:
        """Return the phrase, unless it is a refusal."""
        phrase = phrase.strip(" \t*_`")
        return [] if not normalise(phrase) or is_refusal(phrase) else [phrase]

    def read_bare(self, text: str) -> list[str]:
        """Return the text, if it is a few words and not a sentence."""
        if "\n" in text or len(text) > _MAX_CHARS or len(text.split()) > _MAX_WORDS:
            return []
        return [] if _COPULA.search(text) else self.read_claim(text)

    def is_complete(self, phrase: str) -> bool:  # noqa: ARG002
        """Return False: the text may be truncated."""
        return False

    def read_statement(self, text: str) -> list[str]:
        """Return the phrases that a text states; the most explicit statement counts."""
        final = last_line(text)
        for passage in dict.fromkeys((final, text)):
            phrases = [first_sentence(phrase) for phrase in find_spoken_claims(passage)]
            if phrases:
                return list({normalise(phrase): phrase for phrase in phrases}.values())
        return self.read_claim(final) if len(final) <= _MAX_CHARS and not is_refusal(text) else []

    def grade(self, answer: str, phrase: str, *, strict: bool) -> Grade:  # noqa: ARG002
        """Grade an answer: right if it, or the answer without asides, is a right one."""
        for reading in readings(answer):
            if normalise(reading) in self._right:
                return grade_answer(trim(reading) or reading, right=True, strict=strict)
        return grade_answer(trim(answer) or answer, right=False, strict=strict)


def readings(answer: str) -> list[str]:
    """Return readings of an answer: all of it, its first sentence, without asides, after "is"."""
    first = first_sentence(answer)
    aside = _ASIDE.search(first)
    copulas = list(_COPULA.finditer(first))
    readings = [answer, first]
    readings += [first[: aside.start()]] if aside else []
    return readings + ([first[copulas[-1].end() :]] if copulas else [])
