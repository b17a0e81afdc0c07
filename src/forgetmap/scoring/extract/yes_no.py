"""Answers that are yes or no."""

# ruff: noqa: RUF001  # words of other languages

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from forgetmap.scoring.extract.claims import (
    find_spoken_claims,
    first_sentence,
    is_hedged,
    last_line,
)
from forgetmap.scoring.extract.wording import trim
from forgetmap.scoring.grade import Grade, grade_answer

_YES = (
    "yes yeah yep true correct sí si sim oui vrai ja wahr richtig да верно はい ใช่ ndiyo হ্যাঁ हाँ हां "
    "نعم 네 예 evet có đúng ναι tak ya"
)
_NO = (
    "no nope false incorrect não nao falso non faux nein falsch нет неверно いいえ ไม่ hapana না नहीं "
    "لا 아니요 아니오 hayır không όχι nie tidak"
)
_MEANS = dict.fromkeys(_YES.split(), True) | dict.fromkeys(_NO.split(), False)
_CHINESE = {
    "是": True, "是的": True, "对": True, "正确": True, "不": False, "不是": False, "否": False,
}  # fmt: skip
_MEANS |= _CHINESE | {"错误": False, "不对": False}
_FIRST_WORD = re.compile(r"[^\W\d_][^\s,.;:!?()*\"，。、]*")
_DENIED = re.compile(r"^(?:not|isn't|is not)\s+(true|correct|false|incorrect)\b", re.IGNORECASE)
_STATEMENT = re.compile(
    r"\b(?:statement|claim|assertion|it|this|that)\s+(?:is|was|'s)\s+"
    r"(?P<not>not\s+|un)?(?:\w+ly\s+)?(?P<truth>true|correct|false|incorrect)\b",
    re.IGNORECASE,
)
_BOTH = re.compile(r"\s*(?:/|and|or|,)\s*(yes|no|true|false)\b", re.IGNORECASE)
_MAX_WORDS = 3
_MAX_CHARS = 40


class YesNoReader:
    """Reader of the answers to a question whose answer is yes or no."""

    def __init__(self, *, right: bool) -> None:
        self._right = right

    def read_claim(self, phrase: str) -> list[bool]:
        """Return the answer at the beginning of a phrase; both if it says both."""
        phrase = trim(phrase)
        if denied := _DENIED.match(phrase):
            return [not _MEANS[denied[1].lower()]]
        first = _FIRST_WORD.match(phrase)
        truths = _MEANS.get(first[0].lower()) if first else None
        if first is None or truths is None:
            return []
        both = _BOTH.match(phrase, first.end())
        return _distinct([truths, _MEANS[both[1].lower()]]) if both else [truths]

    def read_bare(self, text: str) -> list[bool]:
        """Return the answer, if the text is only the answer."""
        short = "\n" not in text and len(text) <= _MAX_CHARS and len(text.split()) <= _MAX_WORDS
        return self.read_claim(text) if short and trim(text).casefold() in _MEANS else []

    def is_complete(self, phrase: str) -> bool:
        """Whether the phrase begins with yes or no, even if more would have followed."""
        return bool(self.read_claim(phrase))

    def read_statement(self, text: str) -> list[bool]:
        """Return the stated answer, else that of the last or first line, else of a statement."""
        return next(filter(None, self._ways(text)), [])

    def grade(self, answer: bool, phrase: str, *, strict: bool) -> Grade:  # noqa: FBT001, ARG002
        """Grade an answer."""
        return grade_answer("yes" if answer else "no", right=answer is self._right, strict=strict)

    def _ways(self, text: str) -> Iterator[list[bool]]:
        final = last_line(text)
        yield self._read_claims(final)
        yield self._read_claims(text)
        yield self.read_claim(final)
        yield self.read_claim(text.strip().partition("\n")[0])
        yield _statements(text)

    def _read_claims(self, text: str) -> list[bool]:
        return _distinct(
            answer
            for claim in find_spoken_claims(text)
            for answer in self.read_claim(first_sentence(claim))
        )


def _statements(text: str) -> list[bool]:
    matches = [match for match in _STATEMENT.finditer(text) if not is_hedged(text, match.start())]
    return _distinct(_MEANS[match["truth"].lower()] is not bool(match["not"]) for match in matches)


def _distinct(answers: Iterable[bool]) -> list[bool]:
    return list(dict.fromkeys(answers))
