"""Answers that are one of the options: by letter, by number, or by the option's text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from forgetmap.errors import FieldError
from forgetmap.scoring.extract.claims import hedged, last_line, spoken
from forgetmap.scoring.extract.wording import comparable, trimmed
from forgetmap.scoring.grade import Grade, graded

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
_MOST_SEGMENTS = 6
_MOST_DIGITS = 2
_SLACK = 20
_LONGEST_REASON = 300


class OptionReader:
    """Reads and judges answers to one question with options; an answer is a place among them."""

    def __init__(self, options: tuple[str, ...], gold: str, also_right: tuple[str, ...]) -> None:
        self._options = options
        self._right = right_options(options, gold, also_right)
        self._places = _places(options)
        self._longest = 2 * max(map(len, options)) + _SLACK
        self._numbered = not any(char.isdigit() for option in options for char in option)

    def named(self, phrase: str) -> list[int]:
        """The options a phrase names as the answer; several if it will not decide."""
        phrase = _PREFIX.sub("", trimmed(phrase)).strip(" *_")
        exact = self._exactly(phrase)
        if exact is not None:
            return [exact]
        if _SEVERAL.match(phrase):
            return _distinct(map(self._letter, _CAPITAL.findall(phrase)))
        if led := _LED.match(phrase):
            place = self._led(led)
            return _distinct([place, self._place(led["rest"])])
        if reasoned := _REASONED.match(phrase):
            return _distinct([self._letter(reasoned[1])])
        return self._by_segments(phrase)

    def alone(self, text: str) -> list[int]:
        """The option, if the text is nothing but an option."""
        return _distinct([self._nothing_but(text)]) if "\n" not in text else []

    def complete(self, phrase: str) -> bool:
        """A letter cannot be cut in half."""
        return len(trimmed(phrase)) == 1

    def stated(self, text: str) -> list[int]:
        """The options a text settles on, the surest way of saying so first."""
        return next(filter(None, self._ways(text)), [])

    def grade(self, place: int, phrase: str, *, strict: bool) -> Grade:
        """Right or wrong."""
        choice = self._options[place]
        answer = trimmed(phrase) or choice
        return graded(answer, right=place in self._right, choice=choice, strict=strict)

    def _exactly(self, phrase: str) -> int | None:
        """A letter alone, an option's text, a number alone: in this order."""
        if len(phrase) == 1 and (place := self._letter(phrase)) is not None:
            return place
        if (same := self._place(phrase)) is not None:
            return same
        return self._number(phrase)

    def _nothing_but(self, line: str) -> int | None:
        """A line that is an option's letter, its text, or both and in agreement."""
        whole = trimmed(line)
        phrase = _PREFIX.sub("", whole).strip(" *_")
        if phrase == whole and phrase.isdigit() and comparable(phrase) not in self._places:
            return None
        exact = self._exactly(phrase)
        if exact is not None or len(phrase) > self._longest:
            return exact
        led = _LED.match(phrase)
        parts = (led["letter"] or "", led["rest"]) if led else None
        if not parts and (spaced := _LETTER_AND_TEXT.match(phrase)):
            parts = (spaced[1], spaced[2])
        if parts and (place := self._letter(parts[0])) is not None:
            return place if self._place(parts[1]) == place else None
        return None

    def _place(self, text: str) -> int | None:
        """Where the option with this text stands; what is far too long is not looked up."""
        return self._places.get(comparable(text)) if len(text) <= self._longest else None

    def _letter(self, letter: str) -> int | None:
        place = ord(letter.upper()) - ord("A") if len(letter) == 1 and letter.isascii() else -1
        return place if 0 <= place < min(len(self._options), 26) else None

    def _number(self, digits: str) -> int | None:
        if not (
            self._numbered and digits.isascii() and digits.isdigit() and len(digits) <= _MOST_DIGITS
        ):
            return None
        return int(digits) - 1 if 1 <= int(digits) <= len(self._options) else None

    def _led(self, led: re.Match[str]) -> int | None:
        return self._letter(led["letter"]) if led["letter"] else self._number(led["number"])

    def _by_segments(self, phrase: str) -> list[int]:
        """An option's text and then something else, such as a reason."""
        ends = [end.start() for end in _SEGMENT_END.finditer(phrase)][:_MOST_SEGMENTS]
        for end in reversed(ends):
            first = self._place(phrase[:end])
            if first is not None:
                others = _SEGMENT_END.split(phrase[end:])
                return _distinct([first, *(self._place(o) for o in others)])
        return []

    def _ways(self, text: str) -> Iterator[list[int]]:
        final = last_line(text)
        yield self._spoken(final)
        yield self._spoken(text) if final != text else []
        yield self._lines_and_bold(text)
        yield _distinct(map(self._led_line, text.split("\n")))
        yield self._bracketed(final)
        yield self._by_segments(text) if final == text else []
        yield self._tail(final)

    def _spoken(self, text: str) -> list[int]:
        phrases = [place for phrase in spoken(text) for place in self.named(phrase)]
        for claim in (*_IT_IS.finditer(text), *_IS_RIGHT.finditer(text)):
            if claim[1].isupper() and not hedged(text, claim.start()):
                phrases += _distinct([self._letter(claim[1])])
        return _distinct(phrases)

    def _lines_and_bold(self, text: str) -> list[int]:
        lines = text.split("\n")
        bold = [span[1] or span[2] for span in _BOLD.finditer(text)]
        return _distinct(self._nothing_but(each) for each in (*lines, *bold) if each)

    def _led_line(self, line: str) -> int | None:
        """A letter as in a list of options; with a full stop only if the option's text follows."""
        led = _LED.match(line.lstrip(" (*_["))
        place = self._letter(led["letter"] or "") if led else None
        if led is None or place is None or led["letter"].islower() or _DENIED.match(led["rest"]):
            return None
        if led["mark"].startswith(")"):
            return place
        named = comparable(self._options[place])
        follows = f" {comparable(led['rest'][:_LONGEST_REASON])} "
        return place if led["mark"].startswith(".") and f" {named} " in follows else None

    def _bracketed(self, line: str) -> list[int]:
        found = [each for each in _BRACKETED.finditer(line) if not hedged(line, each.start())]
        return _distinct(self._letter(each[1]) for each in found)

    def _tail(self, line: str) -> list[int]:
        copulas = list(_COPULA.finditer(line))
        if not copulas or hedged(line, copulas[-1].start()):
            return []
        return _distinct([self._place(trimmed(line[copulas[-1].end() :]))])


def right_options(options: tuple[str, ...], gold: str, also_right: Sequence[str]) -> frozenset[int]:
    """Places of the options that count as right.

    Raises:
        FieldError: there are no options, or the right answer is none of them.
    """
    places = frozenset(
        place for place, option in enumerate(options) if option == gold or option in also_right
    )
    if gold not in options:
        raise FieldError(
            f"the right answer {gold[:60]!r} is none of the {len(options)} options",
            field="gold",
            hint="give the text of the right option, exactly as it stands among the options.",
        )
    return places


@lru_cache(maxsize=4096)
def _places(options: tuple[str, ...]) -> dict[str, int]:
    """Where each text stands; texts too alike to tell apart are left out, equal ones count once."""
    places: dict[str, int] = {}
    alike: set[str] = set()
    for place, option in enumerate(options):
        first = places.setdefault(comparable(option), place)
        if options[first].split() != option.split():
            alike.add(comparable(option))
    return {text: place for text, place in places.items() if text not in alike}


def _distinct(places: Iterable[int | None]) -> list[int]:
    return list(dict.fromkeys(place for place in places if place is not None))
