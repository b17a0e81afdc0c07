"""Normalised wordings of answers, and their comparison."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

_ZEROS = "٠۰०০੦૦୦௦౦೦൦๐໐༠၀០᠐"
_DIGITS = {ord(zero) + digit: str(digit) for zero in _ZEROS for digit in range(10)} | {
    0x066B: ".",
    0x066C: ",",
}
_FULL_WIDTH = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}
_JOINERS = "\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufeff"
_PLAIN = (
    _FULL_WIDTH
    | _DIGITS
    | {
        ord(odd): usual
        for odds, usual in (
            ("\u2018\u2019\u02bc", "'"),
            ("\u201c\u201d", '"'),
            ("\u00a0\u2007\u2009\u202f\u3000", " "),
            ("\u2212", "-"),
            ("\u2028\u2029\u0085", "\n"),
            (_JOINERS, ""),
        )
        for odd in odds
    }
)
_UNIFIED = _DIGITS | dict.fromkeys(map(ord, _JOINERS), "")
_SUPERSCRIPT = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
_RAISED = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁻]{1,9}")
_SPECIAL_TOKEN = re.compile(r"<\|\w{1,40}\|>|</s>")
_DECORATION = " \t\n*_`\"'$.,;:!()[]{}<>。、।\u06d4،「」«»“”"
_WRAPPED = re.compile(r"^\\(?:text|textbf|mathrm|mathbf|mathit|textrm)\s*\{(.*)\}$", re.DOTALL)
_MAX_WRAPPERS = 3
_JOINED = frozenset({"Mn", "Mc"})
_ARTICLE = re.compile(r"^(?:an?|the)\s+(?=\w)|\b(?:an?|the)\s+(?=\w\w)")
_DROPPED = re.compile(r"['`\u00b4]|(?<!\d)\.|\.(?!\d)|(?<=\d),(?=\d{3})")
_SEPARATING = re.compile(r"(?<!\d)[.]|[^\w\s.+#%$€£°/<>=^*-]|_|(?<=\w)-|-(?!\w)")


def simplify(text: str) -> str:
    """Replace digits of any script, full-width letters, curly quotes and unusual spaces.

    Special tokens are removed, accented letters are composed.
    """
    if not text.isascii():
        text = unicodedata.normalize("NFC", text.translate(_PLAIN))
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if "<" in text:
        text = _SPECIAL_TOKEN.sub("\n", text)
    return text


def trim(phrase: str) -> str:
    """Remove the marks around a phrase: emphasis, quotes, brackets, final punctuation."""
    phrase = phrase.strip(_DECORATION)
    for _ in range(_MAX_WRAPPERS):
        if not (wrapped := _WRAPPED.match(phrase + "}")):
            break
        phrase = wrapped[1].strip(_DECORATION)
    return phrase


def with_powers(text: str) -> str:
    """Replace superscript digits by a caret and digits."""
    if text.isascii():
        return text
    return _RAISED.sub(lambda raised: f"^{{{raised[0].translate(_SUPERSCRIPT)}}}", text)


@lru_cache(maxsize=4096)
def normalise(text: str) -> str:
    """Return a text regardless of case, articles, punctuation, spaces and Unicode form."""
    text_folded = unify(text).casefold().strip()
    parts = _SEPARATING.sub(_gap, _DROPPED.sub("", _ARTICLE.sub("", text_folded)))
    return " ".join(parts.split()) or "".join(text_folded.split())


def unify(text: str) -> str:
    """Return a text in NFKC, with digits 0 to 9, without invisible characters."""
    if text.isascii():
        return text
    return unicodedata.normalize("NFKC", text.translate(_UNIFIED))


@lru_cache(maxsize=1)
def marks() -> str:
    """Return all vowel signs and accents, which belong to the letter before them."""
    signs = map(chr, range(0x300, 0x10000))
    return "".join(sign for sign in signs if unicodedata.category(sign) in _JOINED)


def _gap(separating: re.Match[str]) -> str:
    """Keep vowel signs and accents, which belong to their letter; replace the rest by a space."""
    mark = separating[0]
    return mark if unicodedata.category(mark[0]) in _JOINED else " "


_SIGNS = (
    "\u0e00-\u0eff\u0f00-\u0fff\u1000-\u109f\u1780-\u17ff\u3041-\u309f"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
_MARKS = marks()
_LETTER = rf"(?:[^\W_{_SIGNS}]|[{_MARKS}])"
_WORD = re.compile(
    rf"[{_SIGNS}][{_MARKS}]*+"
    rf"|(?:(?<!\w)-(?=\d))?{_LETTER}++(?:(?<=\d)\.\d++)*+(?:'{_LETTER}++)*+(?:\+\+|[+#](?!\w))?"
)
_ABBREVIATION = re.compile(r"\b(?:[^\W\d_]\.){2,}")
_THOUSANDS = re.compile(r"(?<=\d)[,'](?=\d{3}(?!\d))")
_NARROW_GAP = re.compile("(?<=\\d)[\u00a0\u2007\u2009\u202f](?=\\d{3}(?!\\d))")
_DECIMAL = re.compile(r"-?\d+\.\d+")
_ODD_APOSTROPHES = str.maketrans("\u2018\u2019\u02bc\u00b4`", "'''''")
_ARTICLES = frozenset({"a", "an", "the"})
_CONTRACTIONS = frozenset({"t", "m", "d", "ll", "ve", "re"})
_UNACCENTED = str.maketrans(
    {"ł": "l", "ø": "o", "đ": "d", "ð": "d", "\u0131": "i", "æ": "ae", "œ": "oe", "þ": "th"}
)
_FIRST_INDIC = "\u0700"
_BREVE = "\u0306"
_PARTICLES = re.compile(
    "(?:은|는|이|가|을|를|의|에|에서|에게|로|으로|와|과|도|만|까지|부터|란|이란|라는|이라는|이다|이며|이고"
    "|입니다|였다|이었다|예요|이에요)$"
)
_CLITICS = re.compile("^[وف]?[بلك]?(?:ال|ل)?$")
_HANGUL = re.compile("[\uac00-\ud7af]{2}")
_ARABIC = re.compile("[\u0620-\u064a]{3}")


class Word(NamedTuple):
    """A word: its spellings, the full one first, and its start and end in the text."""

    spellings: tuple[str, ...]
    start: int
    end: int


def fold(text: str) -> str:
    """Fold a text for comparison; positions of words refer to the result."""
    if not text.isascii():
        text = _NARROW_GAP.sub("", text).translate(_ODD_APOSTROPHES)
        text = unicodedata.normalize("NFC", unify(text).casefold())
    else:
        text = text.casefold()
    text = _ABBREVIATION.sub(lambda dotted: dotted[0].replace(".", ""), text)
    return _THOUSANDS.sub("", text)


def split_words(text: str) -> list[Word]:
    """Return the words of a folded text."""
    return [Word(_spellings(match[0]), *match.span()) for match in _WORD.finditer(text)]


def find_mentions(answer: str, text_words: Sequence[Word]) -> Iterator[tuple[int, int]]:
    """Iterate over the index of the first and last word of every mention of the answer."""
    answer_words = _answer_words(answer)
    if not answer_words:
        return
    alone = len(answer_words) == 1 and re.fullmatch(f"[{_SIGNS}]", answer_words[0]) is not None
    for first in _candidates(answer_words[0], text_words):
        last = _matches(answer_words, text_words, first)
        if last is not None and not (alone and _beside_signs(text_words, first)):
            yield first, last


def occurs(answer: str, text: str) -> bool:
    """Whether the answer occurs in a folded text."""
    answer_words = _answer_words(answer)
    if not answer_words or (
        answer_words[0] not in text and answer_words[0].isascii() and text.isascii()
    ):
        return False
    return next(find_mentions(answer, split_words(text)), None) is not None


def _candidates(head: str, text_words: Sequence[Word]) -> Iterator[int]:
    """Iterate over the indices at which an answer with this first word may begin."""
    is_ascii = head.isascii()
    for index, (spellings, _, _) in enumerate(text_words):
        if head in spellings or not (is_ascii and spellings[0].isascii()):
            yield index


@lru_cache(maxsize=4096)
def _answer_words(answer: str) -> tuple[str, ...]:
    """Return the words of the answer, without articles before other words."""
    all_words = [word.spellings[0] for word in split_words(fold(answer))]
    leading = [len(word) > 1 for word in all_words[1:]]
    kept = [
        word
        for word, leads in zip(all_words, leading, strict=False)
        if not leads or word not in _ARTICLES
    ]
    return (*kept, *all_words[-1:])


def _matches(answer_words: Sequence[str], text_words: Sequence[Word], first: int) -> int | None:
    """Return the index of the last word if the answer begins at `first`; articles are skipped."""
    index = first
    for number, word in enumerate(answer_words):
        while (
            number
            and index < len(text_words)
            and text_words[index].spellings[0] in _ARTICLES - {word}
        ):
            index += 1
        if index >= len(text_words) or not any(
            _same(word, other) for other in text_words[index].spellings
        ):
            return None
        index += 1
    return index - 1


def _beside_signs(text_words: Sequence[Word], index: int) -> bool:
    """Whether a single sign is part of a longer word: 京 in 東京 is not a mention."""
    word = text_words[index]
    return any(
        0 <= other < len(text_words)
        and (text_words[other].end == word.start or text_words[other].start == word.end)
        and re.match(f"[{_SIGNS}]", text_words[other].spellings[0]) is not None
        for other in (index - 1, index + 1)
    )


def _spellings(word: str) -> tuple[str, ...]:
    if "." in word and _DECIMAL.fullmatch(word):
        return (word.rstrip("0").rstrip("."),)
    if "'" not in word:
        return (word,)
    whole = word.replace("'", "")
    head, _, tail = word.partition("'")
    if tail in _CONTRACTIONS:
        return (whole,)
    return (whole, tail.replace("'", "") if len(head) <= 2 else head)  # d', l', qu'


def _same(word: str, other: str) -> bool:
    if word == other:
        return True
    if word.isascii() and other.isascii():
        return False
    if strip_accents(word) == other or word == strip_accents(other):
        return True
    if other.startswith(word) and _HANGUL.match(word):
        return _PARTICLES.match(other, len(word)) is not None
    if other.endswith(word) and _ARABIC.match(word):
        return _CLITICS.match(other[: -len(word)]) is not None
    return False


@lru_cache(maxsize=4096)
def strip_accents(word: str) -> str:
    """Remove accents, except in scripts where they are letters."""
    kept: list[str] = []
    base = ""
    for character in unicodedata.normalize("NFD", word.translate(_UNACCENTED)):
        if not unicodedata.combining(character):
            base = character
        elif base < _FIRST_INDIC and not (character == _BREVE and base in "иИ"):
            continue
        kept.append(character)
    return unicodedata.normalize("NFC", "".join(kept))
