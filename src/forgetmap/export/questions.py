"""Questions of evaluation items, prepared for the search in other texts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import accumulate

from forgetmap.export.measured import MeasuredItem
from forgetmap.export.plain_text import plain_letters, plain_words

MIN_WORDS = 3
"""Minimum number of words of a question that is evidence without its answer."""
_LABELS = re.compile(
    r"\A\s*(?:question|problem|input|q)\s*[:.]|\b(?:answer|output|solution|a)\s*:\s*\Z",
    re.IGNORECASE,
)
_OPTIONS = re.compile(r"\s\(?[aA1][).:]\s(?=[\s\S]*\s\(?[bB2][).:]\s)")
"""Start of a list of options: after an A, with a B later."""
MAX_SHARED = 20
"""Maximum number of questions that share a word or a piece before it counts as common."""
MIN_LETTERS = 8
"""Number of letters that hardly match in a row by chance."""


@dataclass(frozen=True, slots=True)
class Variant:
    """The difference between items with the same question: right answer and options as words."""

    gold: bytes
    options: frozenset[bytes]


@dataclass(slots=True)
class MeasuredQuestion:
    """A question as normalised text, with all of its items.

    Attributes:
        words: words of the question.
        letters: the same without spaces.
        item: the first item with this question.
        variants: differences between the items with this question.
        is_option: it is an option of an item without a question.
        is_common: it has only words that many questions have.
    """

    words: bytes
    letters: bytes
    item: MeasuredItem
    variants: set[Variant] = field(default_factory=set)
    is_option: bool = False
    is_common: bool = False

    @property
    def needs_answer(self) -> bool:
        """Whether the question alone is not evidence, like "Which of these is true?"."""
        return self.is_option or len(self.variants) > 1 or self.words.count(b" ") + 1 < MIN_WORDS

    @property
    def room(self) -> int:
        """Number of words of the question with its options and their letters."""
        options = max((variant.options for variant in self.variants), key=len)
        words: int = sum(text.count(b" ") + 1 for text in (self.words, *options))
        return words + len(options)

    def is_answered_in(self, text: bytes) -> bool:
        """Return whether a text has the right answer or half of the options of an item."""
        known = [variant for variant in self.variants if variant.gold or variant.options]
        return not known or any(self._has(variant, text) for variant in known)

    def _has(self, variant: Variant, text: bytes) -> bool:
        count = sum(is_inside(option, text) for option in variant.options)
        if self.is_option:
            return 2 * count > len(variant.options)
        has_gold = bool(variant.gold) and is_inside(variant.gold, text)
        return has_gold or (count > 0 and 2 * count >= len(variant.options))


def is_inside(words: bytes, text: bytes) -> bool:
    """Return whether a text has these words in a row; long ones may be split or joined there."""
    if b" %b " % words in b" %b " % text:
        return True
    letters = plain_letters(words)
    return len(letters) >= MIN_LETTERS and letters in plain_letters(text)


def is_whole(letters: bytes, start: int, text: bytes) -> bool:
    """Return whether letters at a position of a text begin and end with a word there."""
    ends = {0, *accumulate(map(len, text.split()))}
    return start in ends and start + len(letters) in ends


def collect_questions(items: Iterable[MeasuredItem]) -> list[MeasuredQuestion]:
    """Return every question once; for an item without a question, its options."""
    by_text: dict[bytes, MeasuredQuestion] = {}
    for item in items:
        options = tuple(filter(None, map(plain_words, item.options)))
        variant = Variant(plain_words(item.gold), frozenset(options))
        texts = dict.fromkeys(filter(None, map(plain_words, asked_texts(item))))
        for text in texts or options:
            known = by_text.setdefault(
                text, MeasuredQuestion(text, plain_letters(text), item, is_option=not texts)
            )
            known.variants.add(variant)
    questions = list(by_text.values())
    counts = count_words(questions)
    for question in questions:
        question.is_common = all(
            counts[word] > MAX_SHARED and not word.isdigit() for word in question.words.split()
        )
    return questions


def asked_texts(item: MeasuredItem) -> list[str]:
    """Return the question as recorded, and without labels and listed options.

    For a prompt also its last block, because the blocks before are instructions and examples.
    """
    whole = item.question
    blocks = [whole] if item.is_bare else [whole, whole.rstrip().rpartition("\n\n")[2]]
    stems = [_LABELS.sub("", _OPTIONS.split(block, maxsplit=1)[0]) for block in blocks]
    return [whole, *(stem for stem in stems if stem.count(" ") + 1 >= MIN_WORDS)]


def count_words(questions: Iterable[MeasuredQuestion]) -> Counter[bytes]:
    """Count the questions that contain each word."""
    return Counter(word for question in questions for word in set(question.words.split()))
