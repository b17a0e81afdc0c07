"""Answers in words."""

from __future__ import annotations

import re

from forgetmap.errors import FieldError
from forgetmap.scoring.extract.claims import last_line, sentence, spoken
from forgetmap.scoring.extract.failures import refuses
from forgetmap.scoring.extract.wording import comparable, trimmed
from forgetmap.scoring.grade import Grade, graded

_ASIDE = re.compile(r"\s*(?:\(|,?\s\b(?:because|since|which)\b)", re.IGNORECASE)
_COPULA = re.compile(r"\b(?:is|are|was|were|called|named)\s+", re.IGNORECASE)
_MAX_CHARS = 100
_MAX_WORDS = 8


class TextReader:
    """Reads and judges answers to one question with a text for an answer."""

    def __init__(self, gold: str, also_right: tuple[str, ...]) -> None:
        self._right = {comparable(text) for text in (gold, *also_right)}
        if not comparable(gold):
            raise FieldError(
                "the right answer is empty",
                field="gold",
                hint="give the right answer as text, or leave the item out.",
            )

    def named(self, phrase: str) -> list[str]:
        """The phrase, unless it declines."""
        phrase = phrase.strip(" \t*_`")
        return [] if not comparable(phrase) or refuses(phrase) else [phrase]

    def alone(self, text: str) -> list[str]:
        """The text, if it is a few words and no sentence."""
        if "\n" in text or len(text) > _MAX_CHARS or len(text.split()) > _MAX_WORDS:
            return []
        return [] if _COPULA.search(text) else self.named(text)

    def complete(self, phrase: str) -> bool:  # noqa: ARG002
        """Further words may have been cut off."""
        return False

    def stated(self, text: str) -> list[str]:
        """What a text settles on, the surest way of saying so first."""
        final = last_line(text)
        for passage in (final, text):
            phrases = [sentence(phrase) for phrase in spoken(passage)]
            if phrases:
                return list({comparable(phrase): phrase for phrase in phrases}.values())
        return self.named(final) if len(final) <= _MAX_CHARS and not refuses(text) else []

    def grade(self, answer: str, phrase: str, *, strict: bool) -> Grade:  # noqa: ARG002
        """Right if the answer, or what is left of it without asides, is a right one."""
        for reading in readings(answer):
            if comparable(reading) in self._right:
                return graded(trimmed(reading) or reading, right=True, strict=strict)
        return graded(trimmed(answer) or answer, right=False, strict=strict)


def readings(answer: str) -> list[str]:
    """The answer itself, its first sentence, without its aside, and what it says something is."""
    first = sentence(answer)
    aside = _ASIDE.search(first)
    copulas = list(_COPULA.finditer(first))
    readings = [answer, first]
    readings += [first[: aside.start()]] if aside else []
    return readings + ([first[copulas[-1].end() :]] if copulas else [])
