"""Detection of texts that equal, contain or reword an evaluation item.

A question is found in a text in four ways, each ignoring case, punctuation, white space and Unicode
form, and each by an index of all questions, so that a text is read only once:

- same: a message is the question.
- contains: the text has all its letters in a row; its words, if it is short.
- part: the text has 60 of its letters in a row, which is about 13 words.
- reworded: the text has 80 % of its words close together, including all its numbers.

Pieces that many questions share, such as instructions, are evidence of none of them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, repeat, takewhile
from typing import Final, Literal

import numpy as np
import numpy.typing as npt

from forgetmap.export.measured import MeasuredItem
from forgetmap.export.plain_text import plain_letters, plain_words
from forgetmap.export.questions import (
    MAX_SHARED,
    MeasuredQuestion,
    collect_questions,
    count_words,
    is_whole,
)
from forgetmap.export.windows import LONG, SHORT, Hits, PieceIndex, piece_keys
from forgetmap.records import text_hash

Why = Literal["same", "contains", "part", "reworded"]
WHYS: Final[tuple[Why, ...]] = ("same", "contains", "part", "reworded")
PART = 60
"""Letters in a row that count as a long part of a question."""
MIN_REWORDED = 8
"""Minimum number of words of a question that can be recognised when reworded."""
CONTAINED = 0.8
"""Minimum share of the words of a question in a rewording."""
WEIGHTY = 0.8
"""The same share with words weighted by rarity, so that common phrases do not count as
questions."""
RUN = 3
"""Number of words in a row that are looked up."""
SPARE = 8
"""Maximum number of further words in a message with a question of a few letters."""

Ids = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Duplicate:
    """Why a text must not be trained on, and the evaluation item that it leaks."""

    why: Why
    item: MeasuredItem


@dataclass(frozen=True, slots=True)
class PlainText:
    """A text of one or several messages as normalised words.

    Attributes:
        raw: the original messages.
        messages: words of each message.
        words: words of all messages.
    """

    raw: tuple[str, ...]
    messages: tuple[bytes, ...]
    words: bytes

    @classmethod
    def of(cls, messages: Sequence[str]) -> PlainText:
        """Normalise messages."""
        plain = tuple(map(plain_words, messages))
        return cls(tuple(messages), plain, b" ".join(filter(None, plain)))


Check = Callable[[PlainText, bytes, int, MeasuredQuestion, int], Why | None]
"""Text, its letters and a position in them, question and a position in it -> kind of match."""


class DuplicateFinder:
    """Finds evaluation items in texts, many texts at a time.

    Args:
        items: all evaluation items.
    """

    def __init__(self, items: Sequence[MeasuredItem]) -> None:
        questions = collect_questions(items)
        self._questions = questions
        self._by_letters: dict[bytes, list[MeasuredQuestion]] = {}
        for question in questions:
            self._by_letters.setdefault(question.letters, []).append(question)
        self._by_hash = {
            item.question_hash: item for item in items if item.question_hash is not None
        }
        self._long = PieceIndex(LONG, _long_pieces(questions))
        self._short = PieceIndex(SHORT, _short_pieces(questions))
        tiny = [question for question in questions if len(question.letters) < SHORT]
        self._tiny_words = max((question.room for question in tiny), default=-SPARE)
        self._rewordings = RewordingIndex(questions)

    def find(self, texts: Sequence[PlainText]) -> list[Duplicate | None]:
        """Return for each text the first evaluation item that it leaks, or None."""
        duplicates = [self._same(text) for text in texts]
        self._search(texts, duplicates, self._long, _check_long)
        self._search(texts, duplicates, self._short, _check_short)
        for place, question in self._rewordings.search(texts, duplicates):
            if duplicates[place] is None and _is_proven(question, texts[place]):
                duplicates[place] = Duplicate("reworded", question.item)
        return duplicates

    def _same(self, text: PlainText) -> Duplicate | None:
        for raw, words in zip(text.raw, text.messages, strict=True):
            for question in self._by_letters.get(plain_letters(words), ()):
                if not question.is_option and _is_proven(question, text):
                    return Duplicate("same", question.item)
            item = self._by_hash.get(text_hash(raw)) if self._by_hash else None
            if item is not None:
                return Duplicate("same", item)
            for question in self._tiny_inside(words):
                if _is_proven(question, text):
                    return Duplicate("contains", question.item)
        return None

    def _tiny_inside(self, message: bytes) -> Iterator[MeasuredQuestion]:
        """Return questions of a few letters in a message that is hardly longer."""
        words = message.split()
        if len(words) > self._tiny_words + SPARE:
            return
        for start in range(len(words)):
            for stop in range(start + 1, len(words) + 1):
                letters = b"".join(words[start:stop])
                if len(letters) >= SHORT:
                    break
                yield from self._by_letters.get(letters, ())

    def _search(
        self,
        texts: Sequence[PlainText],
        duplicates: list[Duplicate | None],
        index: PieceIndex,
        check: Check,
    ) -> None:
        """Check every position at which a piece of a question occurs."""
        if not len(index):
            return
        letters = [
            b"" if hit else plain_letters(text.words)
            for text, hit in zip(texts, duplicates, strict=True)
        ]
        starts = np.cumsum([0, *(len(part) + 1 for part in letters)])
        hits: Hits = index.search(b"\x00".join(letters))
        rows = np.searchsorted(starts, hits.places, side="right") - 1
        begins = hits.places - starts[rows]
        columns = (rows.tolist(), begins.tolist(), hits.owners.tolist(), hits.offsets.tolist())
        for row, begin, owner, offset in zip(*columns, strict=True):
            if duplicates[row] is None:
                question = self._questions[owner]
                why = check(texts[row], letters[row], begin, question, offset)
                if why and _is_proven(question, texts[row]):
                    duplicates[row] = Duplicate(why, question.item)


def _check_long(
    _: PlainText, letters: bytes, begin: int, question: MeasuredQuestion, offset: int
) -> Why | None:
    start = begin - offset
    if start >= 0 and letters.startswith(question.letters, start):
        return "contains"
    return "part" if _shared_length(letters, begin, question.letters, offset) >= PART else None


def _check_short(
    text: PlainText, letters: bytes, begin: int, question: MeasuredQuestion, offset: int
) -> Why | None:
    start = begin - offset
    if start < 0 or not letters.startswith(question.letters, start):
        return None
    return "contains" if is_whole(question.letters, start, text.words) else None


def _is_proven(question: MeasuredQuestion, text: PlainText) -> bool:
    return not question.needs_answer or question.is_answered_in(text.words)


def _shared_length(text: bytes, begin: int, other: bytes, offset: int) -> int:
    """Return the shared length of two texts around a common piece, up to the relevant maximum."""
    left, right = text[max(begin - PART, 0) : begin][::-1], text[begin : begin + PART]
    return _same_length(left, other[:offset][::-1]) + _same_length(right, other[offset:])


def _same_length(one: bytes, other: bytes) -> int:
    """Return the length of the common beginning of two texts."""
    pairs = zip(one, other, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _long_pieces(questions: Sequence[MeasuredQuestion]) -> Iterator[tuple[int, int, int]]:
    """Return adjacent pieces: any text twice as long as a piece contains a whole one."""
    rows: list[tuple[int, int, int]] = []
    for number, question in enumerate(questions):
        keys = piece_keys(question.letters, LONG)
        if len(keys):
            offsets = {*range(0, len(keys), LONG), len(keys) - 1}
            rows += [(number, offset, int(keys[offset])) for offset in sorted(offsets)]
    shared = Counter(key for _, key in {(number, key) for number, _, key in rows})
    yield from _telling(rows, shared)


def _telling(
    rows: Sequence[tuple[int, int, int]], shared: Mapping[int, int]
) -> Iterator[tuple[int, int, int]]:
    """Return pieces that few questions share, and at least the rarest one of each question."""
    rarest: dict[int, tuple[int, int, int]] = {}
    for row in rows:
        best = rarest.setdefault(row[0], row)
        if shared[row[2]] < shared[best[2]]:
            rarest[row[0]] = row
    for row in rows:
        if shared[row[2]] <= MAX_SHARED or rarest[row[0]] == row:
            yield row


def _short_pieces(questions: Sequence[MeasuredQuestion]) -> Iterator[tuple[int, int, int]]:
    """Return the rarest piece of each question that is too short for a long piece."""
    rows = [
        (number, offset, int(key))
        for number, question in enumerate(questions)
        if len(question.letters) < LONG
        for offset, key in enumerate(piece_keys(question.letters, SHORT))
    ]
    shared = Counter(key for _, key in {(number, key) for number, _, key in rows})
    rarest: dict[int, tuple[int, int, int]] = {}
    for row in rows:
        if shared[row[2]] < shared[rarest.setdefault(row[0], row)[2]]:
            rarest[row[0]] = row
    yield from rarest.values()


class RewordingIndex:
    """Finds texts that have most words of a question close together.

    Replacing a word breaks three runs of three words, so enough runs remain of a question with four
    words in five; only texts with that many runs are checked.

    Args:
        questions: the questions to find.
    """

    def __init__(self, questions: Sequence[MeasuredQuestion]) -> None:
        self._questions = questions
        self._words = [question.words.split() for question in questions]
        self._weights = {
            word: math.log((1 + len(questions)) / (1 + count)) + 1
            for word, count in count_words(questions).items()
        }
        known = [words if len(words) >= MIN_REWORDED else [] for words in self._words]
        self._ids: dict[bytes, int] = {}
        for word in chain.from_iterable(known):
            self._ids.setdefault(word, len(self._ids))
        rows = [
            (number, place, int(key))
            for number, words in enumerate(known)
            for place, key in enumerate(self._runs([self._ids[word] for word in words]))
        ]
        shared = Counter(key for _, key in {(number, key) for number, _, key in rows})
        rows = [row for row in rows if shared[row[2]] <= MAX_SHARED]
        self._index = PieceIndex(RUN, rows)
        distinct = Counter(number for number, _ in {(number, key) for number, _, key in rows})
        self._needed = np.array(
            [
                max(2, distinct[number] - RUN * int((1 - CONTAINED) * len(words) + 1e-9))
                for number, words in enumerate(self._words)
            ],
            dtype=np.int64,
        )

    def _runs(self, ids: Sequence[int]) -> npt.NDArray[np.uint64]:
        """Return a number for every run of words; 0 if a word is in no question."""
        array = np.asarray(ids, dtype=np.int64)
        if len(array) < RUN:
            return np.empty(0, dtype=np.uint64)
        base = np.int64(len(self._ids) + 1)
        first, second, third = (array[n : len(array) - RUN + 1 + n] for n in range(RUN))
        runs = (first * base + second) * base + third + 1
        runs[(first < 0) | (second < 0) | (third < 0)] = 0
        return runs.astype(np.uint64)

    def search(
        self, texts: Sequence[PlainText], duplicates: Sequence[Duplicate | None]
    ) -> Iterator[tuple[int, MeasuredQuestion]]:
        """Return the indices of further texts, with the question that each rewords."""
        if not len(self._index):
            return
        words = [[] if hit else t.words.split() for t, hit in zip(texts, duplicates, strict=True)]
        get = self._ids.get
        ids: list[int] = []
        starts = [0]
        for part in words:
            ids += map(get, part, repeat(-1))
            ids.append(-1)
            starts.append(len(ids))
        hits = self._index.look_up(self._runs(ids))
        yield from self._candidates(hits, np.array(starts), words)

    def _candidates(
        self, hits: Hits, starts: Ids, words: Sequence[Sequence[bytes]]
    ) -> Iterator[tuple[int, MeasuredQuestion]]:
        rows = np.searchsorted(starts, hits.places, side="right") - 1
        pairs = rows * len(self._questions) + hits.owners
        kinds, group, counts = np.unique(pairs, return_inverse=True, return_counts=True)
        if not len(kinds):
            return
        owners = kinds % len(self._questions)
        order, ends = np.argsort(group, kind="stable"), np.cumsum(counts)
        for number in np.flatnonzero(counts >= self._needed[owners]).tolist():
            row, owner = divmod(int(kinds[number]), len(self._questions))
            mine = order[ends[number] - counts[number] : ends[number]]
            shifts = hits.places[mine] - starts[row] - hits.offsets[mine]
            if self._is_reworded(words[row], owner, int(np.median(shifts))):
                yield row, self._questions[owner]

    def _is_reworded(self, words: Sequence[bytes], owner: int, shift: int) -> bool:
        question = self._words[owner]
        room = len(question) // 4 + 1
        there = Counter(words[max(shift - room, 0) : max(shift + len(question) + room, 0)])
        count = Counter(question)
        if not all(there[word] for word in count if word.isdigit()):
            return False
        shared = {word: min(number, there[word]) for word, number in count.items()}
        is_most = sum(shared.values()) >= CONTAINED * len(question)
        return is_most and self._weigh(shared) >= WEIGHTY * self._weigh(count)

    def _weigh(self, words: Mapping[bytes, int]) -> float:
        """Return the weight of words: rare ones count more than those of many questions."""
        return sum(number * self._weights[word] for word, number in words.items())
