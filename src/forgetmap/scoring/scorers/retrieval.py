"""What was hidden in a long text and had to be found: all of it, and nothing else of its kind."""

from __future__ import annotations

import re
from collections.abc import Mapping

from forgetmap.records import Outcome
from forgetmap.scoring.extract.claims import hedged, marked
from forgetmap.scoring.extract.failures import loops, why_nothing
from forgetmap.scoring.extract.golds import right_texts
from forgetmap.scoring.extract.thinking import visible_text
from forgetmap.scoring.extract.wording import folded, mentions, plain, trimmed, words
from forgetmap.scoring.grade import Grade, failed, graded, shared
from forgetmap.scoring.scorer import FORMS, SHARE, Answered, Fields, Scale, both_forms

_SPACED_DIGITS = re.compile(r"(?<![\d.])\d{1,3}(?:[ .]\d{3})+(?![\d.]*\d)")
_DIGITS = re.compile(r"(?<![\w.])\d+(?![\w]|\.\d)")


class RetrievalScorer:
    """Every needle must be named; a number of the same length that is none of them must not."""

    name = "retrieval"
    version = 1
    fields: Mapping[str, Scale] = {**FORMS, "recall": SHARE}

    def score(self, sample: Answered) -> Fields:
        """`recall` is the share of needles found, whatever else is said."""
        needles = right_texts(sample.gold)
        aloud, cut = visible_text(sample.response, sample.finish_reason)
        text = _joined(plain(aloud))
        said = _said(text)
        found = _found(needles, said)
        if not found:
            why = _reason(sample.response, text, said, cut=cut)
            return {**both_forms(why), "recall": why}
        right = len(found) == len(needles) and not _strangers(needles, said)
        named = ", ".join(found)
        judged = graded(named, right=right, strict=_is_bare(needles, text, said))
        return {**both_forms(judged), "recall": shared(len(found) / len(needles), named)}


def _said(text: str) -> str:
    """What the response says its answer is, or else all of it."""
    claims = marked(text)
    return claims[-1].phrase if claims else text.strip()


def _found(needles: tuple[str, ...], said: str) -> list[str]:
    """The needles that are named and not denied."""
    text = folded(said)
    spoken = words(text)
    return [
        needle
        for needle in needles
        if any(
            not hedged(text, spoken[first].start)
            for first, _ in mentions(_joined(plain(needle)), spoken)
        )
    ]


def _joined(text: str) -> str:
    """Digits in groups of three put together."""
    return _SPACED_DIGITS.sub(lambda number: re.sub("[ .]", "", number[0]), text)


def _strangers(needles: tuple[str, ...], said: str) -> bool:
    """Whether numbers as long as a needle are named that are none, and not to be denied."""
    wanted = {folded(_joined(plain(needle))).strip() for needle in needles}
    lengths = {len(needle) for needle in wanted if needle.isdigit()}
    text = folded(said)
    return any(
        len(number[0]) in lengths and number[0] not in wanted and not hedged(text, number.start())
        for number in _DIGITS.finditer(text)
    )


def _is_bare(needles: tuple[str, ...], text: str, said: str) -> bool:
    """In the demanded form: nothing but the needles, on the last line or alone."""
    claims = marked(text)
    wanted = sum(len(words(folded(needle))) for needle in needles)
    return (not claims or claims[-1].last) and len(words(folded(trimmed(said)))) <= wanted


def _reason(response: str, text: str, said: str, *, cut: bool) -> Grade:
    """Why no needle was found: nothing was named, or another number."""
    why = Outcome.DEGENERATE if loops(response) else why_nothing(text, cut=cut)
    named = _DIGITS.findall(said) if why is Outcome.NO_ANSWER else []
    return graded(named[-1], right=False, strict=False) if named else failed(why)


retrieval = RetrievalScorer()
