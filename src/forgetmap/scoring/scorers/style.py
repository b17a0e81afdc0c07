"""Style of a response, without a judgement of right or wrong.

    words, characters, sentences     counts (defined in prose.py)
    sentence_words                   words per sentence
    bullets, tables, headings, code, emoji
                                     whether there is any; `bullet_count` and so on are the counts
    hedges                           number of perhaps, might, I think, ...
    hedging                          whether there is any
    directness                       whether it does not start with a courtesy, praise of the
                                     question, an announcement or a question
    non_latin                        share of its letters that are not Latin

Thinking is not counted. For an empty response all values are 0, with the reason as outcome;
`sentence_words` and `non_latin` are absent if there are no sentences or letters. Hedges and
directness are based on English words, and absent if most letters are not Latin.

Lists (bulleted or numbered items), tables, headings and code blocks are recognised by
markdown-it-py. Emoji are those of the emoji library that are shown as pictures: a heart with its
picture selector and a robot, but not a bare copyright sign, a check mark or Chinese text.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from forgetmap.scoring.extract.failures import is_refusal, why_nothing
from forgetmap.scoring.extract.prose import count_words, sentences
from forgetmap.scoring.extract.thinking import visible_text
from forgetmap.scoring.grade import Grade, grade_count, grade_failure, grade_share
from forgetmap.scoring.scorer import COUNT, RIGHT_OR_WRONG, SHARE, Fields, Scale, ScorerInput

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

_FEATURES = {
    "bullets": "bullet_count",
    "tables": "table_count",
    "headings": "heading_count",
    "code": "code_count",
    "emoji": "emoji_count",
}
_TOKENS = {
    "list_item_open": "bullet_count",
    "table_open": "table_count",
    "heading_open": "heading_count",
    "fence": "code_count",
    "code_block": "code_count",
}
_MARKED = re.compile(
    r"^[ \t>]*+(?:[-*+#|=~]|```|\d{1,9}[.)])|^(?: {4}|\t)|^[^\n|]*+\|", re.MULTILINE
)
_DRAWN_BULLET = re.compile(r"^([ \t]*+)[\u2022\u2023\u25aa\u25cf\u25e6][ \t]*+", re.MULTILINE)
_MAYBE_EMOJI = re.compile(
    "[\u200d\u20e3\u231a-\u2bff\u3030\u303d\u3297\u3299\ufe0f\U0001f000-\U0001faff]"
)
_HEDGE = re.compile(
    r"(?:perhaps|maybe|possibly|probably|presumably|arguably|supposedly|apparently|seemingly"
    r"|might|may(?! \d)|could be|likely|unlikely|seems?|appears? (?:to|that)|tends? to|suggests?"
    r"|roughly|somewhat|to some (?:extent|degree)|in (?:some|many|most) cases|it depends"
    r"|generally|typically|usually|often|sometimes"
    r"|(?:i|we) (?:think|believe|guess|suspect|assume|suppose)"
    r"|(?:i am|i'm|it is|it's) (?:not (?:sure|certain|clear)|unclear|uncertain)"
    r"|as far as i know|in my (?:opinion|view)|i could be wrong)\b"
)
_PREAMBLE = re.compile(
    r"^\W*(?:sure|certainly|of course|absolutely|definitely|okay|ok|alright|all right|great|good"
    r"|excellent|wonderful|interesting|thanks?|thank you|hello|hi|hey|dear|happy to|glad to"
    r"|i'd be (?:happy|glad)|i would be (?:happy|glad)|i'm (?:happy|glad)|i am (?:happy|glad)"
    r"|i understand|i see|let me|let's|let us|here (?:is|are|'s)|here's|below (?:is|are)|as an ai"
    r"|you (?:asked|are asking|want)|this is an? (?:great|good|interesting|complex|important)"
    r"|that's an? |what an? |in order to answer|to answer|before (?:i|we)|first of all"
    r"|i (?:will|am going to|can) (?:now )?(?:explain|describe|provide|help|try|outline))\b",
    re.IGNORECASE,
)
_RATIOS = frozenset({"sentence_words", "non_latin"})
_OPENING_CHARS = 400
_MAX_NON_LATIN = 0.5


class StyleScorer:
    """Scorer of the style of a response."""

    name = "style"
    version = 1
    packages = ("emoji", "markdown_it")
    fields: Mapping[str, Scale] = (
        dict.fromkeys(("words", "characters", "sentences", "sentence_words", "hedges"), COUNT)
        | dict.fromkeys(_FEATURES.values(), COUNT)
        | dict.fromkeys((*_FEATURES, "hedging", "directness"), RIGHT_OR_WRONG)
        | {"non_latin": SHARE}
    )

    def score(self, sample: ScorerInput) -> Fields:
        """Return the values, for any response."""
        visible, cut = visible_text(sample.response, sample.finish_reason)
        text = visible.strip()
        if not text:
            nothing = grade_failure(why_nothing(text, cut=cut))
            return {field: nothing for field in self.fields if field not in _RATIOS}
        return _lengths(text) | _features(text) | _wording(text)


style = StyleScorer()


def _lengths(text: str) -> dict[str, Grade]:
    words, parts = count_words(text), len(sentences(text))
    fields = {
        "words": grade_count(words),
        "characters": grade_count(len(text)),
        "sentences": grade_count(parts),
    }
    return fields | ({"sentence_words": grade_count(words / parts)} if parts else {})


def _features(text: str) -> dict[str, Grade]:
    counts = _blocks(text)
    counts["emoji_count"] = _emoji(text)
    return {count: grade_count(counts[count]) for count in _FEATURES.values()} | {
        feature: grade_share(float(counts[count] > 0)) for feature, count in _FEATURES.items()
    }


def _blocks(text: str) -> Counter[str]:
    """Count the blocks of each kind; skipped if no line looks like the start of one."""
    text = _DRAWN_BULLET.sub(r"\1- ", text)
    if not _MARKED.search(text):
        return Counter()
    kinds = (_TOKENS.get(token.type) for token in _markdown().parse(text))
    return Counter(kind for kind in kinds if kind)


@lru_cache(maxsize=1)
def _markdown() -> MarkdownIt:
    """Return a parser of blocks only, without inline markup."""
    from markdown_it import MarkdownIt  # only needed if there are blocks

    markdown = MarkdownIt("commonmark").enable("table")
    markdown.core.ruler.enableOnly(["normalize", "block"])
    return markdown


def _emoji(text: str) -> int:
    if text.isascii() or not _MAYBE_EMOJI.search(text):
        return 0
    import emoji  # not part of the core installation

    return sum(_is_picture(match["emoji"]) for match in emoji.emoji_list(text))


@lru_cache(maxsize=4096)
def _is_picture(sign: str) -> bool:
    import emoji

    data: Any = emoji.EMOJI_DATA.get(sign)
    qualified = (emoji.STATUS["fully_qualified"], emoji.STATUS["minimally_qualified"])
    return data is not None and data["status"] in qualified


def _wording(text: str) -> dict[str, Grade]:
    latin, other = _letters(text)
    fields = {"non_latin": grade_share(other / (latin + other))} if latin + other else {}
    if other > _MAX_NON_LATIN * (latin + other):
        return fields
    text = text.replace("\u2019", "'")
    hedges = _hedges(text.lower())
    return fields | {
        "hedges": grade_count(hedges),
        "hedging": grade_share(float(hedges > 0)),
        "directness": grade_share(float(_is_direct(text))),
    }


def _hedges(text: str) -> int:
    """Count hedges; word starts are checked last, which is faster."""
    starts = (match.start() for match in _HEDGE.finditer(text))
    return sum(1 for start in starts if not text[start - 1 : start].isalnum())


def _letters(text: str) -> tuple[int, int]:
    """Return the number of Latin letters, and of others."""
    if text.isascii():
        return sum(map(str.isalpha, text)), 0
    often = Counter(text)
    letters = {sign: count for sign, count in often.items() if sign.isalpha()}
    latin = sum(count for sign, count in letters.items() if _is_latin(sign))
    return latin, sum(letters.values()) - latin


@lru_cache(maxsize=4096)
def _is_latin(letter: str) -> bool:
    return letter.isascii() or unicodedata.name(letter, "").startswith(("LATIN", "FULLWIDTH LATIN"))


def _is_direct(text: str) -> bool:
    opening = text[:_OPENING_CHARS]
    if _PREAMBLE.match(opening) or is_refusal(opening):
        return False
    first = next(iter(sentences(opening)), "")
    return not first.rstrip("\"'*_`)").endswith(("?", "\uff1f"))
