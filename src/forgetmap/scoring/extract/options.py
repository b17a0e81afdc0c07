"""Answers that are one of the options: by letter, by number, or by the option's text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from forgetmap.errors import FieldError
from forgetmap.scoring.extract.claims import find_spoken_claims, is_hedged, last_line
from forgetmap.scoring.extract.wording import normalise, trim
from forgetmap.scoring.grade import Grade, grade_answer

_PREFIX = re.compile(r"^(?:the +)?(?:option|choice|letter|answer|number)[ *_:(\[]+", re.IGNORECASE)
_SEVERAL = re.compile(
    r"^[A-Z][)*]*(?:\s*(?:[,/&+]|,? ?\b(?:and|or)\b)\s*[(*]*(?:[A-Z]\b)[)*]*)+(?!\s*[\w'])"
)
_CAPITAL = re.compile(r"\b[A-Z]\b")
_LED = re.compile(
    r"^(?:(?P<letter>[A-Za-z])|(?P<number>\d{1,2}))"
    r"(?P<mark>[)\]}]+|[*_`]+|[.:,;]+(?=[\s*_]|$)|\s+[-\u2013\u2014=]+>?\s)"
    r"[\s*_:.-]*(?P<rest>.*)$",
    re.DOTALL,
)
_REASONED = re.compile(r"^([A-Z])\s+(?:because|since|as|is|for|due|which)\b")
_LETTER_AND_TEXT = re.compile(r"^([A-Z])\s+(.+)$", re.DOTALL)
_SEGMENT_END = re.compile(
    r"[,.;:(\u2013\u2014]|\s-\s|\s(?:because|since|as|and|or)\s", re.IGNORECASE
)
_IT_IS = re.compile(
    r"\b(?:it|this|that)(?:'s| is| must be| has to be) (?:definitely |clearly |option )?"
    r"[(*]*([A-HJ-Z])[)*]*(?=[.,;!]|\s*$)",
    re.IGNORECASE | re.MULTILINE,
)
_IS_RIGHT = re.compile(
    r"(?<![\w'])([A-Z])[)*]* (?:is|must be|would be|seems|appears to be) "
    r"(?:the |most |clearly )*(?:correct|right|best|answer|appropriate|likely|true)\b"
)
_BOLD = re.compile(r"\*\*([^*\n]{1,200})\*\*|__([^_\n]{1,200})__")
_DENIED = re.compile(
    r" ?(?:is|are|was|can|does|would|seems|must be)?"
    r"(?:n't|not| not| wrong| incorrect| false| out\b)"
)
_BRACKETED = re.compile(rf"\(([A-Z])\)(?!{_DENIED.pattern})")
_COPULA = re.compile(r"\b(?:is|are|was|were)\s+", re.IGNORECASE)
_MAX_SEGMENTS = 6
_MAX_DIGITS = 2
_EXTRA_CHARS = 20
_MAX_REASON_CHARS = 300


class OptionReader:
    """Reader of the answers to a question with options; an answer is the index of one."""

    def __init__(self, options: tuple[str, ...], gold: str, also_right: tuple[str, ...]) -> None:
        self._options = options
        self._right = right_options(options, gold, also_right)
        self._indices = _text_indices(options)
        self._max_chars = 2 * max(map(len, options)) + _EXTRA_CHARS
        self._numbered = not any(char.isdigit() for option in options for char in option)

    def read_claim(self, phrase: str) -> list[int]:
        """Return the options that a phrase names; several if it is ambiguous."""
        phrase = _PREFIX.sub("", trim(phrase)).strip(" *_")
        exact = self._exactly(phrase)
        if exact is not None:
            return [exact]
        if _SEVERAL.match(phrase):
            return _distinct(map(self._letter, _CAPITAL.findall(phrase)))
        if led := _LED.match(phrase):
            index = self._led(led)
            return _distinct([index, self._index(led["rest"])])
        if reasoned := _REASONED.match(phrase):
            return _distinct([self._letter(reasoned[1])])
        return self._by_segments(phrase)

    def read_bare(self, text: str) -> list[int]:
        """Return the option, if the text is only an option."""
        return _distinct([self._nothing_but(text)]) if "\n" not in text else []

    def is_complete(self, phrase: str) -> bool:
        """Whether the answer is a letter, which cannot be truncated."""
        return len(trim(phrase)) == 1

    def read_statement(self, text: str) -> list[int]:
        """Return the options that a text states; the most explicit statement counts."""
        return next(filter(None, self._ways(text)), [])

    def grade(self, index: int, phrase: str, *, strict: bool) -> Grade:
        """Grade an answer."""
        choice = self._options[index]
        answer = trim(phrase) or choice
        return grade_answer(answer, right=index in self._right, choice=choice, strict=strict)

    def _exactly(self, phrase: str) -> int | None:
        """Return the option named by a letter, by its text, or by a number, in this order."""
        if len(phrase) == 1 and (index := self._letter(phrase)) is not None:
            return index
        if (same := self._index(phrase)) is not None:
            return same
        return self._number(phrase)

    def _nothing_but(self, line: str) -> int | None:
        """Return the option of a line that is its letter, its text, or both in agreement."""
        text = trim(line)
        phrase = _PREFIX.sub("", text).strip(" *_")
        if phrase == text and phrase.isdigit() and normalise(phrase) not in self._indices:
            return None
        exact = self._exactly(phrase)
        if exact is not None or len(phrase) > self._max_chars:
            return exact
        led = _LED.match(phrase)
        parts = (led["letter"] or "", led["rest"]) if led else None
        if not parts and (spaced := _LETTER_AND_TEXT.match(phrase)):
            parts = (spaced[1], spaced[2])
        if parts and (index := self._letter(parts[0])) is not None:
            return index if self._index(parts[1]) == index else None
        return None

    def _index(self, text: str) -> int | None:
        """Return the index of the option with this text; None for much longer texts."""
        return self._indices.get(normalise(text)) if len(text) <= self._max_chars else None

    def _letter(self, letter: str) -> int | None:
        index = ord(letter.upper()) - ord("A") if len(letter) == 1 and letter.isascii() else -1
        return index if 0 <= index < min(len(self._options), 26) else None

    def _number(self, digits: str) -> int | None:
        if not (
            self._numbered and digits.isascii() and digits.isdigit() and len(digits) <= _MAX_DIGITS
        ):
            return None
        return int(digits) - 1 if 1 <= int(digits) <= len(self._options) else None

    def _led(self, led: re.Match[str]) -> int | None:
        return self._letter(led["letter"]) if led["letter"] else self._number(led["number"])

    def _by_segments(self, phrase: str) -> list[int]:
        """Return the options of a phrase that begins with an option's text and continues."""
        ends = [end.start() for end in _SEGMENT_END.finditer(phrase)][:_MAX_SEGMENTS]
        for end in reversed(ends):
            first = self._index(phrase[:end])
            if first is not None:
                rest = _SEGMENT_END.split(phrase[end:])
                return _distinct([first, *(self._index(o) for o in rest)])
        return []

    def _ways(self, text: str) -> Iterator[list[int]]:
        final = last_line(text)
        yield self._read_claims(final)
        yield self._read_claims(text) if final != text else []
        yield self._lines_and_bold(text)
        yield _distinct(map(self._led_line, text.split("\n")))
        yield self._bracketed(final)
        yield self._by_segments(text) if final == text else []
        yield self._tail(final)

    def _read_claims(self, text: str) -> list[int]:
        phrases = [
            index for phrase in find_spoken_claims(text) for index in self.read_claim(phrase)
        ]
        for claim in (*_IT_IS.finditer(text), *_IS_RIGHT.finditer(text)):
            if claim[1].isupper() and not is_hedged(text, claim.start()):
                phrases += _distinct([self._letter(claim[1])])
        return _distinct(phrases)

    def _lines_and_bold(self, text: str) -> list[int]:
        lines = text.split("\n")
        bold = [span[1] or span[2] for span in _BOLD.finditer(text)]
        return _distinct(self._nothing_but(part) for part in (*lines, *bold) if part)

    def _led_line(self, line: str) -> int | None:
        """Return the option of a line such as `B) ...`; for `B. ...` its text must follow."""
        led = _LED.match(line.lstrip(" (*_["))
        index = self._letter(led["letter"] or "") if led else None
        if led is None or index is None or led["letter"].islower() or _DENIED.match(led["rest"]):
            return None
        if led["mark"].startswith(")"):
            return index
        option = normalise(self._options[index])
        follows = f" {normalise(led['rest'][:_MAX_REASON_CHARS])} "
        return index if led["mark"].startswith(".") and f" {option} " in follows else None

    def _bracketed(self, line: str) -> list[int]:
        letters = [
            match for match in _BRACKETED.finditer(line) if not is_hedged(line, match.start())
        ]
        return _distinct(self._letter(match[1]) for match in letters)

    def _tail(self, line: str) -> list[int]:
        copulas = list(_COPULA.finditer(line))
        if not copulas or is_hedged(line, copulas[-1].start()):
            return []
        return _distinct([self._index(trim(line[copulas[-1].end() :]))])


def right_options(options: tuple[str, ...], gold: str, also_right: Sequence[str]) -> frozenset[int]:
    """Return the indices of the right options.

    Raises:
        FieldError: the right answer is not among the options.
    """
    indices = frozenset(
        index for index, option in enumerate(options) if option == gold or option in also_right
    )
    if gold not in options:
        raise FieldError(
            f"the right answer {gold[:60]!r} is not among the {len(options)} options",
            field="gold",
            hint="use the exact text of the right option.",
        )
    return indices


@lru_cache(maxsize=4096)
def _text_indices(options: tuple[str, ...]) -> dict[str, int]:
    """Return normalised text -> index; texts that differ only before normalising are left out."""
    indices: dict[str, int] = {}
    alike: set[str] = set()
    for index, option in enumerate(options):
        first = indices.setdefault(normalise(option), index)
        if options[first].split() != option.split():
            alike.add(normalise(option))
    return {text: index for text, index in indices.items() if text not in alike}


def _distinct(indices: Iterable[int | None]) -> list[int]:
    return list(dict.fromkeys(index for index in indices if index is not None))
