"""Retrieval from long texts: all hidden values, and no others."""

from __future__ import annotations

import re
from collections.abc import Mapping

from forgetmap.records import Outcome
from forgetmap.scoring.extract.claims import find_marked_claims, is_hedged
from forgetmap.scoring.extract.failures import is_loop, why_nothing
from forgetmap.scoring.extract.golds import right_texts
from forgetmap.scoring.extract.thinking import visible_text
from forgetmap.scoring.extract.wording import find_mentions, fold, simplify, split_words, trim
from forgetmap.scoring.grade import Grade, grade_answer, grade_failure, grade_share
from forgetmap.scoring.scorer import FORMS, SHARE, Fields, Scale, ScorerInput, both_forms

_SPACED_DIGITS = re.compile(r"(?<![\d.])\d{1,3}(?:[ .]\d{3})+(?![\d.]*\d)")
_DIGITS = re.compile(r"(?<![\w.])\d+(?![\w]|\.\d)")


class RetrievalScorer:
    """Scorer of needles: all must be named, and no other number of the same length."""

    name = "retrieval"
    version = 1
    fields: Mapping[str, Scale] = {**FORMS, "recall": SHARE}

    def score(self, sample: ScorerInput) -> Fields:
        """Return the values; `recall` is the share of needles named, regardless of other text."""
        needles = right_texts(sample.gold)
        visible, cut = visible_text(sample.response, sample.finish_reason)
        text = _joined(simplify(visible))
        answer = _stated_answer(text)
        names = _named_needles(needles, answer)
        if not names:
            why = _reason(sample.response, text, answer, cut=cut)
            return {**both_forms(why), "recall": why}
        right = len(names) == len(needles) and not _names_other_numbers(needles, answer)
        titles = ", ".join(names)
        grade = grade_answer(titles, right=right, strict=_is_bare(needles, text, answer))
        return {**both_forms(grade), "recall": grade_share(len(names) / len(needles), titles)}


def _stated_answer(text: str) -> str:
    """Return the stated answer, else the whole response."""
    claims = find_marked_claims(text)
    return claims[-1].phrase if claims else text.strip()


def _named_needles(needles: tuple[str, ...], answer: str) -> list[str]:
    """Return the needles that are named and not negated."""
    text = fold(answer)
    words = split_words(text)
    return [
        needle
        for needle in needles
        if any(
            not is_hedged(text, words[first].start)
            for first, _ in find_mentions(_joined(simplify(needle)), words)
        )
    ]


def _joined(text: str) -> str:
    """Join digits in groups of three."""
    return _SPACED_DIGITS.sub(lambda number: re.sub("[ .]", "", number[0]), text)


def _names_other_numbers(needles: tuple[str, ...], answer: str) -> bool:
    """Whether another number as long as a needle is named and not negated."""
    expected = {fold(_joined(simplify(needle))).strip() for needle in needles}
    lengths = {len(needle) for needle in expected if needle.isdigit()}
    text = fold(answer)
    return any(
        len(number[0]) in lengths
        and number[0] not in expected
        and not is_hedged(text, number.start())
        for number in _DIGITS.finditer(text)
    )


def _is_bare(needles: tuple[str, ...], text: str, answer: str) -> bool:
    """Whether the answer has the requested form: only the needles, on the last line or alone."""
    claims = find_marked_claims(text)
    word_count = sum(len(split_words(fold(needle))) for needle in needles)
    return (not claims or claims[-1].last) and len(split_words(fold(trim(answer)))) <= word_count


def _reason(response: str, text: str, answer: str, *, cut: bool) -> Grade:
    """Grade a response without needles: another number is wrong, else there is no answer."""
    why = Outcome.DEGENERATE if is_loop(response) else why_nothing(text, cut=cut)
    numbers = _DIGITS.findall(answer) if why is Outcome.NO_ANSWER else []
    return grade_answer(numbers[-1], right=False, strict=False) if numbers else grade_failure(why)


retrieval = RetrievalScorer()
