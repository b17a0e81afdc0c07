"""What was hidden in a long text and had to be found: all of it, and nothing else of its kind."""

from __future__ import annotations

import re
from collections.abc import Mapping

from forgetmap.records.outcome import Outcome
from forgetmap.scoring.claims import hedged, marked
from forgetmap.scoring.failures import loops, refuses
from forgetmap.scoring.forms import FORMS, both_forms
from forgetmap.scoring.golds import right_texts
from forgetmap.scoring.judged import Judged, failed, graded
from forgetmap.scoring.measured import shared
from forgetmap.scoring.scorer import SHARE, Answered, Fields, Scale
from forgetmap.scoring.thinking import without_thinking
from forgetmap.scoring.wording import plain, trimmed
from forgetmap.scoring.words import folded, mentions, words

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
        aloud, thought_out = without_thinking(sample.response)
        text = _joined(plain(aloud))
        said = _said(text)
        found = [needle for needle in needles if _found(needle, said)]
        recall = shared(len(found) / len(needles), ", ".join(found) or None)
        if not found:
            why = _reason(sample, text, thought_out=thought_out)
            return {**both_forms(why), "recall": why}
        right = len(found) == len(needles) and not _strangers(needles, said)
        judged = graded(", ".join(found), right=right, strict=_is_bare(needles, text, said))
        return {**both_forms(judged), "recall": recall}


def _said(text: str) -> str:
    """What the response says its answer is, or else all of it."""
    claims = marked(text)
    return claims[-1].phrase if claims else text.strip()


def _found(needle: str, said: str) -> bool:
    text = folded(said)
    spoken = words(text)
    return any(
        not hedged(text, spoken[first].start)
        for first, _ in mentions(_joined(plain(needle)), spoken)
    )


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


def _reason(sample: Answered, text: str, *, thought_out: bool) -> Judged:
    """Why no needle was found."""
    if loops(sample.response):
        return failed(Outcome.DEGENERATE)
    if sample.finish_reason == "length" or not thought_out:
        return failed(Outcome.TRUNCATED)
    if refuses(text):
        return failed(Outcome.REFUSED)
    named = _DIGITS.findall(_said(text))
    return graded(named[-1], right=False, strict=False) if named else failed(Outcome.NO_ANSWER)


retrieval = RetrievalScorer()
