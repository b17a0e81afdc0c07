"""Answers that are a number, however it is written."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from forgetmap.errors import FieldError
from forgetmap.scoring.claims import LONGEST_ANSWER, last_line, sentence, spoken
from forgetmap.scoring.grades import Judged, graded
from forgetmap.scoring.numerals import (
    NUMBER,
    Quantity,
    han_numeral,
    quantities,
    quantity_at,
    same_number,
    tidied,
)
from forgetmap.scoring.wording import plain

_ASIDE = re.compile(
    r"\(|\b(?:because|since|as|which|over|in|for|per|after|out of|of|every|within|during)\b|[;\n]",
    re.IGNORECASE,
)
_VERB = re.compile(
    r"(?:\b(?:is|are|was|were|be|equals?|has|have|had|costs?|takes?|gets?|makes?|leaves|total"
    r"|es|son|tiene|est|sont|ist|sind|hat|beträgt|равно|ni|è|é)\b|[=≈])"
    r"(?:\s*(?:about|approximately|exactly|only|just|now|left with))?[\s*:\\(]*",
    re.IGNORECASE,
)
_BOLD = re.compile(r"\*\*([^*\n]{1,60})\*\*")
_MOST_WORDS = 4
_LAST_LATIN = 0x24F


class NumberReader:
    """Reads and judges answers to one question with a number for an answer."""

    def __init__(self, gold: str, also_right: tuple[str, ...]) -> None:
        self._right = [self._gold(each) for each in (gold, *also_right)]

    def named(self, phrase: str) -> list[Quantity]:
        """The number a phrase gives; several if it will not decide."""
        found = _distinct(quantities(phrase))
        if len(found) > 1 and "=" in phrase:
            found = _distinct(quantities(phrase[phrase.rfind("=") + 1 :]))
        if len(found) > 1:
            head = sentence(phrase)
            aside = _ASIDE.search(head)
            found = _distinct(quantities(head[: aside.start()] if aside else head)) or found
        if not found and (numeral := han_numeral(phrase.lstrip(" *_`"))):
            return [numeral]
        return found

    def alone(self, text: str) -> list[Quantity]:
        """The number, if the text is nothing but a number and a unit."""
        if len(text) > LONGEST_ANSWER or "\n" in text or len(text.split()) > _MOST_WORDS:
            return []
        bare = tidied(text).lstrip(" *_`(~≈$\\[{").removeprefix("text{").lstrip()
        found = _distinct(quantities(bare)) if NUMBER.match(bare) else []
        return found if len(found) == 1 else []

    def complete(self, phrase: str) -> bool:  # noqa: ARG002
        """Further digits may have been cut off."""
        return False

    def stated(self, text: str) -> list[Quantity]:
        """The numbers a text settles on, the surest way of saying so first."""
        return next(filter(None, self._ways(text)), [])

    def grade(self, answer: Quantity, phrase: str, *, strict: bool) -> Judged:  # noqa: ARG002
        """Right or wrong."""
        right = any(same_number(answer, wanted) for wanted in self._right)
        return graded(answer.said, right=right, strict=strict)

    def _gold(self, text: str) -> Quantity:
        found = self.named(plain(text))
        if len(found) != 1:
            raise FieldError(
                f"the right answer {text[:60]!r} is not one number",
                field="gold",
                hint="give a number such as 12, -3.5, 1,000, 3/4 or 1e6, or use the kind 'text'.",
            )
        return found[0]._replace(values=found[0].values[:1])

    def _ways(self, text: str) -> Iterator[list[Quantity]]:
        final = last_line(text)
        yield self._spoken(final)
        yield self._spoken(text)
        yield self.alone(final)
        yield self._after_verb(tidied(final[-LONGEST_ANSWER:]))
        yield _distinct(found for bold in _BOLD.findall(final) for found in self.alone(bold))
        yield self._only_one(final)

    def _spoken(self, text: str) -> list[Quantity]:
        return _distinct(found for each in spoken(text) for found in self.named(sentence(each)))

    def _after_verb(self, line: str) -> list[Quantity]:
        for end in reversed([verb.end() for verb in _VERB.finditer(line)]):
            if NUMBER.match(line, end):
                quantity = quantity_at(line, end)
                return [quantity] if quantity else []
        return []

    def _only_one(self, line: str) -> list[Quantity]:
        """The only number of a last line in a script whose verbs are not looked for."""
        if not any(char.isalpha() and ord(char) > _LAST_LATIN for char in line):
            return []
        found = _distinct(quantities(line))
        return found if len(found) == 1 else []


def _distinct(found: Iterable[Quantity]) -> list[Quantity]:
    return list({(quantity.values, quantity.percent): quantity for quantity in found}.values())
